/* test_relay.c - requests survive their replicas: real models, interrupted after every token. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>
#undef fail /* a member of sink_ops */

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "cluster/relay.h"
#include "cluster/replica_local.h"
#include "flow/pool.h"
#include "flow/flow_run.h"
#include "host/registry.h"
#include "net/loop.h"
#include "support/recorder.h"

static struct {
    struct loop *loop;
    struct flow flow;
    struct flow_owner requests;
} site;

/* ---- replicas that fail ---- */

enum way {
    WORKS,
    BREAKS,
    DIES,
    LIES,
    REFUSES,
    LOADS,
    FAILS,
    SAYS_NOTHING,
    STALLS,
    BEGINS_OLD,
    UPDATED
};

struct fragile {
    struct replica replica; /* first */
    enum way way;
    uint32_t after;    /* BREAKS, DIES, LIES, STALLS: events that pass */
    uint32_t reads_ms; /* so long it reads what it is given */
    bool loads;        /* the model is not loaded there */
    bool hides;        /* it does not say its version, */
    bool hashed;       /* except later */
    bool differs;      /* it writes other tokens than the version that began */
    bool shortens;     /* it writes fewer */
    bool resumed;      /* its last request came with the client's tokens */
    bool stalled;      /* STALLS: it has */
    uint32_t n_runs, n_blamed;
};

#define N_REPLICAS 4u
static struct fragile replicas[N_REPLICAS];

/* One request to a fragile replica: a proxy between the real replica and the relay. */
struct between {
    struct flow_job job; /* first */
    struct fragile *at;
    struct sink inner, *outer;
    uint32_t n_events, n_tokens;
    bool broken, ended, reads;
    struct executor_timer timer;
    struct flow_owner *owner;
    const struct request *request;
};

static struct replica real;
static uint32_t n_read, n_left; /* requests that were read, and left while they were */

/* During a canary: requests this version, and the usual one if it fails. */
static const uint8_t *canary_sum, *usual_sum;

static struct between *between_of(struct sink *s)
{
    return EXECUTOR_OF(s, struct between, inner);
}

/* False: the replica died. */
static bool passes(struct between *b)
{
    struct failure f;
    if (b->broken)
        return false;
    if (b->at->way == STALLS) {
        b->at->stalled |= b->n_events >= b->at->after;
        return b->n_events++ < b->at->after;
    }
    bool dies = b->at->way == DIES;
    if ((b->at->way != BREAKS && !dies) || b->n_events++ < b->at->after)
        return true;
    b->broken = true;
    failure_set(&f, FAILURE_UNAVAILABLE, SHOAL_EIO, NULL, dies ? REPLICA_ENDED : REPLICA_LOST,
                "broken by the test");
    b->at->replica.n_ended = dies;
    b->outer->ops->fail(b->outer, &f);
    b->at->replica.n_ended = 0;
    flow_cancel(&b->inner);
    return false;
}

static void on_start(struct sink *s, const struct sink_start *e)
{
    static const uint8_t new_sum[SHA256_BYTES] = {0x02};
    struct between *b = between_of(s);
    struct sink_start mine = *e;
    if (b->at->way == UPDATED)
        mine.sum = new_sum;
    if (b->at->hides)
        mine.sum = NULL;
    if (passes(b))
        b->outer->ops->start(b->outer, &mine);
}

static void on_token(struct sink *s, const struct sink_token *e)
{
    struct between *b = between_of(s);
    struct sink_token lie = *e;
    if (!passes(b))
        return;
    if (b->at->way == LIES && b->n_events++ == b->at->after)
        lie.choice = 1000000;
    if (b->at->shortens && b->n_tokens++ >= 3)
        return;
    if (b->at->differs && b->n_tokens++ == 3)
        lie.token ^= 1;
    b->outer->ops->token(b->outer, &lie);
}

static void on_result(struct sink *s, const struct sink_result *e)
{
    struct between *b = between_of(s);
    struct sink_result lie = *e;
    if (!passes(b))
        return;
    if (b->at->way == LIES)
        lie.index += 1;
    b->outer->ops->result(b->outer, &lie);
}

static void on_done(struct sink *s, const struct sink_done *e)
{
    struct between *b = between_of(s);
    if (passes(b))
        b->outer->ops->done(b->outer, e);
}

static void on_fail(struct sink *s, const struct failure *f)
{
    struct between *b = between_of(s);
    if (passes(b))
        b->outer->ops->fail(b->outer, f);
}

static void on_closed(struct sink *s)
{
    struct between *b = between_of(s);
    b->ended = true;
    if (b->at->way == STALLS && b->n_events > b->at->after && !b->broken)
        return; /* the relay hears nothing until it cancels */
    b->outer->job = NULL;
    b->outer->ops->closed(b->outer);
    mem_free(b);
}

static bool on_full(struct sink *s)
{
    struct between *b = between_of(s);
    return !b->broken && b->outer->ops->full && b->outer->ops->full(b->outer);
}

static void on_cancel(struct flow_job *j)
{
    struct between *b = (struct between *)(void *)j;
    b->broken = true;
    /* not when the first one goes on after a moment, nor later: a busy machine decides that */
    n_left += b->reads && b->at != &replicas[0] && replicas[0].stalled && n_read == 0;
    if (b->reads)
        executor_timer_clear(b->owner->executor, &b->timer);
    if (b->ended || b->reads)
        on_closed(&b->inner);
    else
        flow_cancel(&b->inner);
}

static void on_resume(struct flow_job *j)
{
    flow_resume(&((struct between *)(void *)j)->inner);
}

