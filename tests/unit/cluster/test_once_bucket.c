/* test_once_bucket.c - whose call a key is: the gateway that runs it, or the next one when that is
 * lost.  The code is that of once_bucket.c; clock, bucket and NATS are not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
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
#include "cluster/once/once_bucket.c" /* NOLINT: the code under test, with the names above */

#define STEP_MS 100u /* as the thread polls */

static struct {
    uint64_t now_ns;
    struct buf record; /* of the only key; empty: none */
    uint64_t revision;
    bool nobody;  /* listens under the name that was asked for */
    bool refused; /* another gateway is always faster */
    uint32_t n_asked;
    char asked[64]; /* the last subject */
    uint32_t n_posted;
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
    *revision = w.revision;
    if (w.revision == 0)
        return err_set(e, SHOAL_ENOTFOUND, "no value");
    buf_put(out, w.record.data, w.record.len);
    return out->rc;
}

int bucket_put(struct bucket *k, const char *key, const void *bytes, size_t n, uint64_t expected,
               const char *id, uint64_t *revision, struct err *e)
{
    (void)k, (void)key, (void)id, (void)e;
    if (w.refused || expected != w.revision)
        return 1;
    buf_clear(&w.record);
    buf_put(&w.record, bytes, n);
    *revision = ++w.revision;
    return 0;
}

