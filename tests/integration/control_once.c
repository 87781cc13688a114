/* control_once.c - two gateways agree through a real nats-server on which of them runs a call
 * with an idempotency key: one runs it, the other waits for its answer, or takes over when the
 * first one is gone. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/thread/executor_queue.h"
#include "cluster/control/bucket.h"
#include "cluster/control/bus.h"
#include "cluster/once/once_bucket.h"
#include "cluster/once/once_record.h"
#include "host/sha256.h"
#include "support/nats_site.h"
#include "support/watchdog.h"

static struct nats_site site;

struct gateway {
    struct executor_queue queue;
    struct bus *bus;
    struct once_bucket *bucket;
    struct once_ledger *ledger;
};

struct call {
    struct once_claim claim;
    bool done;
};

static void open_gateway(struct gateway *g, const char *name, uint32_t ttl_ms, uint32_t gone_ms)
{
    const struct once_bucket_opts o = {.name = name, .ttl_ms = ttl_ms, .gone_ms = gone_ms};
    const struct bus_opts bo = {
        .cluster = "test", .name = name, .urls = site.urls, .n_urls = 1, .reconnect_ms = 50};
    struct err e = {0};
    assert_int_equal(executor_queue_init(&g->queue, &e), 0);
    assert_int_equal(bus_open(&g->bus, &bo, &g->queue.executor, NULL, NULL, &e), 0);
    if (bus_wait(g->bus, 60000, &e) < 0)
        fail_msg("%s", e.msg);
    assert_int_equal(once_bucket_create(&g->bucket, &o, &e), 0);
    assert_int_equal(once_bucket_connect(g->bucket, g->bus, &e), 0);
    g->ledger = once_bucket_ledger(g->bucket);
}

static void close_gateway(struct gateway *g)
{
    once_bucket_destroy(g->bucket);
    bus_close(g->bus);
    while (executor_queue_run(&g->queue))
        ;
    executor_queue_fini(&g->queue);
}

static void on_done(struct executor_task *t)
{
    EXECUTOR_OF(t, struct call, claim.done)->done = true;
}

static void begin(struct gateway *g, struct call *c, uint8_t key, uint8_t body)
{
    *c = (struct call){.claim = {.executor = &g->queue.executor, .done = {.fn = on_done}}};
    memset(c->claim.key, key, sizeof(c->claim.key));
    memset(c->claim.body, body, sizeof(c->claim.body));
    g->ledger->ops->claim(g->ledger, &c->claim);
}

static bool is_done(struct gateway *g, const struct call *c, double limit_s)
{
    for (double end = nats_site_now() + limit_s; !c->done && nats_site_now() < end;) {
        nats_site_pause(5);
        while (executor_queue_run(&g->queue))
            ;
    }
    return c->done;
}

static enum once_claimed wait_done(struct gateway *g, struct call *c)
{
    assert_true(is_done(g, c, 60));
    return c->claim.how;
}

static enum once_claimed ask(struct gateway *g, struct call *c, uint8_t key, uint8_t body)
{
    begin(g, c, key, body);
    return wait_done(g, c);
}

static void end_call(struct call *c)
{
    buf_fini(&c->claim.answer);
}

static void test_one_runs_and_the_other_gets_its_answer(void **state)
{
    struct gateway a, b;
    struct call first, second, third;
    (void)state;
    open_gateway(&a, "a", 60000, 60000);
    open_gateway(&b, "b", 60000, 60000);
    assert_int_equal(ask(&a, &first, 1, 1), ONCE_CLAIMED_MINE);
    assert_int_equal(ask(&b, &third, 1, 2), ONCE_CLAIMED_OTHER); /* a different request */
    end_call(&third);
    begin(&b, &second, 1, 1);
    assert_false(is_done(&b, &second, 0.5)); /* it waits */
    a.ledger->ops->complete(a.ledger, first.claim.key, "answer", 6);
    assert_int_equal(wait_done(&b, &second), ONCE_CLAIMED_ANSWERED);
    assert_string_equal(buf_str(&second.claim.answer), "answer");
    assert_string_equal(second.claim.where, "a");
    assert_int_equal(ask(&a, &third, 1, 1), ONCE_CLAIMED_ANSWERED); /* also where it ran */
    end_call(&first);
    end_call(&second);
    end_call(&third);
    /* a failure is not stored */
    assert_int_equal(ask(&a, &first, 2, 1), ONCE_CLAIMED_MINE);
    begin(&b, &second, 2, 1);
    a.ledger->ops->release(a.ledger, first.claim.key);
    assert_int_equal(wait_done(&b, &second), ONCE_CLAIMED_MINE);
    b.ledger->ops->release(b.ledger, second.claim.key);
    end_call(&first);
    end_call(&second);
    /* a cancelled wait ends without an answer */
    assert_int_equal(ask(&a, &first, 4, 1), ONCE_CLAIMED_MINE);
    begin(&b, &second, 4, 1);
    b.ledger->ops->cancel(b.ledger, &second.claim);
    assert_int_equal(wait_done(&b, &second), ONCE_CLAIMED_UNSHARED);
    end_call(&first);
    end_call(&second);
    close_gateway(&a);
    close_gateway(&b);
}

