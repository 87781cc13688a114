/* test_once.c - calls with an idempotency key: who runs, who reads along, who gets the kept answer,
 * who is refused; alone and with a ledger that gateways share.  The models and the ledger are in
 * the test's hands. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/thread/executor_queue.h"
#include "cluster/messages/event_pb.h"
#include "cluster/once/once.h"
#include "cluster/once/once_ledger.h"
#include "cluster/once/once_record.h"
#include "flow/dispatch.h"
#include "host/registry.h"
#include "support/recorder.h"

#define N_RUNS 16

struct model_run {       /* a call that reached a model */
    struct flow_job job; /* first */
    struct sink *sink;
    struct request *request;
    bool cancelled;
};

static struct {
    struct executor_queue queue;
    struct flow flow;
    struct flow_owner owner;
    struct dispatch models;
    struct once *once;
    struct model_run runs[N_RUNS];
    uint32_t n_runs;
    /* the ledger */
    struct once_ledger ledger;
    struct once_claim *claim;
    uint32_t n_claims, n_cancels, n_completed, n_released;
    struct buf shared; /* the answer that was completed */
} site;

static struct recorder a, b, c, last;

/* ---- models ---- */

static void on_cancel(struct flow_job *j)
{
    ((struct model_run *)(void *)j)->cancelled = true;
}

static bool take(struct dispatch *d, struct flow_owner *o, struct request *r, struct sink *s)
{
    trace_request("passed on:", r);
    static const struct flow_job_ops ops = {on_cancel, NULL};
    (void)d;
    o->n_jobs++;
    assert_true(site.n_runs < N_RUNS);
    struct model_run *x = &site.runs[site.n_runs++];
    *x = (struct model_run){.job = {&ops}, .sink = s, .request = r};
    s->job = &x->job;
    return true;
}

static void begin(uint32_t i)
{
    static const uint8_t sum[32] = {9};
    struct sink *s = site.runs[i].sink;
    const struct sink_start e = {
        .model = "m", .version = "v1", .sum = sum, .node = "n1", .cache = SINK_CACHE_MISS};
    s->ops->start(s, &e);
}

static void say(uint32_t i, const char *text)
{
    struct sink *s = site.runs[i].sink;
    const struct sink_token t = {.token = 7, .text = text, .text_bytes = strlen(text)};
    s->ops->token(s, &t);
    s->ops->flush(s);
}

static void close_run(uint32_t i)
{
    struct sink *s = site.runs[i].sink;
    struct request *r = site.runs[i].request;
    s->job = NULL;
    s->ops->closed(s);
    flow_give_request(&site.owner, r);
    site.owner.n_jobs--;
}

static void finish(uint32_t i)
{
    struct sink *s = site.runs[i].sink;
    const struct sink_done d = {.finish = SHOAL_FINISH_STOP,
                                .prompt_tokens = 5,
                                .generated_tokens = 2,
                                .last = true,
                                .usage = {5, 1, 2}};
    s->ops->done(s, &d);
    close_run(i);
}

static void break_down(uint32_t i)
{
    struct sink *s = site.runs[i].sink;
    struct failure f;
    failure_set(&f, FAILURE_UNAVAILABLE, SHOAL_EIO, NULL, "why", "broken by the test");
    (s->ops->fail)(s, &f);
    close_run(i);
}

/* ---- clients ---- */

static void turn(void)
{
    for (int i = 0; i < 10; i++)
        executor_queue_turn(&site.queue, 0);
}

static struct request *call(uint8_t key, const char *text)
{
    struct request *r = flow_take_request(&site.owner);
    struct request_prompt *p = arena_zalloc(&r->arena, sizeof(*p));
    p->text = request_copy(r, text, strlen(text));
    p->text_bytes = strlen(text);
    r->kind = REQUEST_GENERATE;
    r->model = "m";
    r->has_once_key = true;
    r->once_key[0] = key;
    r->generate.prompts = p;
    r->generate.n_prompts = r->generate.n = 1;
    return r;
}

static void send(struct recorder *rec, struct request *r)
{
    struct dispatch *d = once_dispatch(site.once);
    recorder_init(rec);
    assert_true(d->ops->run(d, &site.owner, r, &rec->sink));
    turn();
}

