/* ops_body.h - the float operations of a kernel set, written once over v16.
 *
 * Included by exactly one .c file per set, after that set's v16_*.h.  Everything is static; the
 * including file lists the functions in its kern_ops.  The order of every sum is fixed here (see
 * kern.h), so that all sets give identical bits. */
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "kernels/kern.h"

/* Unrolls loops over registers; the scalar set has none and keeps them rolled (V16_ROLLED). */
#ifdef V16_ROLLED
#define OPS_UNROLL
#else
#define OPS_UNROLL _Pragma("GCC unroll 8")
#endif

/* How many v16 the registers hold.  Sets with narrow vectors define a smaller number in their
 * v16_*.h and get smaller tiles; results do not depend on it. */
#ifndef V16_REGS
#define V16_REGS 32
#endif
#define OPS_WIDE (V16_REGS >= 16)

/* 1 if the set stores KERN_Q8W unsigned, which needs sums of the activations. */
#ifndef OPS_WIDE_SUMS
#define OPS_WIDE_SUMS 0
#endif

/* e^x, relative error under 2e-7.  Clamped to the range where 2^n is a normal number, so large
 * negative arguments give about 1e-38, not 0. */
static inline v16 ops_exp(v16 x)
{
    x = v16_min(v16_max(x, v16_set1(-87.0f)), v16_set1(88.0f));
    v16 n = v16_round(v16_mul(x, v16_set1(1.44269504088896341f)));
    v16 r = v16_fma(n, v16_set1(-0.693359375f), x);
    r = v16_fma(n, v16_set1(2.12194440e-4f), r);
    v16 p = v16_set1(1.9875691500e-4f);
    p = v16_fma(p, r, v16_set1(1.3981999507e-3f));
    p = v16_fma(p, r, v16_set1(8.3334519073e-3f));
    p = v16_fma(p, r, v16_set1(4.1665795894e-2f));
    p = v16_fma(p, r, v16_set1(1.6666665459e-1f));
    p = v16_fma(p, r, v16_set1(5.0000001201e-1f));
    p = v16_add(v16_fma(p, v16_mul(r, r), r), v16_set1(1.0f));
    return v16_mul(p, v16_pow2(n));
}

/* x / (1 + e^-k): the logistic gate of SiLU (k = x) and of GELU's tanh form (k = 2u). */
static inline v16 ops_gate(v16 x, v16 k)
{
    v16 one = v16_set1(1.0f);
    return v16_div(x, v16_add(one, ops_exp(v16_sub(v16_zero(), k))));
}

static inline v16 ops_gelu1(v16 x)
{
    v16 cube = v16_mul(v16_mul(x, x), x);
    v16 u = v16_mul(v16_fma(cube, v16_set1(0.044715f), x), v16_set1(1.5957691216057308f));
    return ops_gate(x, u);
}

/* x * Phi(x), Phi being the normal distribution function, as 1/2 + x * P(x^2).  P is a polynomial
 * of degree 12 fitted for |x| <= 5, with x^2 mapped to -1..1 so that its terms do not cancel. Error
 * under 2e-6 (relative under 3e-6 for |x| < 1); no division needed. */
static inline v16 ops_gelu_erf1(v16 x)
{
    v16 c = v16_min(v16_max(x, v16_set1(-5.0f)), v16_set1(5.0f));
    v16 s = v16_fma(v16_mul(c, c), v16_set1(0.08f), v16_set1(-1.0f));
    v16 p = v16_set1(4.92919469e-4f);
    p = v16_fma(p, s, v16_set1(-1.51410908e-3f));
    p = v16_fma(p, s, v16_set1(2.00197846e-3f));
    p = v16_fma(p, s, v16_set1(-2.9157754e-3f));
    p = v16_fma(p, s, v16_set1(6.16532937e-3f));
    p = v16_fma(p, s, v16_set1(-1.0973148e-2f));
    p = v16_fma(p, s, v16_set1(1.6497694e-2f));
    p = v16_fma(p, s, v16_set1(-2.33367607e-2f));
    p = v16_fma(p, s, v16_set1(3.14262249e-2f));
    p = v16_fma(p, s, v16_set1(-4.04329449e-2f));
    p = v16_fma(p, s, v16_set1(5.15214205e-2f));
    p = v16_fma(p, s, v16_set1(-7.02966526e-2f));
    p = v16_fma(p, s, v16_set1(1.41363785e-1f));
    return v16_mul(x, v16_fma(p, c, v16_set1(0.5f)));
}

static inline v16 ops_load(const float *p, uint32_t left)
{
    return left >= 16 ? v16_load(p) : v16_load_n(p, left);
}

static inline void ops_put(float *p, v16 a, uint32_t left)
{
    if (left >= 16)
        v16_store(p, a);
    else
        v16_store_n(p, a, left);
}
/* Clamps to -127..127; NaN (a broken model) becomes -127 in every set. */
static inline v16 ops_to_i8(v16 x)
{
    return v16_min(v16_max(x, v16_set1(-127.0f)), v16_set1(127.0f));
}

/* Stores 32 integral floats as bytes, and the sums of both halves. */
static inline void ops_store_block(int8_t *q, v16 lo, v16 hi, int32_t *sums)
{
#ifdef V16_STORE_BLOCK
    v16_store_block(q, lo, hi, sums);
#else
    sums[0] = v16_store_i8(q, lo);
    sums[1] = v16_store_i8(q + 16, hi);
#endif
}

static void ops_quantize(const struct kern_act *a, uint32_t t, uint32_t b0, uint32_t b1)
{
    const float *x = a->x + t * a->ld + (size_t)b0 * 32;
    int8_t *q = a->q + (size_t)t * a->n_cols + (size_t)b0 * 32;
    float *scale = a->scale + (size_t)t * (a->n_cols / 32);
    int32_t *sums = a->sums + (size_t)t * (a->n_cols / 16);
    for (uint32_t b = b0; b < b1; b++, x += 32, q += 32) {
        v16 lo = v16_load(x), hi = v16_load(x + 16);
        float amax = v16_hmax(v16_max(v16_abs(lo), v16_abs(hi)));
        float inv = amax > 0.0f ? 127.0f / amax : 0.0f;
        if (!(inv <= 3.0e38f)) /* amax is so small that 127/amax overflows, or it is NaN */
            inv = 0.0f;
        v16 k = v16_set1(inv);
        scale[b] = inv > 0.0f ? amax / 127.0f : 0.0f;
        ops_store_block(q, ops_to_i8(v16_mul(lo, k)), ops_to_i8(v16_mul(hi, k)), sums + 2 * b);
    }
}

