/* cuda_graphs.c - see cuda_graphs.h. */
#include "engine/cuda/cuda_graphs.h"

#include "base/log.h"

#define WORTH 3u /* a pass that was seen that often is recorded: that costs some passes */

static bool same(const struct cuda_graphs_key *a, const struct cuda_graphs_key *b)
{
    const struct step_pass *p = &a->pass, *q = &b->pass;
    return a->plan == b->plan && a->last == b->last && p->n_tokens == q->n_tokens &&
           p->n_wanted == q->n_wanted && p->n_tiles == q->n_tiles && p->tokens == q->tokens &&
           p->pages == q->pages && p->embedded == q->embedded && p->logits == q->logits &&
           p->wanted == q->wanted && p->tiles == q->tiles;
}

static void forget(struct cuda_graphs_kept *k, const struct cuda_lib *lib)
{
    if (k->exec)
        (void)lib->api.graph_exec_destroy(k->exec);
    *k = (struct cuda_graphs_kept){.seen = 0};
}

/* Its place, or the one that was not used for longest. */
static struct cuda_graphs_kept *place_of(struct cuda_graphs *s, const struct cuda_lib *lib,
                                         const struct cuda_graphs_key *key)
{
    struct cuda_graphs_kept *oldest = &s->kept[0];
    for (uint32_t i = 0; i < CUDA_GRAPHS_MAX; i++) {
        struct cuda_graphs_kept *k = &s->kept[i];
        if (k->seen && same(&k->key, key))
            return k;
        if (k->used < oldest->used)
            oldest = k;
    }
    forget(oldest, lib);
    oldest->key = *key;
    return oldest;
}

/* False: this driver cannot. */
static bool record(struct cu_graph_exec **out, const struct cuda_lib *lib, struct cu_stream *stream,
                   int (*launch)(void *ctx, struct err *e), void *ctx)
{
    struct cu_graph *graph = NULL;
    struct err e = {0};
    if (lib->api.capture_begin(stream, CU_CAPTURE_THREAD) != 0)
        return false;
    bool ok = launch(ctx, &e) == 0;
    ok = lib->api.capture_end(stream, &graph) == 0 && ok && graph; /* it must end in any case */
    ok = ok && lib->api.graph_instantiate(out, graph, 0) == 0;
    if (graph)
        (void)lib->api.graph_destroy(graph);
    return ok;
}

int cuda_graphs_run(struct cuda_graphs *s, const struct cuda_lib *lib, struct cu_stream *stream,
                    const struct cuda_graphs_key *key, int (*launch)(void *ctx, struct err *e),
                    void *ctx, struct err *e)
{
    if (s->off)
        return launch(ctx, e);
    struct cuda_graphs_kept *k = place_of(s, lib, key);
    k->used = ++s->now;
    if (!k->exec && ++k->seen < WORTH)
        return launch(ctx, e);
    if (!k->exec && !record(&k->exec, lib, stream, launch, ctx)) {
        log_info("cuda", "the driver cannot record passes, they are launched one by one");
        k->exec = NULL;
        s->off = true;
        return launch(ctx, e);
    }
    return cuda_lib_check(lib, lib->api.graph_launch(k->exec, stream), "cannot launch a pass", e);
}

void cuda_graphs_clear(struct cuda_graphs *s, const struct cuda_lib *lib)
{
    for (uint32_t i = 0; i < CUDA_GRAPHS_MAX; i++)
        forget(&s->kept[i], lib);
}