static void check_answer(const struct recorder *rec)
{
    assert_int_equal(rec->n_fails, 0);
    assert_int_equal(rec->n_closed, 1);
    assert_string_equal(rec->text[0], "hello");
    assert_string_equal(rec->model, "m");
    assert_string_equal(rec->version, "v1");
    assert_int_equal(rec->n_last, 1);
    assert_int_equal(rec->usage.prompt_tokens, 5);
    assert_int_equal(rec->usage.cached_tokens, 1);
    assert_int_equal(rec->usage.generated_tokens, 2);
}

static struct once_counts counts(void)
{
    struct once_counts n;
    once_count(site.once, &n);
    return n;
}

static void open_with(size_t max_bytes, uint32_t ttl_ms, uint32_t max_running, bool shared)
{
    const struct once_opts o = {.max_bytes = max_bytes,
                                .ttl_ms = ttl_ms,
                                .max_running = max_running,
                                .ledger = shared ? &site.ledger : NULL};
    struct err e = {0};
    assert_int_equal(once_create(&site.once, &o, &e), 0);
    site.n_runs = 0;
}

/* ---- the ledger ---- */

static void claim(struct once_ledger *g, struct once_claim *x)
{
    (void)g;
    site.claim = x;
    site.n_claims++;
}

static void decide(enum once_claimed how)
{
    struct once_claim *x = site.claim;
    site.claim = NULL;
    x->how = how;
    snprintf(x->where, sizeof(x->where), "other-gateway");
    executor_post(x->executor, &x->done);
    turn();
}

static void cancel_claim(struct once_ledger *g, struct once_claim *x)
{
    (void)g;
    site.n_cancels++;
    x->how = ONCE_CLAIMED_UNSHARED;
    site.claim = NULL;
    executor_post(x->executor, &x->done);
}

static void complete(struct once_ledger *g, const uint8_t *key, const void *answer, size_t n)
{
    (void)g;
    assert_int_equal(key[0], 1);
    site.n_completed++;
    buf_clear(&site.shared);
    buf_put(&site.shared, answer, n);
}

static void release(struct once_ledger *g, const uint8_t *key)
{
    (void)g;
    assert_int_equal(key[0], 1);
    site.n_released++;
}

static int open_site(void **state)
{
    static const struct dispatch_ops ops = {.run = take};
    static const struct once_ledger_ops ledger = {claim, cancel_claim, complete, release};
    const struct registry_opts ro = {.lent_only = true};
    (void)state;
    memset(&site, 0, sizeof(site));
    assert_int_equal(registry_create(&site.flow.registry, &ro, NULL), 0);
    assert_int_equal(executor_queue_init(&site.queue, NULL), 0);
    flow_owner_init(&site.owner, &site.flow, &site.queue.executor);
    site.models.ops = &ops;
    site.owner.dispatch = &site.models;
    site.ledger.ops = &ledger;
    buf_init(&site.shared, 1 << 20);
    return 0;
}

static int close_site(void **state)
{
    (void)state;
    turn();
    assert_int_equal(site.owner.n_jobs, 0);
    once_destroy(site.once);
    flow_owner_fini(&site.owner);
    executor_queue_fini(&site.queue);
    registry_destroy(site.flow.registry);
    buf_fini(&site.shared);
    return 0;
}

/* ---- alone ---- */

static void test_one_run_for_all(void **state)
{
    (void)state;
    trace("== %s\n", __func__);
    open_with(1 << 20, 600000, 0, false);
    send(&a, call(1, "x"));
    assert_int_equal(site.n_runs, 1);
    begin(0);
    say(0, "hel");
    turn();
    assert_string_equal(a.text[0], "hel"); /* as it comes */
    send(&b, call(1, "x"));
    assert_int_equal(site.n_runs, 1);
    assert_string_equal(b.text[0], "hel"); /* from the beginning */
    assert_int_equal(counts().n_running, 1);
    assert_int_equal(counts().n_joined, 1);
    say(0, "lo");
    finish(0);
    turn();
    check_answer(&a);
    check_answer(&b);
    send(&c, call(1, "x")); /* kept */
    check_answer(&c);
    assert_string_equal(c.start.node, "n1");
    assert_int_equal(c.start.sum[0], 9);
    assert_int_equal(site.n_runs, 1);
    struct once_counts n = counts();
    assert_int_equal(n.n_first, 1);
    assert_int_equal(n.n_replayed, 1);
    assert_int_equal(n.n_kept, 1);
    assert_int_equal(n.n_running, 0);
    assert_true(n.bytes > 0);
    send(&a, call(2, "x")); /* another key */
    assert_int_equal(site.n_runs, 2);
    begin(1);
    say(1, "hello");
    finish(1);
    turn();
    check_answer(&a);
    assert_int_equal(counts().n_kept, 2);
}