bool bus_nobody_listens(struct bus *b, const char *tail, uint32_t ms)
{
    (void)b, (void)ms;
    w.n_asked++;
    snprintf(w.asked, sizeof(w.asked), "%s", tail);
    return w.nobody;
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

static void post(struct executor *x, struct executor_task *t)
{
    (void)x, (void)t;
    w.n_posted++;
}

static struct once_bucket b;
static struct once_claim c;
static const struct executor_ops ops = {.post = post};
static struct executor x = {.ops = &ops};
static char there; /* what stands for the bucket, which only the functions above see */

#define NAME "0123456789abcdef"

static int set_up(void **state)
{
    (void)state;
    memset(&w, 0, sizeof(w));
    memset(&b, 0, sizeof(b));
    memset(&c, 0, sizeof(c));
    w.now_ns = UINT64_C(1000000000000);
    buf_init(&w.record, 1 << 16);
    b.gone_ns = GONE_MS * MS_NS;
    b.bucket = (struct bucket *)(void *)&there;
    b.there = true;
    snprintf(b.name, sizeof(b.name), "this");
    snprintf(b.listens, sizeof(b.listens), LISTENS "fedcba9876543210");
    pthread_mutex_init(&b.use, NULL);
    pthread_mutex_init(&b.lock, NULL);
    cond_init(&b.wake);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    while (b.held) {
        struct held *h = b.held;
        b.held = h->next;
        held_free(h);
    }
    buf_fini(&c.answer);
    buf_fini(&w.record);
    return 0;
}

/* Another gateway runs the call, or says so again. */
static void other_runs(const char *listens)
{
    struct once_record r = {.state = ONCE_RECORD_RUNNING,
                            .owner = "other",
                            .answer = (const uint8_t *)listens,
                            .n_answer = strlen(listens)};
    buf_clear(&w.record);
    once_record_put(&w.record, &r);
    w.revision++;
}

/* A call with the key comes here. */
static void call_comes(void)
{
    c.executor = &x;
    claim(&b.ledger, &c);
    struct once_claim *due = due_claim(&b, w.now_ns, &(uint64_t){UINT64_MAX});
    assert_ptr_equal(due, &c);
    answer_claim(&b, due);
}

/* Time passes, in steps of the thread, until the claim is decided or the time is over; the time
 * that it took. */
static uint32_t wait_ms(uint32_t ms)
{
    uint32_t passed = 0;
    while (w.n_posted == 0 && passed < ms) {
        uint64_t next_ns = UINT64_MAX;
        w.now_ns += STEP_MS * MS_NS;
        passed += STEP_MS;
        struct once_claim *due = due_claim(&b, w.now_ns, &next_ns);
        if (due)
            answer_claim(&b, due);
    }
    return passed;
}

static struct once_record record(void)
{
    struct once_record r;
    struct err e = {0};
    assert_int_equal(once_record_read(&r, (const uint8_t *)w.record.data, w.record.len, &e), 0);
    return r;
}

static void assert_mine(void)
{
    assert_int_equal(w.n_posted, 1);
    assert_int_equal(c.how, ONCE_CLAIMED_MINE);
    assert_string_equal(record().owner, "this");
    assert_int_equal(record().state, ONCE_RECORD_RUNNING);
    assert_non_null(b.held);
    assert_int_equal(b.held->revision, w.revision);
}

/* The process of the gateway that runs the call has ended: nobody listens under its name, and after
 * two seconds of that its call is free, far before its record is old. */
static void test_a_gateway_that_has_ended(void **state)
{
    (void)state;
    other_runs(NAME);
    w.nobody = true;
    call_comes();
    assert_int_equal(w.n_posted, 0); /* it may only change its NATS server */
    assert_string_equal(w.asked, "alive." NAME);
    assert_int_equal(wait_ms(5000), 2000);
    assert_mine();
}

/* One that changes its NATS server is back within that time, and it begins anew. */
static void test_a_gateway_that_was_away_for_a_moment(void **state)
{
    (void)state;
    other_runs(NAME);
    w.nobody = true;
    call_comes();
    assert_int_equal(wait_ms(1900), 1900);
    w.nobody = false;
    assert_int_equal(wait_ms(1000), 1000);
    w.nobody = true;
    wait_ms(ASK_NS / MS_NS); /* until it is asked again */
    assert_int_equal(w.n_posted, 0);
    assert_int_equal(wait_ms(1000), 1000);
    other_runs(NAME); /* it says that it still runs it */
    assert_int_equal(wait_ms(1900), 1900);
    assert_int_equal(w.n_posted, 0);
}

/* One that is stopped listens, and may go on: only the age of its record decides. */
static void test_a_gateway_that_stands_still(void **state)
{
    (void)state;
    other_runs(NAME);
    call_comes();
    for (int i = 0; i < 10; i++) { /* it goes on, slowly */
        assert_int_equal(wait_ms(9900), 9900);
        other_runs(NAME);
        assert_int_equal(wait_ms(STEP_MS), STEP_MS);
    }
    assert_int_equal(w.n_posted, 0);
    assert_in_range(w.n_asked, 150, 250); /* twice a second, not at every look */
    assert_int_equal(wait_ms(60000), 10100);
    assert_mine();
}

/* A record without a name, or with one that is no name, is not asked for. */
static void test_a_gateway_that_cannot_be_heard(void **state)
{
    static const char *const names[] = {"", "short", "0123456789ABCDEF", "*.>*.>*.>*.>*.>*"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        tear_down(state);
        set_up(state);
        w.nobody = true;
        other_runs(names[i]);
        call_comes();
        assert_int_equal(wait_ms(60000), 10100);
        assert_int_equal(w.n_asked, 0);
        assert_mine();
    }
}

/* Of two gateways that wait for a lost one, the faster runs the call; the other waits for that. */
static void test_another_one_was_faster(void **state)
{
    (void)state;
    other_runs(NAME);
    w.nobody = w.refused = true;
    call_comes();
    assert_int_equal(wait_ms(5000), 5000);
    assert_int_equal(w.n_posted, 0);
    assert_null(b.held);
    w.nobody = w.refused = false;
    other_runs(NAME);
    assert_int_equal(wait_ms(5000), 5000);
    assert_int_equal(w.n_posted, 0);
}

/* Another request with the key of a call that runs is refused, and runs once that is lost. */
static void test_another_request(void **state)
{
    (void)state;
    other_runs(NAME);
    memset(c.body, 7, sizeof(c.body));
    call_comes();
    assert_int_equal(w.n_posted, 1);
    assert_int_equal(c.how, ONCE_CLAIMED_OTHER);
    assert_string_equal(c.where, "other");
}

/* A gateway says under which name it listens only while it hears itself there. */
static void test_who_does_not_hear_itself_is_not_missed(void **state)
{
    (void)state;
    call_comes();
    assert_mine();
    assert_int_equal(record().n_answer, 0);
    w.now_ns += HEAR_NS;
    on_heard(&b, b.listens, "", 0);
    assert_false(renew(&b, b.held, false));
    assert_int_equal(record().n_answer, LISTEN_BYTES);
    assert_memory_equal(record().answer, "fedcba9876543210", LISTEN_BYTES);
    w.now_ns += 2 * HEAR_NS;
    assert_false(renew(&b, b.held, false));
    assert_int_equal(record().n_answer, 0);
}

/* One that comes back to find its call taken over leaves it there. */
static void test_a_call_that_was_taken_over(void **state)
{
    (void)state;
    call_comes();
    other_runs(NAME);
    assert_true(renew(&b, b.held, false));
    assert_string_equal(record().owner, "other");
}

#define TEST(t) cmocka_unit_test_setup_teardown(t, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_a_gateway_that_has_ended),
        TEST(test_a_gateway_that_was_away_for_a_moment),
        TEST(test_a_gateway_that_stands_still),
        TEST(test_a_gateway_that_cannot_be_heard),
        TEST(test_another_one_was_faster),
        TEST(test_another_request),
        TEST(test_who_does_not_hear_itself_is_not_missed),
        TEST(test_a_call_that_was_taken_over),
    };
    log_setup(LOG_LEVEL_ERROR, LOG_FORMAT_LOGFMT);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
