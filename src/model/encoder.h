/* encoder.h - a bidirectional transformer (BERT and its kin, encoder_config.c): weights tiled for
 * the kernel set, preallocated scratch, one pass over a batch of sequences.
 *
 * Sequences of different length are packed one after the other, without padding.  The bits of a
 * sequence's result depend only on its tokens: not on the rest of the batch, the kernel set or the
 * number of threads.
 *
 * Thread:    belongs to one thread (the runtime's), which shares the work with a crew.
 * Ownership: encoder_create borrows file, which must stay open until destroy.
 * Failure:   SHOAL_E* with a text; then *out is NULL and nothing is left allocated.  A pass
 *            allocates nothing and cannot fail: create has checked its limits. */
#ifndef SHOAL_MODEL_ENCODER_H
#define SHOAL_MODEL_ENCODER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "kernels/kern.h"
#include "format/model_file.h"

enum encoder_act { ENCODER_ACT_GELU_ERF, ENCODER_ACT_GELU_TANH, ENCODER_ACT_RELU };

/* How attention knows the places of tokens, besides position_embd.weight. */
enum encoder_places {
    ENCODER_PLACES_NONE,
    ENCODER_PLACES_BUCKETS,      /* a bias for each bucket of distances and head (MPNet) */
    ENCODER_PLACES_DISENTANGLED, /* vectors of distances against queries and keys (DeBERTa) */
    ENCODER_PLACES_ROTATED,      /* queries and keys are rotated (ModernBERT) */
};

/* What an encoder reads that sees images, by preprocessor_config.json (encoder_picture.c): a square
 * of red, green and blue, cut into patches. */
struct encoder_picture {
    uint32_t size, patch; /* pixels on a side */
    /* How another image becomes one: resized to so many pixels on a side, or on its shorter side if
     * it keeps its form; then its middle is taken. */
    uint32_t to;
    bool keeps_form;
    uint32_t filter;      /* as Pillow numbers them: 1 Lanczos, 2 bilinear, 3 bicubic */
    float levels[3][256]; /* what the model reads for each value of a colour */
};

struct encoder_config {
    const char *arch; /* general.architecture */
    uint32_t n_vocab;
    uint32_t n_ctx; /* longest sequence */
    uint32_t dim, n_layers, n_heads, head_dim, ffn_dim;
    uint32_t embd_dim; /* of the embeddings, which a matrix then makes dim wide when it differs */
    uint32_t n_blocks; /* different layers; consecutive ones may share their weights (ALBERT) */
    enum encoder_places places;
    uint32_t n_buckets, max_distance; /* BUCKETS; DISENTANGLED: n_buckets 0: one per distance */
    bool c2p, p2c;                    /* DISENTANGLED: content to position, position to content */
    float rope_base, rope_base_local; /* ROTATED */
    uint32_t window;                  /* ROTATED: farthest key of a local layer */
    uint32_t global_every;            /* ROTATED: of so many layers the first sees everything */
    bool norms_first; /* norms are before attention and the hidden layer, not after */
    bool gated;       /* the hidden layer is multiplied by a second one */
    bool norm_bias;   /* norms must have a bias */
    uint32_t n_types; /* number of token types; 0: the model does not use them */
    uint32_t pos0;    /* row of position_embd.weight for the first token (RoBERTa: 2) */
    float norm_eps;
    enum encoder_act act;
    struct encoder_picture picture; /* size 0: it reads tokens */
};

struct crew;
struct crew_lane;

struct encoder_opts {               /* all zero means defaults */
    const struct kern_ops *kernels; /* NULL: best */
    struct crew *crew;              /* compute threads to share; NULL: its own */
    uint32_t n_threads;             /* 0: number of cores */
    uint32_t max_tokens;   /* per pass; 0: 512, at least the longest sequence; four images */
    uint32_t max_seqs;     /* per pass; 0: 64 */
    bool int8;             /* round all weights to 8 bits at load, and activations at run time */
    const char *cache_dir; /* folder for tiled weights; NULL: none */
    /* Progress of tiling, 0..1; returns true to cancel. */
    bool (*progress)(void *ctx, double part);
    void *progress_ctx;
};

struct encoder_seq {
    const int32_t *tokens; /* each 0 .. n_vocab - 1 */
    const uint8_t *types;  /* each 0 .. n_types - 1; NULL: all 0 */
    uint32_t n;            /* 1 .. n_ctx */
    const uint8_t *image;  /* instead of tokens: [size][size][3], and n is n_ctx; else NULL */
};

struct encoder_sizes { /* memory in bytes, by purpose */
    size_t weights, scratch;
    uint32_t n_ctx, max_tokens, max_seqs;
};

struct weights;
struct encoder;

/* True if general.architecture names an encoder. */
bool encoder_knows(const struct model_file *file);
/* True if it names one that reads images. */
bool encoder_sees(const struct model_file *file);
SHOAL_MUST_CHECK int encoder_create(struct encoder **out, const struct model_file *file,
                                    const char *path, const struct encoder_opts *o, struct err *e);
void encoder_destroy(struct encoder *d);
const struct encoder_config *encoder_config(const struct encoder *d);
const struct kern_ops *encoder_kernels(const struct encoder *d);
uint32_t encoder_n_threads(const struct encoder *d);
/* Its lane in the crew, for crew_lane_set_urgency; borrowed. */
struct crew_lane *encoder_lane(const struct encoder *d);
struct encoder_sizes encoder_sizes(const struct encoder *d);
/* Computes the memory a model needs without reserving any. */
SHOAL_MUST_CHECK int encoder_measure(struct encoder_sizes *out, const struct model_file *file,
                                     const struct encoder_opts *o, struct err *e);
/* True if the tiled weights came from the cache. */
bool encoder_from_cache(const struct encoder *d);
/* The tiled weights, for weights_changed; borrowed. */
const struct weights *encoder_weights(const struct encoder *d);

/* Computes all sequences; at most max_seqs of them, together at most max_tokens tokens. */
void encoder_forward(struct encoder *d, const struct encoder_seq *seqs, uint32_t n_seqs);
/* The last layer's vector of a token of the last pass, [dim].  The vectors of a sequence are
 * contiguous.  Valid until the next pass. */
const float *encoder_hidden(const struct encoder *d, uint32_t seq, uint32_t token);
uint32_t encoder_seq_len(const struct encoder *d, uint32_t seq);

/* ---- the layers on top, for heads.h ---------------------------------------------------------- */

enum encoder_top {
    ENCODER_TOP_CLS,        /* cls: pooler or dense layer before the classes, dim x dim */
    ENCODER_TOP_CLS_OUTPUT, /* cls.output: classes */
    ENCODER_TOP_TAG_OUTPUT, /* tag.output: classes per token */
    ENCODER_N_TOPS
};
/* Number of rows of that matrix; 0: the model does not have it. */
uint32_t encoder_top_rows(const struct encoder *d, enum encoder_top top);
/* out[i * ld + r - from] = row r of the product with x[i], for rows from..to-1 and i < n.
 * x[i]: dim floats. */
void encoder_top(struct encoder *d, enum encoder_top top, const float *const *x, uint32_t n,
                 uint32_t from, uint32_t to, float *out, size_t ld);
/* The norm after the layer before the classes, in place; nothing in a model without one. */
void encoder_top_norm(const struct encoder *d, float *x);
/* dim floats of scratch that passes and encoder_top do not touch. */
float *encoder_spare(struct encoder *d);

#endif
