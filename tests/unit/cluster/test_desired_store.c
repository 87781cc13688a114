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
    bool stale;      /* that one answers */
    bool lost;       /* NATS has lost its data */
    struct buf said; /* the last message to the members */
    char subject[16];
    uint32_t n_said;
    uint64_t called; /* the last number that the owner was told */
    uint32_t n_reads;
    struct desired *base;
    bool takes;             /* writes are taken: the last one */
    struct desired *stored; /* or NULL */
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
    *revision = 0;
    if (w.lost)
        return err_set(e, SHOAL_ENOTFOUND, "no value");
    w.base->version = w.version[w.stale];
    *revision = w.revision[w.stale];
    return desired_code_put(out, w.base, e);
}

int bucket_put(struct bucket *k, const char *key, const void *bytes, size_t n, uint64_t expected,
               const char *id, uint64_t *revision, struct err *e)
{
    (void)k, (void)key, (void)id;
    if (!w.takes)
        return err_set(e, SHOAL_EBUSY, "not here");
    assert_int_equal(expected, w.revision[0]);
    desired_destroy(w.stored);
    assert_int_equal(desired_code_get(&w.stored, bytes, n, e), 0);
    *revision = expected + 1;
    return 0;
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
    buf_fini(&w.said);
    desired_destroy(w.base);
    desired_destroy(w.stored);
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
    (void)b, (void)e;
    snprintf(w.subject, sizeof(w.subject), "%s", tail);
    buf_fini(&w.said);
    buf_init(&w.said, 1 << 20);
    buf_put(&w.said, bytes, n);
    w.n_said++;
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
    desired_store_heard(&s, &(struct desired_heard){.version = 2});
    assert_true(s.notice); /* it looks at once */
    look_after(1);
    assert_int_equal(s.status.version, 2);
    s.notice = false;
    desired_store_heard(&s, &(struct desired_heard){.version = 2});
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

static void on_call(void *ctx, uint64_t number)
{
    (void)ctx;
    w.called = number;
}

/* Another member follows this version, and answers this call. */
static void hear(uint64_t version, uint64_t number)
{
    desired_store_heard(
        &s, &(struct desired_heard){.name = "b", .version = version, .roll_call = number});
}

/* NATS has lost a change that another member has: it is asked for it, and that is written back. */
static void test_a_newer_copy_is_fetched(void **state)
{
    struct desired *d = NULL;
    struct roll_code c;
    struct buf copy;
    struct err e = {0};
    (void)state;
    look_after(0);
    hear(1, 0);
    w.lost = true;
    assert_int_equal(begin(&s, 7, &d, &e), SHOAL_ENOTFOUND);
    assert_int_equal(roll_code_parse(&c, w.said.data, w.said.len, &e), 0);
    assert_int_equal(c.have.version, 1);
    const uint64_t number = c.number;
    hear(2, number);
    w.now_ns += 5000 * (uint64_t)MS;
    assert_int_equal(begin(&s, 7, &d, &e), SHOAL_ENOTFOUND); /* it knows more */
    buf_init(&copy, 1 << 20);
    struct buf bytes;
    buf_init(&bytes, 1 << 20);
    w.base->version = 2;
    w.base->epoch = 9; /* the change */
    assert_int_equal(desired_code_put(&bytes, w.base, &e), 0);
    assert_int_equal(roll_code_put_copy(&copy, number + 2, bytes.data, bytes.len), 0);
    on_notice(&s, "", copy.data, copy.len); /* an answer to another call */
    assert_int_equal(begin(&s, 7, &d, &e), SHOAL_ENOTFOUND);
    buf_fini(&copy);
    buf_init(&copy, 1 << 20);
    assert_int_equal(roll_code_put_copy(&copy, number, bytes.data, bytes.len), 0);
    on_notice(&s, "", copy.data, copy.len);
    assert_int_equal(s.status.version, 1); /* it is not followed, only written back */
    hear(2, number);
    desired_store_heard(&s, &(struct desired_heard){
                                .name = "b", .version = 2, .roll_call = number, .known_fence = 8});
    assert_int_equal(begin(&s, 7, &d, &e), SHOAL_ECHANGED); /* a member knows a higher fence */
    assert_int_equal(begin(&s, 9, &d, &e), 0);
    assert_int_equal(d->version, 2);
    assert_int_equal(d->epoch, 9);
    desired_destroy(d);
    buf_fini(&bytes);
    buf_fini(&copy);
}

/* NATS lost the state, of which members know: no act of an administrator begins an empty one beside
 * it, and what the controller writes back comes after the newest version that anybody knows, with
 * its fence. */
static void test_a_lost_state_is_not_begun_anew(void **state)
{
    struct desired *d = NULL;
    struct err e = {0};
    (void)state;
    look_after(0);
    w.lost = true;
    assert_int_equal(begin(&s, 0, &d, &e), SHOAL_EBUSY);
    assert_null(d);
    hear(6, 0); /* by somebody who is gone when he is asked for it */
    assert_int_equal(begin(&s, 7, &d, &e), SHOAL_ENOTFOUND);
    w.now_ns += 31000 * (uint64_t)MS;
    assert_int_equal(begin(&s, 7, &d, &e), 0);
    assert_memory_equal(d->id, w.base->id, DESIRED_ID_BYTES);
    assert_int_equal(d->version, 6); /* the write makes it 7 */
    assert_int_equal(d->fence, 0);
    desired_destroy(d);
}

static void deploy(struct desired *d, const char *name, uint8_t version)
{
    const struct desired_model m = {.name = name,
                                    .sha256 = {version},
                                    .source = "",
                                    .apart = "",
                                    .replicas_max = 1,
                                    .memory_bytes = 1};
    assert_int_equal(desired_put_model(d, &m), 0);
}

static int write_back(uint64_t fence, struct err *e)
{
    *e = (struct err){0};
    return attempt(&s, fence, change_nothing, NULL, w.now_ns, NULL, e);
}

/* NATS lost the state while all who knew it were away, and an administrator began another one: the
 * first controller that knows the lost one writes it back, with what was asked for meanwhile. */
static void test_two_states_are_united(void **state)
{
    struct desired *lost = NULL;
    struct err e;
    (void)state;
    assert_int_equal(desired_create(&lost, &e), 0);
    lost->version = 5;
    lost->fence = 3;
    deploy(lost, "old", 1);
    deploy(lost, "both", 1);
    keep_copy(&s, lost);
    deploy(w.base, "new", 2);
    deploy(w.base, "both", 2);
    assert_int_equal(desired_set_drained(w.base, "n", true), 0);
    w.takes = true;
    assert_int_equal(write_back(0, &e), 0); /* an administrator, who changes what there is */
    assert_memory_equal(w.stored->id, w.base->id, DESIRED_ID_BYTES);
    assert_int_equal(write_back(7, &e), SHOAL_ENOTFOUND); /* others may know more */
    w.now_ns += 31000 * (uint64_t)MS;
    assert_int_equal(write_back(7, &e), 0);
    assert_memory_equal(w.stored->id, lost->id, DESIRED_ID_BYTES);
    assert_int_equal(w.stored->version, 6);
    assert_int_equal(w.stored->fence, 7);
    assert_int_equal(w.stored->n_models, 3);
    assert_non_null(desired_find_model(w.stored, "old"));
    assert_non_null(desired_find_model(w.stored, "new"));
    assert_int_equal(desired_find_model(w.stored, "both")->sha256[0], 1); /* it runs */
    assert_true(desired_is_drained(w.stored, "n"));
    /* what a controller has carried out stays */
    w.base->fence = 2;
    assert_int_equal(write_back(7, &e), 0);
    assert_memory_equal(w.stored->id, w.base->id, DESIRED_ID_BYTES);
    assert_null(desired_find_model(w.stored, "old"));
    /* a state without content gives way */
    w.base->fence = 0;
    desired_remove_model(lost, "old");
    desired_remove_model(lost, "both");
    keep_copy(&s, lost);
    assert_int_equal(write_back(7, &e), 0);
    assert_memory_equal(w.stored->id, w.base->id, DESIRED_ID_BYTES);
    desired_destroy(lost);
}

/* Only a gateway, which may not write the state, has a copy: it is used when nobody else has one.
 */
static void test_a_spare_copy(void **state)
{
    struct desired *d = NULL;
    struct buf copy, bytes;
    struct err e = {0};
    (void)state;
    w.lost = true;
    hear(5, 0);
    assert_int_equal(begin(&s, 7, &d, &e), SHOAL_ENOTFOUND);
    buf_init(&copy, 1 << 20);
    buf_init(&bytes, 1 << 20);
    for (uint64_t version = 4; version < 6; version++) {
        buf_clear(&copy);
        buf_clear(&bytes);
        w.base->version = version;
        assert_int_equal(desired_code_put(&bytes, w.base, &e), 0);
        assert_int_equal(roll_code_put_copy(&copy, s.roll.number, bytes.data, bytes.len), 0);
        on_spare(&s, "", copy.data, copy.len);
    }
    on_spare(&s, "", copy.data, copy.len - 1); /* damaged */
    hear(5, s.roll.number);
    w.now_ns += 20000 * (uint64_t)MS;
    assert_int_equal(begin(&s, 7, &d, &e), SHOAL_ENOTFOUND); /* one with the right may come */
    w.now_ns += 10000 * (uint64_t)MS;
    assert_int_equal(begin(&s, 7, &d, &e), 0);
    assert_int_equal(d->version, 5);
    desired_destroy(d);
    buf_fini(&bytes);
    buf_fini(&copy);
}

/* A call of another member is answered, with the copy if that is newer; on a subject of its own if
 * this member may not write the state. */
static void test_a_call_is_answered(void **state)
{
    struct roll_code c;
    struct buf call;
    struct err e = {0};
    (void)state;
    s.on_call = on_call;
    look_after(0);
    change();
    look_after(100);
    for (int i = 0; i < 4; i++) {
        buf_init(&call, 1 << 10);
        w.n_said = 0;
        s.answers = i != 2;
        assert_int_equal(roll_code_put_call(&call, 50 + (uint64_t)i,
                                            (struct roll_call_mark){.version = i == 1 ? 2 : 1}),
                         0);
        on_notice(&s, "", call.data, i == 3 ? call.len - 1 : call.len); /* the last is damaged */
        assert_int_equal(w.called, i == 3 ? 52 : 50 + i);
        assert_int_equal(w.n_said, i == 0 || i == 2);
        if (w.n_said)
            assert_string_equal(w.subject, i == 2 ? "copy" : "desired");
        buf_fini(&call);
        if (i > 0)
            continue;
        assert_int_equal(roll_code_parse(&c, w.said.data, w.said.len, &e), 0);
        assert_int_equal(c.state->version, 2);
        assert_int_equal(c.number, 50);
        roll_code_free(&c);
    }
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
        cmocka_unit_test_setup_teardown(test_a_newer_copy_is_fetched, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_lost_state_is_not_begun_anew, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_two_states_are_united, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_spare_copy, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_call_is_answered, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_copy_without_a_disk, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_other_keys_end_to_matter, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_members_tell_what_it_missed, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_read_is_repeated_until_it_is_the_newest, set_up,
                                        tear_down)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
