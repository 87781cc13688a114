/* kern.h - the compute kernels: one table of functions per instruction set.
 *
 * Thread:    pure functions over the caller's memory; no allocation, no locks, no logging.
 * Contract:  every set gives results BIT-IDENTICAL to the scalar set, for any number of tokens per
 *            call and any split of rows over threads.  A generation can therefore move to another
 *            machine mid-stream and continue with the same tokens.  To make that possible, each
 *            operation fixes its order:
 *              - integer products are exact sums over one block of 32 (or 16) columns;
 *              - floats are accumulated block by block, column by column or key by key, in
 *                ascending order, with fused multiply-add where "fma" is written below;
 *              - sums over a vector use 16 partial sums (element i goes to partial i % 16), which
 *                are added as ((i, i+8), (i, i+4), (i, i+2), (i, i+1)). */
#ifndef SHOAL_KERNELS_KERN_H
#define SHOAL_KERNELS_KERN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "kernels/quants/quant.h"

/* ---- tiled matrices ----------------------------------------------------------------------- */

/* The format of a tiled weight matrix (tiles.h): three float formats and seven integer formats.
 * Integer formats have blocks of 32 columns: w = scale * (q - offset) [+ min], scale and min in
 * F16. */
enum kern_fmt {
    KERN_F32,
    KERN_F16,
    KERN_BF16,
    KERN_Q8,  /* 8 bits, offset 128 */
    KERN_Q4,  /* 4 bits, offset 8 */
    KERN_Q4M, /* 4 bits with a min */
    KERN_Q5,  /* 5 bits, offset 16 */
    KERN_Q5M, /* 5 bits with a min */
    KERN_Q6,  /* 6 bits, offset 32, one scale per 16 columns */
    KERN_Q8W, /* 8 bits, offset 128, one scale per 64 columns, for inputs in groups of 64 */
    KERN_N_FMTS
};

/* How a set lays out a tile of rows.  A tile holds tile_rows rows, all columns, in three areas one
 * after the other, each padded to 64 bytes, for blocks b = 0 .. n_cols/32 - 1:
 *   scales  F16 [b][half][row]       half: 2 for KERN_Q6, else 1
 *   mins    F16 [b][row]             only for formats with a min
 *   quants  bytes per block; `g` = group: that many (4 or 8) consecutive columns of a row stay
 *           together:
 *     8 bits: [32/g][row][g], one byte each, stored as q (q8_unsigned) or as q - 128 (signed)
 *     4 bits: [16/g][row][g]: low nibble column c, high nibble column c + 16
 *     5 bits: the 4-bit area of the low nibbles, then bit 4 of every q: bit (i % 8) of byte (i / 8)
 *             with i counting [32/g][row][g] in the order of the 8-bit layout
 *     6 bits: the 4-bit area, then bits 4..5: [8/g'][row][g'] with g' = min(g, 8): 2-bit field k
 *             (bits 2k..2k+1) of a byte belongs to column c + 8 * k, c = 0..7
 * KERN_Q8W: as KERN_Q8, but one scale for two blocks; stored as q - 128 when wide_signed is set.
 * Float formats: [column][row], element by element.
 * Rows are padded with zero weights to a whole tile. */
struct kern_layout {
    uint8_t tile_rows;
    uint8_t group;
    bool q8_unsigned;
    bool wide_signed; /* KERN_Q8W is stored signed, whatever q8_unsigned says */
};

struct kern_mat {
    enum kern_fmt fmt;
    uint32_t n_rows, n_cols;
    float mul;           /* power of two by which every result is multiplied */
    size_t tile_bytes;   /* bytes of one tile */
    const uint8_t *data; /* n_tiles tiles; 64-byte aligned */
    const float
        *bias; /* KERN_Q8W only: initial value of the sums, padded to whole tiles; NULL: 0 */
};

static inline bool kern_fmt_is_float(enum kern_fmt fmt)
{
    return fmt <= KERN_BF16;
}

/* ---- activations -------------------------------------------------------------------------- */

/* The input of a product.  Float formats read x; integer formats read blocks of 32 columns:
 * x ~ scale * q, q in -127..127, scale = amax/127, q = nearest-even(x * (127/amax)).  KERN_Q8W
 * reads groups of 64 and uses only the first entries of the token's scales and sums.  Its sums are
 * multiplied by 128 to correct for the weights' offset; they are 0 in sets with signed weights. */
#define KERN_WIDE 64u
#define KERN_WIDE_MAX 32768u /* columns */
struct kern_act {
    const float *x; /* [n_tokens][ld] */
    size_t ld;
    int8_t *q;       /* [n_tokens][n_cols] */
    float *scale;    /* [n_tokens][n_cols/32] */
    int32_t *sums;   /* [n_tokens][n_cols/16]: sums of q over halves of blocks */
    uint32_t n_cols; /* of this input; q, scale and sums have rows of this length */
};