static void on_read(struct executor_timer *t)
{
    struct between *b = EXECUTOR_OF(t, struct between, timer);
    b->reads = false;
    n_read++;
    real.ops->run(&real, b->owner, b->request, &b->inner);
}

static void run(struct replica *p, struct flow_owner *o, const struct request *r, struct sink *s)
{
    static const struct flow_job_ops job_ops = {on_cancel, on_resume};
    static const struct sink_ops ops = {.start = on_start,
                                        .token = on_token,
                                        .result = on_result,
                                        .done = on_done,
                                        .fail = on_fail,
                                        .closed = on_closed,
                                        .full = on_full};
    struct fragile *x = (struct fragile *)(void *)p;
    struct failure f;
    x->n_runs++;
    x->resumed = r->kind == REQUEST_GENERATE && r->generate.resume;
    if (x->way == REFUSES) {
        failure_set(&f, FAILURE_BUSY, SHOAL_EBUSY, NULL, "overloaded", "no room");
        s->ops->fail(s, &f);
    }
    if (x->way == LOADS) {
        failure_set(&f, FAILURE_NOT_LOADED, SHOAL_EBUSY, NULL, "model_loading", "not yet");
        s->ops->fail(s, &f);
    }
    bool fails = x->way == FAILS && r->version && canary_sum &&
                 memcmp(r->version, canary_sum, SHA256_BYTES) == 0;
    if (fails) { /* it starts, but cannot compute a token */
        const struct sink_start start = {.model = "reply", .version = "fp_new", .sum = canary_sum};
        s->ops->start(s, &start);
        failure_set(&f, FAILURE_INTERNAL, SHOAL_ENOTFINITE, NULL, NULL, "damaged weights");
        s->ops->fail(s, &f);
    }
    if (x->way == BEGINS_OLD) { /* has the version before the update, and dies */
        static const uint8_t old_sum[SHA256_BYTES] = {0x01};
        const struct sink_start start = {.model = "reply", .version = "fp_old", .sum = old_sum};
        s->ops->start(s, &start);
    }
    if (fails || x->way == BEGINS_OLD || x->way == REFUSES || x->way == LOADS ||
        x->way == SAYS_NOTHING) {
        s->ops->closed(s);
        return;
    }
    struct between *b = mem_zalloc(sizeof(*b));
    assert_non_null(b);
    b->job.ops = &job_ops;
    b->at = x;
    b->inner.ops = &ops;
    b->outer = s;
    s->job = &b->job;
    b->owner = o;
    b->request = r;
    b->timer.fn = on_read;
    b->reads = x->reads_ms > 0;
    if (b->reads)
        executor_timer_set(o->executor, &b->timer, clock_ns() + x->reads_ms * UINT64_C(1000000));
    else
        real.ops->run(&real, o, r, &b->inner);
}

static void blame(struct replica *p, const struct request *r)
{
    (void)r;
    ((struct fragile *)(void *)p)->n_blamed++;
}

static const uint8_t *version(const struct replica *p, const struct request *r)
{
    struct registry_model *m = NULL;
    if (!((const struct fragile *)(const void *)p)->hashed)
        return NULL;
    assert_int_equal(
        registry_get(site.flow.registry, r->model, SHOAL_KIND_GENERATE, &m, NULL, NULL), 0);
    const uint8_t *sum = registry_sum(m);
    registry_put(m);
    return sum;
}

/* ---- a source of replicas ---- */

static uint32_t n_replicas;
static struct replica_source source;
static struct replica_counts counts;
static uint64_t expected_ns, rival_ns; /* rival_ns: of a second replica; 0: the same */
static uint32_t n_given;               /* tokens, with the last question for a replica */
static uint32_t n_hidden;              /* so often there is no second replica */
static bool split;                     /* the first replica only computes the prompt */
static bool all_wait;                  /* no replica knows its version to be the present one */
static enum replica_found find(struct replica_source *s, const struct replica_query *q,
                               struct replica **out)
{
    (void)s;
    /* only the version that wrote the client's tokens can continue them */
    if (q->request->kind == REQUEST_GENERATE && q->request->generate.resume)
        assert_non_null(q->version);
    n_given = q->n_given;
    if (q->expect_ns)
        *q->expect_ns = q->n_avoid > 0 && rival_ns > 0 ? rival_ns : expected_ns;
    if (canary_sum && q->chosen && !q->version)
        *q->chosen = q->usual ? usual_sum : canary_sum;
    if (all_wait && !q->request->may_be_old)
        return REPLICA_LATER;
    if (q->n_avoid > 0 && n_hidden > 0) {
        n_hidden--;
        return REPLICA_LATER;
    }
    for (uint32_t i = 0; i < n_replicas; i++) {
        bool avoided = false;
        for (size_t k = 0; k < q->n_avoid; k++)
            avoided |= q->avoid[k] == &replicas[i].replica;
        *out = &replicas[i].replica;
        if (q->loads)
            *q->loads = replicas[i].loads;
        if (q->splits)
            *q->splits = split;
        if (!avoided && !(q->loaded && replicas[i].loads))
            return REPLICA_FOUND;
    }
    return n_replicas > 0 ? REPLICA_LATER : REPLICA_NONE;
}

/* The order in which the replicas are tried. */
static void set_replicas(uint32_t n, enum way first, uint32_t after, enum way second)
{
    static const struct replica_ops ops = {run, blame, version};
    static const struct replica_source_ops source_ops = {find};
    memset(&counts, 0, sizeof(counts));
    source = (struct replica_source){.ops = &source_ops, .counts = &counts};
    n_replicas = n;
    n_read = n_left = 0;
    for (uint32_t i = 0; i < N_REPLICAS; i++)
        replicas[i] = (struct fragile){.replica = {.ops = &ops, .name = "test"},
                                       .way = i == 0   ? first
                                              : i == 1 ? second
                                                       : WORKS,
                                       .after = after};
    expected_ns = 0;
}

