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
#include "model/decoder_rows.h"

enum decoder_act { DECODER_ACT_SILU, DECODER_ACT_GELU, DECODER_ACT_GELU_ERF };

/* How rotation frequencies are stretched for contexts longer than those of the training. */
enum decoder_rope {
    DECODER_ROPE_PLAIN,   /* rope_scale, and rope_freqs.weight where the file has it */
    DECODER_ROPE_YARN,    /* long waves are stretched, short ones are not */
    DECODER_ROPE_LONG,    /* two tables in the file: for contexts up to rope_ctx, and longer ones */
    DECODER_ROPE_DYNAMIC, /* a larger base once the context exceeds that of the training */
};

#define DECODER_MAX_LAYERS 1024u

/* Properties of an architecture, filled by its arch_*.c from the file's metadata. */
struct mixer_ops;

struct decoder_config {
    const char *arch; /* "llama", ... */
    uint32_t n_vocab, n_ctx_train, n_layers, dim, n_heads, n_kv_heads, head_dim, ffn_dim;
    uint32_t rope_dim; /* 0: no rotation (gpt2) */
    bool rope_neox;
    float rope_base, rope_base_local; /* local: for layers with a window; 0: same as rope_base */
    float rope_scale;                 /* factor on positions; 1: none */
    enum decoder_rope rope_kind;
    float rope_factor;     /* YARN, DYNAMIC: how many times longer */
    float rope_fast;       /* YARN: turns within rope_ctx above which a wave is not stretched */
    float rope_slow;       /* YARN: and below which it is stretched by the whole factor */
    float rope_amplitude;  /* factor on sines and cosines; 1: none */
    uint32_t rope_ctx;     /* YARN, LONG: context of the original training */
    uint32_t nope_pattern; /* every n-th layer does not rotate (smollm3); 0: all do */
    bool nope_global;      /* nor do layers without a window in a model that has one (exaone4) */
    float norm_eps;
    bool layer_norm;      /* false: RMS norm */
    bool post_norm;       /* norms follow the blocks and do not precede them (olmo2) */
    bool parallel;        /* attention and feed-forward read the same residual (phi2) */
    bool parallel_norms;  /* and each has a norm of its own (gptneox) */
    bool qk_norm_whole;   /* the norms of queries and keys cover all heads at once (olmo2) */
    bool qk_norm_rotated; /* they come after the rotation (hunyuan) */
    bool gated;           /* act(gate) * up; false: act(up) */
    bool fused_gate;      /* the file has gate and up as one matrix, ffn_up (phi3) */
    enum decoder_act act;
    float residual_scale;      /* on what a block adds to the residual; 1: none */
    float logit_scale;         /* 1: none */
    float attn_cap, logit_cap; /* c * tanh(x / c) of scores and of logits; 0: none (gemma2) */
    bool learned_positions;    /* gpt2 */
    float embed_scale;         /* 1: none */
    float attn_scale;
    uint32_t window;               /* 0: none */
    uint32_t window_pattern;       /* every n-th layer is global; 0: all layers have the window */
    uint32_t window_global;        /* index of the first global layer */
    const struct mixer_ops *mixer; /* block of the layers without attention; NULL: all have it */
    uint64_t recurrent[DECODER_MAX_LAYERS / 64]; /* bit i: layer i has no attention */
    uint32_t conv_len; /* of a recurrent block: inputs that its convolution sees */
    uint32_t ssm_inner, ssm_state, ssm_heads, ssm_groups; /* of a state space */
    bool no_ffn;                                          /* layers have no feed-forward (mamba2) */
    bool gated_attention;               /* attn_q has a gate behind each head's query (qwen35) */
    uint32_t n_unused_layers;           /* layers of the file behind n_layers */
    uint32_t n_experts, n_experts_used; /* of the feed-forward; 0: it is dense */
    bool expert_norm;                   /* the weights of the experts used add up to 1 */
    const char *ffn_norm;   /* tensor of the norm before the feed-forward; NULL: ffn_norm */
    const char *final_norm; /* tensor of the last norm; NULL: output_norm */
};

/* One entry per architecture.  A new one needs a file and a row in arch.c. */
struct arch {
    const char *name;
    int (*configure)(struct decoder_config *c, const struct model_file *file, struct err *e);
};
const struct arch *arch_find(const char *name, size_t n);
/* "llama, qwen2, ...", for messages. */
void arch_names(char *out, size_t cap);
/* NULL, or the first property that not every engine for decoders can compute, in words: a backend
 * that knows only the blocks of llama, qwen, gpt2, phi2 and gemma3 refuses the model with it. */
const char *arch_extra(const struct decoder_config *c);