/* What describes a client or a moment is not part of the request. */
static void test_what_is_the_same(void **state)
{
    (void)state;
    trace("== %s\n", __func__);
    open_with(1 << 20, 600000, 0, false);
    struct request *r = call(1, "x");
    snprintf(r->id, sizeof(r->id), "first");
    r->spans.context = (struct trace_context){.id = {1}, .span = 7};
    r->received_ns = 77;
    r->deadline_ns = clock_ns() + 60000000000u;
    const uint64_t deadline = r->deadline_ns;
    send(&a, r);
    assert_string_equal(site.runs[0].request->id, "first");
    assert_int_equal(site.runs[0].request->spans.context.span, 7);
    assert_int_equal(site.runs[0].request->received_ns, 77);
    assert_int_equal(site.runs[0].request->deadline_ns, deadline);
    r = call(1, "x");
    snprintf(r->id, sizeof(r->id), "second");
    r->node = "elsewhere";
    r->epoch = 3;
    send(&b, r);
    assert_int_equal(site.n_runs, 1);
    send(&c, call(1, "y")); /* another text is another request */
    assert_int_equal(c.n_fails, 1);
    assert_int_equal(c.failure.kind, FAILURE_CONFLICT);
    assert_string_equal(c.reason, "idempotency_key_reused");
    assert_string_equal(c.failure.param, "idempotency-key");
    assert_int_equal(c.n_closed, 1);
    assert_int_equal(counts().n_conflicts, 1);
    begin(0);
    say(0, "hello");
    finish(0);
    turn();
    check_answer(&a);
    check_answer(&b);
    send(&c, call(1, "y"));
    assert_int_equal(c.n_fails, 1);
    assert_int_equal(counts().n_conflicts, 2);
}

/* A failure is told to all that wait, and the next call tries again. */
static void test_a_failure_is_not_kept(void **state)
{
    (void)state;
    trace("== %s\n", __func__);
    open_with(1 << 20, 600000, 0, false);
    send(&a, call(1, "x"));
    send(&b, call(1, "x"));
    begin(0);
    say(0, "he");
    break_down(0);
    turn();
    assert_string_equal(a.failure.message, "broken by the test");
    assert_string_equal(b.failure.message, "broken by the test");
    assert_int_equal(a.n_closed + b.n_closed, 2);
    assert_int_equal(counts().n_kept, 0);
    send(&a, call(1, "x"));
    assert_int_equal(site.n_runs, 2);
    begin(1);
    say(1, "hello");
    finish(1);
    turn();
    check_answer(&a);
    /* One that ends without a result at all. */
    send(&a, call(2, "x"));
    begin(2);
    close_run(2);
    turn();
    assert_int_equal(a.n_fails, 1);
    assert_non_null(strstr(a.failure.message, "was interrupted; try again"));
}

/* The run does not depend on its clients. */
static void test_clients_that_go(void **state)
{
    (void)state;
    trace("== %s\n", __func__);
    open_with(1 << 20, 600000, 0, false);
    send(&a, call(1, "x"));
    begin(0);
    flow_cancel(&a.sink);
    assert_int_equal(a.n_closed, 0); /* not from within */
    turn();
    assert_int_equal(a.n_closed, 1);
    assert_int_equal(a.n_fails, 0);
    assert_false(site.runs[0].cancelled);
    say(0, "hello");
    finish(0);
    turn();
    send(&b, call(1, "x"));
    check_answer(&b);
    /* One that cancels within its own event. */
    recorder_init(&c);
    struct dispatch *d = once_dispatch(site.once);
    c.cancel_at = RECORDER_START;
    assert_true(d->ops->run(d, &site.owner, call(1, "x"), &c.sink));
    turn();
    assert_int_equal(c.n_closed, 1);
    assert_int_equal(c.n_tokens, 0);
}

