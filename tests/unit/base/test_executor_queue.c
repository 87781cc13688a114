/* test_executor_queue.c - posts of several threads, deferred tasks and timers on an owner without
 * an event loop. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <poll.h>
#include <pthread.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/thread/executor_queue.h"

#define N_THREADS 4
#define N_POSTS 2000

static struct executor_queue queue;

struct note {
    struct executor_task task;
    struct executor_timer timer;
    uint32_t thread, number;
};

static uint32_t n_run, next_of[N_THREADS];
static uint32_t order[8], n_order;

static void on_post(struct executor_task *t)
{
    struct note *n = EXECUTOR_OF(t, struct note, task);
    assert_int_equal(n->number, next_of[n->thread]); /* posts of one thread keep their order */
    next_of[n->thread]++;
    n_run++;
}

static void *post_all(void *arg)
{
    struct note *notes = arg;
    for (uint32_t i = 0; i < N_POSTS; i++)
        executor_post(&queue.executor, &notes[i].task);
    return NULL;
}

static void test_posts_of_threads(void **state)
{
    static struct note notes[N_THREADS][N_POSTS];
    pthread_t threads[N_THREADS];
    (void)state;
    for (uint32_t t = 0; t < N_THREADS; t++) {
        for (uint32_t i = 0; i < N_POSTS; i++)
            notes[t][i] = (struct note){.task.fn = on_post, .thread = t, .number = i};
        assert_int_equal(pthread_create(&threads[t], NULL, post_all, notes[t]), 0);
    }
    while (n_run < N_THREADS * N_POSTS)
        assert_true(executor_queue_turn(&queue, 60000));
    for (uint32_t t = 0; t < N_THREADS; t++)
        pthread_join(threads[t], NULL);
    struct pollfd p = {.fd = queue.fd, .events = POLLIN};
    assert_int_equal(poll(&p, 1, 0), 0); /* nothing is left */
    assert_false(executor_queue_turn(&queue, 0));
}

static void write_down(struct executor_task *t)
{
    order[n_order++] = EXECUTOR_OF(t, struct note, task)->number;
}

static void write_down_timer(struct executor_timer *t)
{
    order[n_order++] = EXECUTOR_OF(t, struct note, timer)->number;
}

static void test_deferred_tasks_run_last_and_once(void **state)
{
    struct note a = {.task.fn = write_down, .number = 1}, b = {.task.fn = write_down, .number = 2};
    (void)state;
    n_order = 0;
    assert_int_equal(executor_queue_wait_ms(&queue), -1);
    executor_later(&queue.executor, &b.task);
    executor_later(&queue.executor, &b.task);
    assert_int_equal(executor_queue_wait_ms(&queue), 0);
    executor_post(&queue.executor, &a.task);
    assert_true(executor_queue_run(&queue));
    assert_int_equal(n_order, 2);
    assert_int_equal(order[0], 1);
    assert_int_equal(order[1], 2);
    assert_false(executor_queue_run(&queue));
    executor_later(&queue.executor, &b.task); /* free to be used again */
    assert_true(executor_queue_turn(&queue, -1));
    assert_int_equal(n_order, 3);
}

static void test_timers_fire_in_order(void **state)
{
    struct note n[4];
    uint64_t now = clock_ns();
    (void)state;
    n_order = 0;
    for (uint32_t i = 0; i < 4; i++)
        n[i] = (struct note){.timer.fn = write_down_timer, .number = i};
    executor_timer_set(&queue.executor, &n[0].timer, now + 3000000);
    executor_timer_set(&queue.executor, &n[1].timer, now + 1000000);
    executor_timer_set(&queue.executor, &n[2].timer, now + 2000000);
    executor_timer_set(&queue.executor, &n[3].timer, now + 2500000);
    executor_timer_set(&queue.executor, &n[1].timer, now + 4000000); /* moved to the end */
    executor_timer_clear(&queue.executor, &n[3].timer);
    executor_timer_clear(&queue.executor, &n[3].timer); /* twice is fine */
    assert_in_range(executor_queue_wait_ms(&queue), 0, 4);
    while (n_order < 3)
        executor_queue_turn(&queue, -1);
    assert_int_equal(order[0], 2);
    assert_int_equal(order[1], 0);
    assert_int_equal(order[2], 1);
    assert_true(clock_ns() >= now + 4000000);
    assert_int_equal(executor_queue_wait_ms(&queue), -1);
    executor_timer_set(&queue.executor, &n[0].timer, UINT64_MAX); /* far in the future */
    assert_true(executor_queue_wait_ms(&queue) > 1000000);
    executor_timer_clear(&queue.executor, &n[0].timer);
}

static int setup(void **state)
{
    (void)state;
    return executor_queue_init(&queue, NULL);
}

static int teardown(void **state)
{
    (void)state;
    executor_queue_fini(&queue);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_posts_of_threads),
        cmocka_unit_test(test_deferred_tasks_run_last_and_once),
        cmocka_unit_test(test_timers_fire_in_order),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