/* ---- a client ---- */

static struct recorder *fresh(void)
{
    static struct recorder r;
    recorder_init(&r);
    return &r;
}

static struct request *story(void)
{
    struct request *r = flow_take_request(&site.requests);
    assert_non_null(r);
    struct request_prompt *p = arena_zalloc(&r->arena, sizeof(*p));
    const char *const text = "ask: tell me about the weather";
    assert_non_null(p);
    *p = (struct request_prompt){.text = text, .text_bytes = strlen(text)};
    r->kind = REQUEST_GENERATE;
    r->model = "reply";
    r->generate.prompts = p;
    r->generate.n_prompts = 1;
    r->generate.n = 2;
    r->generate.max_tokens = 10;
    r->generate.ignore_end = true;
    r->generate.has_seed = true;
    r->generate.sampling = (struct shoal_sampling){.temperature = 1, .seed = 5};
    return r;
}

static struct request *classify(uint32_t n)
{
    struct request *q = flow_take_request(&site.requests);
    assert_non_null(q);
    struct request_input *list = arena_zalloc_n(&q->arena, n, sizeof(*list));
    assert_non_null(list);
    for (uint32_t i = 0; i < n; i++)
        list[i] = (struct request_input){.text = "turn off the kitchen lights", .text_bytes = 27};
    q->kind = REQUEST_INFER;
    q->model = "encoder";
    q->infer = (struct request_infer){.kind = SHOAL_KIND_CLASSIFY, .inputs = list, .n_inputs = n};
    return q;
}

static void turn_until_closed(struct recorder *r)
{
    for (int i = 0; i < 60000 && r->n_closed == 0; i++)
        loop_turn(site.loop, 10);
    assert_int_equal(r->n_closed, 1);
    assert_null(r->sink.job);
    assert_int_equal(site.requests.n_jobs, 0);
}

enum { LONG_MS = 60000 }; /* longer than a busy machine needs */
static uint32_t stall_ms, hedge_ms, total_ms;

static struct recorder *relay(struct request *q, uint32_t wait_ms)
{
    struct recorder *r = fresh();
    const struct relay_opts o = {.source = &source,
                                 .wait_ms = wait_ms,
                                 .total_ms = total_ms,
                                 .stall_ms = stall_ms,
                                 .hedge_ms = hedge_ms};
    relay_run(&o, &site.requests, q, &r->sink);
    turn_until_closed(r);
    assert_int_equal(counts.n_running, 0);
    assert_int_equal(counts.n_doubled, 0);
    return r;
}

/* ---- tests ---- */

static struct recorder whole; /* undisturbed */

static void assert_whole(const struct recorder *r)
{
    assert_int_equal(r->n_fails, 0);
    assert_int_equal(r->n_starts, 1);
    assert_int_equal(r->n_done, 2);
    assert_int_equal(r->n_last, 1);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(r->n_of[i], whole.n_of[i]);
        assert_memory_equal(r->tokens[i], whole.tokens[i], sizeof(whole.tokens[i]));
        assert_string_equal(r->text[i], whole.text[i]);
    }
    assert_int_equal(r->usage.prompt_tokens, whole.usage.prompt_tokens);
    assert_int_equal(r->usage.generated_tokens, whole.usage.generated_tokens);
}

static void test_a_relay_changes_nothing(void **state)
{
    (void)state;
    whole = *fresh();
    struct recorder *r = fresh();
    flow_run(&site.requests, story(), &r->sink);
    turn_until_closed(r);
    whole = *r;
    assert_int_equal(whole.n_of[0], 10);
    assert_string_not_equal(whole.text[0], whole.text[1]);
    set_replicas(1, WORKS, 0, WORKS);
    assert_whole(relay(story(), LONG_MS));
    assert_int_equal(counts.n_requests, 1);
    assert_int_equal(counts.n_moved + counts.n_retried + counts.n_lost, 0);
}

static void test_a_stream_survives_a_break_at_every_event(void **state)
{
    (void)state;
    for (uint32_t after = 0; after < 24; after++) { /* start, 20 tokens, 2 ends */
        set_replicas(2, BREAKS, after, WORKS);
        assert_whole(relay(story(), LONG_MS));
        assert_int_equal(replicas[0].n_runs, 1);
        assert_int_equal(replicas[1].n_runs, after < 23 ? 1 : 0);
        assert_int_equal(counts.n_moved, after > 1 && after < 23);
        assert_int_equal(counts.n_retried, after <= 1); /* the client has seen nothing */
    }
    for (uint32_t after = 1; after < 24; after += 4) { /* and again where it continued */
        set_replicas(3, BREAKS, after, BREAKS);
        assert_whole(relay(story(), LONG_MS));
    }
}

/* The prompt comes once, before each choice. */
static void test_an_echo_survives_a_break_at_every_event(void **state)
{
    static struct recorder echoed;
    struct request *q = story();
    (void)state;
    q->generate.echo = true;
    set_replicas(1, WORKS, 0, WORKS);
    echoed = *relay(q, LONG_MS);
    assert_non_null(strstr(echoed.text[1], "tell me about the weather"));
    for (uint32_t after = 0; after < 6; after++) { /* start, 2 prompts, 3 tokens */
        q = story();
        q->generate.echo = true;
        set_replicas(2, BREAKS, after, WORKS);
        const struct recorder *r = relay(q, LONG_MS);
        assert_int_equal(r->n_fails, 0);
        assert_int_equal(replicas[1].n_runs, 1);
        for (int i = 0; i < 2; i++)
            assert_string_equal(r->text[i], echoed.text[i]);
    }
}

