/* decoder.h - a decoder-only transformer of any supported architecture: weights tiled for the
 * kernel set, preallocated scratch, one forward pass over a batch of runs.
 *
 * Thread:    belongs to one thread (the runtime's), which shares the work with a crew.
 * Ownership: decoder_create borrows file, which must stay open until destroy.
 * Failure:   SHOAL_E* with a text; then *out is NULL and nothing is left allocated.  A forward pass
 *            allocates nothing and cannot fail: create has checked its limits. */
#ifndef SHOAL_MODEL_DECODER_H
#define SHOAL_MODEL_DECODER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "kernels/kern.h"
#include "format/model_file.h"

enum decoder_act { DECODER_ACT_SILU, DECODER_ACT_GELU };

/* Properties of an architecture, filled by its arch_*.c from the file's metadata. */
struct decoder_config {
    const char *arch; /* "llama", ... */
    uint32_t n_vocab, n_ctx_train, n_layers, dim, n_heads, n_kv_heads, head_dim, ffn_dim;
    uint32_t rope_dim; /* 0: no rotation (gpt2) */
    bool rope_neox;
    float rope_base, rope_base_local; /* local: for layers with a window; 0: same as rope_base */
    float rope_scale;                 /* factor on positions; 1: none */
    float norm_eps;
    bool layer_norm; /* false: RMS norm */
    bool parallel;   /* attention and feed-forward read the same input (phi2) */
    bool gated;      /* act(gate) * up; false: act(up) */
    enum decoder_act act;
    bool learned_positions; /* gpt2 */
    float embed_scale;      /* 1: none */
    float attn_scale;
    uint32_t window;         /* 0: none */
    uint32_t window_pattern; /* every n-th layer is global; 0: all layers have the window */
    uint32_t window_global;  /* index of the first global layer */
};

/* One entry per architecture.  A new one needs a file and a row in arch.c. */
struct arch {
    const char *name;
    int (*configure)(struct decoder_config *c, const struct model_file *file, struct err *e);
};
const struct arch *arch_find(const char *name, size_t n);
/* "llama, qwen2, ...", for messages. */
void arch_names(char *out, size_t cap);

struct crew;
struct crew_lane;

struct decoder_opts {               /* all zero means defaults */
    const struct kern_ops *kernels; /* NULL: best */
    struct crew *crew;              /* compute threads to share; NULL: its own */
    uint32_t n_threads;             /* 0: number of cores */
    uint32_t n_ctx;                 /* longest sequence; 0: the model's own, at most 4096 */
    uint32_t max_batch;             /* tokens per forward pass; 0: 128 */
    uint32_t max_logits;            /* rows of logits per pass; 0: 1 */
    enum kern_kv kv_kind;
    const char *cache_dir; /* folder for tiled weights; NULL: none */
    /* Progress of tiling, 0..1; returns true to cancel. */
    bool (*progress)(void *ctx, double part);
    void *progress_ctx;
};

/* Consecutive tokens of one sequence. */
struct decoder_run {
    const int32_t *tokens; /* each 0 .. n_vocab - 1 */
    uint32_t n;
    uint32_t pos0;
    const uint32_t *pages;  /* KV pages of the sequence, enough for pos0 + n tokens */
    uint32_t n_logits_last; /* compute logits for this many tokens at the end */
};

struct decoder_sizes { /* memory in bytes, by purpose */
    size_t weights, scratch, kv_page;
    uint32_t n_ctx; /* longest sequence */
};

struct weights;
struct decoder;

SHOAL_MUST_CHECK int decoder_create(struct decoder **out, const struct model_file *file,
                                    const char *path, const struct decoder_opts *o, struct err *e);
void decoder_destroy(struct decoder *d);
const struct decoder_config *decoder_config(const struct decoder *d);
uint32_t decoder_n_ctx(const struct decoder *d);
uint32_t decoder_max_batch(const struct decoder *d);
uint32_t decoder_max_logits(const struct decoder *d);
const struct kern_ops *decoder_kernels(const struct decoder *d);
uint32_t decoder_n_threads(const struct decoder *d);
/* Its lane in the crew, for crew_lane_set_urgency; borrowed. */
struct crew_lane *decoder_lane(const struct decoder *d);
struct decoder_sizes decoder_sizes(const struct decoder *d);
/* Computes the memory a model needs without reserving any. */
SHOAL_MUST_CHECK int decoder_measure(struct decoder_sizes *out, const struct model_file *file,
                                     const struct decoder_opts *o, struct err *e);
/* True if the tiled weights came from the cache. */
bool decoder_from_cache(const struct decoder *d);
/* The tiled weights, for weights_changed; borrowed. */
const struct weights *decoder_weights(const struct decoder *d);

/* Bytes of one KV page (KERN_PAGE tokens, all layers). */
size_t decoder_kv_page_bytes(const struct decoder *d);
/* The memory that page numbers index: n_pages * kv_page_bytes, 64-byte aligned, zeroed. */
void decoder_set_kv(struct decoder *d, uint8_t *kv);

/* Computes all runs; together at most max_batch tokens and max_logits rows. */
void decoder_forward(struct decoder *d, const struct decoder_run *runs, uint32_t n_runs);
/* Does one pass after another until `next` returns 0; the limits above apply to each.  `next` is
 * called by whichever compute thread completed the last pass, never by two threads at once, so a
 * token never waits for a preempted thread.  The runs must stay valid until the next call. */
typedef uint32_t (*decoder_next_fn)(void *ctx, const struct decoder_run **runs);
void decoder_passes(struct decoder *d, decoder_next_fn next, void *ctx);
/* Logits row i of the last pass, in the order of runs; valid until the next pass. */
const float *decoder_logits(const struct decoder *d, uint32_t i);

/* For calibration: fn gets the input of every matrix product of a pass, by tensor name. */
typedef void (*decoder_watch_fn)(void *ctx, const char *tensor, const float *x, uint32_t n_cols);
void decoder_watch(struct decoder *d, decoder_watch_fn fn, void *ctx);
/* Number of threads for later passes: 1 .. the number at create. */
SHOAL_MUST_CHECK int decoder_set_threads(struct decoder *d, uint32_t n_threads, struct err *e);

#endif
