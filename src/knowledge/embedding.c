/* embedding.c - see embedding.h. */
#include "knowledge/embedding.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "flow/stages.h"

#define BATCH 64u /* texts of one request */

struct request *embedding_request(struct flow_owner *o, const struct embedding_who *who,
                                  enum request_kind kind, const char *model)
{
    struct request *r = flow_take_request(o);
    if (!r)
        return NULL;
    r->kind = kind;
    r->client = who->client;
    memcpy(r->id, who->id, sizeof(r->id));
    request_trace(r, &who->spans);
    r->received_ns = clock_ns();
    r->deadline_ns = who->deadline_ns;
    r->priority = who->priority;
    r->model = model ? request_copy(r, model, strlen(model)) : NULL;
    return r;
}

static void next_batch(struct embedding *x);

static void on_start(struct sink *s, const struct sink_start *e)
{
    struct embedding *x = EXECUTOR_OF(s, struct embedding, sink);
    snprintf(x->version, sizeof(x->version), "%s", e->version ? e->version : "");
}

static void on_result(struct sink *s, const struct sink_result *e)
{
    struct embedding *x = EXECUTOR_OF(s, struct embedding, sink);
    const struct shoal_result *r = e->result;
    if (x->failed)
        return;
    if (!x->vectors && r->n_dims > 0) {
        x->n_dims = r->n_dims;
        x->vectors = mem_zalloc_n((size_t)x->n * r->n_dims, sizeof(float));
    }
    if (!x->vectors || r->n_dims != x->n_dims || x->at + e->index >= x->n) {
        x->failed = true;
        failure_of(&x->why, x->vectors || r->n_dims == 0 ? SHOAL_EINTERNAL : SHOAL_ENOMEM,
                   "no room for the vectors");
        return;
    }
    memcpy(x->vectors + (size_t)(x->at + e->index) * x->n_dims, r->vector,
           x->n_dims * sizeof(float));
    x->n_tokens += r->n_tokens;
}

static void on_fail(struct sink *s, const struct failure *f)
{
    struct embedding *x = EXECUTOR_OF(s, struct embedding, sink);
    x->failed = true;
    x->why = *f;
}

static void finish(struct embedding *x)
{
    if (x->failed) {
        mem_free(x->vectors);
        x->vectors = NULL;
    }
    x->done(x, x->failed ? &x->why : NULL);
}

static void on_closed(struct sink *s)
{
    struct embedding *x = EXECUTOR_OF(s, struct embedding, sink);
    x->at += x->batch;
    if (x->cancelled && !x->failed) {
        x->failed = true;
        failure_of(&x->why, SHOAL_ECANCELLED, "cancelled");
    }
    if (!x->failed && x->progress)
        x->progress(x, x->at);
    if (x->failed || x->at == x->n)
        finish(x);
    else
        next_batch(x);
}

static void next_batch(struct embedding *x)
{
    struct request *r = embedding_request(x->owner, &x->who, REQUEST_INFER, x->model);
    x->batch = x->n - x->at < BATCH ? x->n - x->at : BATCH;
    struct request_input *in = r ? arena_zalloc_n(&r->arena, x->batch, sizeof(*in)) : NULL;
    if (!in) {
        if (r)
            flow_give_request(x->owner, r);
        x->failed = true;
        failure_of(&x->why, SHOAL_ENOMEM, "out of memory");
        finish(x);
        return;
    }
    for (uint32_t i = 0; i < x->batch; i++) {
        in[i].text = x->texts[x->at + i].p;
        in[i].text_bytes = x->texts[x->at + i].n;
        r->input_bytes += in[i].text_bytes;
    }
    r->infer = (struct request_infer){.kind = SHOAL_KIND_EMBED, .inputs = in, .n_inputs = x->batch};
    stages_run(x->owner, r, &x->sink);
}

void embedding_run(struct embedding *x)
{
    static const struct sink_ops ops = {
        .start = on_start, .result = on_result, .fail = on_fail, .closed = on_closed};
    x->sink = (struct sink){.ops = &ops};
    x->vectors = NULL;
    x->n_dims = x->at = x->batch = 0;
    x->n_tokens = 0;
    x->version[0] = '\0';
    x->cancelled = x->failed = false;
    if (x->n == 0)
        finish(x);
    else
        next_batch(x);
}

void embedding_cancel(struct embedding *x)
{
    if (x->cancelled)
        return;
    x->cancelled = true;
    if (x->sink.job)
        flow_cancel(&x->sink);
}
