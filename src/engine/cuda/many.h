/* many.h - what the host tells the kernels for many tokens (many.cu): prompts and batches.  One
 * launch for each operation of a layer; products use the tensor cores.
 *
 * Ownership: all pointers are borrowed.  Compiled by the C compiler and by nvcc. */
#ifndef SHOAL_ENGINE_CUDA_MANY_H
#define SHOAL_ENGINE_CUDA_MANY_H

#include <stdint.h>

#include "engine/cuda/one.h"

#define MANY_ROWS 16 /* of queries that one block of attention has: tokens x heads of a KV head */

enum many_kernel {
    MANY_INPUT,        /* norm and rounding, or rounding alone */
    MANY_PRODUCT,      /* tiles of 32 tokens */
    MANY_PRODUCT_THIN, /* tiles of 8 tokens */
    MANY_TURN,         /* norm and rotation of heads; keys and values into their pages */
    MANY_ATTEND,
    MANY_KERNELS
};

struct many_input {
    const float *from;     /* [tokens][ld] */
    const float *norm;     /* or NULL: only rounding */
    const uint32_t *which; /* numbers of the tokens, or NULL: all */
    int8_t *xq;            /* [tokens][ldq] */
    float *scale;          /* [tokens][lds] */
    uint32_t ld, ldq, lds, n_cols;
    uint32_t parts; /* blocks of a token */
    float eps;
};

enum many_end { MANY_STORE, MANY_ADD, MANY_GATED };

struct many_product {
    struct one_mat w;
    uint32_t n_rows, n_cols, row_tiles; /* row_tiles: blocks for all rows of a tile of tokens */
    uint32_t n_tokens, ldq, lds;
    const int8_t *xq;
    const float *scale;
    float *out; /* [tokens][ld] */
    uint32_t ld;
    enum many_end end;
    uint32_t gelu;
};

struct many_heads {
    struct step_model m;
    struct step_pass p;
    const float *q_norm, *k_norm; /* or NULL */
    const float *rope;
    float *qkv; /* [tokens][heads + 2 KV heads][head_dim] */
    float *att; /* [tokens][heads][head_dim] */
    uint32_t layer, window, score_ld;
};

#endif
