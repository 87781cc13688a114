/* encoder_int.h - internals of an encoder, shared by encoder_config.c, encoder.c (loading),
 * encoder_places.c and encoder_forward.c.
 * Private to src/model. */
#ifndef SHOAL_MODEL_ENCODER_INT_H
#define SHOAL_MODEL_ENCODER_INT_H

#include "base/thread/crew.h"
#include "model/encoder.h"
#include "model/plan.h"

struct norm { /* layer norm; w NULL: none */
    const float *w, *b;
};

struct encoder_layer {
    struct linear qkv[3]; /* or one matrix for all three: d->n_qkv */
    struct linear attn_out, up, gate, down;
    struct norm attn_norm, out_norm; /* what follows attention and the hidden layer */
    bool local;                      /* sees only keys within the window */
    /* DISENTANGLED: own matrices for the vectors of distances, absent if the keys' and queries' are
     * used; and those vectors as keys and as queries, [n_rel][dim]. */
    struct linear pos_k, pos_q;
    float *rel_k, *rel_q;
};

struct attn_job { /* rows of one head of one sequence */
    uint32_t seq, head, row0, row1;
};

struct encoder {
    struct encoder_config c;
    const struct kern_ops *k;
    const struct model_file *file;
    struct crew_lane *lane;
    struct weights weights;
    struct small_tensors vectors;
    struct encoder_layer *layers;
    struct norm embd_norm;
    struct norm first_norm;           /* norms_first: before layer 0 */
    struct norm cls_norm;             /* after the layer before the classes */
    struct linear embd_proj;          /* absent if embd_dim is dim; of images: from a patch */
    const float *class_embd;          /* [dim], images: what stands before the patches */
    struct model_file_tensor *slices; /* [2 * n_blocks]: halves of tensors that hold two matrices */
    uint32_t n_slices;
    uint32_t n_qkv;
    const struct model_file_tensor *embd;
    const float *positions; /* [pos0 + n_ctx][embd_dim] or NULL; of images: [n_ctx][dim] */
    const float *types;     /* [n_types][embd_dim] or NULL */
    struct encoder_places_data {
        const float *buckets; /* BUCKETS: [n_buckets][n_heads] */
        const float *rel;     /* DISENTANGLED: vectors of distances, [n_rel][dim] */
        struct norm rel_norm;
        uint32_t n_rel;
        float *bias; /* BUCKETS: [n_heads][2 * n_ctx - 1] by distance; ROTATED: [2 * n_ctx - 1],
                        a large negative number for keys outside of the window */
        uint32_t *row_of;   /* DISENTANGLED: [2 * n_ctx - 1], from distance to row of rel */
        float *rotation[2]; /* ROTATED: [n_ctx][2 * head_dim] for global and local layers */
        void *owned;        /* all of these */
        size_t owned_bytes;
    } places;
    struct linear top[ENCODER_N_TOPS];
    uint32_t max_tokens, max_seqs;
    enum linear_input in_x, in_att, in_hidden, in_narrow;

    /* scratch, one allocation */
    uint8_t *scratch;
    size_t scratch_bytes;
    float *x;  /* [max_tokens][dim]: the sum of the layers so far */
    float *in; /* [max_tokens][dim]: input of a product and, at the end, the result; x itself unless
                  norms_first */
    float *narrow; /* [max_tokens][embd_dim], with embd_proj */
    float *gate;   /* [max_tokens][ffn_dim], if gated */
    float *qkv;    /* [max_tokens][3 * dim] */
    float *att;    /* [max_tokens][dim] */
    float *proj;   /* [max_tokens][dim]: results of attn_out and down */
    float *hidden; /* [max_tokens][ffn_dim] */
    struct kern_act act_x, act_att, act_hidden, act_narrow;
    struct kern_act act_top; /* gathered inputs of a head */
    float *top_x, *top_out, *spare;
    float **attn_scratch; /* per member */
    float **attn_bias;    /* per member, DISENTANGLED: [ENCODER_ROWS_PER_JOB][n_ctx] */
    struct attn_job *jobs;
    struct crew_phase *phases;

    /* the current pass */
    const struct encoder_seq *seqs;
    uint32_t n_seqs, n_tokens, n_jobs, n_groups;
    uint32_t *seq_first;   /* [max_seqs + 1]: first token of each sequence */
    uint32_t *group_first; /* [max_seqs + 1]: first sequence of each group */
    uint32_t *seq_of;      /* [max_tokens] */
};

#define ENCODER_ROWS_PER_JOB 128u /* queries that attend together */

/* Reads the metadata (encoder_config.c). */
SHOAL_MUST_CHECK int encoder_config_read(struct encoder_config *c, const struct model_file *file,
                                         struct err *e);

/* Reads how images are brought to the model's form; size and patch are set (encoder_picture.c). */
SHOAL_MUST_CHECK int encoder_picture_read(struct encoder_picture *p, const struct model_file *file,
                                          struct err *e);
/* Patch i of an image, as the model reads it; [3][patch][patch]. */
void encoder_picture_patch(const struct encoder_picture *p, const uint8_t *image, uint32_t i,
                           float *out);

/* ---- places of tokens (encoder_places.c) ---- */

/* Claims its tensors. */
SHOAL_MUST_CHECK int encoder_places_plan(struct plan *p, struct encoder *d);
/* Memory that encoder_places_make reserves; computed for the first time before it. */
size_t encoder_places_bytes(struct encoder *d);
/* Makes its tables from the loaded weights. */
SHOAL_MUST_CHECK int encoder_places_make(struct encoder *d, struct err *e);
void encoder_places_fini(struct encoder *d);
/* Rotates queries and keys of a token. */
void encoder_places_rotate(const struct encoder *d, const struct encoder_layer *l, uint32_t t);
/* One head's queries r0 to r1 of a sequence, which start at a multiple of ENCODER_ROWS_PER_JOB and
 * are at most that many. */
void encoder_places_attend(const struct encoder *d, const struct encoder_layer *l, uint32_t head,
                           const struct kern_attn_full *job, uint32_t r0, uint32_t r1, float *bias);

/* Divides the scratch memory; called by loading. */
void encoder_lay_out(struct encoder *d, uint8_t *base, uint32_t n_members);

#endif