/* A replica starts and dies before its first token: the response names the replica that answers. */
static void test_the_client_learns_who_answers(void **state)
{
    (void)state;
    set_replicas(2, BEGINS_OLD, 0, WORKS);
    const struct recorder *r = relay(story(), LONG_MS);
    assert_whole(r);
    assert_string_not_equal(r->version, "fp_old");
    assert_int_equal(replicas[1].n_runs, 1);
}

/* The client sees a pause, whichever event the first replica stops at. */
static void test_a_silent_replica_is_overtaken(void **state)
{
    (void)state;
    stall_ms = 30;
    for (uint32_t after = 0; after < 23; after += 2) {
        set_replicas(2, STALLS, after, WORKS);
        expected_ns = 1;
        assert_whole(relay(story(), LONG_MS));
        assert_true(replicas[1].n_runs > 0); /* more than once if the machine itself stalls */
        assert_true(replicas[0].n_blamed > 0);
        assert_true(counts.n_stalled > 0 && counts.n_won > 0);
        assert_int_equal(counts.n_retried + counts.n_hedged, 0);
        assert_true(after < 4 || counts.n_moved > 0); /* after the first pieces of the text */
    }
    set_replicas(3, STALLS, 5, BREAKS); /* the second one dies too: a third continues */
    expected_ns = 1;
    replicas[1].after = 2;
    struct recorder *r = relay(story(), LONG_MS);
    assert_whole(r);
    assert_true(replicas[2].n_runs > 0);
    stall_ms = 0;
}

/* The pace of the stream tells more than what its node expects, which may be nothing, or hours. */
static void test_a_stream_that_stops_is_overtaken(void **state)
{
    (void)state;
    for (int hours = 0; hours < 2; hours++) {
        set_replicas(2, STALLS, 12, WORKS);
        expected_ns = hours ? UINT64_C(3600000000000) : 0;
        assert_whole(relay(story(), LONG_MS));
        assert_true(replicas[1].n_runs > 0);
        assert_true(counts.n_stalled > 0 && counts.n_won > 0);
    }
    /* the second one is silent as well: a third is asked */
    set_replicas(3, STALLS, 12, STALLS);
    replicas[1].after = 0;
    expected_ns = 1;
    assert_whole(relay(story(), LONG_MS));
    assert_true(replicas[2].n_runs > 0);
}

/* What a second replica has to read takes longer than a silence that is noticed.  It is left only
 * for another one, and each has more time than the one before: otherwise all of them would begin to
 * read again and again. */
static void test_a_second_replica_has_the_time_to_read(void **state)
{
    (void)state;
    stall_ms = 30;
    total_ms = LONG_MS;
    set_replicas(2, STALLS, 12, WORKS);
    expected_ns = 1;
    replicas[1].reads_ms = 20 * stall_ms;
    assert_whole(relay(story(), LONG_MS));
    if (replicas[0].stalled) /* not overtaken before its first token, on a busy machine */
        assert_in_range(n_given, 1, 20); /* of two choices */
    assert_int_equal(n_left, 0);
    set_replicas(3, STALLS, 12, WORKS);
    expected_ns = 1;
    replicas[1].reads_ms = replicas[2].reads_ms = 20 * stall_ms;
    assert_whole(relay(story(), LONG_MS));
    /* its own figures say so at once */
    set_replicas(3, STALLS, 12, WORKS);
    expected_ns = 1;
    rival_ns = UINT64_C(3600000000000);
    replicas[1].reads_ms = replicas[2].reads_ms = 20 * stall_ms;
    assert_whole(relay(story(), LONG_MS));
    assert_int_equal(n_left, 0);
    stall_ms = total_ms = 0;
    rival_ns = 0;
}

static void test_hedging_is_for_deadlines(void **state)
{
    (void)state;
    hedge_ms = 20;
    for (int i = 0; i < 2; i++) {
        struct request *q = i ? classify(3) : story();
        q->deadline_ns = clock_ns() + 60000000000u;
        set_replicas(2, STALLS, 1, WORKS);
        struct recorder *r = relay(q, LONG_MS);
        assert_int_equal(r->n_fails, 0);
        assert_int_equal(r->n_last, 1);
        assert_int_equal(replicas[1].n_runs, 1);
        assert_int_equal(counts.n_hedged, 1);
        assert_int_equal(counts.n_won, 1);
        assert_int_equal(replicas[0].n_blamed, 0); /* slow does not mean failed */
    }
    set_replicas(2, WORKS, 0, WORKS);
    assert_whole(relay(story(), LONG_MS)); /* no deadline */
    assert_int_equal(counts.n_hedged, 0);
    hedge_ms = 0;
}

/* A client that disconnects while two replicas work ends both. */
/* The second replica is there only later: it is asked then. */
static void test_a_hedge_waits_for_a_second_replica(void **state)
{
    (void)state;
    set_replicas(2, STALLS, 0, WORKS);
    hedge_ms = 20;
    n_hidden = 3;
    struct request *q = story();
    q->deadline_ns = clock_ns() + LONG_MS * UINT64_C(1000000);
    assert_whole(relay(q, LONG_MS));
    assert_int_equal(n_hidden, 0);
    assert_int_equal(counts.n_hedged, 1);
    assert_int_equal(counts.n_won, 1);
    hedge_ms = 0;
}

