/* test_desired_store.c - a member and a NATS server that stood still and answers from the past: the
 * member finds what it has missed.  The code is that of desired_store.c; clock and bucket are not.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <pthread.h>
#include <time.h>

#include <cmocka.h>

#include "base/thread/thread.h"
#include "cluster/control/bucket.h"
#include "cluster/control/bus.h"

static int test_clock(clockid_t id, struct timespec *out);
static int no_thread(pthread_t *out, const char *name, void *(*fn)(void *), void *arg,
                     struct err *e);
#define clock_gettime test_clock
#define thread_create no_thread
#include "cluster/control/desired_store.c" /* NOLINT: the code under test, with the names above */

static struct {
    uint64_t now_ns;
    uint64_t last;       /* of the bucket */
    uint64_t version[2]; /* of the state: now, and as a server has it that stood still */
    uint64_t revision[2];
    bool stale; /* that one answers */
    uint32_t n_reads;
    struct desired *base;
} w;

static int test_clock(clockid_t id, struct timespec *out)
{
    (void)id;
    *out = (struct timespec){(time_t)(w.now_ns / 1000000000u), (long)(w.now_ns % 1000000000u)};
    return 0;
}

static int no_thread(pthread_t *out, const char *name, void *(*fn)(void *), void *arg,
                     struct err *e)
{
    (void)out, (void)name, (void)fn, (void)arg, (void)e;
    return SHOAL_EIO; /* the test calls what the thread would */
}

int bucket_open(struct bucket **out, struct bus *b, const char *name, uint32_t wait_ms,
                struct err *e)
{
    (void)b, (void)name, (void)wait_ms, (void)e;
    *out = NULL;
    return 0;
}

void bucket_close(struct bucket *k)
{
    (void)k;
}

void bucket_limit(struct bucket *k, uint32_t ttl_ms, int64_t max_bytes)
{
    (void)k, (void)ttl_ms, (void)max_bytes;
}

int bucket_create(struct bucket *k, unsigned replicas, unsigned history, struct err *e)
{
    (void)k, (void)replicas, (void)history, (void)e;
    return 0;
}

int bucket_get(struct bucket *k, const char *key, struct buf *out, uint64_t *revision,
               struct err *e)
{
    (void)k, (void)key;
    w.n_reads++;
    w.base->version = w.version[w.stale];
    *revision = w.revision[w.stale];
    return desired_code_put(out, w.base, e);
}

int bucket_put(struct bucket *k, const char *key, const void *bytes, size_t n, uint64_t expected,
               const char *id, uint64_t *revision, struct err *e)
{
    (void)k, (void)key, (void)bytes, (void)n, (void)expected, (void)id, (void)revision;
    return err_set(e, SHOAL_EBUSY, "not here");
}

int bucket_confirm(struct bucket *k, uint64_t revision, struct err *e)
{
    (void)k, (void)e;
    return revision == w.revision[0] ? 0 : 1;
}

int bucket_last(struct bucket *k, uint64_t *revision, struct err *e)
{
    (void)k, (void)e;
    *revision = w.last;
    return 0;
}

static void post(struct executor *x, struct executor_task *t)
{
    (void)x, (void)t;
}

static struct desired_store s;
static const struct executor_ops ops = {.post = post};
static struct executor x = {.ops = &ops};

static int set_up(void **state)
{
    struct err e = {0};
    (void)state;
    memset(&w, 0, sizeof(w));
    memset(&s, 0, sizeof(s));
    s.x = &x;
    s.bus = NULL;
    s.poll_ms = DEFAULT_POLL_MS;
    s.retry_ms = 1000;
    w.now_ns = UINT64_C(1000000000000);
    pthread_mutex_init(&s.lock, NULL);
    pthread_cond_init(&s.wake, NULL);
    assert_int_equal(desired_create(&w.base, &e), 0);
    w.last = 1;
    w.version[0] = w.revision[0] = 1;
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    desired_destroy(s.next);
    buf_fini(&s.copy);
    desired_destroy(w.base);
    return 0;
}