/* A slow reader holds up neither the run nor others. */
static void test_slow_readers(void **state)
{
    (void)state;
    trace("== %s\n", __func__);
    open_with(1 << 20, 600000, 0, false);
    send(&a, call(1, "x"));
    send(&b, call(1, "x"));
    a.full = true;
    begin(0);
    say(0, "hel");
    say(0, "lo");
    finish(0);
    turn();
    check_answer(&b);
    assert_int_equal(a.n_tokens, 0);
    flow_resume(&a.sink); /* still full */
    turn();
    assert_int_equal(a.n_tokens, 0);
    a.full = false;
    flow_resume(&a.sink);
    assert_int_equal(a.n_tokens, 0); /* not from within */
    turn();
    check_answer(&a);
}

/* The oldest answers go first: by time, or for lack of memory. */
static void test_what_is_forgotten(void **state)
{
    (void)state;
    trace("== %s\n", __func__);
    open_with(1 << 20, 600000, 0, false);
    send(&a, call(1, "x"));
    begin(0);
    say(0, "hello");
    finish(0);
    turn();
    const size_t one = counts().bytes;
    once_destroy(site.once);
    open_with(2 * one, 600000, 0, false); /* room for two */
    for (uint8_t key = 1; key <= 3; key++) {
        send(&a, call(key, "x"));
        begin(key - 1u);
        say(key - 1u, "hello");
        finish(key - 1u);
        turn();
        assert_int_equal(counts().n_kept, key < 2 ? key : 2);
        assert_true(counts().bytes <= 2 * one);
    }
    send(&b, call(3, "x"));
    check_answer(&b);
    send(&b, call(2, "x"));
    check_answer(&b);
    assert_int_equal(site.n_runs, 3);
    send(&b, call(1, "x"));
    assert_int_equal(site.n_runs, 4); /* forgotten */
    begin(3);
    say(3, "hello");
    finish(3);
    turn();
    once_destroy(site.once);
    open_with(1 << 20, 0, 0, false); /* kept for no time at all */
    send(&a, call(1, "x"));
    begin(0);
    say(0, "hello");
    finish(0);
    turn();
    check_answer(&a);
    send(&b, call(1, "x"));
    assert_int_equal(site.n_runs, 2);
    assert_int_equal(counts().n_kept, 0);
    begin(1);
    finish(1);
    turn();
}

static struct request *call_of(const char *client, uint8_t key)
{
    struct request *r = call(key, "x");
    snprintf(r->client.name, sizeof(r->client.name), "%s", client);
    return r;
}

static void answer(uint32_t run)
{
    begin(run);
    say(run, "hello");
    finish(run);
    turn();
}

/* A client that sends many keys makes room itself: calls of others do not run twice. */
static void test_a_flood(void **state)
{
    (void)state;
    trace("== %s\n", __func__);
    open_with(1 << 20, 600000, 0, false);
    send(&a, call_of("anna", 1));
    answer(0);
    const size_t one = counts().bytes;
    once_destroy(site.once);
    open_with(2 * one, 600000, 4, false); /* room for two */
    send(&a, call_of("anna", 1));
    answer(0);
    for (uint8_t key = 2; key < 6; key++) {
        send(&a, call_of("ben", key));
        answer(key - 1u);
    }
    assert_int_equal(counts().n_kept, 2);
    send(&b, call_of("anna", 1));
    check_answer(&b);
    assert_int_equal(site.n_runs, 5);
    send(&b, call_of("ben", 5));
    check_answer(&b);
    send(&a, call_of("ben", 6)); /* and its runs leave room for others */
    send(&b, call_of("ben", 7));
    send(&c, call_of("ben", 8));
    assert_int_equal(site.n_runs, 8);
    send(&last, call_of("ben", 9));
    assert_int_equal(last.failure.kind, FAILURE_BUSY);
    send(&last, call_of("anna", 9));
    assert_int_equal(site.n_runs, 9);
    for (uint32_t i = 5; i < 9; i++)
        answer(i);
    check_answer(&last);
}