struct crew;
struct crew_lane;

struct decoder_opts {               /* all zero means defaults */
    const struct kern_ops *kernels; /* NULL: best */
    struct crew *crew;              /* compute threads to share; NULL: its own */
    uint32_t n_threads;             /* 0: number of cores */
    uint32_t n_ctx;                 /* longest sequence; 0: the model's own, at most 4096 */
    uint32_t max_batch;             /* tokens per forward pass; 0: 128 */
    uint32_t max_logits;            /* rows of logits per pass; 0: 1 */
    uint32_t n_states;              /* recurrent states to keep; 0: 1 */
    enum kern_kv kv_kind;
    /* A part of the model: layers first .. end - 1; end 0: up to the last one.  Only its tensors
     * are loaded.  The part with layer 0 embeds tokens, the one with the last layer computes
     * logits. */
    uint32_t layer_first, layer_end;
    struct decoder_rows rows; /* or rows of all layers; n_parts 0: whole matrices */
    const char *cache_dir;    /* folder for tiled weights; NULL: none */
    /* Progress of tiling, 0..1; returns true to cancel. */
    bool (*progress)(void *ctx, double part);
    void *progress_ctx;
};

/* Consecutive tokens of one sequence. */
struct decoder_run {
    const int32_t *tokens; /* each 0 .. n_vocab - 1; not read by a part without layer 0 */
    const float *x;        /* [n][dim]: what the layers before computed; only for such a part */
    uint32_t n;
    uint32_t pos0;
    const uint32_t *pages;  /* KV pages of the sequence, enough for pos0 + n tokens */
    uint32_t n_logits_last; /* compute logits for this many tokens at the end */
    /* Of models with recurrent blocks: the numbers of states.  At position 0 a sequence has none,
     * later it goes on from state_from and leaves its own in state.  keep_at > 0: the state after
     * so many tokens of this run is left in keep, too.  No two runs of a pass write the same one,
     * or one that the other reads. */
    uint32_t state, state_from, keep, keep_at;
    const struct adapter *adapter; /* NULL: none; see adapter.h */
    float adapter_scale;
};

struct decoder_sizes { /* memory in bytes, by purpose */
    size_t weights, scratch, kv_page;
    uint32_t n_ctx; /* longest sequence */
    size_t state;   /* of one sequence, its recurrent blocks; n_states of them are in scratch */
};

struct adapter;
struct weights;
struct decoder;

SHOAL_MUST_CHECK int decoder_create(struct decoder **out, const struct model_file *file,
                                    const char *path, const struct decoder_opts *o, struct err *e);
void decoder_destroy(struct decoder *d);
const struct decoder_config *decoder_config(const struct decoder *d);
const struct model_file *decoder_file(const struct decoder *d); /* as at create */
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
/* Whether a layer has a recurrent block. */
static inline bool decoder_config_recurrent(const struct decoder_config *c, uint32_t layer)
{
    return c->recurrent[layer / 64] >> (layer % 64) & 1;
}
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

/* What the last layer of this part computed for token i of the last pass, [dim], in the order of
 * runs; the input of the next part.  Not of the part with the last layer. */
const float *decoder_hidden(const struct decoder *d, uint32_t i);
/* For a part by rows, before its first pass: what gets the results of the others. */
void decoder_set_gather(struct decoder *d, decoder_gather_fn fn, void *ctx);
/* Cuts that differ in the other parts only (decoder_rows_recut), for later passes. */
void decoder_recut(struct decoder *d, const struct decoder_rows *rows);
/* Whether a gather of the last pass failed. */
bool decoder_lost(const struct decoder *d);
/* Bytes of tensors by what needs them: of each layer, of the embedding and of the head. */
struct decoder_costs {
    uint32_t n_layers, dim, n_vocab;
    uint32_t n_kv_heads, ffn_dim;
    bool rows;            /* it can be cut by rows */
    uint64_t layer_bytes; /* of the largest one */
    uint64_t head_bytes;
    uint64_t kv_page_bytes; /* of one layer */
};
SHOAL_MUST_CHECK int decoder_costs(struct decoder_costs *out, const struct model_file *file,
                                   const struct decoder_opts *o, struct err *e);

/* For calibration: fn gets the input of every matrix product of a pass, by tensor name. */
typedef void (*decoder_watch_fn)(void *ctx, const char *tensor, const float *x, uint32_t n_cols);
void decoder_watch(struct decoder *d, decoder_watch_fn fn, void *ctx);
/* Number of threads for later passes: 1 .. the number at create. */
SHOAL_MUST_CHECK int decoder_set_threads(struct decoder *d, uint32_t n_threads, struct err *e);

#endif
