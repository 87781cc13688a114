/* chain.h - a part of a decoder, computed by other processes: what the engine with the rest needs
 * of them.  Either they have the first layers, or rows of all layers (model/decoder_rows.h).
 * Implemented by cluster/shard.
 *
 * Each process keeps the keys and values of its own layers or heads.  Page numbers are the engine's
 * and mean the same everywhere.
 *
 * Thread:    as lm.h.  Functions may block, for as long as the others are heard.
 * Ownership: whoever opens an engine with a chain gives it away, also if that fails: close frees
 * it.
 * Failure:   SHOAL_E*. */
#ifndef SHOAL_ENGINE_DECODE_CHAIN_H
#define SHOAL_ENGINE_DECODE_CHAIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "model/decoder.h"

struct chain_costs { /* bytes */
    uint32_t n_layers, dim;
    uint64_t layer, head, kv, scratch; /* layer: of the largest; kv: of one layer, all pages */
    uint32_t n_kv_heads, ffn_dim;
    bool rows; /* it can be cut by rows */
};

/* What is computed here. */
struct chain_cut {
    uint32_t first;           /* from this layer on; 0: all layers */
    struct decoder_rows rows; /* n_parts 0: whole matrices.  Otherwise this part is the last */
};

struct chain_shape { /* agreed by all parts */
    uint32_t n_layers, dim, n_ctx, max_batch, n_pages;
    struct chain_cut cut;
    bool kv_q8;
};

struct chain_ops {
    /* Chooses; all layers and no rows: without others. */
    int (*cut)(void *ctx, const struct chain_costs *c, struct chain_cut *out, struct err *e);
    /* The others load their parts. */
    int (*connect)(void *ctx, const struct chain_shape *s, struct err *e);
    /* The tokens of a step; several may be sent before the first is received. */
    int (*send)(void *ctx, const struct decoder_run *runs, uint32_t n_runs);
    /* By layers: the result of the next step, x [n_tokens][dim]. */
    int (*receive)(void *ctx, float *x, uint32_t n_tokens);
    /* By rows: as decoder_gather_fn, for the step that was sent. */
    bool (*gather)(void *ctx, const struct decoder_gather *g);
    /* After a failure of the three above: a chain that works, whose keys and values are lost.  By
     * rows the others may be cut in another way, and *rows says how; this part is as it was. */
    int (*reconnect)(void *ctx, struct decoder_rows *rows);
    uint32_t (*n_parts)(const void *ctx); /* with the engine's own */
    void (*close)(void *ctx);
};

struct chain {
    const struct chain_ops *ops; /* NULL: there is none */
    void *ctx;
};

static inline void chain_close(struct chain *c)
{
    if (c->ops)
        c->ops->close(c->ctx);
    c->ops = NULL;
}

#endif
