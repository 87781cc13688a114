/* decision.c - see decision.h. */
#include "gateway/api/decision.h"

#include <string.h>

#include "base/clock.h"
#include "flow/routing_choice.h"
#include "flow/stages.h"
#include "gateway/call/answer.h"
#include "wire/json_out.h"

/* ---- JSON ---- */

static void put_str(struct json_out *j, const char *key, const char *value)
{
    json_out_member_str(j, key, value);
}

static void put_num(struct json_out *j, const char *key, double v)
{
    json_out_member_num(j, key, v);
}

static void put_ms(struct json_out *j, const char *key, double ns)
{
    put_num(j, key, (double)(int64_t)(ns / 1e3 + 0.5) / 1e3); /* whole microseconds */
}

static void put_candidate(struct json_out *j, const struct routing_candidate *c)
{
    const struct router_estimate *x = &c->estimate;
    json_out_object(j);
    put_str(j, "model", c->model);
    if (c->node)
        put_str(j, "node", c->node);
    put_num(j, "quality", c->quality);
    put_num(j, "cost", c->cost);
    json_out_member_object(j, "estimate");
    json_out_member_bool(j, "known", x->known);
    put_ms(j, "queue_ms", x->queue_ns);
    put_ms(j, "prefill_ms", x->prefill_ns);
    put_ms(j, "decode_ms", x->decode_ns);
    put_ms(j, "network_ms", x->rtt_ns);
    put_ms(j, "total_ms", x->total_ns);
    put_ms(j, "sure_ms", x->sure_ns);
    json_out_object_end(j);
    put_str(j, "verdict", router_verdict_name(c->verdict));
    put_str(j, "why", router_verdict_text(c->verdict));
    json_out_object_end(j);
}

/* How long each stage had the request, so far. */
static void put_stages(struct json_out *j, const struct stage_log *log)
{
    const uint64_t now = clock_ns();
    if (!log)
        return;
    json_out_member_array(j, "stages");
    for (uint32_t i = 0; i < STAGE_N; i++)
        if (log->entered_ns[i]) {
            json_out_object(j);
            put_str(j, "stage", stages_name(i));
            put_ms(j, "ms", (double)stages_time(log, i, now));
            json_out_object_end(j);
        }
    json_out_array_end(j);
}

static void put_explanation(struct json_out *j, const struct routing_choice *x)
{
    put_str(j, "policy", x->policy);
    json_out_member_uint(j, "prompt_tokens", x->work.prompt_tokens);
    json_out_member_uint(j, "max_tokens", x->work.max_tokens);
    json_out_key(j, "budget_ms");
    if (x->budget_ns > 0)
        json_out_num(j, (double)(int64_t)(x->budget_ns / 1e3) / 1e3);
    else
        json_out_null(j);
    json_out_key(j, "rule");
    if (x->rule >= 0)
        json_out_int(j, x->rule + 1);
    else
        json_out_null(j);
    put_num(j, "decided_us", (double)x->decide_ns / 1e3);
    put_stages(j, x->stages);
    json_out_member_array(j, "candidates");
    for (uint32_t i = 0; i < x->n_candidates; i++)
        put_candidate(j, &x->candidates[i]);
    json_out_array_end(j);
}

static void put_ensemble(struct json_out *j, const struct routing_ensemble *x)
{
    json_out_member_object(j, "ensemble");
    put_str(j, "kind", x->kind);
    json_out_member_array(j, "steps");
    for (uint32_t i = 0; i < x->n_steps; i++) {
        const struct routing_step *step = &x->steps[i];
        json_out_object(j);
        put_str(j, "model", step->model);
        put_str(j, "what", step->what);
        if (step->sureness >= 0)
            put_num(j, "sureness", (double)(int64_t)(step->sureness * 1e4 + 0.5) / 1e4);
        json_out_member_bool(j, "answered", step->answered);
        json_out_object_end(j);
    }
    json_out_array_end(j);
    json_out_object_end(j);
}

void decision_json(struct json_out *j, const struct routing_choice *x)
{
    json_out_object(j);
    put_str(j, "route", x->route);
    put_str(j, "model", x->model);
    if (x->node)
        put_str(j, "node", x->node);
    json_out_member_bool(j, "degraded", x->degraded);
    if (x->domain)
        put_str(j, "domain", x->domain);
    if (x->domain_p > 0)
        put_num(j, "domain_confidence", (double)(int64_t)(x->domain_p * 1e4 + 0.5) / 1e4);
    if (x->ensemble)
        put_ensemble(j, x->ensemble);
    if (x->candidates)
        put_explanation(j, x);
    json_out_object_end(j);
}

/* ---- POST /v1/route ---- */

struct body {
    const char *model, *text;
    double latency_budget_ms;
    int64_t max_tokens;
};

#define AT(member) offsetof(struct body, member)
const struct field decision_fields[] = {
    {"text", FIELD_STR, AT(text), 0, 0, "text of the request", NULL},
    {"model", FIELD_STR, AT(model), 0, 0, "name of a route; default: auto", NULL},
    {"max_tokens", FIELD_INT, AT(max_tokens), 1, 1 << 24, "maximum number of tokens to generate",
     NULL},
    {"latency_budget_ms", FIELD_NUM, AT(latency_budget_ms), 0, 86400000,
     "latency budget of the answer", NULL},
    {"metadata", FIELD_IGNORED, 0, 0, 0, "for rules", NULL},
};
const size_t decision_n_fields = sizeof(decision_fields) / sizeof(decision_fields[0]);

static void put_whole(struct answer_sink *a, const struct sink_done *d)
{
    struct json_out j = json_out_make(&a->call->out);
    (void)d;
    decision_json(&j, a->sink.routed);
    buf_putc(j.b, '\n');
}

static int read_body(struct request *r, const struct call *c, struct fields_error *e)
{
    struct body b = {.model = "auto"};
    int rc = fields_read(decision_fields, decision_n_fields, c->json, &b, c->lenient, e);
    if (rc == 0 && !b.text)
        rc = fields_fail(e, "text", "missing_required_parameter", "'text' is missing");
    if (rc < 0)
        return rc;
    struct request_prompt *p = arena_zalloc(&r->arena, sizeof(*p));
    r->kind = REQUEST_GENERATE;
    r->model = request_copy(r, b.model, strlen(b.model));
    r->dry = true;
    r->input_bytes = strlen(b.text);
    request_set_budget(r, b.latency_budget_ms);
    r->generate.max_tokens = (uint32_t)b.max_tokens;
    r->generate.n = r->generate.n_prompts = 1;
    r->generate.prompts = p;
    if (p) {
        p->text = request_copy(r, b.text, r->input_bytes);
        p->text_bytes = r->input_bytes;
    }
    return request_rc(r) < 0 ? fields_fail(e, "text", NULL, "out of memory") : 0;
}

void decision_handle(struct call *c)
{
    static const struct answer_dialect dialect = {.frame = &answer_events, .whole = put_whole};
    struct fields_error e = {{0}, {0}, NULL};
    struct request *r = call_request(c);
    if (!r)
        return;
    if (read_body(r, c, &e) < 0) {
        call_fail_fields(c, &e);
        flow_give_request(&c->gl->flow, r);
        return;
    }
    struct answer_sink *a = answer_create(c, r, sizeof(*a), &dialect, false);
    if (!a)
        return;
    c->sink = &a->sink; /* nothing is computed: it does not count towards a quota */
    stages_run(&c->gl->flow, r, c->sink);
}