static void ops_quantize_wide(const struct kern_act *a, uint32_t t, uint32_t g0, uint32_t g1)
{
    float *scale = a->scale + (size_t)t * (a->n_cols / 32);
    int32_t *sums = a->sums + (size_t)t * (a->n_cols / 16);
    for (uint32_t g = g0; g < g1; g++) {
        const float *x = a->x + t * a->ld + (size_t)g * KERN_WIDE;
        int8_t *q = a->q + (size_t)t * a->n_cols + (size_t)g * KERN_WIDE;
        v16 max = v16_zero(), sum = v16_zero();
        for (uint32_t i = 0; i < KERN_WIDE; i += 16)
            max = v16_max(max, v16_abs(v16_load(x + i)));
        float amax = v16_hmax(max), inv = amax > 0.0f ? 127.0f / amax : 0.0f;
        if (!(inv <= 3.0e38f)) /* as in ops_quantize */
            inv = 0.0f;
        v16 k = v16_set1(inv);
        for (uint32_t i = 0; i < KERN_WIDE; i += 16) {
            v16 r = ops_to_i8(v16_mul(v16_load(x + i), k));
            if (OPS_WIDE_SUMS)
                sum = v16_add(sum, v16_round(r)); /* integral values: exact in any order */
            (void)v16_store_i8(q + i, r);
        }
        scale[g] = inv > 0.0f ? amax / 127.0f : 0.0f;
        sums[g] = OPS_WIDE_SUMS ? 128 * (int32_t)v16_sum(sum) : 0;
    }
}

static float ops_dot(const float *a, const float *b, uint32_t n)
{
    v16 sum = v16_zero();
    for (uint32_t i = 0; i < n; i += 16)
        sum = v16_fma(ops_load(a + i, n - i), ops_load(b + i, n - i), sum);
    return v16_sum(sum);
}

static void ops_rmsnorm(float *y, const float *x, const float *w, uint32_t n, float eps)
{
    v16 ss = v16_zero();
    for (uint32_t i = 0; i < n; i += 16) {
        v16 v = ops_load(x + i, n - i);
        ss = v16_fma(v, v, ss);
    }
    v16 r = v16_set1(1.0f / sqrtf(v16_sum(ss) / (float)n + eps));
    for (uint32_t i = 0; i < n; i += 16) {
        v16 v = v16_mul(ops_load(x + i, n - i), r);
        ops_put(y + i, w ? v16_mul(v, ops_load(w + i, n - i)) : v, n - i);
    }
}

static void ops_layernorm(float *y, const float *x, const float *w, const float *b, uint32_t n,
                          float eps)
{
    v16 sum = v16_zero(), ss = v16_zero();
    for (uint32_t i = 0; i < n; i += 16)
        sum = v16_add(sum, ops_load(x + i, n - i));
    float mean = v16_sum(sum) / (float)n;
    v16 m = v16_set1(mean);
    for (uint32_t i = 0; i < n; i += 16) {
        v16 d = v16_sub(ops_load(x + i, n - i), m);
        if (n - i < 16) { /* lanes past the end count as 0, not as -mean */
            float t[16];
            v16_store(t, d);
            d = v16_load_n(t, n - i);
        }
        ss = v16_fma(d, d, ss);
    }
    v16 r = v16_set1(1.0f / sqrtf(v16_sum(ss) / (float)n + eps));
    for (uint32_t i = 0; i < n; i += 16) {
        v16 v = v16_mul(v16_sub(ops_load(x + i, n - i), m), r);
        v16 bias = b ? ops_load(b + i, n - i) : v16_zero();
        ops_put(y + i, v16_fma(v, ops_load(w + i, n - i), bias), n - i);
    }
}

static void ops_add(float *y, const float *x, uint32_t n)
{
    for (uint32_t i = 0; i < n; i += 16)
        ops_put(y + i, v16_add(ops_load(y + i, n - i), ops_load(x + i, n - i)), n - i);
}

static void ops_scale(float *y, float s, uint32_t n)
{
    v16 k = v16_set1(s);
    for (uint32_t i = 0; i < n; i += 16)
        ops_put(y + i, v16_mul(ops_load(y + i, n - i), k), n - i);
}

static void ops_mul(float *y, const float *a, const float *b, uint32_t n)
{
    for (uint32_t i = 0; i < n; i += 16)
        ops_put(y + i, v16_mul(ops_load(a + i, n - i), ops_load(b + i, n - i)), n - i);
}

static void ops_mul_add(float *y, const float *a, const float *b, uint32_t n)
{
    for (uint32_t i = 0; i < n; i += 16) {
        v16 sum = ops_load(y + i, n - i);
        ops_put(y + i, v16_fma(ops_load(a + i, n - i), ops_load(b + i, n - i), sum), n - i);
    }
}

static void ops_silu(float *y, const float *x, uint32_t n)
{
    for (uint32_t i = 0; i < n; i += 16) {
        v16 v = ops_load(x + i, n - i);
        ops_put(y + i, ops_gate(v, v), n - i);
    }
}

static void ops_silu_mul(float *y, const float *gate, const float *up, uint32_t n)
{
    for (uint32_t i = 0; i < n; i += 16) {
        v16 g = ops_load(gate + i, n - i);
        ops_put(y + i, v16_mul(ops_gate(g, g), ops_load(up + i, n - i)), n - i);
    }
}

static void ops_gelu_mul(float *y, const float *gate, const float *up, uint32_t n)
{
    for (uint32_t i = 0; i < n; i += 16)
        ops_put(y + i, v16_mul(ops_gelu1(ops_load(gate + i, n - i)), ops_load(up + i, n - i)),
                n - i);
}

