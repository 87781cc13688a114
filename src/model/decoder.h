/* decoder.h - a decoder-only transformer of any supported architecture: weights packed for the
 * kernel set, scratch reserved, one forward pass over a batch of runs.
 *
 * Thread:    belongs to one thread (the runtime's); inside, a crew shares the work.
 * Ownership: decoder_create borrows the gguf, which must stay open; destroy takes all back.
 * Failure:   SHOAL_E* with a text; then *out is NULL and nothing is left allocated.  A forward pass
 *            allocates nothing and cannot fail: its limits were checked at create. */
#ifndef SHOAL_MODEL_DECODER_H
#define SHOAL_MODEL_DECODER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "kernels/kern.h"
#include "format/gguf.h"

enum decoder_act { DECODER_ACT_SILU, DECODER_ACT_GELU };

/* What an architecture is, filled by its arch_*.c from the file's metadata. */
struct decoder_config {
    const char *arch; /* "llama", ... */
    uint32_t n_vocab, n_ctx_train, n_layers, dim, n_heads, n_kv_heads, head_dim, ffn_dim;
    uint32_t rope_dim; /* 0: no rotation (gpt2) */
    bool rope_neox;
    float rope_base, rope_base_local; /* local: of layers with a window, 0: the same */
    float rope_scale;                 /* positions are multiplied with it; 1: none */
    float norm_eps;
    bool layer_norm; /* else RMS */
    bool parallel;   /* attention and feed-forward read the same input (phi2) */
    bool gated;      /* act(gate) * up; else act(up) */
    enum decoder_act act;
    bool learned_positions; /* gpt2 */
    float embed_scale;      /* 1: none */
    float attn_scale;
    uint32_t window;         /* 0: none */
    uint32_t window_pattern; /* every n-th layer is global; 0: all layers have the window */
    uint32_t window_global;  /* the first of those */
};

/* One entry per architecture: adding one is a file and a row in arch.c. */
struct arch {
    const char *name;
    int (*configure)(struct decoder_config *c, const struct gguf *g, struct err *e);
};
const struct arch *arch_find(const char *name, size_t n);
/* "llama, qwen2, ..." for messages. */
void arch_names(char *out, size_t cap);

struct decoder_opts {               /* all zero means defaults */
    const struct kern_ops *kernels; /* NULL: best */
    uint32_t n_threads;             /* 0: measured cores */
    uint32_t n_ctx;                 /* longest sequence; 0: the model's own, at most 4096 */
    uint32_t max_batch;             /* tokens per forward pass; 0: 128 */
    uint32_t max_logits;            /* rows of logits per pass; 0: 1 */
    enum kern_kv kv_kind;
    const char *cache_dir; /* packed weights are kept there; NULL: nowhere */
    /* Progress of packing, 0..1; returns true to give up. */
    bool (*progress)(void *ctx, double part);
    void *progress_ctx;
};

/* Consecutive tokens of one sequence. */
struct decoder_run {
    const int32_t *tokens; /* each 0 .. n_vocab - 1 */
    uint32_t n;
    uint32_t pos0;
    const uint32_t *pages;  /* KV pages of the sequence, enough for pos0 + n tokens */
    uint32_t n_logits_last; /* logits wanted for the last so many tokens */
};

struct decoder_sizes { /* bytes, and how the sum came about */
    size_t weights, scratch, kv_page;
    uint32_t n_ctx; /* longest sequence */
};

struct decoder;

SHOAL_MUST_CHECK int decoder_create(struct decoder **out, const struct gguf *g, const char *path,
                                    const struct decoder_opts *o, struct err *e);
void decoder_destroy(struct decoder *d);
const struct decoder_config *decoder_config(const struct decoder *d);
uint32_t decoder_n_ctx(const struct decoder *d);
uint32_t decoder_max_batch(const struct decoder *d);
uint32_t decoder_max_logits(const struct decoder *d);
const struct kern_ops *decoder_kernels(const struct decoder *d);
uint32_t decoder_n_threads(const struct decoder *d);
struct decoder_sizes decoder_sizes(const struct decoder *d);
/* What a model will need, before anything is reserved. */
SHOAL_MUST_CHECK int decoder_measure(struct decoder_sizes *out, const struct gguf *g,
                                     const struct decoder_opts *o, struct err *e);
/* true when the packed weights came from the cache. */
bool decoder_from_cache(const struct decoder *d);

/* Bytes of one KV page (KERN_PAGE tokens, all layers). */
size_t decoder_kv_page_bytes(const struct decoder *d);
/* The memory that page numbers index: n_pages * kv_page_bytes, 64-byte aligned, zeroed. */
void decoder_set_kv(struct decoder *d, uint8_t *kv);

/* Runs all runs; together at most max_batch tokens and max_logits rows. */
void decoder_forward(struct decoder *d, const struct decoder_run *runs, uint32_t n_runs);
/* Passes one after another, as long as `next` gives runs (the same limits; 0: the end).  It is
 * called by whichever compute thread ended the pass before, never by two at a time: so the next
 * token does not wait for a thread that the OS has taken off its core.  The runs stay valid until
 * the next call. */
typedef uint32_t (*decoder_next_fn)(void *ctx, const struct decoder_run **runs);
void decoder_passes(struct decoder *d, decoder_next_fn next, void *ctx);
/* Row i of the last pass, in the order of runs; valid until the next pass. */
const float *decoder_logits(const struct decoder *d, uint32_t i);

/* For calibration: fn sees the input of every matrix product of a pass, by tensor name. */
typedef void (*decoder_watch_fn)(void *ctx, const char *tensor, const float *x, uint32_t n_cols);
void decoder_watch(struct decoder *d, decoder_watch_fn fn, void *ctx);
/* Threads of later passes (1 .. the crew's size at create). */
SHOAL_MUST_CHECK int decoder_set_threads(struct decoder *d, uint32_t n_threads, struct err *e);

#endif