static void test_a_large_answer_is_shared_in_parts(void **state)
{
    static const size_t sizes[] = {ONCE_RECORD_PART_BYTES, ONCE_RECORD_PART_BYTES + 1,
                                   2 * ONCE_RECORD_PART_BYTES,
                                   ONCE_RECORD_MAX_PARTS * ONCE_RECORD_PART_BYTES};
    static char answer[ONCE_RECORD_MAX_PARTS * ONCE_RECORD_PART_BYTES + 1];
    struct gateway a, b;
    struct call first, second;
    (void)state;
    open_gateway(&a, "a", 60000, 60000);
    open_gateway(&b, "b", 60000, 60000);
    for (size_t i = 0; i < sizeof(answer); i++)
        answer[i] = (char)(i * 2654435761u >> 13);
    for (uint8_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        assert_int_equal(ask(&b, &first, 100 + i, 1), ONCE_CLAIMED_MINE);
        b.ledger->ops->complete(b.ledger, first.claim.key, answer, sizes[i]);
        assert_int_equal(ask(&a, &second, 100 + i, 1), ONCE_CLAIMED_ANSWERED);
        assert_int_equal(second.claim.answer.len, sizes[i]);
        assert_memory_equal(second.claim.answer.data, answer, sizes[i]);
        end_call(&first);
        end_call(&second);
    }
    /* an oversized answer stays where it ran */
    assert_int_equal(ask(&b, &first, 130, 1), ONCE_CLAIMED_MINE);
    b.ledger->ops->complete(b.ledger, first.claim.key, answer, sizeof(answer));
    assert_int_equal(ask(&a, &second, 130, 1), ONCE_CLAIMED_LARGE);
    assert_string_equal(second.claim.where, "b");
    end_call(&first);
    end_call(&second);
    close_gateway(&a);
    close_gateway(&b);
}

static void test_answers_fade(void **state)
{
    struct gateway a, b;
    struct call first, second;
    (void)state;
    open_gateway(&a, "a", 1, 60000);
    open_gateway(&b, "b", 1, 60000);
    assert_int_equal(ask(&a, &first, 10, 1), ONCE_CLAIMED_MINE);
    begin(&b, &second, 10, 2); /* a different request runs once the first is forgotten */
    enum once_claimed how = wait_done(&b, &second);
    assert_int_equal(how, ONCE_CLAIMED_OTHER);
    end_call(&second);
    a.ledger->ops->complete(a.ledger, first.claim.key, "answer", 6);
    for (double end = nats_site_now() + 60; how != ONCE_CLAIMED_MINE && nats_site_now() < end;) {
        how = ask(&b, &second, 10, 2);
        end_call(&second);
    }
    assert_int_equal(how, ONCE_CLAIMED_MINE);
    end_call(&first);
    close_gateway(&a);
    close_gateway(&b);
}

static void test_a_gateway_that_is_gone(void **state)
{
    struct gateway a, b;
    struct call first, second;
    (void)state;
    open_gateway(&a, "a", 60000, 60000);
    open_gateway(&b, "b", 60000, 600);
    assert_int_equal(ask(&a, &first, 20, 1), ONCE_CLAIMED_MINE);
    close_gateway(&a); /* before the call is finished */
    end_call(&first);
    assert_int_equal(ask(&b, &second, 20, 1), ONCE_CLAIMED_MINE);
    end_call(&second);
    close_gateway(&b);
}

/* The bytes of a running key's record that name its gateway. */
static size_t named(struct gateway *g, const struct call *c)
{
    char hex[2 * SHA256_BYTES + 1];
    struct once_record r;
    struct bucket *k;
    struct err e = {0};
    struct buf in;
    uint64_t at;
    sha256_hex(hex, c->claim.key);
    buf_init(&in, 1 << 20);
    assert_int_equal(bucket_open(&k, g->bus, "once", 60000, &e), 0);
    assert_int_equal(bucket_get(k, hex, &in, &at, &e), 0);
    assert_int_equal(once_record_read(&r, (const uint8_t *)in.data, in.len, &e), 0);
    assert_int_equal(r.state, ONCE_RECORD_RUNNING);
    const size_t n = r.n_answer;
    buf_fini(&in);
    bucket_close(k);
    return n;
}