static void ops_gelu(float *y, const float *x, uint32_t n)
{
    for (uint32_t i = 0; i < n; i += 16)
        ops_put(y + i, ops_gelu1(ops_load(x + i, n - i)), n - i);
}

static void ops_gelu_erf(float *y, const float *x, uint32_t n)
{
    for (uint32_t i = 0; i < n; i += 16)
        ops_put(y + i, ops_gelu_erf1(ops_load(x + i, n - i)), n - i);
}

static void ops_relu(float *y, const float *x, uint32_t n)
{
    for (uint32_t i = 0; i < n; i += 16)
        ops_put(y + i, v16_max(ops_load(x + i, n - i), v16_zero()), n - i);
}

/* The larger one of x and slope * x, 0 < slope < 1. */
static void ops_leaky_relu(float *y, const float *x, float slope, uint32_t n)
{
    const v16 s = v16_set1(slope);
    for (uint32_t i = 0; i < n; i += 16) {
        const v16 v = ops_load(x + i, n - i);
        ops_put(y + i, v16_max(v, v16_mul(v, s)), n - i);
    }
}

static void ops_sigmoid(float *y, const float *x, uint32_t n)
{
    for (uint32_t i = 0; i < n; i += 16)
        ops_put(y + i, ops_gate(v16_set1(1.0f), ops_load(x + i, n - i)), n - i);
}

static void ops_tanh(float *y, const float *x, uint32_t n) /* 2 sigmoid(2x) - 1 */
{
    for (uint32_t i = 0; i < n; i += 16) {
        v16 v = ops_load(x + i, n - i), gate = ops_gate(v16_set1(2.0f), v16_add(v, v));
        ops_put(y + i, v16_sub(gate, v16_set1(1.0f)), n - i);
    }
}

/* own * c + partner * s, rounding each product. */
static inline v16 ops_turn(v16 own, v16 partner, const float *cs, uint32_t rot, uint32_t left)
{
    return v16_add(v16_mul(own, ops_load(cs, left)), v16_mul(partner, ops_load(cs + rot, left)));
}

static void ops_rope(float *x, uint32_t n_heads, uint32_t head_dim, uint32_t rot, const float *cs,
                     bool neox)
{
    const uint32_t half = rot / 2;
    for (uint32_t h = 0; h < n_heads; h++, x += head_dim) {
        for (uint32_t i = 0; neox && i < half; i += 16) {
            v16 a = ops_load(x + i, half - i), b = ops_load(x + half + i, half - i);
            ops_put(x + i, ops_turn(a, b, cs + i, rot, half - i), half - i);
            ops_put(x + half + i, ops_turn(b, a, cs + half + i, rot, half - i), half - i);
        }
        for (uint32_t i = 0; !neox && i < rot; i += 16) {
            v16 a = ops_load(x + i, rot - i);
            ops_put(x + i, ops_turn(a, v16_swap(a), cs + i, rot, rot - i), rot - i);
        }
    }
}

static float ops_absmax(const float *x, uint32_t n)
{
    v16 m = v16_zero();
    for (uint32_t i = 0; i < n; i += 16)
        m = v16_max(m, v16_abs(ops_load(x + i, n - i)));
    return v16_hmax(m);
}

static float ops_max(const float *x, uint32_t n)
{
    float m = x[0];
    uint32_t i = 0;
    if (n >= 16) {
        v16 v = v16_load(x);
        for (i = 16; i + 16 <= n; i += 16)
            v = v16_max(v, v16_load(x + i));
        m = v16_hmax(v);
    }
    for (; i < n; i++)
        m = x[i] > m ? x[i] : m;
    return m;
}

static uint32_t ops_argmax(const float *x, uint32_t n)
{
    float m = ops_max(x, n);
    for (uint32_t i = 0; i < n; i++)
        if (x[i] == m)
            return i;
    return 0;
}

static float ops_softmax_exp(float *y, const float *x, uint32_t n, float max)
{
    v16 m = v16_set1(max), sum = v16_zero();
    for (uint32_t i = 0; i < n; i += 16) {
        uint32_t left = n - i;
        ops_put(y + i, ops_exp(v16_sub(ops_load(x + i, left), m)), left);
        sum = v16_add(sum, ops_load(y + i, left));
    }
    return v16_sum(sum);
}

static void ops_kv_store(uint8_t *page_head, enum kern_kv kind, uint32_t head_dim, uint32_t token,
                         const float *k, const float *v)
{
    if (kind == KERN_KV_F16) {
        uint16_t *kp = (uint16_t *)page_head + token;
        uint16_t *vp = (uint16_t *)page_head + (size_t)KERN_PAGE * head_dim + token * head_dim;
        uint16_t h[16];
        for (uint32_t i = 0; i < head_dim; i += 16) {
            uint32_t n = head_dim - i < 16 ? head_dim - i : 16;
            v16_store_f16(h, ops_load(k + i, n));
            for (uint32_t j = 0; j < n; j++)
                kp[(size_t)(i + j) * KERN_PAGE] = h[j];
            if (n == 16) {
                v16_store_f16(vp + i, v16_load(v + i));
                continue;
            }
            v16_store_f16(h, ops_load(v + i, n));
            for (uint32_t j = 0; j < n; j++)
                vp[i + j] = h[j];
        }
        return;
    }
    int8_t *kp = (int8_t *)page_head + token;
    int8_t *vp = (int8_t *)page_head + (size_t)KERN_PAGE * head_dim + token * head_dim;
    float *scales = (float *)(void *)(page_head + (size_t)2 * KERN_PAGE * head_dim);
    float kmax = ops_absmax(k, head_dim), vmax = ops_absmax(v, head_dim);
    v16 kinv = v16_set1(kmax > 1e-30f ? 127.0f / kmax : 0.0f);
    v16 vinv = v16_set1(vmax > 1e-30f ? 127.0f / vmax : 0.0f);
    scales[token] = kmax > 1e-30f ? kmax / 127.0f : 0.0f;
    scales[KERN_PAGE + token] = vmax > 1e-30f ? vmax / 127.0f : 0.0f;
    int8_t q[16];
    for (uint32_t i = 0; i < head_dim; i += 16) {
        uint32_t n = head_dim - i < 16 ? head_dim - i : 16;
        (void)v16_store_i8(q, ops_to_i8(v16_mul(ops_load(k + i, n), kinv)));
        for (uint32_t j = 0; j < n; j++)
            kp[(size_t)(i + j) * KERN_PAGE] = q[j];
        (void)v16_store_i8(q, ops_to_i8(v16_mul(ops_load(v + i, n), vinv)));
        for (uint32_t j = 0; j < n; j++)
            vp[i + j] = q[j];
    }
}

