/* retrieval.c - see retrieval.h. */
#include "knowledge/retrieval.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "flow/stages.h"

#define MAX_BYTES ((size_t)64 << 20) /* limit of the hits */
#define RERANK_DEPTH 4u              /* times n_results */
#define RERANK_MOST 50u

bool retrieval_mode_find(const char *name, enum retrieval_mode *out)
{
    static const char *const names[] = {"both", "meaning", "words"};
    for (int i = 0; i < 3; i++)
        if (strcmp(names[i], name) == 0) {
            *out = (enum retrieval_mode)i;
            return true;
        }
    return false;
}

static void finish(struct retrieval *x, const struct failure *f)
{
    collections_release(x->collections, x->held);
    x->held = NULL;
    mem_free(x->embedding.vectors);
    x->embedding.vectors = NULL;
    x->done(x, f);
}

static void fail(struct retrieval *x, int rc, const char *msg)
{
    struct failure f;
    failure_of(&f, rc, msg);
    finish(x, &f);
}

static void offload(struct retrieval *x, void (*work)(void *), void (*then)(void *))
{
    x->offload = (struct offload){.work = work, .then = then, .ctx = x};
    if (x->cancelled)
        fail(x, SHOAL_ECANCELLED, "cancelled");
    else if (offload_run(&x->offload, x->owner) < 0)
        fail(x, SHOAL_EBUSY, "too many searches are waiting: try again later");
}

/* ---- the reranker ---- */

static void on_start(struct sink *s, const struct sink_start *e)
{
    (void)s;
    (void)e;
}

static void on_result(struct sink *s, const struct sink_result *e)
{
    struct retrieval *x = EXECUTOR_OF(s, struct retrieval, sink);
    if (e->index < x->n_hits && e->result->n_values > 0)
        x->scores[e->index] = e->result->values[0];
    x->n_tokens += e->result->n_tokens;
}

static void on_fail(struct sink *s, const struct failure *f)
{
    struct retrieval *x = EXECUTOR_OF(s, struct retrieval, sink);
    x->failed = true;
    x->why = *f;
}

static int best_first(const void *a, const void *b)
{
    const struct collection_hit *p = a, *q = b;
    if (p->score != q->score)
        return p->score < q->score ? 1 : -1;
    return (p->id > q->id) - (p->id < q->id);
}

static void on_closed(struct sink *s)
{
    struct retrieval *x = EXECUTOR_OF(s, struct retrieval, sink);
    if (x->failed || x->cancelled) {
        if (!x->failed)
            failure_of(&x->why, SHOAL_ECANCELLED, "cancelled");
        finish(x, &x->why);
        return;
    }
    for (uint32_t i = 0; i < x->n_hits; i++)
        x->hits[i].score = x->scores[i];
    qsort(x->hits, x->n_hits, sizeof(*x->hits), best_first);
    if (x->n_hits > x->n_results)
        x->n_hits = x->n_results;
    finish(x, NULL);
}

static void rerank(struct retrieval *x)
{
    static const struct sink_ops ops = {
        .start = on_start, .result = on_result, .fail = on_fail, .closed = on_closed};
    struct request *r = embedding_request(x->owner, &x->who, REQUEST_INFER, x->reranker);
    struct request_input *in = r ? arena_zalloc_n(&r->arena, x->n_hits, sizeof(*in)) : NULL;
    x->scores = arena_zalloc_n(&x->arena, x->n_hits, sizeof(double));
    if (!in || !x->scores) {
        if (r)
            flow_give_request(x->owner, r);
        fail(x, SHOAL_ENOMEM, "out of memory");
        return;
    }
    for (uint32_t i = 0; i < x->n_hits; i++) {
        in[i] =
            (struct request_input){.text = x->hits[i].text, .text_bytes = strlen(x->hits[i].text)};
        r->input_bytes += in[i].text_bytes;
    }
    r->infer = (struct request_infer){
        .kind = SHOAL_KIND_RERANK, .inputs = in, .n_inputs = x->n_hits, .query = x->query};
    x->sink = (struct sink){.ops = &ops};
    stages_run(x->owner, r, &x->sink);
}

/* ---- the search ---- */

static void search_it(void *ctx)
{
    struct retrieval *x = ctx;
    uint32_t n = x->n_results;
    if (x->reranker)
        n = n * RERANK_DEPTH < RERANK_MOST ? n * RERANK_DEPTH : n > RERANK_MOST ? n : RERANK_MOST;
    const struct collection_query q = {.vector = x->embedding.vectors,
                                       .n_dims = x->embedding.n_dims,
                                       .version = x->embedding.version,
                                       .text = x->mode == RETRIEVAL_MEANING ? NULL : x->query,
                                       .n_results = n};
    x->rc = collection_search(x->held, &q, &x->arena, &x->hits, &x->n_hits, &x->error);
    if (x->rc == 0 && x->also)
        x->rc = x->also(x, x->held, &x->error);
}

static void on_found(void *ctx)
{
    struct retrieval *x = ctx;
    if (x->rc < 0)
        fail(x, x->rc, x->error.msg);
    else if (x->cancelled)
        fail(x, SHOAL_ECANCELLED, "cancelled");
    else if (x->reranker && x->n_hits > 0)
        rerank(x);
    else
        finish(x, NULL);
}

static void on_embedded(struct embedding *m, const struct failure *f)
{
    struct retrieval *x = EXECUTOR_OF(m, struct retrieval, embedding);
    x->n_tokens = m->n_tokens;
    if (f)
        finish(x, f);
    else
        offload(x, search_it, on_found);
}

static void on_opened(void *ctx)
{
    struct retrieval *x = ctx;
    if (x->rc < 0) {
        fail(x, x->rc, x->error.msg);
        return;
    }
    if (x->mode == RETRIEVAL_WORDS || x->info.n_chunks == 0) {
        offload(x, search_it, on_found);
        return;
    }
    x->text = (struct str){x->query, strlen(x->query)};
    x->embedding = (struct embedding){.owner = x->owner,
                                      .who = x->who,
                                      .model = x->info.model,
                                      .texts = &x->text,
                                      .n = 1,
                                      .done = on_embedded};
    embedding_run(&x->embedding);
}

static void open_it(void *ctx)
{
    struct retrieval *x = ctx;
    x->rc = collections_hold(x->collections, x->collection, &x->held, &x->error);
    if (x->rc == 0)
        x->rc = collection_info(x->held, &x->info, &x->error);
}

void retrieval_run(struct retrieval *x)
{
    arena_init(&x->arena, MAX_BYTES);
    offload(x, open_it, on_opened);
}

void retrieval_cancel(struct retrieval *x)
{
    x->cancelled = true;
    if (x->embedding.sink.job)
        embedding_cancel(&x->embedding);
    if (x->sink.job)
        flow_cancel(&x->sink);
}

void retrieval_fini(struct retrieval *x)
{
    arena_fini(&x->arena);
}