static void test_two_replicas_are_cancelled(void **state)
{
    (void)state;
    struct recorder *r = fresh();
    const struct relay_opts o = {.source = &source, .wait_ms = LONG_MS, .stall_ms = 20};
    set_replicas(2, STALLS, 3, STALLS);
    replicas[1].after = 0;
    expected_ns = 1;
    relay_run(&o, &site.requests, story(), &r->sink);
    for (int i = 0; i < 6000 && replicas[1].n_runs == 0; i++)
        loop_turn(site.loop, 10);
    assert_int_equal(counts.n_doubled, 1);
    flow_cancel(&r->sink);
    turn_until_closed(r);
    assert_int_equal(r->n_fails + r->n_last, 0);
    assert_int_equal(counts.n_doubled + counts.n_running, 0);
}

/* The version of the model that the real replica has; from then on its answers name it. */
static void wait_for_sum(uint8_t *sum)
{
    struct registry_model *m = NULL;
    assert_int_equal(registry_get(site.flow.registry, "reply", SHOAL_KIND_GENERATE, &m, NULL, NULL),
                     0);
    for (int i = 0; i < 30000 && !registry_sum(m); i++)
        usleep(1000);
    assert_non_null(registry_sum(m));
    memcpy(sum, registry_sum(m), SHA256_BYTES);
    registry_put(m);
}

/* The words of two versions do not fit together: a replica with another version than the one that
 * began must not continue the answer. */
static void test_another_version_does_not_continue(void **state)
{
    uint8_t sum[SHA256_BYTES];
    (void)state;
    wait_for_sum(sum);
    for (uint32_t after = 2; after < 12; after += 3) {
        set_replicas(3, BREAKS, after, UPDATED);
        assert_whole(relay(story(), LONG_MS));
        assert_int_equal(replicas[1].n_runs, 1);
        assert_int_equal(replicas[1].n_blamed, 1);
        assert_int_equal(replicas[2].n_runs, 1);
    }
    set_replicas(2, BREAKS, 5, UPDATED); /* the only other one */
    struct recorder *r = relay(story(), 200);
    assert_int_equal(r->n_fails, 1);
    assert_int_equal(r->n_done, 0);
}

/* A new version fails before its first token: the client sees only the usual one, once. */
/* A node that has not hashed its model yet says no version.  Whoever takes over must write what the
 * client has, token by token, before it goes on. */
static void test_an_unknown_version_is_proved_by_its_tokens(void **state)
{
    (void)state;
    for (uint32_t after = 0; after < 23; after++) {
        set_replicas(2, BREAKS, after, WORKS);
        replicas[0].hides = true;
        assert_whole(relay(story(), LONG_MS));
        assert_int_equal(replicas[1].n_runs, 1);
        assert_false(replicas[1].resumed);
    }
    for (uint32_t again = 0; again < 20; again += 3) { /* lost before or after it has proved it */
        set_replicas(3, BREAKS, 12, BREAKS);
        replicas[0].hides = true;
        replicas[1].after = again;
        assert_whole(relay(story(), LONG_MS));
        assert_true(replicas[2].resumed == (again > 12));
    }
    set_replicas(2, STALLS, 12, WORKS);
    replicas[0].hides = true;
    assert_whole(relay(story(), LONG_MS));
    assert_true(counts.n_won > 0);
    set_replicas(2, STALLS, 12, WORKS); /* hashed before the second one is asked */
    replicas[0].hides = replicas[0].hashed = true;
    assert_whole(relay(story(), LONG_MS));
    assert_true(replicas[1].resumed);
    set_replicas(2, BREAKS, 12, WORKS); /* it has been hashed before the node is lost */
    replicas[0].hides = replicas[0].hashed = true;
    assert_whole(relay(story(), LONG_MS));
    assert_true(replicas[1].resumed);
}

static void test_another_version_is_found_by_its_tokens(void **state)
{
    (void)state;
    for (uint32_t after = 5; after < 23; after += 2) {
        set_replicas(3, BREAKS, after, WORKS);
        replicas[0].hides = replicas[1].differs = true;
        assert_whole(relay(story(), LONG_MS));
        assert_int_equal(replicas[1].n_runs, 1);
        assert_int_equal(replicas[1].n_blamed, 0); /* it has its own version, that is all */
    }
    set_replicas(3, BREAKS, 12, WORKS);
    replicas[0].hides = replicas[1].shortens = true;
    assert_whole(relay(story(), LONG_MS));
    set_replicas(2, BREAKS, 12, WORKS);
    replicas[0].hides = replicas[1].differs = true;
    const struct recorder *r = relay(story(), 200);
    assert_int_equal(r->n_fails, 1);
    assert_int_equal(r->failure.kind, FAILURE_UNAVAILABLE);
    assert_int_equal(r->n_of[0] + r->n_of[1], 11);
    for (int i = 0; i < 2; i++)
        assert_memory_equal(r->tokens[i], whole.tokens[i], r->n_of[i] * sizeof(whole.tokens[i][0]));
    assert_int_equal(replicas[1].n_runs, 1); /* not again and again */
    assert_true(replicas[0].n_runs > 1);     /* the first one may come back */
}

/* The first replica computes the prompt and writes a token, the second one the others: no failure,
 * and not even a move. */
