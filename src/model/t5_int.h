/* t5_int.h - internals of T5, shared by t5.c (loading) and t5_forward.c.  Private to src/model. */
#ifndef SHOAL_MODEL_T5_INT_H
#define SHOAL_MODEL_T5_INT_H

#include "model/aligned.h"
#include "model/products.h"
#include "model/stem.h"
#include "model/t5.h"

enum t5_places {                     /* how tokens know their positions */
                 T5_PLACES_DISTANCE, /* biases by distance */
                 T5_PLACES_ROTATED,  /* queries and keys are rotated */
                 T5_PLACES_LEARNED,  /* a vector of the file is added to the token */
                 T5_PLACES_SINES     /* one of sines, then cosines */
};

struct t5_shape {     /* what the relatives differ in, besides sizes */
    bool gated[2];    /* encoder, decoder: act(gate) * up; false: act(up) */
    bool layer_norm;  /* false: RMS */
    bool norm_bias;   /* of layer norms: required */
    bool norm_behind; /* x = norm(x + block(x)), no last norm; false: x += block(norm(x)) */
    bool norm_embd;   /* with norm_behind: tokens are normed before the first layer */
    enum t5_places places;
    uint32_t rope_dim; /* rotated values of a head */
    uint32_t n_frames; /* of a sound, where positions are learned */
    float rope_base, attn_scale;
    float embd_scale; /* factor on tokens before their positions are added; 0: none */
    enum products_act act[2];
    struct stem_config stem; /* n 0: sources are tokens */
};

/* Reads the metadata of a relative (arch/). */
int arch_t5(struct t5_config *c, struct t5_shape *s, const struct model_file *file, struct err *e);
int arch_bart(struct t5_config *c, struct t5_shape *s, const struct model_file *file,
              struct err *e);
int arch_marian(struct t5_config *c, struct t5_shape *s, const struct model_file *file,
                struct err *e);
int arch_moonshine(struct t5_config *c, struct t5_shape *s, const struct model_file *file,
                   struct err *e);
int arch_whisper(struct t5_config *c, struct t5_shape *s, const struct model_file *file,
                 struct err *e);

struct t5_norm {
    const float *w, *b; /* b: or NULL */
};

struct t5_layer { /* encoder layer or, with the cross attention, decoder layer */
    struct t5_norm attn_norm, cross_norm, ffn_norm; /* in front of their block or behind it */
    struct linear qkv[3], attn_out;
    struct linear cross_q, cross_kv[2], cross_out;
    struct linear gate, up, down;
};

struct t5_unit { /* rows of one head of one source */
    uint32_t seq, head, row0, row1;
};

struct t5 {
    struct stem stem; /* first: its phases get the same context */
    struct t5_config c;
    struct t5_shape shape;
    const struct kern_ops *k;
    const struct model_file *file;
    struct crew_lane *lane;
    struct weights weights;
    struct small_tensors vectors;
    struct t5_layer *layers;           /* [n_enc + n_dec] */
    struct t5_norm enc_norm, dec_norm; /* unset where norms are behind their blocks */
    struct t5_norm embd_norm[2];       /* of the encoder and the decoder */
    const float *places[2]; /* positions of the encoder and the decoder, [.][dim]; NULL: none */
    const float *rel_b[2];  /* of the encoder and the decoder: [n_buckets][n_heads] */
    struct linear output;
    const struct model_file_tensor *embd;
    uint32_t n_ctx, max_tokens, max_seqs, max_rows;
    enum linear_input in_x, in_att, in_hidden;
    enum kern_kv kv_kind;
    uint8_t *kv;
    size_t kv_head_bytes, kv_page_bytes;

    /* scratch, one allocation */
    uint8_t *scratch;
    size_t scratch_bytes;
    uint32_t inner; /* n_heads * head_dim */
    float *x;       /* [tokens][dim]: the residual stream; tokens: max_tokens or max_rows */
    float *xn;      /* [tokens][dim]: x after the norm, input of products */
    float *qkv;     /* [tokens][3 * inner] */
    float *att;     /* [tokens][inner] */
    float *proj;    /* [tokens][dim]: results of attn_out, cross_out and down */
    float *hidden, *hidden_up; /* [tokens][ffn_dim] */
    float *logits;             /* [max_rows][n_vocab] */
    /* Biases by distance: the encoder's [n_heads][2 * n_ctx] has distance d at n_ctx + d, the
     * decoder's [n_heads][n_ctx] has distance -d at n_ctx - 1 - d. */
    float *enc_bias, *dec_bias;
    float *rope_cs;                /* [n_ctx][2 * rope_dim]: for kern_ops.rope, by position */
    float *sines;                  /* [n_ctx][dim] */
    float **attn_scratch, **stage; /* per member */
    uint32_t stage_rows;
    struct kern_act act_x, act_att, act_hidden;
    struct t5_unit *units;
    struct crew_phase *phases;
    uint32_t *seq_of, *seq_first; /* per token of a pass; per source */

    /* the current pass */
    const struct t5_source *sources; /* NULL: a sound */
    const uint32_t *sound_pages;
    const struct t5_row *rows;
    uint32_t n_tokens, n_units;
    bool chained; /* some rows belong to the same target */

    struct aligned_head aligned[ALIGNED_MOST];
    uint32_t n_aligned;
};

void t5_lay_out(struct t5 *t, uint8_t *base, uint32_t n_members);

#endif