/* Claims keys from this one on until a record names the gateway, which has then heard itself. */
static uint8_t claim_named(struct gateway *g, struct call *c, uint8_t key)
{
    const struct call never = {.done = false};
    assert_int_equal(ask(g, c, key, 1), ONCE_CLAIMED_MINE);
    for (uint8_t end = key + 50; named(g, c) == 0;) {
        end_call(c);
        assert_true(++key < end);
        assert_false(is_done(g, &never, 0.25)); /* its queue runs */
        assert_int_equal(ask(g, c, key, 1), ONCE_CLAIMED_MINE);
    }
    return key;
}

/* NATS knows that a process has ended: its call is not waited for until its record is old.  One
 * that lives and only says nothing keeps its call. */
static void test_a_gateway_whose_process_has_ended(void **state)
{
    struct gateway a, b, c;
    struct call first, second, third, fourth;
    (void)state;
    open_gateway(&a, "a", 60000, 6000000);
    open_gateway(&b, "b", 60000, 6000000);
    open_gateway(&c, "c", 60000, 6000000);
    const uint8_t lost = claim_named(&a, &first, 150), kept = claim_named(&c, &third, 200);
    close_gateway(&a);
    end_call(&first);
    begin(&b, &fourth, kept, 1);
    assert_int_equal(ask(&b, &second, lost, 1), ONCE_CLAIMED_MINE);
    assert_false(fourth.done);
    c.ledger->ops->complete(c.ledger, third.claim.key, "answer", 6);
    assert_int_equal(wait_done(&b, &fourth), ONCE_CLAIMED_ANSWERED);
    end_call(&second);
    end_call(&third);
    end_call(&fourth);
    close_gateway(&b);
    close_gateway(&c);
}

/* The revision of a key's record. */
static uint64_t revision_of(struct bucket *k, const struct call *c)
{
    char hex[2 * SHA256_BYTES + 1];
    struct err e = {0};
    struct buf in;
    uint64_t at = 0;
    sha256_hex(hex, c->claim.key);
    buf_init(&in, 1 << 20);
    assert_int_equal(bucket_get(k, hex, &in, &at, &e), 0);
    buf_fini(&in);
    return at;
}

/* A gateway that still works on a call says so again and again: however long it takes, nobody takes
 * it for gone. */
static void test_a_long_call_is_renewed(void **state)
{
    struct gateway a, b;
    struct call first, second;
    struct bucket *k;
    struct err e = {0};
    (void)state;
    open_gateway(&a, "a", 60000, 600);
    open_gateway(&b, "b", 60000, 60000);
    assert_int_equal(ask(&a, &first, 40, 1), ONCE_CLAIMED_MINE);
    begin(&b, &second, 40, 1);
    assert_int_equal(bucket_open(&k, b.bus, "once", 60000, &e), 0);
    uint64_t at = revision_of(k, &first);
    for (int i = 0; i < 2; i++) {
        const uint64_t was = at;
        WAIT_UNTIL((at = revision_of(k, &first)) > was);
    }
    a.ledger->ops->complete(a.ledger, first.claim.key, "answer", 6);
    assert_int_equal(wait_done(&b, &second), ONCE_CLAIMED_ANSWERED);
    bucket_close(k);
    end_call(&first);
    end_call(&second);
    close_gateway(&a);
    close_gateway(&b);
}

static void test_while_nats_is_away(void **state)
{
    struct gateway a, b;
    struct call first, second, third;
    (void)state;
    open_gateway(&a, "a", 60000, 60000);
    open_gateway(&b, "b", 60000, 60000);
    assert_int_equal(ask(&a, &first, 30, 1), ONCE_CLAIMED_MINE);
    begin(&b, &second, 30, 1);
    assert_false(is_done(&b, &second, 0.5)); /* it knows that a is running it */
    nats_site_kill(&site, 0);
    assert_int_equal(ask(&b, &third, 31, 1), ONCE_CLAIMED_UNSHARED); /* a new call runs */
    end_call(&third);
    a.ledger->ops->complete(a.ledger, first.claim.key, "answer", 6);
    assert_false(is_done(&b, &second, 0.5)); /* it keeps waiting */
    nats_site_restart(&site, 0);
    assert_int_equal(wait_done(&b, &second), ONCE_CLAIMED_ANSWERED);
    assert_string_equal(buf_str(&second.claim.answer), "answer");
    end_call(&first);
    end_call(&second);
    close_gateway(&a);
    close_gateway(&b);
}

static int start(void **state)
{
    (void)state;
    nats_site_begin(&site, 1);
    return 0;
}

static int stop(void **state)
{
    (void)state;
    nats_site_end(&site);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_large_answer_is_shared_in_parts),
        cmocka_unit_test(test_one_runs_and_the_other_gets_its_answer),
        cmocka_unit_test(test_answers_fade),
        cmocka_unit_test(test_a_gateway_that_is_gone),
        cmocka_unit_test(test_a_gateway_whose_process_has_ended),
        cmocka_unit_test(test_a_long_call_is_renewed),
        cmocka_unit_test(test_while_nats_is_away),
    };
    return cmocka_run_group_tests(tests, start, stop);
}