static void test_one_reads_and_another_writes(void **state)
{
    (void)state;
    split = true;
    set_replicas(2, WORKS, 0, WORKS);
    assert_whole(relay(story(), LONG_MS));
    assert_int_equal(replicas[0].n_runs, 1);
    assert_int_equal(replicas[1].n_runs, 1);
    assert_true(replicas[1].resumed);
    assert_int_equal(counts.n_split, 1);
    assert_int_equal(counts.n_moved + counts.n_retried + counts.n_lost, 0);
    struct request *q = story(); /* the prompt itself is no token of the answer */
    q->generate.echo = true;
    set_replicas(2, WORKS, 0, WORKS);
    assert_int_equal(relay(q, LONG_MS)->n_fails, 0);
    assert_true(replicas[1].resumed);
    set_replicas(2, WORKS, 0, BREAKS); /* the second one is lost: back to the first */
    replicas[1].after = 4;
    assert_whole(relay(story(), LONG_MS));
    assert_int_equal(replicas[0].n_runs, 2);
    assert_int_equal(counts.n_split, 1);
    assert_int_equal(counts.n_moved, 1);
    set_replicas(1, WORKS, 0, WORKS); /* there is no second one by now */
    assert_whole(relay(story(), LONG_MS));
    assert_int_equal(replicas[0].n_runs, 1);
    set_replicas(2, WORKS, 0, WORKS); /* it is not known who could go on */
    replicas[0].hides = true;
    assert_whole(relay(story(), LONG_MS));
    assert_int_equal(replicas[1].n_runs, 0);
    assert_int_equal(counts.n_split, 0);
    split = false;
}

static void test_a_canary_that_fails_costs_nothing(void **state)
{
    static const uint8_t new_sum[SHA256_BYTES] = {0xca};
    uint8_t sum[SHA256_BYTES];
    (void)state;
    wait_for_sum(sum);
    canary_sum = new_sum;
    usual_sum = sum;
    set_replicas(1, FAILS, 0, WORKS); /* one node with both */
    assert_whole(relay(story(), LONG_MS));
    assert_int_equal(replicas[0].n_runs, 2);
    set_replicas(2, BREAKS, 1, WORKS); /* lost after its start, during its trial */
    canary_sum = sum;
    assert_whole(relay(story(), LONG_MS));
    /* it answers, falls silent, and a second one that overtakes it is lost */
    stall_ms = 30;
    set_replicas(3, STALLS, 5, BREAKS);
    expected_ns = 1;
    assert_whole(relay(story(), LONG_MS));
    stall_ms = 0;
    canary_sum = usual_sum = NULL;
}

/* They have the request, live, and send nothing: it ends all the same. */
static void test_replicas_that_are_silent_for_ever(void **state)
{
    (void)state;
    total_ms = 100;
    stall_ms = 30;
    for (uint64_t known = 0; known < 2; known++) { /* how long a token takes is known, or not */
        set_replicas(2, STALLS, known ? 0 : 3, STALLS); /* rivals would get on, a piece each */
        expected_ns = known;
        const struct recorder *r = relay(story(), LONG_MS);
        assert_int_equal(r->n_fails, 1);
        assert_int_equal(r->failure.kind, FAILURE_UNAVAILABLE);
    }
    total_ms = stall_ms = 0;
}

static void test_replicas_that_lie_or_say_nothing(void **state)
{
    (void)state;
    for (uint32_t after = 0; after < 20; after += 3) {
        set_replicas(2, LIES, after, WORKS);
        assert_whole(relay(story(), LONG_MS));
        assert_int_equal(replicas[1].n_runs, 1);
    }
    set_replicas(3, SAYS_NOTHING, 0, REFUSES);
    assert_whole(relay(story(), LONG_MS));
    set_replicas(1, LIES, 3, WORKS); /* it is the only one, but it is not retried forever */
    struct recorder *r = relay(story(), 200);
    assert_int_equal(r->n_fails, 1);
    assert_int_equal(r->failure.kind, FAILURE_UNAVAILABLE);
    assert_int_equal(r->n_done, 0);
    assert_int_equal(counts.n_lost, 1);
}

static void test_what_a_replica_refuses(void **state)
{
    (void)state;
    set_replicas(1, REFUSES, 0, WORKS);
    struct recorder *r = relay(story(), LONG_MS); /* no wait: it responds and refuses */
    assert_int_equal(r->n_fails, 1);
    assert_int_equal(r->failure.kind, FAILURE_BUSY);
    assert_string_equal(r->reason, "overloaded");
    assert_int_equal(replicas[0].n_runs, 1);
    set_replicas(0, WORKS, 0, WORKS);
    r = relay(story(), LONG_MS);
    assert_int_equal(r->failure.kind, FAILURE_NOT_FOUND);
    set_replicas(2, WORKS, 0, WORKS);
    struct request *q = story();
    q->generate.sampling.temperature = -1; /* wrong everywhere */
    r = relay(q, LONG_MS);
    assert_int_equal(r->failure.kind, FAILURE_INVALID);
    assert_int_equal(replicas[1].n_runs, 0);
}

/* The only node that has the model still loads it: the request has time to wait. */
static void test_a_model_that_loads_is_waited_for(void **state)
{
    (void)state;
    set_replicas(1, LOADS, 0, WORKS);
    struct recorder *r = fresh();
    const struct relay_opts o = {.source = &source, .wait_ms = LONG_MS};
    relay_run(&o, &site.requests, story(), &r->sink);
    for (int i = 0; i < 60000 && replicas[0].n_runs < 3; i++)
        loop_turn(site.loop, 10);
    replicas[0].way = WORKS;
    turn_until_closed(r);
    assert_whole(r);
    set_replicas(1, LOADS, 0, WORKS); /* but not for ever, and the client learns why */
    r = relay(story(), 50);
    assert_int_equal(r->n_fails, 1);
    assert_int_equal(r->failure.kind, FAILURE_NOT_LOADED);
    assert_string_equal(r->reason, "model_loading");
}

/* The node that was chosen loads the model for ever, and another one has it after a while, perhaps
 * the one that lost the stream. */
