/* t5.h - T5 and its relatives (mT5, BART, Marian): an encoder reads the source text, a decoder
 * writes the target and attends to the encoder's output.  Speech recognizers (Moonshine, Whisper)
 * are built alike: their sources are sounds, which a stem of convolutions turns into the frames
 * that the encoder reads.
 *
 * Sources of different length are packed one after the other, without padding; one decoder step
 * computes one token for each of several rows (beam hypotheses, tasks).  Keys and values, also
 * those of the sources, are stored in pages of KERN_PAGE tokens for all decoder layers.  The bits
 * of a result depend only on its tokens: not on the rest of the batch, the kernel set or the number
 * of threads.
 *
 * Thread:    belongs to one thread (the runtime's), which shares the work with a crew.
 * Ownership: t5_create borrows file, which must stay open until destroy.
 * Failure:   SHOAL_E* with a text; then *out is NULL and nothing is left allocated.  A pass
 *            allocates nothing and cannot fail: create has checked its limits. */
#ifndef SHOAL_MODEL_T5_H
#define SHOAL_MODEL_T5_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "kernels/kern.h"
#include "format/model_file.h"

#define T5_SAMPLE_RATE 16000u /* of sounds */

struct t5_config {
    const char *arch; /* general.architecture: "t5", "bart" ... */
    uint32_t n_vocab, n_ctx_train, dim, n_heads, head_dim, ffn_dim;
    uint32_t n_enc, n_dec; /* layers */
    uint32_t n_buckets, max_distance;
    int32_t start_token; /* first token of every target */
    float norm_eps;
    float output_scale; /* factor on the decoder's result before the output matrix; 1: none */
    bool hears;         /* sources are sounds */
};

struct crew;
struct crew_lane;

struct t5_opts {                    /* all zero means defaults */
    const struct kern_ops *kernels; /* NULL: best */
    struct crew *crew;              /* compute threads to share; NULL: its own */
    uint32_t n_threads;             /* 0: number of cores */
    uint32_t n_ctx;                 /* longest source and longest target; 0: the model's own, at
                                       most 4096; of sounds, the frames of 30 seconds */
    uint32_t max_tokens;            /* source tokens per pass; 0: n_ctx */
    uint32_t max_seqs;              /* sources per pass; 0: 8 */
    uint32_t max_rows;              /* rows per step; 0: 16 */
    enum kern_kv kv_kind;
    bool int8;             /* round float weights to 8-bit blocks at load */
    const char *cache_dir; /* folder for tiled weights; NULL: none */
    /* Progress of tiling, 0..1; returns true to cancel. */
    bool (*progress)(void *ctx, double part);
    void *progress_ctx;
};

struct t5_source {
    const int32_t *tokens; /* each 0 .. n_vocab - 1 */
    uint32_t n;            /* 1 .. n_ctx */
    const uint32_t *pages; /* for its keys and values; enough for n tokens */
};

struct t5_row {
    int32_t token;
    uint32_t pos; /* position of the token in the target, 0 .. n_ctx - 1 */
    const uint32_t
        *pages; /* of the target, enough for pos + 1 tokens; only this row writes the last one */
    const uint32_t *source_pages;
    uint32_t n_source;
    /* NULL, or [t5_n_aligned][n_source]: gets how much the aligned heads (model/aligned.h) look at
     * each frame of the source, up to a factor.  All rows of a pass have it or none; those that do
     * have no logits. */
    float *looks;
};

struct t5_sizes { /* memory in bytes, by purpose */
    size_t weights, scratch, kv_page;
    uint32_t n_ctx, max_tokens, max_seqs, max_rows;
};

struct weights;
struct t5;

/* True if general.architecture is t5 or one of its relatives; hears: only those whose sources are
 * sounds. */
bool t5_knows(const struct model_file *file);
bool t5_hears(const struct model_file *file);
SHOAL_MUST_CHECK int t5_create(struct t5 **out, const struct model_file *file, const char *path,
                               const struct t5_opts *o, struct err *e);
void t5_destroy(struct t5 *t);
/* Computes the memory a model needs without reserving any. */
SHOAL_MUST_CHECK int t5_measure(struct t5_sizes *out, const struct model_file *file,
                                const struct t5_opts *o, struct err *e);
const struct t5_config *t5_config(const struct t5 *t);
const struct kern_ops *t5_kernels(const struct t5 *t);
uint32_t t5_n_threads(const struct t5 *t);
/* Its lane in the crew, for crew_lane_set_urgency; borrowed. */
struct crew_lane *t5_lane(const struct t5 *t);
struct t5_sizes t5_sizes(const struct t5 *t);
/* True if the tiled weights came from the cache. */
bool t5_from_cache(const struct t5 *t);
/* The tiled weights, for weights_changed; borrowed. */
const struct weights *t5_weights(const struct t5 *t);
/* The memory that page numbers index: n_pages * sizes.kv_page, 64-byte aligned, zeroed. */
void t5_set_kv(struct t5 *t, uint8_t *kv);
void t5_copy_page(struct t5 *t, uint32_t to, uint32_t from);

/* Encodes the sources into their pages; at most max_seqs, together at most max_tokens tokens. */
void t5_encode(struct t5 *t, const struct t5_source *sources, uint32_t n);
/* The same for one sound of n samples, t5_least_samples to t5_most_samples; returns the frames that
 * it became, at most n_ctx. */
uint32_t t5_hear(struct t5 *t, const float *samples, uint32_t n, const uint32_t *pages);
uint32_t t5_frames(const struct t5 *t, uint32_t n_samples);
uint32_t t5_least_samples(const struct t5 *t);
uint32_t t5_most_samples(const struct t5 *t);
/* The encoder's output for a token of the last t5_encode, [dim]; valid until the next pass. */
const float *t5_encoded(const struct t5 *t, uint32_t source, uint32_t token);
/* Computes one token of each row; at most max_rows rows.  Rows of the same target (the same pages)
 * may follow each other, in the order of their positions. */
void t5_decode(struct t5 *t, const struct t5_row *rows, uint32_t n);
uint32_t t5_n_aligned(const struct t5 *t);
/* Logits of row i of the last t5_decode, [n_vocab]; valid until the next pass. */
const float *t5_logits(const struct t5 *t, uint32_t i);

/* The bucket for a key at distance d from its query (negative: before it); n_buckets and
 * max_distance are those of the configuration. */
uint32_t t5_bucket(int64_t d, bool both_ways, uint32_t n_buckets, uint32_t max_distance);

#endif