static void test_too_many(void **state)
{
    (void)state;
    trace("== %s\n", __func__);
    open_with(1 << 20, 600000, 2, false);
    send(&a, call(1, "x"));
    send(&b, call(2, "x"));
    send(&c, call(3, "x"));
    assert_int_equal(c.failure.kind, FAILURE_BUSY);
    assert_string_equal(c.reason, "overloaded");
    assert_int_equal(c.n_closed, 1);
    assert_int_equal(site.n_runs, 2);
    send(&c, call(2, "x")); /* joins: not one more */
    assert_int_equal(c.n_fails, 0);
    for (uint32_t i = 0; i < 2; i++) {
        begin(i);
        say(i, "hello");
        finish(i);
    }
    turn();
    check_answer(&a);
    check_answer(&b);
    check_answer(&c);
    send(&a, call(3, "x"));
    assert_int_equal(site.n_runs, 3);
    begin(2);
    say(2, "hello");
    finish(2);
    turn();
    check_answer(&a);
}

/* A reader's deadline is its own; that of the first call is the run's. */
static void test_deadlines(void **state)
{
    (void)state;
    trace("== %s\n", __func__);
    open_with(1 << 20, 600000, 0, false);
    struct request *r = call(1, "x");
    r->deadline_ns = clock_ns() + 1;
    send(&a, r);
    turn();
    assert_int_equal(a.n_closed, 0);
    r = call(1, "x");
    r->deadline_ns = clock_ns() + 1;
    send(&b, r);
    while (b.n_closed == 0)
        executor_queue_turn(&site.queue, 1000);
    assert_int_equal(b.failure.kind, FAILURE_DEADLINE);
    assert_int_equal(a.n_closed, 0);
    begin(0);
    say(0, "hello");
    finish(0);
    turn();
    check_answer(&a);
}

/* An owner that leaves cancels its runs; who reads hears of it. */
static void test_leaving(void **state)
{
    struct flow_owner other = {0};
    (void)state;
    trace("== %s\n", __func__);
    open_with(1 << 20, 600000, 0, false);
    once_leave(NULL, &site.owner);
    send(&a, call(1, "x"));
    send(&b, call(2, "x"));
    begin(0);
    once_leave(site.once, &other);
    assert_false(site.runs[0].cancelled);
    once_leave(site.once, &site.owner);
    assert_true(site.runs[0].cancelled && site.runs[1].cancelled);
    close_run(0);
    close_run(1);
    turn();
    assert_int_equal(a.n_fails + b.n_fails, 2);
    assert_int_equal(counts().n_kept + counts().n_running, 0);
}

/* ---- shared ---- */

static void test_shared_mine(void **state)
{
    (void)state;
    trace("== %s\n", __func__);
    open_with(1 << 20, 600000, 0, true);
    send(&a, call(1, "x"));
    assert_int_equal(site.n_claims, 1);
    assert_int_equal(site.n_runs, 0); /* not before it is known */
    send(&b, call(1, "x"));
    assert_int_equal(site.n_claims, 1);
    decide(ONCE_CLAIMED_MINE);
    assert_int_equal(site.n_runs, 1);
    assert_int_equal(counts().n_first, 1);
    begin(0);
    say(0, "hello");
    finish(0);
    turn();
    check_answer(&a);
    check_answer(&b);
    assert_int_equal(site.n_completed, 1);
    assert_int_equal(site.n_released, 0);

    /* The same answer at another gateway, from its bytes. */
    once_destroy(site.once);
    open_with(1 << 20, 600000, 0, true);
    send(&c, call(1, "x"));
    buf_init(&site.claim->answer, 1 << 20);
    buf_put(&site.claim->answer, site.shared.data, site.shared.len);
    decide(ONCE_CLAIMED_ANSWERED);
    check_answer(&c);
    assert_string_equal(c.start.node, "n1");
    assert_int_equal(site.n_runs, 0);
    assert_int_equal(counts().n_replayed, 1);
    assert_int_equal(counts().n_kept, 1);
    assert_int_equal(site.n_completed, 1); /* it is not ours */

    /* Damaged at every byte: an answer, or a failure, and nothing in between. */
    for (size_t i = 0; i < site.shared.len; i++) {
        once_destroy(site.once);
        open_with(1 << 20, 600000, 0, true);
        send(&c, call(1, "x"));
        buf_init(&site.claim->answer, 1 << 20);
        buf_put(&site.claim->answer, site.shared.data, i);
        decide(ONCE_CLAIMED_ANSWERED);
        assert_int_equal(c.n_closed, 1);
        assert_int_equal(c.n_last + c.n_fails, 1);
        if (c.n_fails)
            assert_non_null(strstr(c.failure.message, "gateway other-gateway has shared"));
        assert_int_equal(counts().n_kept, 0);
    }
}

