/* decoder_parts.h - what a decoder consists of, for an engine that computes it somewhere else.
 *
 * Thread:    as decoder.h.
 * Ownership: all pointers are borrowed from the decoder. */
#ifndef SHOAL_MODEL_DECODER_PARTS_H
#define SHOAL_MODEL_DECODER_PARTS_H

#include "model/experts.h"
#include "model/plan.h"

struct decoder;
struct decoder_config;

struct mixer_layer {              /* vectors of a recurrent block (mixer/); those that it has */
    const float *conv_w, *conv_b; /* [conv_len][channels], [channels] */
    const float *dt_bias, *decay, *skip; /* per head */
    const float *norm;
};

struct layer {
    const float *attn_norm_w, *attn_norm_b, *ffn_norm_w, *ffn_norm_b;
    const float *q_norm, *k_norm, *post_attn_norm, *post_ffn_norm;
    struct linear qkv[4]; /* or what a recurrent block begins with */
    uint32_t n_qkv;       /* number of matrices; 1: fused in the file */
    struct linear attn_out, gate, up, down;
    struct linear router;   /* of experts */
    struct expert *experts; /* NULL: none */
    uint32_t window;
    bool local_rope;
    bool no_rope;
    bool recurrent;  /* has a block of mixer/ in the place of attention */
    uint32_t kv_at;  /* its number among the layers with attention */
    uint32_t mix_at; /* its number among those with a recurrent block */
    struct mixer_layer mix;
};

struct decoder_parts {
    const struct decoder_config *c;
    const struct layer *layers;
    const float *final_norm_w, *final_norm_b;
    const struct linear *output;
    const struct weights *weights;
    uint32_t n_ctx;
    enum kern_kv kv_kind;
    size_t kv_head_bytes, kv_page_bytes;
};

struct decoder_parts decoder_parts(const struct decoder *d);
/* The beginning of a token's residual stream, x [dim].  raw and place: memory of that size; a row
 * in the file's encoding is never longer than as floats. */
void decoder_embed(const struct decoder *d, uint32_t token, uint32_t pos, float *x, float *raw,
                   float *place);
/* Cosines and sines of a position as kern_ops.rope reads them, cs [2][rope_dim]. */
void decoder_rotation(const struct decoder *d, bool local, uint32_t pos, float *cs);

#endif