/* bus.h: no connection is ever lost here. */
void bus_get_status(struct bus *b, struct bus_status *out)
{
    (void)b;
    *out = (struct bus_status){.link = BUS_UP, .n_connects = 1};
}

int bus_publish(struct bus *b, const char *tail, const void *bytes, size_t n, struct err *e)
{
    (void)b, (void)tail, (void)bytes, (void)n, (void)e;
    return 0;
}

int bus_subscribe(struct bus *b, const char *tail, bus_message_fn fn, void *ctx,
                  struct bus_sub **out, struct err *e)
{
    (void)b, (void)tail, (void)fn, (void)ctx, (void)e;
    *out = NULL;
    return 0;
}

void bus_unsubscribe(struct bus_sub *sub)
{
    (void)sub;
}

static void look_after(uint32_t ms)
{
    w.now_ns += (uint64_t)ms * MS;
    look(&s);
}

static void change(void)
{
    w.version[1] = w.version[0];
    w.revision[1] = w.revision[0];
    w.version[0]++;
    w.revision[0] = ++w.last;
}

static void test_an_answer_from_the_past_is_asked_again(void **state)
{
    (void)state;
    look_after(0);
    assert_int_equal(s.status.version, 1);
    change();
    w.stale = true; /* the bucket's last revision comes from another server than the value */
    look_after(100);
    assert_int_equal(s.status.version, 1);
    w.stale = false;
    look_after(100);
    assert_int_equal(s.status.version, 2);
}

/* A confirmed read of an administrator is a write of another key: it is not read for ever. */
static void test_other_keys_end_to_matter(void **state)
{
    (void)state;
    look_after(0);
    w.last++;
    for (int i = 0; i < 4; i++)
        look_after(6000);
    const uint32_t n = w.n_reads;
    for (int i = 0; i < 4; i++)
        look_after(6000);
    assert_int_equal(w.n_reads, n);
}

/* The notice was lost, and a server answered from the past for longer than anybody doubts it. */
static void test_members_tell_what_it_missed(void **state)
{
    (void)state;
    look_after(0);
    change();
    w.stale = true;
    for (int i = 0; i < 4; i++)
        look_after(6000);
    w.stale = false;
    look_after(6000);
    assert_int_equal(s.status.version, 1); /* it does not doubt it any more */
    s.notice = false;
    desired_store_heard(&s, 2, 0, 0);
    assert_true(s.notice); /* it looks at once */
    look_after(1);
    assert_int_equal(s.status.version, 2);
    s.notice = false;
    desired_store_heard(&s, 2, 0, 0);
    assert_false(s.notice);
}

/* The disk is full, or there is none: what it knows is written back all the same. */
static void test_a_copy_without_a_disk(void **state)
{
    struct desired *d = NULL;
    (void)state;
    look_after(0);
    change();
    look_after(100);
    assert_int_equal(find_copy(&s, &d), 2);
    assert_non_null(d);
    assert_int_equal(d->version, 2);
    desired_destroy(d);
}

static void test_a_read_is_repeated_until_it_is_the_newest(void **state)
{
    struct desired *d = NULL;
    struct err e = {0}, unsure = {0};
    (void)state;
    change();
    w.stale = true; /* never ends: time does not pass, so it gives up at once and says so */
    s.retry_ms = 0;
    assert_int_equal(desired_store_load(&s, &d, &unsure, &e), 0);
    assert_int_equal(unsure.code, SHOAL_EBUSY);
    assert_int_equal(d->version, 1);
    desired_destroy(d);
    w.stale = false;
    assert_int_equal(desired_store_load(&s, &d, &unsure, &e), 0);
    assert_int_equal(unsure.code, 0);
    assert_int_equal(d->version, 2);
    desired_destroy(d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_an_answer_from_the_past_is_asked_again, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(test_a_copy_without_a_disk, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_other_keys_end_to_matter, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_members_tell_what_it_missed, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_read_is_repeated_until_it_is_the_newest, set_up,
                                        tear_down)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