/* ---- attention ---------------------------------------------------------------------------- */

struct ops_rows { /* up to KERN_ATTN_ROWS query rows of a job */
    const float *q[KERN_ATTN_ROWS];
    float *out[KERN_ATTN_ROWS];
    uint32_t lo[KERN_ATTN_ROWS], hi[KERN_ATTN_ROWS]; /* keys lo..hi-1 */
    float *score[KERN_ATTN_ROWS];                    /* [key - first], first page-aligned */
    const float *bias[KERN_ATTN_ROWS];               /* [key], or NULL */
};

/* Scores of NQ rows against NP pages from page index p; dims in ascending order. */
#define OPS_SCORES(NAME, NQ, NP)                                                                   \
    static inline void NAME(const struct kern_attn *job, const struct ops_rows *rows, uint32_t p,  \
                            uint32_t first, bool q8)                                               \
    {                                                                                              \
        v16 s[NQ][NP];                                                                             \
        const uint8_t *page[NP];                                                                   \
        const uint32_t hd = job->head_dim;                                                         \
        OPS_UNROLL for (int j = 0; j < NP; j++)                                                    \
        {                                                                                          \
            page[j] = job->kv + job->pages[p + (uint32_t)j] * job->page_stride;                    \
            OPS_UNROLL for (int i = 0; i < NQ; i++) s[i][j] = v16_zero();                          \
        }                                                                                          \
        for (uint32_t d = 0; d < hd; d++) {                                                        \
            v16 k[NP];                                                                             \
            OPS_UNROLL for (int j = 0; j < NP; j++) k[j] =                                         \
                q8 ? v16_i8((const int8_t *)page[j] + d * KERN_PAGE)                               \
                   : v16_f16((const uint16_t *)(const void *)page[j] + d * KERN_PAGE);             \
            OPS_UNROLL for (int i = 0; i < NQ; i++)                                                \
            {                                                                                      \
                v16 q = v16_set1(rows->q[i][d]);                                                   \
                OPS_UNROLL for (int j = 0; j < NP; j++) s[i][j] = v16_fma(q, k[j], s[i][j]);       \
            }                                                                                      \
        }                                                                                          \
        v16 scale = v16_set1(job->scale);                                                          \
        OPS_UNROLL for (int j = 0; j < NP; j++) OPS_UNROLL for (int i = 0; i < NQ; i++)            \
        {                                                                                          \
            v16 v = v16_mul(s[i][j], scale);                                                       \
            if (q8)                                                                                \
                v = v16_mul(v,                                                                     \
                            v16_load((const float *)(const void *)(page[j] +                       \
                                                                   (size_t)2 * KERN_PAGE * hd)));  \
            v16_store(rows->score[i] + (p + (uint32_t)j) * KERN_PAGE - first, v);                  \
        }                                                                                          \
    }
OPS_SCORES(ops_scores_1x4, 1, 4)
OPS_SCORES(ops_scores_1x1, 1, 1)
OPS_SCORES(ops_scores_4x2, 4, 2)
OPS_SCORES(ops_scores_4x1, 4, 1)
OPS_SCORES(ops_scores_8x1, 8, 1)
OPS_SCORES(ops_scores_8x2, 8, 2)
#undef OPS_SCORES

/* Weighted sum of values for NQ rows, NV vectors of 16 dims from dim d0, times inv of the row; keys
 * ascending.  Each row has its own key range; keys outside it are skipped, not weighted with 0. */
#define OPS_VALUES(NAME, NQ, NV)                                                                   \
    static inline void NAME(const struct kern_attn *job, const struct ops_rows *rows, uint32_t d0, \
                            uint32_t first, bool q8, const float *inv)                             \
    {                                                                                              \
        const uint32_t hd = job->head_dim;                                                         \
        uint32_t lo = rows->lo[0], hi = rows->hi[0], all_lo = lo, all_hi = hi;                     \
        v16 o[NQ][NV];                                                                             \
        OPS_UNROLL for (int i = 0; i < NQ; i++)                                                    \
        {                                                                                          \
            lo = rows->lo[i] < lo ? rows->lo[i] : lo;                                              \
            hi = rows->hi[i] > hi ? rows->hi[i] : hi;                                              \
            all_lo = rows->lo[i] > all_lo ? rows->lo[i] : all_lo;                                  \
            all_hi = rows->hi[i] < all_hi ? rows->hi[i] : all_hi;                                  \
            OPS_UNROLL for (int v = 0; v < NV; v++) o[i][v] = v16_zero();                          \
        }                                                                                          \
        for (uint32_t t = lo; t < hi;) {                                                           \
            const uint8_t *page = job->kv + job->pages[t / KERN_PAGE] * job->page_stride;          \
            size_t at = (size_t)KERN_PAGE * hd + (size_t)(t % KERN_PAGE) * hd + d0;                \
            uint32_t end = t / KERN_PAGE * KERN_PAGE + KERN_PAGE;                                  \
            const bool every = t >= all_lo && end <= all_hi;                                       \
            for (end = end < hi ? end : hi; t < end; t++, at += hd) {                              \
                v16 x[NV];                                                                         \
                OPS_UNROLL for (int v = 0; v < NV; v++) x[v] =                                     \
                    q8 ? v16_i8((const int8_t *)page + at + 16 * v)                                \
                       : v16_f16((const uint16_t *)(const void *)page + at + 16 * v);              \
                OPS_UNROLL for (int i = 0; i < NQ; i++)                                            \
                {                                                                                  \
                    if (!every && (t < rows->lo[i] || t >= rows->hi[i]))                           \
                        continue;                                                                  \
                    v16 w = v16_set1(rows->score[i][t - first]);                                   \
                    OPS_UNROLL for (int v = 0; v < NV; v++) o[i][v] = v16_fma(w, x[v], o[i][v]);   \
                }                                                                                  \
            }                                                                                      \
        }                                                                                          \
        OPS_UNROLL for (int i = 0; i < NQ; i++) OPS_UNROLL for (int v = 0; v < NV; v++)            \
            v16_store(rows->out[i] + d0 + 16 * v, v16_mul(o[i][v], v16_set1(inv[i])));             \
    }
