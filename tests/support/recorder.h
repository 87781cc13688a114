/* recorder.h - a sink that keeps the events of one request and checks their order (flow/sink.h).
 *
 * Include it after cmocka.h. */
#ifndef SHOAL_TESTS_RECORDER_H
#define SHOAL_TESTS_RECORDER_H

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "flow/flow.h"
#include "flow/sink.h"
#include "support/golden_trace.h"

#define RECORDER_CHOICES 4u

enum recorder_point { RECORDER_START = 1, RECORDER_PLAN, RECORDER_TOKEN };

struct recorder {
    struct sink sink; /* must be the first member */
    uint32_t n_starts, n_plans, n_tokens, n_logprobs, n_results, n_done, n_last, n_broke_off,
        n_fails, n_closed, n_flushes;
    struct sink_start start;
    uint8_t question[32];
    char model[32], version[32];
    char text[RECORDER_CHOICES][4096];    /* of each choice; the reply of an ask is in [0] */
    int32_t tokens[RECORDER_CHOICES][64]; /* and the tokens of each */
    size_t shown[RECORDER_CHOICES][64];   /* bytes of text with and before each of them */
    uint32_t n_of[RECORDER_CHOICES];
    struct buf json; /* the plan, written when the request is closed; see recorder_init */
    const struct ask_plan *plan;
    char labels[8][64]; /* of the results */
    struct sink_done done, broke_off;
    struct sink_usage usage;
    char steps[128]; /* names, each followed by a comma */
    int broke_off_code;
    struct failure failure;
    char reason[64];
    /* Set by the test. */
    bool full;
    enum recorder_point cancel_at; /* where to cancel, 0: never, */
    uint32_t after;                /* after more than this many such events */
    uint64_t start_before;         /* start returns after this time */
};

static inline struct recorder *recorder_of(struct sink *s)
{
    return (struct recorder *)(void *)s;
}

static inline void recorder_reach(struct recorder *r, enum recorder_point point, uint32_t n)
{
    assert_int_equal(r->n_starts, 1);
    assert_int_equal(r->n_last + r->n_fails + r->n_closed, 0);
    if (r->cancel_at == point && n > r->after)
        flow_cancel(&r->sink);
}

static inline void recorder_on_start(struct sink *s, const struct sink_start *e)
{
    struct recorder *r = recorder_of(s);
    trace_start(s, e);
    r->start = *e;
    snprintf(r->model, sizeof(r->model), "%s", e->model);
    snprintf(r->version, sizeof(r->version), "%s", e->version);
    if (e->question)
        memcpy(r->question, e->question, sizeof(r->question));
    while (clock_ns() < r->start_before)
        usleep(1000);
    recorder_reach(r, RECORDER_START, ++r->n_starts);
}

static inline void recorder_on_plan(struct sink *s, const struct sink_plan *e)
{
    struct recorder *r = recorder_of(s);
    assert_int_equal(r->n_plans + r->n_tokens, 0);
    r->plan = e->plan;
    recorder_reach(r, RECORDER_PLAN, ++r->n_plans);
}

static inline void recorder_on_token(struct sink *s, const struct sink_token *t)
{
    struct recorder *r = recorder_of(s);
    trace_token(t);
    assert_true(t->choice < RECORDER_CHOICES);
    if (r->n_plans > 0) { /* a chunk of the reply */
        assert_int_equal(t->token, -1);
        assert_int_equal(t->choice, 0);
        assert_true(t->text_bytes > 0);
    }
    strncat(r->text[t->choice], t->text, t->text_bytes);
    if (t->token >= 0 && r->n_of[t->choice] < 64) {
        uint32_t at = r->n_of[t->choice]++;
        r->tokens[t->choice][at] = t->token;
        r->shown[t->choice][at] = strlen(r->text[t->choice]);
    }
    if (t->logprobs) {
        assert_int_equal(t->logprobs[0].token, t->token);
        assert_true(t->logprobs[0].logprob <= 0);
        r->n_logprobs += t->n_logprobs;
    }
    recorder_reach(r, RECORDER_TOKEN, ++r->n_tokens);
}

static inline void recorder_on_result(struct sink *s, const struct sink_result *e)
{
    struct recorder *r = recorder_of(s);
    trace_result(e);
    assert_int_equal(e->index, r->n_results);
    recorder_reach(r, 0, 0);
    if (r->n_results < 8)
        snprintf(r->labels[r->n_results], sizeof(r->labels[0]), "%s", e->result->label);
    r->n_results++;
    r->n_last += e->last;
}

static inline void recorder_on_done(struct sink *s, const struct sink_done *d)
{
    struct recorder *r = recorder_of(s);
    size_t n = 0;
    trace_done("done", s, d);
    recorder_reach(r, 0, 0);
    r->done = *d;
    r->n_done++;
    r->n_last += d->last;
    if (d->last)
        r->usage = d->usage;
    for (uint32_t i = 0; i < d->n_steps; i++)
        n += (size_t)snprintf(r->steps + n, sizeof(r->steps) - n, "%s,", d->steps[i].name);
}

static inline void recorder_on_broke_off(struct sink *s, const struct sink_done *d, int code)
{
    struct recorder *r = recorder_of(s);
    trace_done("broke off", s, d);
    trace("  code=%d\n", code);
    assert_int_equal(r->n_closed, 0);
    r->broke_off = *d;
    r->broke_off_code = code;
    r->n_broke_off++;
}

static inline void recorder_on_fail(struct sink *s, const struct failure *f)
{
    struct recorder *r = recorder_of(s);
    trace_failure(f);
    assert_int_equal(r->n_last + r->n_fails + r->n_closed, 0);
    r->failure = *f;
    snprintf(r->reason, sizeof(r->reason), "%s", f->reason ? f->reason : "");
    r->n_fails++;
}

static inline void recorder_on_closed(struct sink *s)
{
    struct recorder *r = recorder_of(s);
    struct json_out j = json_out_make(&r->json);
    trace("closed\n");
    if (r->plan) /* it must stay valid until now, whatever happened */
        ask_plan_json(&j, r->plan);
    if (r->plan)
        trace("%s\n", buf_str(&r->json));
    r->n_closed++;
}

static inline void recorder_on_flush(struct sink *s)
{
    recorder_of(s)->n_flushes++;
}

static inline bool recorder_on_full(struct sink *s)
{
    return recorder_of(s)->full;
}

static inline void recorder_init(struct recorder *r)
{
    static const struct sink_ops ops = {.start = recorder_on_start,
                                        .plan = recorder_on_plan,
                                        .token = recorder_on_token,
                                        .result = recorder_on_result,
                                        .done = recorder_on_done,
                                        .fail = recorder_on_fail,
                                        .closed = recorder_on_closed,
                                        .broke_off = recorder_on_broke_off,
                                        .flush = recorder_on_flush,
                                        .full = recorder_on_full};
    memset(r, 0, sizeof(*r));
    r->sink.ops = &ops;
    buf_init(&r->json, 1 << 20);
}

/* Only a plan allocates; a recorder without one needs no fini. */
static inline void recorder_fini(struct recorder *r)
{
    buf_fini(&r->json);
}

#endif