static void test_a_node_that_loads_is_left_for_one_that_is_ready(void **state)
{
    (void)state;
    set_replicas(2, STALLS, 0, WORKS);
    replicas[0].loads = true;
    n_hidden = 3;
    assert_whole(relay(story(), LONG_MS));
    assert_int_equal(n_hidden, 0);
    assert_int_equal(replicas[1].n_runs, 1);
    assert_int_equal(replicas[0].n_blamed, 0);
    assert_int_equal(counts.n_stalled, 0);
    for (uint32_t i = 0; i < 2; i++) { /* it fails, or is full, before or within its answer */
        set_replicas(2, i ? REFUSES : BREAKS, 5, STALLS);
        replicas[1].after = 0;
        replicas[1].loads = true;
        struct recorder *r = fresh();
        const struct relay_opts o = {.source = &source, .wait_ms = LONG_MS, .stall_ms = 100};
        relay_run(&o, &site.requests, story(), &r->sink);
        for (int k = 0; k < 60000 && replicas[1].n_runs == 0; k++)
            loop_turn(site.loop, 10);
        replicas[0].way = WORKS;
        turn_until_closed(r);
        assert_whole(r);
        assert_int_equal(replicas[0].n_runs, 2);
    }
}

/* It has loaded the model by now, but not begun yet. */
static void test_a_node_that_has_loaded_is_not_left_for_itself(void **state)
{
    (void)state;
    set_replicas(1, STALLS, 0, WORKS);
    replicas[0].loads = true;
    struct recorder *r = fresh();
    const struct relay_opts o = {.source = &source, .wait_ms = LONG_MS, .stall_ms = 1};
    relay_run(&o, &site.requests, story(), &r->sink);
    replicas[0].loads = false;
    for (const uint64_t until = clock_ns() + 300000000u; clock_ns() < until;)
        loop_turn(site.loop, 10);
    assert_int_equal(replicas[0].n_runs, 1);
    flow_cancel(&r->sink);
    turn_until_closed(r);
}

static void test_a_lost_replica_is_waited_for(void **state)
{
    (void)state;
    set_replicas(1, BREAKS, 5, WORKS);
    struct recorder *r = fresh();
    const struct relay_opts o = {.source = &source, .wait_ms = LONG_MS};
    relay_run(&o, &site.requests, story(), &r->sink);
    for (int i = 0; i < 60000 && replicas[0].n_runs < 3; i++)
        loop_turn(site.loop, 10);
    replicas[0].way = WORKS;
    turn_until_closed(r);
    assert_whole(r);
    assert_int_equal(counts.n_lost, 0);
    set_replicas(1, BREAKS, 0, WORKS); /* it never comes back */
    struct request *q = story();
    q->deadline_ns = clock_ns() + 100000000u;
    r = relay(q, LONG_MS);
    assert_int_equal(r->n_fails, 1);
    assert_int_equal(r->failure.kind, FAILURE_DEADLINE);
}

/* All nodes stood still, and have not heard yet which version is the present one. */
static void test_any_version_may_answer_at_last(void **state)
{
    (void)state;
    all_wait = true;
    for (int here = 0; here < 2; here++) {
        set_replicas(1, WORKS, 0, WORKS);
        source.here = here ? &replicas[0].replica : NULL;
        const uint64_t began = clock_ns();
        struct recorder *r = relay(story(), 400);
        assert_whole(r);
        assert_true(clock_ns() - began >= 100 * UINT64_C(1000000)); /* a quarter */
        assert_true(r->start.isolated == (here == 1));              /* a node says so itself */
    }
    all_wait = false;
    set_replicas(1, WORKS, 0, WORKS);
    source.here = &replicas[0].replica;
    assert_false(relay(story(), LONG_MS)->start.isolated);
}

static void test_a_request_that_ends_its_replicas(void **state)
{
    (void)state;
    set_replicas(1, DIES, 1, WORKS); /* with nothing else to do */
    struct recorder *r = relay(story(), 60000);
    assert_int_equal(r->n_fails, 1);
    assert_int_equal(r->failure.kind, FAILURE_INTERNAL);
    assert_string_equal(r->reason, "request_ends_nodes");
    assert_int_equal(replicas[0].n_runs, 8);
    set_replicas(1, BREAKS, 1, WORKS); /* a silent replica is not dead: the relay waits for it */
    r = fresh();
    const struct relay_opts o = {.source = &source, .wait_ms = 60000};
    relay_run(&o, &site.requests, story(), &r->sink);
    for (int i = 0; i < 60000 && replicas[0].n_runs < 20; i++)
        loop_turn(site.loop, 10);
    replicas[0].way = WORKS;
    turn_until_closed(r);
    assert_whole(r);
}

static void test_specialists_run_again(void **state)
{
    (void)state;
    set_replicas(1, WORKS, 0, WORKS);
    struct recorder first = *relay(classify(3), LONG_MS);
    assert_int_equal(first.n_results, 3);
    for (uint32_t after = 0; after < 4; after++) {
        set_replicas(2, BREAKS, after, WORKS);
        struct recorder *r = relay(classify(3), LONG_MS);
        assert_int_equal(r->n_results, 3);
        assert_int_equal(r->n_last, 1);
        assert_int_equal(r->n_fails, 0);
        assert_memory_equal(r->labels, first.labels, sizeof(first.labels));
    }
    set_replicas(2, LIES, 0, WORKS);
    assert_int_equal(relay(classify(3), LONG_MS)->n_results, 3);
    assert_int_equal(replicas[0].n_blamed, 1);
}