OPS_VALUES(ops_values_1x4, 1, 4)
OPS_VALUES(ops_values_1x1, 1, 1)
OPS_VALUES(ops_values_4x2, 4, 2)
OPS_VALUES(ops_values_4x1, 4, 1)
OPS_VALUES(ops_values_8x3, 8, 3)
OPS_VALUES(ops_values_8x2, 8, 2)
OPS_VALUES(ops_values_8x1, 8, 1)
#undef OPS_VALUES

/* The remaining dims when head_dim is not a multiple of 16 (tiny test models). */
static void ops_values_tail(const struct kern_attn *job, const struct ops_rows *rows, uint32_t i,
                            uint32_t d0, uint32_t first, bool q8, float inv)
{
    const uint32_t hd = job->head_dim;
    for (uint32_t d = d0; d < hd; d++) {
        float o = 0.0f;
        for (uint32_t t = rows->lo[i]; t < rows->hi[i]; t++) {
            const uint8_t *page = job->kv + job->pages[t / KERN_PAGE] * job->page_stride;
            size_t at = (size_t)KERN_PAGE * hd + (size_t)(t % KERN_PAGE) * hd + d;
            float x = q8 ? (float)((const int8_t *)page)[at]
                         : quant_f16_to_f32(((const uint16_t *)(const void *)page)[at]);
            o = fmaf(rows->score[i][t - first], x, o);
        }
        rows->out[i][d] = o * inv;
    }
}

/* cap * tanh(x / cap) */
static void ops_cap(float *x, float cap, uint32_t n)
{
    ops_scale(x, 1.0f / cap, n);
    ops_tanh(x, x, n);
    ops_scale(x, cap, n);
}

/* Softmax over a row's keys: turns scores into weights (for Q8 multiplied by the value's scale) and
 * returns 1 / sum.  Key t is added to partial sum t % 16. */
static float ops_weights(const struct kern_attn *job, const struct ops_rows *rows, uint32_t i,
                         uint32_t first, bool q8)
{
    uint32_t lo = rows->lo[i], hi = rows->hi[i];
    float *s = rows->score[i];
    float part[16];
    if (job->cap > 0.0f)
        ops_cap(s + (lo - first), job->cap, hi - lo);
    if (rows->bias[i])
        ops_add(s + (lo - first), rows->bias[i] + lo, hi - lo);
    /* Keys in the first and last page that are outside the row's range must not raise the maximum.
     */
    uint32_t page_lo = lo / KERN_PAGE * KERN_PAGE;
    uint32_t page_hi = (hi + KERN_PAGE - 1) / KERN_PAGE * KERN_PAGE;
    float max = s[lo - first];
    for (uint32_t t = page_lo; t < lo; t++)
        s[t - first] = max;
    for (uint32_t t = hi; t < page_hi; t++)
        s[t - first] = max;
    max = ops_max(s + (page_lo - first), page_hi - page_lo);
    v16 m = v16_set1(max), sum = v16_zero();
    for (uint32_t t = page_lo; t < page_hi; t += KERN_PAGE) {
        v16 p = ops_exp(v16_sub(v16_load(s + (t - first)), m));
        if (t < lo || t + KERN_PAGE > hi) { /* first or last page: only keys in range count */
            v16_store(part, p);
            for (uint32_t k = 0; k < KERN_PAGE; k++)
                if (t + k < lo || t + k >= hi)
                    part[k] = 0.0f;
            p = v16_load(part);
        }
        sum = v16_add(sum, p);
        if (q8) {
            const uint8_t *page = job->kv + job->pages[t / KERN_PAGE] * job->page_stride;
            const float *scales =
                (const float *)(const void *)(page + (size_t)2 * KERN_PAGE * job->head_dim);
            p = v16_mul(p, v16_load(scales + KERN_PAGE));
        }
        v16_store(s + (t - first), p);
    }
    return 1.0f / v16_sum(sum);
}

static void ops_attend_rows(const struct kern_attn *job, const struct ops_rows *rows, uint32_t nq,
                            uint32_t first, uint32_t last, bool q8)
{
    const uint32_t hd = job->head_dim;
    uint32_t p = first / KERN_PAGE, p_end = (last + KERN_PAGE - 1) / KERN_PAGE;
    if (nq == 8) {
        for (; p + 2 <= p_end; p += 2)
            ops_scores_8x2(job, rows, p, first, q8);
        for (; p < p_end; p++)
            ops_scores_8x1(job, rows, p, first, q8);
    } else if (nq == 4) {
        for (; OPS_WIDE && p + 2 <= p_end; p += 2)
            ops_scores_4x2(job, rows, p, first, q8);
        for (; p < p_end; p++)
            ops_scores_4x1(job, rows, p, first, q8);
    } else {
        for (; p + 4 <= p_end; p += 4)
            ops_scores_1x4(job, rows, p, first, q8);
        for (; p < p_end; p++)
            ops_scores_1x1(job, rows, p, first, q8);
    }
    float inv[KERN_ATTN_ROWS];
    for (uint32_t i = 0; i < nq; i++)
        inv[i] = ops_weights(job, rows, i, first, q8);

    uint32_t d = 0;
    if (nq == 8) {
        for (; d + 48 <= hd && (hd - d) % 32 != 0; d += 48)
            ops_values_8x3(job, rows, d, first, q8, inv);
        for (; d + 32 <= hd; d += 32)
            ops_values_8x2(job, rows, d, first, q8, inv);
        for (; d + 16 <= hd; d += 16)
            ops_values_8x1(job, rows, d, first, q8, inv);
    } else if (nq == 4) {
        for (; OPS_WIDE && d + 32 <= hd; d += 32)
            ops_values_4x2(job, rows, d, first, q8, inv);
        for (; d + 16 <= hd; d += 16)
            ops_values_4x1(job, rows, d, first, q8, inv);
    } else {
        for (; d + 64 <= hd; d += 64)
            ops_values_1x4(job, rows, d, first, q8, inv);
        for (; d + 16 <= hd; d += 16)
            ops_values_1x1(job, rows, d, first, q8, inv);
    }
    for (uint32_t i = 0; i < nq; i++)
        ops_values_tail(job, rows, i, d, first, q8, inv[i]);
}

