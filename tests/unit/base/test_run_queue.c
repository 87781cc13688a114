/* test_run_queue.c - the time that threads wait for a core is counted, and apart from their work.
 */
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/thread/run_queue.h"
#include "base/thread/thread.h"
#include "support/watchdog.h"

static atomic_bool stop;

/* Computes on the first core that this process may use, until told to stop. */
static void *compute(void *joined)
{
    cpu_set_t all, first;
    sched_getaffinity(0, sizeof(all), &all);
    CPU_ZERO(&first);
    for (size_t i = 0; i < CPU_SETSIZE && CPU_COUNT(&first) == 0; i++)
        if (CPU_ISSET(i, &all))
            CPU_SET(i, &first);
    sched_setaffinity(0, sizeof(first), &first);
    const int place = run_queue_join();
    atomic_store((atomic_int *)joined, place);
    while (!atomic_load(&stop))
        ;
    run_queue_leave(place);
    return NULL;
}

static void test_two_threads_on_one_core_wait_for_each_other(void **state)
{
    pthread_t threads[2];
    static atomic_int places[2];
    const struct run_queue_time before = run_queue_read();
    struct run_queue_time t = before, last;
    (void)state;
    if (access("/proc/thread-self/schedstat", R_OK) != 0)
        skip(); /* this kernel does not count */
    atomic_store(&stop, false);
    for (int i = 0; i < 2; i++)
        atomic_store(&places[i], -1);
    for (int i = 0; i < 2; i++)
        assert_int_equal(thread_create(&threads[i], "compute", compute, &places[i], NULL), 0);
    WAIT_UNTIL((last = t, t = run_queue_read(), t.ran_ns >= last.ran_ns) &&
               t.waited_ns >= last.waited_ns && t.ran_ns > before.ran_ns &&
               t.waited_ns > before.waited_ns);
    WAIT_UNTIL(atomic_load(&places[0]) >= 0 && atomic_load(&places[1]) >= 0);
    atomic_store(&stop, true);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    assert_int_not_equal(places[0], places[1]);
    last = run_queue_read(); /* what they did stays counted */
    assert_true(last.ran_ns >= t.ran_ns && last.waited_ns >= t.waited_ns);
    const struct run_queue_time again = run_queue_read();
    assert_true(again.ran_ns == last.ran_ns && again.waited_ns == last.waited_ns);
    run_queue_leave(-1); /* a thread that could not join */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_two_threads_on_one_core_wait_for_each_other),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
