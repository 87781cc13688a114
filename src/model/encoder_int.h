/* encoder_int.h - internals of an encoder, shared by encoder.c (loading) and encoder_forward.c.
 * Private to src/model. */
#ifndef SHOAL_MODEL_ENCODER_INT_H
#define SHOAL_MODEL_ENCODER_INT_H

#include "base/thread/crew.h"
#include "model/encoder.h"
#include "model/plan.h"

struct norm { /* layer norm */
    const float *w, *b;
};

struct encoder_layer {
    struct linear qkv[3], attn_out, up, down;
    struct norm attn_norm, out_norm;
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
    const struct model_file_tensor *embd;
    const float *positions; /* [pos0 + n_ctx][dim] */
    const float *types;     /* [n_types][dim] or NULL */
    struct linear top[ENCODER_N_TOPS];
    uint32_t max_tokens, max_seqs;
    enum linear_input in_x, in_att, in_hidden;

    /* scratch, one allocation */
    uint8_t *scratch;
    size_t scratch_bytes;
    float *x;      /* [max_tokens][dim]: a layer's input and, at the end, the result */
    float *qkv;    /* [max_tokens][3 * dim] */
    float *att;    /* [max_tokens][dim] */
    float *proj;   /* [max_tokens][dim]: results of attn_out and down */
    float *hidden; /* [max_tokens][ffn_dim] */
    struct kern_act act_x, act_att, act_hidden;
    struct kern_act act_top; /* gathered inputs of a head */
    float *top_x, *top_out, *spare;
    float **attn_scratch; /* per member */
    struct attn_job *jobs;
    struct crew_phase *phases;

    /* the current pass */
    const struct encoder_seq *seqs;
    uint32_t n_seqs, n_tokens, n_jobs, n_groups;
    uint32_t *seq_first;   /* [max_seqs + 1]: first token of each sequence */
    uint32_t *group_first; /* [max_seqs + 1]: first sequence of each group */
    uint32_t *seq_of;      /* [max_tokens] */
};

/* Divides the scratch memory; called by loading. */
void encoder_lay_out(struct encoder *d, uint8_t *base, uint32_t n_members);

#endif