static void ops_attend(const struct kern_attn *job, uint32_t r0, uint32_t r1)
{
    const bool q8 = job->kind == KERN_KV_Q8;
    uint32_t stride = (job->pos0 + job->n_tokens + 63) / 64 * 64 + 64;
    while (r0 < r1) {
        uint32_t nq = OPS_WIDE && r1 - r0 >= 8 ? 8 : r1 - r0 >= 4 ? 4 : 1;
        struct ops_rows rows;
        uint32_t first = UINT32_MAX, last = 0;
        for (uint32_t i = 0; i < nq; i++) {
            uint32_t token = (r0 + i) / job->n_heads, head = (r0 + i) % job->n_heads;
            uint32_t hi = job->pos0 + token + 1;
            uint32_t lo = job->window && hi > job->window ? hi - job->window : 0;
            rows.q[i] = job->q + token * job->q_ld + (size_t)head * job->head_dim;
            rows.out[i] = job->out + token * job->out_ld + (size_t)head * job->head_dim;
            rows.lo[i] = lo;
            rows.hi[i] = hi;
            first = lo < first ? lo : first;
            last = hi > last ? hi : last;
            rows.score[i] = job->scratch + (size_t)i * stride;
            rows.bias[i] = job->bias ? job->bias + head * job->bias_ld - token : NULL;
        }
        first = first / KERN_PAGE * KERN_PAGE;
        if (q8)
            ops_attend_rows(job, &rows, nq, first, last, true);
        else
            ops_attend_rows(job, &rows, nq, first, last, false);
        r0 += nq;
    }
}

/* ---- attention over a whole sequence ------------------------------------------------------- */

struct ops_full_rows { /* query rows; the last one is repeated if fewer remain */
    const float *q[KERN_ATTN_FULL_ROWS];
    float *score[KERN_ATTN_FULL_ROWS];
};

/* Transposes the keys to [head_dim][ld]; lanes past the last key are 0. */
static void ops_turn_keys(const struct kern_attn_full *job, float *kt, uint32_t ld)
{
    const uint32_t hd = job->head_dim;
    for (uint32_t d = 0; d < hd; d++)
        v16_store(kt + (size_t)d * ld + ld - 16, v16_zero());
    for (uint32_t t = 0; t < job->n_keys; t++) {
        const float *k = job->k + t * job->kv_ld;
        for (uint32_t d = 0; d < hd; d++)
            kt[(size_t)d * ld + t] = k[d];
    }
}

/* Scaled scores against NP groups of 16 keys from key t; dims ascending. */
#define OPS_FULL_SCORES(NAME, NP)                                                                  \
    static inline void NAME(const struct kern_attn_full *job, const struct ops_full_rows *rows,    \
                            const float *kt, uint32_t ld, uint32_t t)                              \
    {                                                                                              \
        v16 s[KERN_ATTN_FULL_ROWS][NP];                                                            \
        OPS_UNROLL for (int i = 0; i < KERN_ATTN_FULL_ROWS; i++)                                   \
            OPS_UNROLL for (int j = 0; j < NP; j++) s[i][j] = v16_zero();                          \
        for (uint32_t d = 0; d < job->head_dim; d++) {                                             \
            v16 k[NP];                                                                             \
            OPS_UNROLL for (int j = 0; j < NP; j++) k[j] =                                         \
                v16_load(kt + (size_t)d * ld + t + 16 * j);                                        \
            OPS_UNROLL for (int i = 0; i < KERN_ATTN_FULL_ROWS; i++)                               \
            {                                                                                      \
                v16 q = v16_set1(rows->q[i][d]);                                                   \
                OPS_UNROLL for (int j = 0; j < NP; j++) s[i][j] = v16_fma(q, k[j], s[i][j]);       \
            }                                                                                      \
        }                                                                                          \
        v16 scale = v16_set1(job->scale);                                                          \
        OPS_UNROLL for (int i = 0; i < KERN_ATTN_FULL_ROWS; i++)                                   \
            OPS_UNROLL for (int j = 0; j < NP; j++)                                                \
                v16_store(rows->score[i] + t + 16 * j, v16_mul(s[i][j], scale));                   \
    }
OPS_FULL_SCORES(ops_full_scores_2, 2)
OPS_FULL_SCORES(ops_full_scores_1, 1)
#undef OPS_FULL_SCORES

/* Weighted sums of NV groups of 16 dims from dim d; keys ascending. */
#define OPS_FULL_VALUES(NAME, NV)                                                                  \
    static inline void NAME(const struct kern_attn_full *job, const struct ops_full_rows *rows,    \
                            uint32_t d, v16(*acc)[NV])                                             \
    {                                                                                              \
        const uint32_t left = job->head_dim - d;                                                   \
        v16 o[KERN_ATTN_FULL_ROWS][NV];                                                            \
        OPS_UNROLL for (int i = 0; i < KERN_ATTN_FULL_ROWS; i++)                                   \
            OPS_UNROLL for (int v = 0; v < NV; v++) o[i][v] = v16_zero();                          \
        for (uint32_t t = 0; t < job->n_keys; t++) {                                               \
            const float *value = job->v + t * job->kv_ld + d;                                      \
            v16 x[NV];                                                                             \
            OPS_UNROLL for (int v = 0; v < NV; v++) x[v] =                                         \
                NV > 1 ? v16_load(value + 16 * v) : ops_load(value, left);                         \
            OPS_UNROLL for (int i = 0; i < KERN_ATTN_FULL_ROWS; i++)                               \
            {                                                                                      \
                v16 w = v16_set1(rows->score[i][t]);                                               \
                OPS_UNROLL for (int v = 0; v < NV; v++) o[i][v] = v16_fma(w, x[v], o[i][v]);       \
            }                                                                                      \
        }                                                                                          \
        OPS_UNROLL for (int i = 0; i < KERN_ATTN_FULL_ROWS; i++)                                   \
            OPS_UNROLL for (int v = 0; v < NV; v++) acc[i][v] = o[i][v];                           \
    }