static void test_shared_failures(void **state)
{
    (void)state;
    trace("== %s\n", __func__);
    open_with(1 << 20, 600000, 0, true);
    send(&a, call(1, "x"));
    decide(ONCE_CLAIMED_MINE);
    begin(0);
    break_down(0);
    turn();
    assert_int_equal(a.n_fails, 1);
    assert_int_equal(site.n_released, 1); /* the others may try */
    assert_int_equal(site.n_completed, 0);

    send(&a, call(1, "x"));
    decide(ONCE_CLAIMED_OTHER);
    assert_int_equal(a.failure.kind, FAILURE_CONFLICT);
    assert_string_equal(a.reason, "idempotency_key_reused");
    assert_int_equal(counts().n_conflicts, 1);

    send(&a, call(1, "x"));
    decide(ONCE_CLAIMED_LARGE);
    assert_string_equal(a.reason, "answer_elsewhere");
    assert_non_null(strstr(a.failure.message, "ask gateway other-gateway, which has it"));

    send(&a, call(1, "x")); /* without the ledger it is run here, and nobody is told */
    decide(ONCE_CLAIMED_UNSHARED);
    assert_int_equal(site.n_runs, 2);
    begin(1);
    say(1, "hello");
    finish(1);
    turn();
    check_answer(&a);
    assert_int_equal(site.n_released, 1);
    assert_int_equal(site.n_completed, 0);

    send(&b, call(2, "x")); /* the owner leaves while it is not decided */
    once_leave(site.once, &site.owner);
    turn();
    assert_int_equal(site.n_cancels, 1);
    assert_non_null(strstr(b.failure.message, "this gateway stops"));
    assert_int_equal(site.n_runs, 2);

    struct request *r = call(3, "x"); /* the first call's deadline, too, while it waits */
    r->deadline_ns = clock_ns() + 1;
    send(&c, r);
    while (c.n_closed == 0)
        executor_queue_turn(&site.queue, 1000);
    assert_int_equal(c.failure.kind, FAILURE_DEADLINE);
    once_leave(site.once, &site.owner);
}

/* ---- records ---- */

static void test_records(void **state)
{
    (void)state;
    trace("== %s\n", __func__);
    for (int s = ONCE_RECORD_FREE; s <= ONCE_RECORD_PARTS + 1; s++)
        for (size_t n_owner = 0; n_owner <= ONCE_RECORD_MAX_OWNER; n_owner += 16) {
            struct once_record r = {.state = (enum once_record_state)s,
                                    .until_ms = 0x0102030405060708u,
                                    .answer = (const uint8_t *)"answer",
                                    .n_answer = 6},
                               back;
            struct buf bytes;
            struct err e = {0};
            memset(r.body, 0x5a, sizeof(r.body));
            memset(r.owner, 'o', n_owner);
            if (n_owner > 2)
                r.owner[1] = '\n';
            buf_init(&bytes, 1 << 16);
            once_record_put(&bytes, &r);
            for (size_t cut = 0; cut < bytes.len - 6; cut++)
                assert_int_equal(once_record_read(&back, (uint8_t *)bytes.data, cut, &e),
                                 SHOAL_EFORMAT);
            int rc = once_record_read(&back, (uint8_t *)bytes.data, bytes.len, &e);
            assert_int_equal(rc, s <= ONCE_RECORD_PARTS ? 0 : SHOAL_EFORMAT);
            if (rc == 0) {
                assert_int_equal(back.state, s);
                assert_int_equal(back.until_ms, r.until_ms);
                assert_memory_equal(back.body, r.body, sizeof(r.body));
                if (n_owner > 2)
                    r.owner[1] = '?'; /* it will be printed */
                assert_string_equal(back.owner, r.owner);
                assert_int_equal(back.n_answer, 6);
                assert_memory_equal(back.answer, "answer", 6);
            }
            bytes.data[0] = 2; /* another format */
            assert_int_equal(once_record_read(&back, (uint8_t *)bytes.data, bytes.len, &e),
                             SHOAL_EFORMAT);
            buf_fini(&bytes);
        }
}

