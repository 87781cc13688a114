/* layer_part.h - some layers of a decoder for an engine in another process: weights, keys and
 * values of these layers, and nothing else of the model.  See decode/chain.h for the engine's side.
 *
 * Thread:    belongs to one thread.
 * Ownership: open gives, close takes back (NULL is fine).
 * Failure:   SHOAL_E* with a text.  A step may come from anywhere: it is checked before anything is
 *            computed. */
#ifndef SHOAL_ENGINE_NATIVE_LAYER_PART_H
#define SHOAL_ENGINE_NATIVE_LAYER_PART_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "model/decoder_rows.h"

#define LAYER_PART_PAGE 16u /* tokens of a page */

struct layer_part;

struct layer_part_opts {
    const char *path;         /* the model */
    const char *cache_dir;    /* as in shoal_engine_opts */
    size_t memory_bytes;      /* that it may take; 0: what the machine has */
    uint32_t first, end;      /* its layers; by layers not the last one, which is the engine's */
    struct decoder_rows rows; /* its rows of all layers; n_parts 0: whole layers */
    decoder_gather_fn gather; /* for rows; called during layer_part_run */
    void *gather_ctx;
    uint32_t n_layers, dim; /* that the model must have */
    uint32_t n_ctx, max_batch, n_pages;
    bool kv_q8;
};

struct layer_part_run {
    uint32_t pos0, n, n_pages;
    const uint32_t *pages;
};

/* tokens: for the part with layer 0; x [n_tokens][dim]: for the others. */
struct layer_part_step {
    const struct layer_part_run *runs;
    uint32_t n_runs, n_tokens;
    const int32_t *tokens;
    const float *x;
};

struct layer_part_sizes {
    size_t weights, scratch, kv;
};

SHOAL_MUST_CHECK int layer_part_open(struct layer_part **out, const struct layer_part_opts *o,
                                     struct err *e);
void layer_part_close(struct layer_part *p);
struct layer_part_sizes layer_part_sizes(const struct layer_part *p);
/* Computes the layers.  *x [n_tokens][dim] is valid until the next call.  SHOAL_EIO: a gather
 * failed. */
SHOAL_MUST_CHECK int layer_part_run(struct layer_part *p, const struct layer_part_step *s,
                                    const float **x, struct err *e);
/* Whether all are numbers: a process that sends others is broken. */
bool layer_part_finite(const float *x, size_t n);

#endif
