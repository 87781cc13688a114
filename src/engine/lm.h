/* lm.h - what the scheduler needs of a language model, whichever engine computes it.
 *
 * native   decoder.h: runs of all sequences in one pass, keys and values in pages that sequences
 *          share (native/native_lm.h).
 * onnx     ONNX Runtime: one run after another, each slot owns its keys and values; pages are only
 *          counted (onnx_lm.h).
 *
 * Thread:    belongs to the engine's thread once that runs.
 * Ownership: an open function fills the caller's struct lm; lm_close gives all back (a zeroed one
 *            is fine). */
#ifndef SHOAL_ENGINE_LM_H
#define SHOAL_ENGINE_LM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/decoder.h"

struct lm_info {
    const char *engine;  /* "native", "onnx" */
    const char *kernels; /* the kernel set, or the library with its version */
    const char *arch;
    uint32_t n_vocab, n_ctx, n_ctx_train, n_layers, dim, n_threads;
    uint32_t max_batch;   /* tokens per pass */
    size_t weights_bytes; /* reserved */
    size_t scratch_bytes;
    size_t kv_page_bytes; /* of KERN_PAGE tokens */
    uint64_t file_bytes;  /* 0: the GGUF's */
    bool from_cache;
    bool pages_hold_kv; /* pages are memory that sequences may share; else each slot has its own */
};

/* What one pass computes: together at most max_batch tokens.  slots[i] is the sequence's place,
 * kept from its first run (pos0 == 0) until release.  codes[i], 0 before, becomes a SHOAL_E* when
 * that run failed, which happens only outside of the native engine. */
struct lm_pass {
    const struct decoder_run *runs;
    const uint32_t *slots;
    int *codes;
    uint32_t n_runs;
};

/* Fills *pass, which stays valid until the next call; false: there is none.  Called by any thread
 * of the model's, but never by two at a time. */
typedef bool (*lm_next_fn)(void *ctx, struct lm_pass *pass);

struct lm_ops {
    /* Pass after pass until `next` has none. */
    void (*passes)(void *impl, lm_next_fn next, void *ctx);
    /* Row i of the last pass, in the order of runs that asked for one; valid until the next. */
    const float *(*logits)(const void *impl, uint32_t i);
    void (*release)(void *impl, uint32_t slot); /* NULL: a slot holds nothing */
    void (*close)(void *impl);
};

struct lm {
    const struct lm_ops *ops; /* NULL: not open */
    void *impl;
    struct crew_lane *lane; /* of impl, for its urgency; NULL: it computes without a crew */
    struct lm_info info;
};

static inline void lm_close(struct lm *lm)
{
    if (lm->ops)
        lm->ops->close(lm->impl);
    lm->ops = NULL;
}

#endif