static void test_parts(void **state)
{
    static const struct {
        uint64_t bytes;
        uint32_t n;
        int rc;
    } rows[] = {
        {0, 0, SHOAL_EFORMAT},
        {1, 1, 0},
        {ONCE_RECORD_PART_BYTES, 1, 0},
        {ONCE_RECORD_PART_BYTES + 1, 2, 0},
        {ONCE_RECORD_MAX_PARTS * ONCE_RECORD_PART_BYTES, ONCE_RECORD_MAX_PARTS, 0},
        {ONCE_RECORD_MAX_PARTS * ONCE_RECORD_PART_BYTES + 1, ONCE_RECORD_MAX_PARTS + 1,
         SHOAL_EFORMAT},
    };
    (void)state;
    trace("== %s\n", __func__);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct once_record_parts p = {.run = 77, .bytes = rows[i].bytes, .sum = {3}}, back;
        struct buf bytes;
        struct err e = {0};
        buf_init(&bytes, 4096);
        once_record_put_parts(&bytes, &p);
        assert_int_equal(once_record_n_parts(rows[i].bytes), rows[i].n);
        assert_int_equal(once_record_read_parts(&back, (uint8_t *)bytes.data, bytes.len, &e),
                         rows[i].rc);
        if (rows[i].rc == 0) {
            assert_int_equal(back.run, 77);
            assert_int_equal(back.bytes, rows[i].bytes);
            assert_memory_equal(back.sum, p.sum, sizeof(p.sum));
        }
        assert_int_equal(once_record_read_parts(&back, (uint8_t *)bytes.data, bytes.len - 1, &e),
                         SHOAL_EFORMAT);
        buf_fini(&bytes);
    }
}

static void test_about(void **state)
{
    struct once_record_about about = {5, 1, 2, ""}, back;
    const uint8_t *p;
    size_t n;
    struct err e = {0};
    (void)state;
    trace("== %s\n", __func__);
    for (size_t length = 0; length < sizeof(about.node); length += 9) {
        struct buf bytes;
        memset(about.node, 0, sizeof(about.node));
        memset(about.node, 'n', length);
        if (length > 0)
            about.node[0] = ' ';
        buf_init(&bytes, 4096);
        once_record_put_about(&bytes, &about);
        for (size_t cut = 1; cut < bytes.len; cut++)
            assert_int_equal(once_record_next_message(&p, &n, (uint8_t *)bytes.data, cut),
                             SHOAL_EFORMAT);
        assert_int_equal(once_record_next_message(&p, &n, (uint8_t *)bytes.data, 0), 0);
        assert_int_equal(once_record_next_message(&p, &n, (uint8_t *)bytes.data, bytes.len),
                         bytes.len);
        assert_int_equal(once_record_read_about(&back, p, n, &e), 0);
        if (length > 0)
            about.node[0] = '?'; /* it will be a header of an answer */
        assert_memory_equal(&back, &about, sizeof(back));
        assert_int_equal(once_record_read_about(&back, p, 11, &e), SHOAL_EFORMAT);
        buf_fini(&bytes);
    }
    uint8_t large[12 + 128] = {0};
    assert_int_equal(once_record_read_about(&back, large, sizeof(large), &e), SHOAL_EFORMAT);
    assert_int_equal(once_record_read_about(&back, large, sizeof(large) - 1, &e), 0);
}

#define TEST(t) cmocka_unit_test_setup_teardown(t, open_site, close_site)

static void the_whole_trace(void **state)
{
    (void)state;
    golden_end("once");
}

int main(void)
{
    const struct CMUnitTest whole[] = {cmocka_unit_test(the_whole_trace)};
    const struct CMUnitTest tests[] = {
        TEST(test_one_run_for_all),
        TEST(test_what_is_the_same),
        TEST(test_a_failure_is_not_kept),
        TEST(test_clients_that_go),
        TEST(test_slow_readers),
        TEST(test_what_is_forgotten),
        TEST(test_too_many),
        TEST(test_deadlines),
        TEST(test_leaving),
        TEST(test_shared_mine),
        TEST(test_shared_failures),
        TEST(test_a_flood),
        cmocka_unit_test(test_records),
        cmocka_unit_test(test_parts),
        cmocka_unit_test(test_about),
    };
    golden_begin();
    int n_failed = cmocka_run_group_tests(tests, NULL, NULL);
    return n_failed ? n_failed : cmocka_run_group_tests(whole, NULL, NULL);
}
