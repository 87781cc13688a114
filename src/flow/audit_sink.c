/* audit_sink.c - see audit_sink.h. */
#include "flow/audit_sink.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "flow/sink_front.h"
#include "host/registry.h"
#include "supply/audit_log.h"
#include "wire/result_json.h"

#define MAX_RESULT ((size_t)64 << 20)

struct audit_sink {
    struct sink_front front; /* first */
    struct flow_owner *owner;
    const struct request *request;
    struct sha256 answer;
    uint8_t prompt[SHA256_BYTES];
    bool has_prompt, ended;
    const char *model;
    char node[128]; /* "": this process */
    const uint8_t *sum;
    char signer[REGISTRY_SIGNER_BYTES];
    uint32_t tokens;
    const char *decision, *reason;
};

static struct audit_sink *audit_of(struct sink *s)
{
    return (struct audit_sink *)(void *)s; /* its first member */
}

/* ---- hashes ---- */

static void add_text(struct sha256 *h, const char *text, size_t n)
{
    if (text)
        sha256_add(h, text, n);
    sha256_add(h, "\n", 1); /* texts keep their borders */
}

static void add_ids(struct sha256 *h, const int32_t *ids, size_t n)
{
    if (ids)
        sha256_add(h, ids, n * sizeof(ids[0]));
}

static void add_generate(struct sha256 *h, const struct request_generate *g)
{
    for (uint32_t i = 0; i < g->chat.n_messages; i++) {
        const struct chat_message *m = &g->chat.messages[i];
        add_text(h, m->role, strlen(m->role));
        add_text(h, m->content, m->content_bytes);
    }
    for (uint32_t i = 0; g->chat.n_messages == 0 && i < g->n_prompts; i++) {
        const struct request_prompt *p = &g->prompts[i];
        add_text(h, p->text, p->text_bytes);
        add_ids(h, p->ids, p->n_ids);
        for (uint32_t k = 0; k < p->n_pieces; k++) {
            add_text(h, p->pieces[k].text, p->pieces[k].text_bytes);
            add_ids(h, p->pieces[k].ids, p->pieces[k].n_ids);
        }
        if (p->suffix)
            add_text(h, p->suffix, p->suffix_bytes);
    }
}

static void add_infer(struct sha256 *h, const struct request_infer *f)
{
    if (f->query)
        add_text(h, f->query, strlen(f->query));
    for (uint32_t i = 0; i < f->n_inputs; i++) {
        const struct request_input *x = &f->inputs[i];
        add_text(h, x->text, x->text_bytes);
        add_ids(h, x->ids, x->n_ids);
        if (x->values)
            sha256_add(h, x->values, x->n_values * sizeof(x->values[0]));
        if (x->samples)
            sha256_add(h, x->samples, x->n_samples * sizeof(x->samples[0]));
        if (x->image)
            sha256_add(h, x->image, x->image_bytes);
    }
}

static bool hash_prompt(uint8_t out[SHA256_BYTES], const struct request *r)
{
    struct sha256 h;
    sha256_begin(&h);
    switch (r->kind) {
    case REQUEST_GENERATE:
        add_generate(&h, &r->generate);
        break;
    case REQUEST_INFER:
        add_infer(&h, &r->infer);
        break;
    case REQUEST_ASK:
        add_text(&h, r->ask.text, r->ask.text ? strlen(r->ask.text) : 0);
        break;
    case REQUEST_TOKENS:
        add_text(&h, r->tokens.text, r->tokens.text_bytes);
        add_ids(&h, r->tokens.ids, r->tokens.n_ids);
        break;
    }
    return sha256_end(&h, out);
}

static void add_result(struct sha256 *h, const struct shoal_result *result)
{
    struct buf b;
    buf_init(&b, MAX_RESULT);
    struct json_out j = json_out_make(&b);
    json_out_object(&j);
    result_json_answer(&j, result, "", 0);
    json_out_object_end(&j);
    add_text(h, buf_str(&b), b.len);
    buf_fini(&b);
}

/* ---- the line ---- */

static void find_signer(struct audit_sink *x)
{
    struct registry *r = x->owner->flow->registry;
    if (r && x->model && !x->node[0])
        registry_signer(r, x->model, x->signer);
}