static void test_nothing_comes_after_cancel(void **state)
{
    (void)state;
    for (uint32_t at = 1; at <= 20; at += 4) {
        struct recorder *r = fresh();
        const struct relay_opts o = {.source = &source, .wait_ms = LONG_MS};
        set_replicas(2, BREAKS, 7, WORKS);
        r->cancel_at = RECORDER_TOKEN;
        r->after = at - 1;
        relay_run(&o, &site.requests, story(), &r->sink);
        turn_until_closed(r);
        assert_int_equal(r->n_of[0] + r->n_of[1], at);
        assert_int_equal(r->n_last + r->n_fails, 0);
    }
    set_replicas(1, BREAKS, 0, WORKS); /* while it waits for a replica */
    struct recorder *r = fresh();
    const struct relay_opts o = {.source = &source, .wait_ms = LONG_MS};
    relay_run(&o, &site.requests, story(), &r->sink);
    for (int i = 0; i < 60000 && replicas[0].n_runs < 2; i++)
        loop_turn(site.loop, 10);
    flow_cancel(&r->sink);
    turn_until_closed(r);
    assert_int_equal(r->n_fails, 0);
}

static void test_a_full_sink_is_left_alone(void **state)
{
    struct recorder *r = fresh();
    const struct relay_opts o = {.source = &source, .wait_ms = LONG_MS};
    (void)state;
    set_replicas(2, BREAKS, 9, WORKS);
    r->full = true;
    relay_run(&o, &site.requests, story(), &r->sink);
    for (int i = 0; i < 20; i++)
        loop_turn(site.loop, 10);
    assert_int_equal(r->n_of[0] + r->n_of[1] + r->n_done + r->n_closed, 0);
    r->full = false;
    flow_resume(&r->sink);
    turn_until_closed(r);
    assert_whole(r);
}

/* Models are hashed in the background, and an answer can only move once its version is known. */
static bool is_hashed(const char *name, enum shoal_kind kind)
{
    struct registry_model *m = NULL;
    if (registry_get(site.flow.registry, name, kind, &m, NULL, NULL) < 0)
        return false;
    for (int i = 0; i < 60000 && !registry_sum(m); i++)
        usleep(1000);
    const bool known = registry_sum(m) != NULL;
    registry_put(m);
    return known;
}

static int open_site(void **state)
{
    static const struct registry_spec specs[] = {
        {.name = "reply", .path = SHOAL_TEST_DATA "/refs/llama-gqa.gguf", .pinned = true},
        {.name = "encoder", .path = SHOAL_TEST_DATA "/../../models/encoder", .pinned = true}};
    const struct registry_opts ro = {.cache_dir = ""};
    struct err e = {0};
    (void)state;
    log_setup(LOG_LEVEL_ERROR, LOG_FORMAT_LOGFMT);
    replica_local_init(&real);
    int rc = loop_create(&site.loop, &e);
    if (rc == 0)
        rc = registry_create(&site.flow.registry, &ro, &e);
    if (rc == 0)
        rc = pool_create(&site.flow.pool, 1, 16, &e);
    for (int i = 0; i < 2 && rc == 0; i++)
        rc = registry_add(site.flow.registry, &specs[i], &e);
    if (rc < 0)
        return rc;
    for (int i = 0; i < 60000 && !registry_ready(site.flow.registry); i++)
        usleep(1000);
    flow_owner_init(&site.requests, &site.flow, loop_executor(site.loop));
    return registry_ready(site.flow.registry) && is_hashed("reply", SHOAL_KIND_GENERATE) &&
                   is_hashed("encoder", SHOAL_KIND_CLASSIFY)
               ? 0
               : -1;
}

static int close_site(void **state)
{
    (void)state;
    flow_wake(&site.requests);
    pool_destroy(site.flow.pool);
    registry_destroy(site.flow.registry);
    flow_owner_fini(&site.requests);
    loop_destroy(site.loop);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_relay_changes_nothing),
        cmocka_unit_test(test_a_stream_survives_a_break_at_every_event),
        cmocka_unit_test(test_an_echo_survives_a_break_at_every_event),
        cmocka_unit_test(test_the_client_learns_who_answers),
        cmocka_unit_test(test_a_silent_replica_is_overtaken),
        cmocka_unit_test(test_a_stream_that_stops_is_overtaken),
        cmocka_unit_test(test_a_second_replica_has_the_time_to_read),
        cmocka_unit_test(test_hedging_is_for_deadlines),
        cmocka_unit_test(test_a_hedge_waits_for_a_second_replica),
        cmocka_unit_test(test_two_replicas_are_cancelled),
        cmocka_unit_test(test_another_version_does_not_continue),
        cmocka_unit_test(test_an_unknown_version_is_proved_by_its_tokens),
        cmocka_unit_test(test_another_version_is_found_by_its_tokens),
        cmocka_unit_test(test_one_reads_and_another_writes),
        cmocka_unit_test(test_a_canary_that_fails_costs_nothing),
        cmocka_unit_test(test_replicas_that_are_silent_for_ever),
        cmocka_unit_test(test_replicas_that_lie_or_say_nothing),
        cmocka_unit_test(test_what_a_replica_refuses),
        cmocka_unit_test(test_a_model_that_loads_is_waited_for),
        cmocka_unit_test(test_a_node_that_loads_is_left_for_one_that_is_ready),
        cmocka_unit_test(test_a_node_that_has_loaded_is_not_left_for_itself),
        cmocka_unit_test(test_a_lost_replica_is_waited_for),
        cmocka_unit_test(test_any_version_may_answer_at_last),
        cmocka_unit_test(test_a_request_that_ends_its_replicas),
        cmocka_unit_test(test_specialists_run_again),
        cmocka_unit_test(test_nothing_comes_after_cancel),
        cmocka_unit_test(test_a_full_sink_is_left_alone)};
    return cmocka_run_group_tests(tests, open_site, close_site);
}