/* The same input, starting at token t. */
static inline struct kern_act kern_act_from(const struct kern_act *a, uint32_t t)
{
    struct kern_act from = *a;
    from.x += t * a->ld;
    from.q += (size_t)t * a->n_cols;
    from.scale += (size_t)t * (a->n_cols / 32);
    from.sums += (size_t)t * (a->n_cols / 16);
    return from;
}

/* ---- attention ---------------------------------------------------------------------------- */

#define KERN_PAGE 16 /* tokens per KV page: the 16 lanes of the key product */

enum kern_kv { KERN_KV_F16, KERN_KV_Q8 };

/* One KV head's part of a page.  F16: keys [head_dim][16], then values [16][head_dim].
 * Q8: the same in int8, then F32 key scales [16] and value scales [16]. */
static inline size_t kern_kv_head_bytes(enum kern_kv kind, uint32_t head_dim)
{
    size_t n = (size_t)KERN_PAGE * head_dim * 2;
    return kind == KERN_KV_F16 ? n * 2 : n + 2 * KERN_PAGE * sizeof(float);
}

/* Consecutive query rows that attend to the same KV head of the same sequence.  Row r = (token i,
 * head h): i = r / n_heads, h = r % n_heads. */
struct kern_attn {
    const float *q; /* row (i, h) at q + i * q_ld + h * head_dim */
    size_t q_ld;
    float *out; /* same addressing with out_ld */
    size_t out_ld;
    uint32_t n_tokens, n_heads, head_dim;
    float scale;
    float cap;       /* scores become cap * tanh(score / cap); 0: none */
    uint32_t pos0;   /* position of token 0; token i sees keys lo..pos0+i */
    uint32_t window; /* 0: all; else only the last `window` keys */
    /* NULL, or added to the scaled score of head h and key j: at h * bias_ld + j for token 0, and i
     * places earlier for token i, since the bias depends only on the distance. */
    const float *bias;
    size_t bias_ld;
    enum kern_kv kind;
    const uint8_t *kv;     /* this layer's and head's part of page 0 */
    size_t page_stride;    /* bytes from one page to the next */
    const uint32_t *pages; /* page numbers of the sequence, KERN_PAGE tokens each */
    float *scratch;        /* kern_attn_scratch floats */
};
#define KERN_ATTN_ROWS 8 /* query rows per pass */
static inline size_t kern_attn_scratch(uint32_t n_ctx)
{
    return (size_t)KERN_ATTN_ROWS * ((n_ctx + 63) / 64 * 64 + 64);
}

/* Attention of one head over one whole sequence: every query sees every key (encoders, and the
 * cross attention of sequence-to-sequence models).  Keys and values are F32, as the matrix products
 * wrote them. */
struct kern_attn_full {
    const float *q; /* query i at q + i * q_ld, head_dim values */
    size_t q_ld;
    const float *k, *v; /* key and value j at + j * kv_ld */
    size_t kv_ld;
    float *out; /* query i at out + i * out_ld */
    size_t out_ld;
    uint32_t n_keys, head_dim;
    float scale;
    const float *bias; /* NULL, or added to the scaled score of query i and key j at i*bias_ld+j */
    ptrdiff_t bias_ld; /* -1 if the bias depends only on the distance j - i */
    float *scratch;    /* kern_attn_full_scratch floats */
};
#define KERN_ATTN_FULL_ROWS 4 /* query rows per pass */
static inline size_t kern_attn_full_scratch(uint32_t n_keys, uint32_t head_dim)
{
    return ((size_t)head_dim + KERN_ATTN_FULL_ROWS) * ((n_keys + 15) / 16 * 16);
}

/* ---- the table ---------------------------------------------------------------------------- */

struct kern_ops {
    const char *name;
    struct kern_layout layout;
    /* For one token, gemm splits its tiles into this many equal parts and reads them in parallel
     * as separate memory streams; 0: it reads them one after the other. */
    uint8_t streams;

    /* Rows of tiles [tile0, tile1) for tokens 0..n_tokens-1:
     * out[t * out_ld + row] = mul * sum_b fma(float(isum), scale_w * scale_a, .)
     *                              [then fma(min, scale_a * float(sum q), .) in the same block];
     * KERN_Q8W: sum_g fma(float(isum), scale_w * scale_a, .) over groups of 64, starting at bias;
     * float formats: sum_c fma(w, x, .). */
    void (*gemm)(const struct kern_mat *w, const struct kern_act *a, uint32_t n_tokens,
                 uint32_t tile0, uint32_t tile1, float *out, size_t out_ld);
    /* Fills q, scale, sums of token t from x, blocks b0..b1-1 of 32 columns. */
    void (*quantize)(const struct kern_act *a, uint32_t t, uint32_t b0, uint32_t b1);

