/* one.h - what the host tells the kernel for one token (one.cu), beside step.h: the matrices of a
 * decoder as it streams them, and how it divides a block's shared memory.
 *
 * Ownership: all pointers are borrowed.  Compiled by the C compiler and by nvcc. */
#ifndef SHOAL_ENGINE_CUDA_ONE_H
#define SHOAL_ENGINE_CUDA_ONE_H

#include <stdint.h>

#include "engine/cuda/step.h"

/* The products of a layer; gate and up are one matrix, whose rows come in turns. */
enum one_phase { ONE_QKV, ONE_OUT, ONE_FFN, ONE_DOWN, ONE_PHASES };
/* The results that blocks exchange: one buffer each. */
#define ONE_MOST_COPIES 8
enum one_buffer { ONE_TO_ATTENTION, ONE_TO_OUT, ONE_TO_FFN, ONE_TO_DOWN, ONE_TO_QKV, ONE_BUFFERS };

/* A matrix whose rows follow each other, or up to three such matrices one after the other.  Its
 * units (rows, or pairs of rows) are dealt out to all warps of the grid: each + 1 to the first
 * `more` of them. */
struct one_mat {
    const uint8_t *data;
    const float *bias; /* or NULL */
    uint32_t fmt, n_blocks, row_bytes, mins, quants;
    uint32_t magic;             /* divides by n_blocks */
    uint32_t each, more;        /* units of a warp */
    uint32_t unit, chunk;       /* rows: of a unit; that are computed together */
    uint32_t from[2];           /* first rows of the second and third matrix */
    float mul[3];               /* of each matrix */
    uint32_t plain;             /* no bias, and every factor is 1 */
    uint32_t terms, each_terms; /* of a row's sum, and of a block's */
    /* A long row is copied in segs parts of ONE_SEGMENT blocks: where they begin in a stage, and
     * bytes of a block.  segs is 1 for a row that is copied whole. */
    uint32_t segs, seg_mins, seg_quants, scale_bytes, quant_bytes;
};

struct one_layer {
    struct one_mat mats[ONE_PHASES];
    const float *attn_norm, *ffn_norm, *q_norm, *k_norm; /* the last two: or NULL */
};

/* Offsets in a block's shared memory. */
struct one_shared {
    uint32_t layers, x, norm, xq, scale, sums, rope, head, score, weight, tiles, terms, ready, ring;
    uint32_t bytes;
};

struct one_model {
    const struct one_layer *layers; /* n_layers, and one more whose first matrix is the output */
    uint64_t *words;                /* of all buffers, in the memory of the GPU */
    uint32_t at[ONE_BUFFERS];       /* where each begins */
    uint32_t n_words;               /* of a copy */
    uint32_t q8;                    /* all matrices have 8 bits */
    uint32_t stages;                /* chunks of weights that a warp has on their way */
    uint32_t stage_bytes;           /* of one */
    uint32_t term_bytes;            /* of a warp */
    uint32_t n_tiles;   /* keys or values of a page that fit into shared memory at once */
    uint32_t most_keys; /* scores that fit */
    uint32_t blocks;    /* of the grid */
    uint32_t sums;      /* some matrix needs the sums of its input */
    struct one_shared shared;
};

#endif