static void end(struct audit_sink *x, const char *decision, const char *reason)
{
    const struct request *r = x->request;
    uint8_t answer[SHA256_BYTES];
    if (x->ended)
        return;
    x->ended = true;
    bool has_answer = sha256_end(&x->answer, answer);
    const uint64_t now = clock_ns();
    audit_log_put(x->owner->flow->audit,
                  &(struct audit_entry){.kind = AUDIT_REQUEST,
                                        .client = r->client.name,
                                        .node = x->node,
                                        .model = x->model ? x->model : r->model,
                                        .signer = x->signer,
                                        .sum = x->sum,
                                        .prompt = x->has_prompt ? x->prompt : NULL,
                                        .answer = has_answer ? answer : NULL,
                                        .tokens = x->tokens,
                                        .decision = decision,
                                        .reason = reason,
                                        .took_ns = now > r->received_ns && r->received_ns
                                                       ? now - r->received_ns
                                                       : 0});
}

static void take_start(struct audit_sink *x, const struct sink_start *e)
{
    x->model = e->model;
    snprintf(x->node, sizeof(x->node), "%s", e->node ? e->node : "");
    x->sum = e->sum;
    find_signer(x);
}

static void on_start(struct sink *s, const struct sink_start *e)
{
    take_start(audit_of(s), e);
    sink_front_start(s, e);
}

static void on_token(struct sink *s, const struct sink_token *e)
{
    sha256_add(&audit_of(s)->answer, e->text, e->text_bytes);
    sink_front_token(s, e);
}

static void on_call(struct sink *s, const struct sink_call *e)
{
    struct audit_sink *x = audit_of(s);
    if (e->begins)
        add_text(&x->answer, e->name, strlen(e->name));
    sha256_add(&x->answer, e->text, e->text_bytes);
    sink_front_call(s, e);
}

static void on_result(struct sink *s, const struct sink_result *e)
{
    struct audit_sink *x = audit_of(s);
    add_result(&x->answer, e->result);
    if (e->last)
        end(x, "answered", NULL);
    sink_front_result(s, e);
}

static void on_done(struct sink *s, const struct sink_done *e)
{
    struct audit_sink *x = audit_of(s);
    x->tokens += e->generated_tokens;
    if (e->last)
        end(x, "answered", NULL);
    sink_front_done(s, e);
}

static void on_fail(struct sink *s, const struct failure *f)
{
    const bool refused = f->kind == FAILURE_INVALID || f->kind == FAILURE_NOT_FOUND ||
                         f->kind == FAILURE_BUSY || f->kind == FAILURE_CONFLICT;
    end(audit_of(s), refused ? "refused" : "failed", f->reason);
    sink_front_fail(s, f);
}

static void on_replace(struct sink *s, const struct sink_replace *e)
{
    struct audit_sink *x = audit_of(s);
    uint8_t void_answer[SHA256_BYTES];
    if (!x->ended) {
        (void)!sha256_end(&x->answer, void_answer);
        sha256_begin(&x->answer);
        take_start(x, e->start);
    }
    sink_front_replace(s, e);
}

static void on_closed(struct sink *s)
{
    struct audit_sink *x = audit_of(s);
    end(x, "cancelled", NULL);
    sink_front_close(&x->front);
}

static void refuse(struct flow_owner *o, struct request *r, struct sink *s)
{
    struct failure f;
    failure_set(&f, FAILURE_UNAVAILABLE, SHOAL_EIO, NULL, "audit_unavailable",
                "the audit log cannot be written, and audit.full is stop");
    flow_refuse(o, r, s, &f);
}

bool audit_sink_take(struct flow_owner *o, struct request *r, struct sink *s)
{
    static const struct sink_ops ops = {.start = on_start,
                                        .plan = sink_front_plan,
                                        .prompt = sink_front_prompt,
                                        .token = on_token,
                                        .call = on_call,
                                        .result = on_result,
                                        .done = on_done,
                                        .fail = on_fail,
                                        .closed = on_closed,
                                        .broke_off = sink_front_broke_off,
                                        .may_replace = sink_front_may_replace,
                                        .replace = on_replace,
                                        .flush = sink_front_flush,
                                        .full = sink_front_full};
    if (!o->flow->audit)
        return false;
    if (!audit_log_ready(o->flow->audit)) {
        refuse(o, r, s);
        return true;
    }
    struct audit_sink *x = arena_zalloc(&r->arena, sizeof(*x));
    if (!x) {
        flow_refuse_nomem(o, r, s);
        return true;
    }
    x->owner = o;
    x->request = r;
    x->has_prompt = hash_prompt(x->prompt, r);
    sha256_begin(&x->answer);
    sink_front_open(&x->front, &ops, s);
    request_pass_on(o, r, &x->front.sink);
    return true;
}