OPS_FULL_VALUES(ops_full_values_2, 2)
OPS_FULL_VALUES(ops_full_values_1, 1)
#undef OPS_FULL_VALUES

/* n rows from row r. */
static void ops_attend_full_rows(const struct kern_attn_full *job, const float *kt, uint32_t ld,
                                 uint32_t r, uint32_t n)
{
    const uint32_t hd = job->head_dim, n_keys = job->n_keys;
    struct ops_full_rows rows;
    float *scores = job->scratch + (size_t)hd * ld, inv[KERN_ATTN_FULL_ROWS];
    for (uint32_t i = 0; i < KERN_ATTN_FULL_ROWS; i++) {
        rows.q[i] = job->q + (r + (i < n ? i : n - 1)) * job->q_ld;
        rows.score[i] = scores + (size_t)i * ld;
    }
    uint32_t t = 0, d = 0;
    for (; OPS_WIDE && t + 32 <= ld; t += 32)
        ops_full_scores_2(job, &rows, kt, ld, t);
    for (; t < ld; t += 16)
        ops_full_scores_1(job, &rows, kt, ld, t);
    for (uint32_t i = 0; i < n; i++) {
        float *s = rows.score[i];
        if (job->bias)
            ops_add(s, job->bias + (ptrdiff_t)(r + i) * job->bias_ld, n_keys);
        inv[i] = 1.0f / ops_softmax_exp(s, s, n_keys, ops_max(s, n_keys));
    }
    for (; OPS_WIDE && d + 32 <= hd; d += 32) {
        v16 acc[KERN_ATTN_FULL_ROWS][2];
        ops_full_values_2(job, &rows, d, acc);
        for (uint32_t i = 0; i < n; i++)
            for (uint32_t v = 0; v < 2; v++)
                v16_store(job->out + (r + i) * job->out_ld + d + 16 * v,
                          v16_mul(acc[i][v], v16_set1(inv[i])));
    }
    for (; d < hd; d += 16) {
        v16 acc[KERN_ATTN_FULL_ROWS][1];
        ops_full_values_1(job, &rows, d, acc);
        for (uint32_t i = 0; i < n; i++)
            ops_put(job->out + (r + i) * job->out_ld + d, v16_mul(acc[i][0], v16_set1(inv[i])),
                    hd - d);
    }
}

static void ops_attend_full(const struct kern_attn_full *job, uint32_t r0, uint32_t r1)
{
    const uint32_t ld = (job->n_keys + 15) / 16 * 16;
    ops_turn_keys(job, job->scratch, ld);
    for (uint32_t r = r0; r < r1; r += KERN_ATTN_FULL_ROWS)
        ops_attend_full_rows(job, job->scratch, ld, r,
                             r1 - r < KERN_ATTN_FULL_ROWS ? r1 - r : KERN_ATTN_FULL_ROWS);
}

/* ---- products with float weights ---------------------------------------------------------- */

/* Initial value of the KERN_Q8W sums of 16 rows. */
static inline v16 ops_wide_start(const struct kern_mat *w, uint32_t row)
{
    return w->bias ? v16_load(w->bias + row) : v16_zero();
}

static inline v16 ops_weight16(enum kern_fmt fmt, const uint8_t *p)
{
    return fmt == KERN_F32   ? v16_load((const float *)(const void *)p)
           : fmt == KERN_F16 ? v16_f16((const uint16_t *)(const void *)p)
                             : v16_bf16((const uint16_t *)(const void *)p);
}

/* NT tokens against NR groups of 16 rows (tiles of 16); columns ascending. */
#define OPS_FGEMM(NAME, NT, NR)                                                                    \
    static inline void NAME(const struct kern_mat *w, const struct kern_act *a, uint32_t t,        \
                            uint32_t tile, float *out, size_t out_ld, enum kern_fmt fmt)           \
    {                                                                                              \
        const size_t step = fmt == KERN_F32 ? 64 : 32;                                             \
        v16 acc[NT][NR];                                                                           \
        const uint8_t *p = w->data + tile * w->tile_bytes;                                         \
        const float *x = a->x + t * a->ld;                                                         \
        OPS_UNROLL for (int i = 0; i < NT; i++) OPS_UNROLL for (int r = 0; r < NR; r++)            \
            acc[i][r] = v16_zero();                                                                \
        for (uint32_t c = 0; c < w->n_cols; c++, p += step) {                                      \
            v16 k[NR];                                                                             \
            OPS_UNROLL for (int r = 0; r < NR; r++) k[r] =                                         \
                ops_weight16(fmt, p + (size_t)r * w->tile_bytes);                                  \
            OPS_UNROLL for (int i = 0; i < NT; i++)                                                \
            {                                                                                      \
                v16 v = v16_set1(x[(size_t)i * a->ld + c]);                                        \
                OPS_UNROLL for (int r = 0; r < NR; r++) acc[i][r] = v16_fma(k[r], v, acc[i][r]);   \
            }                                                                                      \
        }                                                                                          \
        v16 mul = v16_set1(w->mul);                                                                \
        OPS_UNROLL for (int r = 0; r < NR; r++)                                                    \
        {                                                                                          \
            uint32_t row = (tile + (uint32_t)r) * 16;                                              \
            OPS_UNROLL for (int i = 0; i < NT; i++) ops_put(                                       \
                out + (t + (uint32_t)i) * out_ld + row, v16_mul(acc[i][r], mul), w->n_rows - row); \
        }                                                                                          \
    }
