/* Tests of base/thread/thread.h: names, stacks and signals of threads. */
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/thread/thread.h"

struct seen {
    char name[32];
    size_t stack_bytes;
    sigset_t mask;
    pthread_barrier_t named; /* the creator sets the name after the thread has started */
};

static void *look(void *arg)
{
    struct seen *s = arg;
    pthread_attr_t attr;
    char path[64];
    pthread_barrier_wait(&s->named);
    snprintf(path, sizeof(path), "/proc/self/task/%d/comm", (int)gettid());
    FILE *f = fopen(path, "re");
    assert_non_null(f);
    assert_non_null(fgets(s->name, sizeof(s->name), f));
    fclose(f);
    s->name[strcspn(s->name, "\n")] = '\0';
    assert_int_equal(pthread_getattr_np(pthread_self(), &attr), 0);
    assert_int_equal(pthread_attr_getstacksize(&attr, &s->stack_bytes), 0);
    pthread_attr_destroy(&attr);
    pthread_sigmask(SIG_BLOCK, NULL, &s->mask);
    return NULL;
}

static struct seen look_into(const char *name, int number)
{
    struct seen s = {.stack_bytes = 0};
    pthread_t thread;
    struct err e = {0};
    pthread_barrier_init(&s.named, NULL, 2);
    if (number < 0)
        assert_int_equal(thread_create(&thread, name, look, &s, &e), 0);
    else
        assert_int_equal(thread_create_numbered(&thread, name, (unsigned)number, look, &s, &e), 0);
    pthread_barrier_wait(&s.named);
    pthread_join(thread, NULL);
    pthread_barrier_destroy(&s.named);
    return s;
}

static void test_names_show_in_proc(void **state)
{
    (void)state;
    assert_string_equal(look_into("registry", -1).name, "registry");
    assert_string_equal(look_into("loop", 0).name, "loop-0");
    assert_string_equal(look_into("engine-0123456789abcdef", -1).name, "engine-01234567");
}

static void test_stack_has_a_fixed_size(void **state)
{
    (void)state;
    const size_t bytes = look_into("stack", -1).stack_bytes;
    assert_true(bytes >= (size_t)2 << 20 && bytes <= (size_t)8 << 20);
}

/* Signals of the process go to the main thread; a thread's own faults stay with it, and the
 * creator's mask is unchanged. */
static void test_threads_take_no_signals(void **state)
{
    (void)state;
    sigset_t before, after;
    pthread_sigmask(SIG_BLOCK, NULL, &before);
    const struct seen s = look_into("signals", -1);
    pthread_sigmask(SIG_BLOCK, NULL, &after);
    assert_true(sigismember(&s.mask, SIGINT) && sigismember(&s.mask, SIGTERM));
    assert_true(sigismember(&s.mask, SIGHUP) && sigismember(&s.mask, SIGCHLD));
    assert_false(sigismember(&s.mask, SIGSEGV) || sigismember(&s.mask, SIGBUS));
    for (int i = 1; i < SIGRTMIN; i++)
        assert_int_equal(sigismember(&before, i), sigismember(&after, i));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names_show_in_proc),
        cmocka_unit_test(test_stack_has_a_fixed_size),
        cmocka_unit_test(test_threads_take_no_signals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
