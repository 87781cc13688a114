/* lm.h - a language model as the scheduler sees it, whatever computes it.
 *
 * native   decoder.h: runs of all sequences in one pass, keys and values in pages that sequences
 *          share (native/native_lm.h).
 * onnx     ONNX Runtime: one run after another, each slot owns its keys and values; pages are only
 *          counted (onnx_lm.h).
 * cuda     a GPU: as native, with pages in the GPU's memory (cuda/cuda_lm.h).
 * average  several of them, whose next-token probabilities are averaged (average_lm.h).
 * chained  as native for the last layers; other processes compute those before
 *          (native/chained_lm.h).
 *
 * Thread:    belongs to the engine's thread once that runs.
 * Ownership: an open function fills the caller's struct lm; lm_close frees everything (a zeroed
 *            struct is fine). */
#ifndef SHOAL_ENGINE_DECODE_LM_H
#define SHOAL_ENGINE_DECODE_LM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/decoder.h"

struct lm_info {
    const char *engine;  /* "native", "onnx", "cuda" */
    const char *kernels; /* the kernel set, or the library with its version */
    const char *arch;
    uint32_t n_vocab, n_ctx, n_ctx_train, n_layers, dim, n_threads;
    uint32_t max_batch;   /* tokens per pass */
    size_t weights_bytes; /* reserved */
    size_t scratch_bytes;
    size_t kv_page_bytes; /* of KERN_PAGE tokens */
    uint64_t file_bytes;  /* 0: the size of the model file */
    bool from_cache;
    uint32_t
        max_drafts;     /* rows of logits beyond one for each task; 0: guesses cannot be verified */
    bool pages_hold_kv; /* sequences may share pages; otherwise each slot has its own memory */
};

/* Code of every run of a pass whose keys and values were lost with the process that held them: the
 * model works again, and all sequences must be computed again from their tokens. */
#define LM_LOST 1

/* What one pass computes: together at most max_batch tokens.  slots[i] is the sequence's slot, kept
 * from its first run (pos0 == 0) until release.  codes[i] is 0 and becomes a SHOAL_E* if that run
 * fails, which never happens in the native engine, or LM_LOST. */
struct lm_pass {
    const struct decoder_run *runs;
    const uint32_t *slots;
    int *codes;
    uint32_t n_runs;
};

/* Fills *pass, which stays valid until the next call; false: none.  Called by any of the
 * model's compute threads, but never by two at once. */
typedef bool (*lm_next_fn)(void *ctx, struct lm_pass *pass);

struct lm_ops {
    /* Runs passes until `next` returns false. */
    void (*passes)(void *impl, lm_next_fn next, void *ctx);
    /* Logits row i of the last pass, in the order of the runs that asked for one; valid until the
     * next pass. */
    const float *(*logits)(const void *impl, uint32_t i);
    void (*release)(void *impl, uint32_t slot); /* NULL: slots hold nothing */
    /* How urgent the next passes are among those of other engines; NULL: it has no crew. */
    void (*urgency)(void *impl, int32_t priority, uint64_t deadline_ns);
    /* Whether files not covered by `weights` changed; NULL: there are none. */
    bool (*changed)(const void *impl);
    /* Makes an adapter that runs of a pass may name; NULL: they cannot.  Any thread. */
    int (*adapt)(const void *impl, struct adapter **out, const struct model_file *file,
                 struct err *e);
    void (*close)(void *impl);
};

struct lm {
    const struct lm_ops *ops; /* NULL: not open */
    void *impl;
    const struct weights *weights; /* weights of impl, for engine_files.h; NULL: not our format */
    struct lm_info info;
};

static inline void lm_close(struct lm *lm)
{
    if (lm->ops)
        lm->ops->close(lm->impl);
    lm->ops = NULL;
}

#endif
