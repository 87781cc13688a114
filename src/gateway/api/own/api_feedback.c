/* api_feedback.c - see api_feedback.h.
 *
 * The vote is written to a file, so the pool does it; the loop answers. */
#include "gateway/api/own/api_feedback.h"

#include <inttypes.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "flow/pool.h"
#include "gateway/call/call.h"
#include "host/prometheus.h"
#include "trace/trace_ring.h"
#include "trace/trace_votes.h"
#include "trace/trace_words.h"
#include "wire/json_out.h"

struct body {
    const char *id, *rating;
};

#define AT(member) offsetof(struct body, member)
const struct field api_feedback_fields[] = {
    {"id", FIELD_STR, AT(id), 0, 0, "x-request-id of the answer, or the id of its trace", NULL},
    {"rating", FIELD_STR, AT(rating), 0, 0, "up or down", NULL}};
const size_t api_n_feedback_fields = sizeof(api_feedback_fields) / sizeof(api_feedback_fields[0]);

struct vote_job {
    struct pool_task task;
    struct executor_task finished;
    struct call *call; /* held */
    struct trace *trace;
    bool up;
    int rc;
    struct err why;
};

static const char *model_of(const struct trace_view *v)
{
    for (const struct trace_note *n = v->spans[TRACE_ROOT].notes; n; n = n->next)
        if (strcmp(n->key, TRACE_MODEL) == 0 && n->text)
            return n->text;
    return "none";
}

static void on_pool(struct pool_task *t)
{
    struct vote_job *k = EXECUTOR_OF(t, struct vote_job, task);
    const struct trace_view v = trace_look(k->trace);
    char id[33];
    trace_context_id(id, &v.from);
    const struct trace_vote x = {.trace_id = id,
                                 .request = v.request,
                                 .model = model_of(&v),
                                 .up = k->up,
                                 .unix_ms = clock_unix_ms()};
    k->rc = trace_votes_add(trace_ring_votes(k->call->gl->gw->traces), &x, &k->why);
    executor_post(k->call->gl->flow.executor, &k->finished);
}

static void on_finished(struct executor_task *t)
{
    struct vote_job *k = EXECUTOR_OF(t, struct vote_job, finished);
    struct call *c = k->call;
    struct json_out j = json_out_make(&c->out);
    if (k->rc < 0)
        log_warn("feedback", "%s", k->why.msg);
    if (c->req) {
        json_out_object(&j);
        json_out_key(&j, "counted"); /* false: this answer had a vote already */
        json_out_bool(&j, k->rc != 0);
        json_out_object_end(&j);
        call_json(c, 200);
    }
    trace_unref(k->trace);
    mem_free(k);
    call_release(c);
}

static void submit(struct call *c, struct trace *t, bool up)
{
    struct vote_job *k = mem_zalloc(sizeof(*k));
    if (!k) {
        trace_unref(t);
        call_fail_code(c, SHOAL_ENOMEM, "out of memory");
        return;
    }
    *k = (struct vote_job){
        .task = {.fn = on_pool}, .finished = {.fn = on_finished}, .call = c, .trace = t, .up = up};
    call_hold(c);
    if (pool_submit(c->gl->gw->pool, &k->task) == 0)
        return;
    trace_unref(t);
    mem_free(k);
    call_refuse(c, GW_REFUSED_BUSY, 503, 1, "the server is busy");
    call_release(c);
}

void api_feedback(struct call *c)
{
    struct body b = {.id = NULL};
    struct fields_error fe = {{0}, {0}, NULL};
    int rc = fields_read(api_feedback_fields, api_n_feedback_fields, c->json, &b, c->lenient, &fe);
    const bool up = b.rating && strcmp(b.rating, "up") == 0;
    if (rc == 0 && (!b.id || !b.id[0] || !b.rating))
        rc = fields_fail(&fe, b.id ? "rating" : "id", "missing_required_parameter",
                         "'id' and 'rating' are required");
    else if (rc == 0 && !up && strcmp(b.rating, "down") != 0)
        rc = fields_fail(&fe, "rating", "invalid_value", "'rating' must be up or down");
    if (rc < 0) {
        call_fail_fields(c, &fe);
        return;
    }
    struct gw *gw = c->gl->gw;
    struct trace *t = gw->traces
                          ? trace_ring_find(gw->traces, b.id,
                                            c->client && !c->client->admin ? c->client->name : NULL)
                          : NULL;
    if (t)
        submit(c, t, up);
    else
        call_fail(c, 404, NULL, "id", "request_not_found",
                  "there is no request '%.80s' among the last %u of this key", b.id,
                  c->gl->config->tracing.keep);
}

static void put_votes(void *ctx, const char *model, uint64_t up, uint64_t down)
{
    char label[PROMETHEUS_LABEL_BYTES];
    prometheus_model(label, model);
    buf_printf(ctx, "shoal_feedback_total{%s,rating=\"up\"} %" PRIu64 "\n", label, up);
    buf_printf(ctx, "shoal_feedback_total{%s,rating=\"down\"} %" PRIu64 "\n", label, down);
}

void api_feedback_metrics(struct trace_votes *v, struct buf *b)
{
    prometheus_help(b, "shoal_feedback_total", "counter", "what people think of answers");
    trace_votes_each(v, put_votes, b);
}