    /* The same for wide groups g0..g1-1. */
    void (*quantize_wide)(const struct kern_act *a, uint32_t t, uint32_t g0, uint32_t g1);

    /* y = (x * (1 / sqrt(mean(x^2) + eps))) * w; w NULL: 1 */
    void (*rmsnorm)(float *y, const float *x, const float *w, uint32_t n, float eps);
    /* y = fma((x - mean) * (1 / sqrt(var + eps)), w, b); b NULL: 0 */
    void (*layernorm)(float *y, const float *x, const float *w, const float *b, uint32_t n,
                      float eps);
    void (*add)(float *y, const float *x, uint32_t n); /* y += x */
    /* y = x, converted from F32, F16 or BF16 */
    void (*widen)(float *y, enum kern_fmt fmt, const void *x, uint32_t n);
    void (*scale)(float *y, float s, uint32_t n);
    void (*mul)(float *y, const float *a, const float *b, uint32_t n);     /* y = a * b */
    void (*mul_add)(float *y, const float *a, const float *b, uint32_t n); /* y = fma(a, b, y) */
    void (*silu)(float *y, const float *x, uint32_t n);
    void (*silu_mul)(float *y, const float *gate, const float *up, uint32_t n);
    void (*gelu_mul)(float *y, const float *gate, const float *up, uint32_t n); /* tanh form */
    void (*gelu)(float *y, const float *x, uint32_t n);
    void (*gelu_erf)(float *y, const float *x, uint32_t n); /* x * Phi(x), error under 2e-6 */
    void (*relu)(float *y, const float *x, uint32_t n);
    /* y = x, or slope * x below 0; 0 < slope < 1 */
    void (*leaky_relu)(float *y, const float *x, float slope, uint32_t n);
    void (*tanh)(float *y, const float *x, uint32_t n);
    void (*sigmoid)(float *y, const float *x, uint32_t n);
    /* Rotates the first rot values of each of n_heads heads in place: x = x * cs[i] + partner *
     * cs[rot + i], as two rounded products and a sum.  neox: partners are (i, i + rot/2), otherwise
     * (2i, 2i + 1).  cs holds the cosines of the pairs, then minus the sine for the first of each
     * pair and the sine for the second. */
    void (*rope)(float *x, uint32_t n_heads, uint32_t head_dim, uint32_t rot, const float *cs,
                 bool neox);
    /* Writes one token's key and value into its page (token = position % 16). */
    void (*kv_store)(uint8_t *page_head, enum kern_kv kind, uint32_t head_dim, uint32_t token,
                     const float *k, const float *v);
    /* Rows r0..r1 of the job. */
    void (*attend)(const struct kern_attn *job, uint32_t r0, uint32_t r1);
    /* Queries r0..r1 of the job. */
    void (*attend_full)(const struct kern_attn_full *job, uint32_t r0, uint32_t r1);
    /* One token of a state space head; h: [n_state][n], row by row h = fma(b[j] * dt, x, h *
     * decay), y = sum_j fma(h, c[j], .). */
    void (*ssm_step)(float *h, float *y, const float *x, const float *b, const float *c,
                     uint32_t n_state, uint32_t n, float dt, float decay);
    /* One token of a head with the gated delta rule; h: [n_key][n].
     * h *= decay; y = (v - sum_j fma(h[j], k[j], .)) * beta; h[j] = fma(k[j], y, h[j]);
     * y = sum_j fma(h[j], q[j], .). */
    void (*delta_step)(float *h, float *y, const float *v, const float *k, const float *q,
                       uint32_t n_key, uint32_t n, float beta, float decay);
    /* y = exp(x - max); returns the sum of y. */
    float (*softmax_exp)(float *y, const float *x, uint32_t n, float max);
    float (*max)(const float *x, uint32_t n);
    uint32_t (*argmax)(const float *x, uint32_t n); /* lowest index among equal values */
    float (*dot)(const float *a, const float *b, uint32_t n);
    int32_t (*dot_i8)(const int8_t *a, const int8_t *b, uint32_t n); /* n: a multiple of 32 */
};

/* The best set that this CPU and OS can run, or the one named `force` (NULL: best).  NULL, with e
 * filled, if `force` is unknown or cannot run here. */
const struct kern_ops *kern_select(const char *force, struct err *e);
/* All compiled-in sets that can run here, best first; returns how many. */
size_t kern_usable(const struct kern_ops **out, size_t max);
/* All compiled-in sets, usable or not. */
size_t kern_compiled(const struct kern_ops **out, size_t max);
extern const struct kern_ops kern_scalar;

#endif