OPS_FGEMM(ops_fgemm_1x4, 1, 4)
OPS_FGEMM(ops_fgemm_1x1, 1, 1)
OPS_FGEMM(ops_fgemm_4x2, 4, 2)
OPS_FGEMM(ops_fgemm_4x1, 4, 1)
#undef OPS_FGEMM

static inline void ops_fgemm_fmt(const struct kern_mat *w, const struct kern_act *a,
                                 uint32_t n_tokens, uint32_t tile0, uint32_t tile1, float *out,
                                 size_t out_ld, enum kern_fmt fmt)
{
    uint32_t t = 0;
    for (; t + 4 <= n_tokens; t += 4) {
        uint32_t r = tile0;
        for (; OPS_WIDE && r + 2 <= tile1; r += 2)
            ops_fgemm_4x2(w, a, t, r, out, out_ld, fmt);
        for (; r < tile1; r++)
            ops_fgemm_4x1(w, a, t, r, out, out_ld, fmt);
    }
    for (; t < n_tokens; t++) {
        uint32_t r = tile0;
        for (; r + 4 <= tile1; r += 4)
            ops_fgemm_1x4(w, a, t, r, out, out_ld, fmt);
        for (; r < tile1; r++)
            ops_fgemm_1x1(w, a, t, r, out, out_ld, fmt);
    }
}

/* For sets with tiles of 16 rows.  Sums follow the order in kern.h, so the scalar set, with tiles
 * of one row, gives the same bits. */
__attribute__((unused)) static void ops_fgemm(const struct kern_mat *w, const struct kern_act *a,
                                              uint32_t n_tokens, uint32_t tile0, uint32_t tile1,
                                              float *out, size_t out_ld)
{
    if (w->fmt == KERN_F32)
        ops_fgemm_fmt(w, a, n_tokens, tile0, tile1, out, out_ld, KERN_F32);
    else if (w->fmt == KERN_F16)
        ops_fgemm_fmt(w, a, n_tokens, tile0, tile1, out, out_ld, KERN_F16);
    else
        ops_fgemm_fmt(w, a, n_tokens, tile0, tile1, out, out_ld, KERN_BF16);
}

static inline void ops_widen_fmt(float *y, enum kern_fmt fmt, const uint8_t *x, uint32_t n)
{
    const size_t size = fmt == KERN_F32 ? 4 : 2;
    uint32_t i = 0;
    for (; i + 16 <= n; i += 16)
        v16_store(y + i, ops_weight16(fmt, x + i * size));
    if (i < n) {
        uint8_t rest[64] = {0};
        memcpy(rest, x + i * size, (n - i) * size);
        v16_store_n(y + i, ops_weight16(fmt, rest), n - i);
    }
}

static void ops_widen(float *y, enum kern_fmt fmt, const void *x, uint32_t n)
{
    if (fmt == KERN_F32)
        ops_widen_fmt(y, KERN_F32, x, n);
    else if (fmt == KERN_F16)
        ops_widen_fmt(y, KERN_F16, x, n);
    else
        ops_widen_fmt(y, KERN_BF16, x, n);
}

/* Sixteen columns at a time: their sums stay in a register while the rows of the state go by. */
static void ops_ssm_step(float *h, float *y, const float *x, const float *b, const float *c,
                         uint32_t n_state, uint32_t n, float dt, float decay)
{
    const v16 fade = v16_set1(decay);
    for (uint32_t i = 0; i < n; i += 16) {
        const v16 in = ops_load(x + i, n - i);
        v16 sum = v16_zero();
        for (uint32_t j = 0; j < n_state; j++) {
            float *at = h + (size_t)j * n + i;
            v16 s = v16_mul(ops_load(at, n - i), fade);
            s = v16_fma(v16_set1(b[j] * dt), in, s);
            ops_put(at, s, n - i);
            sum = v16_fma(s, v16_set1(c[j]), sum);
        }
        ops_put(y + i, sum, n - i);
    }
}

static void ops_delta_step(float *h, float *y, const float *v, const float *k, const float *q,
                           uint32_t n_key, uint32_t n, float beta, float decay)
{
    const v16 fade = v16_set1(decay), part = v16_set1(beta);
    for (uint32_t i = 0; i < n; i += 16) {
        v16 known = v16_zero(), sum = v16_zero();
        for (uint32_t j = 0; j < n_key; j++) {
            float *at = h + (size_t)j * n + i;
            const v16 s = v16_mul(ops_load(at, n - i), fade);
            ops_put(at, s, n - i);
            known = v16_fma(s, v16_set1(k[j]), known);
        }
        const v16 news = v16_mul(v16_sub(ops_load(v + i, n - i), known), part);
        for (uint32_t j = 0; j < n_key; j++) {
            float *at = h + (size_t)j * n + i;
            const v16 s = v16_fma(v16_set1(k[j]), news, ops_load(at, n - i));
            ops_put(at, s, n - i);
            sum = v16_fma(s, v16_set1(q[j]), sum);
        }
        ops_put(y + i, sum, n - i);
    }
}

#define OPS_TABLE                                                                                  \
    .quantize = ops_quantize, .quantize_wide = ops_quantize_wide, .rmsnorm = ops_rmsnorm,          \
    .layernorm = ops_layernorm, .add = ops_add, .widen = ops_widen, .scale = ops_scale,            \
    .mul = ops_mul, .mul_add = ops_mul_add, .silu = ops_silu, .ssm_step = ops_ssm_step,            \
    .delta_step = ops_delta_step, .silu_mul = ops_silu_mul, .gelu_mul = ops_gelu_mul,              \
    .gelu = ops_gelu, .gelu_erf = ops_gelu_erf, .relu = ops_relu, .leaky_relu = ops_leaky_relu,    \
    .tanh = ops_tanh, .sigmoid = ops_sigmoid, .attend_full = ops_attend_full, .rope = ops_rope,    \
    .kv_store = ops_kv_store, .attend = ops_attend, .softmax_exp = ops_softmax_exp,                \
    .max = ops_max, .argmax = ops_argmax, .dot = ops_dot, .dot_i8 = v16_dot_i8
