/* step.h - what the host tells the step kernel (step.cu): a decoder and the tokens of one pass, as
 * plain structs of pointers into the memory of the GPU.
 *
 * The kernel's blocks share the rows of each product; everything between two products is small, so
 * every block computes it for itself and the result is already where it is needed.  docs/CUDA.md
 * has the picture.
 *
 * Ownership: all pointers are borrowed.  Compiled by the C compiler and by nvcc. */
#ifndef SHOAL_ENGINE_CUDA_STEP_H
#define SHOAL_ENGINE_CUDA_STEP_H

#include <stdint.h>

#ifndef STEP_PIECES
#define STEP_PIECES 3072 /* pieces of weights that the threads of a block hold in registers */
#endif
#define STEP_MAX_TOKENS 8 /* tokens that one step computes together */
#define STEP_NO_ROW UINT32_MAX

/* Formats of kern.h, which the kernel cannot include. */
enum step_fmt {
    STEP_F32,
    STEP_F16,
    STEP_BF16,
    STEP_Q8,
    STEP_Q4,
    STEP_Q4M,
    STEP_Q5,
    STEP_Q5M,
    STEP_Q6,
};

/* A matrix in the layout of the scalar kernels: one row after the other, each with its scales, its
 * minima and its quants (kern_layout with tiles of one row). */
struct step_mat {
    const uint8_t *data; /* NULL: absent */
    const float *bias;   /* or NULL */
    uint32_t fmt, n_rows, n_cols;
    uint32_t row_bytes, mins, quants; /* bytes: of a row; offsets in it */
    uint32_t pieces;                  /* of a row: what one thread reads at once */
    uint32_t magic;                   /* divides a number of pieces by `pieces` */
    float mul;
};

struct step_layer {
    struct step_mat qkv[3], out, gate, up, down;
    const float *attn_norm_w, *attn_norm_b, *ffn_norm_w, *ffn_norm_b; /* NULL: absent */
    const float *q_norm, *k_norm, *post_attn_norm, *post_ffn_norm;
    uint32_t n_qkv;
    uint32_t qkv_alike; /* one product can cover all qkv matrices */
    uint32_t ffn_alike; /* the same for gate and up */
    uint32_t window, local_rope;
    uint32_t pad[5]; /* to a multiple of 16 bytes: it is copied in such pieces */
};

/* The rows of up to three matrices of the same shape that a block computes: one after the other, or
 * (pairs) those of two matrices in turns. */
struct step_rows {
    const uint8_t *base;
    int64_t jump[2];   /* added from row `from[i]` on; pairs: jump[0] for odd rows */
    uint32_t from[2];  /* number of rows before each jump */
    uint32_t n, first; /* rows; the first one's number in the whole product */
    uint32_t pairs;
    uint32_t fmt, n_cols, row_bytes, mins, quants, pieces, magic;
    const struct step_mat *mats;
    uint32_t n_mats;
};

/* What a block's shared memory begins with. */
struct step_head {
    struct step_layer layers[2]; /* this one and the next */
    struct step_rows rows[3];    /* of this product and of the next two, in turns */
    uint32_t logit_rows[STEP_MAX_TOKENS];
};

/* Offsets in a block's shared memory. */
struct step_shared {
    uint32_t x, xf, xq, scale, sums, exchange, work, bytes;
    uint32_t work_bytes;
    uint32_t ld; /* columns of a row of xf and xq */
};

struct step_model {
    const struct step_layer *layers;
    uint32_t n_layers, dim, n_heads, n_kv_heads, head_dim, ffn_dim, n_vocab;
    uint32_t rope_dim, rope_neox, layer_norm, parallel, gated, gelu, kv_q8;
    float norm_eps, attn_scale;
    const float *final_norm_w, *final_norm_b;
    struct step_mat output;
    const float *rope[2];                  /* [position][2][rope_dim], global and local */
    uint32_t any_float, any_int, any_sums; /* forms of a product's input that some matrix needs */
    uint32_t tokens;                       /* that a step computes together */
    struct step_shared shared;
    /* Results that blocks exchange, [2][tokens * exchange_ld]: one is read while the other is
     * written.  In a cluster it is in the shared memory of every block instead. */
    float *exchange;
    uint32_t exchange_ld;
    float *scores; /* [blocks][score_ld]: for contexts that do not fit into shared memory */
    uint32_t score_ld;
    uint8_t *kv;
    uint64_t kv_head_bytes, kv_page_bytes;
    uint32_t *barrier;
    uint32_t cluster; /* blocks form one cluster and use its barrier */
};

struct step_token {
    uint32_t pos;
    uint32_t run;       /* tokens of one sequence have the same number and follow each other */
    uint32_t pages_at;  /* its page numbers begin here in step_pass.pages */
    uint32_t logit_row; /* STEP_NO_ROW: none wanted */
};

struct step_pass {
    uint32_t n_tokens;
    const struct step_token *tokens;
    const uint32_t *pages;
    const float *embedded; /* [n_tokens][dim] */
    float *logits;         /* [rows][n_vocab] */
    /* For the kernels of many tokens: the token of each row of logits, and tiles of attention, each
     * a first token and a number of tokens of one run. */
    const uint32_t *wanted, *tiles;
    uint32_t n_wanted, n_tiles;
};

#endif
