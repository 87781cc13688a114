/* kern_avx512.c - AVX-512 with VNNI: tiles of 16 rows, one int32 lane a row.
 *
 * vpdpbusd multiplies unsigned bytes (weights, with their offset still in) with signed ones
 * (activations); the offset is taken out by starting every sum at -offset * sum(activations). */
#include "kernels/x86_64/v16_avx512.h"

#include "kernels/ops_body.h"
#include "kernels/pack.h"

#define ALWAYS_INLINE inline __attribute__((always_inline))

static const struct kern_layout layout = {.tile_rows = 16, .group = 4, .q8_unsigned = true};

/* The 32 columns of a block: w[j] holds columns 4j..4j+3 of 16 rows. */
static ALWAYS_INLINE void load_block(enum kern_fmt fmt, const uint8_t *q, __m512i w[8])
{
    const __m512i low = _mm512_set1_epi8(15);
    if (fmt == KERN_Q8) {
#pragma GCC unroll 8
        for (int j = 0; j < 8; j++)
            w[j] = _mm512_load_si512(q + 64 * j);
        return;
    }
#pragma GCC unroll 4
    for (int j = 0; j < 4; j++) {
        __m512i v = _mm512_load_si512(q + 64 * j);
        w[j] = _mm512_and_si512(v, low);
        w[j + 4] = _mm512_and_si512(_mm512_srli_epi16(v, 4), low);
    }
    if (fmt == KERN_Q5 || fmt == KERN_Q5M) {
        const __m512i bit = _mm512_set1_epi8(16);
#pragma GCC unroll 8
        for (int j = 0; j < 8; j++) {
            __mmask64 m = _load_mask64((__mmask64 *)(uintptr_t)(q + 256 + 8 * j));
            w[j] = _mm512_mask_add_epi8(w[j], m, w[j], bit);
        }
    } else if (fmt == KERN_Q6) {
        const __m512i two = _mm512_set1_epi8(0x30);
        __m512i h[2] = {_mm512_load_si512(q + 256), _mm512_load_si512(q + 320)};
#pragma GCC unroll 2
        for (int i = 0; i < 2; i++) {
            w[i] = _mm512_or_si512(w[i], _mm512_and_si512(_mm512_slli_epi16(h[i], 4), two));
            w[i + 2] = _mm512_or_si512(w[i + 2], _mm512_and_si512(_mm512_slli_epi16(h[i], 2), two));
            w[i + 4] = _mm512_or_si512(w[i + 4], _mm512_and_si512(h[i], two));
            w[i + 6] = _mm512_or_si512(w[i + 6], _mm512_and_si512(_mm512_srli_epi16(h[i], 2), two));
        }
    }
}

static ALWAYS_INLINE __m512i bytes4(const int8_t *p)
{
    int32_t v;
    memcpy(&v, p, 4);
    return _mm512_set1_epi32(v);
}

/* One tile against NT tokens from token t. */
static ALWAYS_INLINE void tile_tokens(const struct kern_mat *w, const struct kern_act *a,
                                      uint32_t tile, uint32_t t, float *out, size_t out_ld,
                                      enum kern_fmt fmt, const int NT,
                                      const struct kern_tile_map *map)
{
    const uint8_t *base = w->data + tile * w->tile_bytes;
    const uint8_t *scales = base, *mins = base + map->mins, *q = base + map->quants;
    const uint32_t blocks = w->n_cols / 32, quant_bytes = 16 * kern_block_quant_bytes(fmt);
    const int offset = kern_fmt_offset(fmt);
    const int8_t *aq = a->q + (size_t)t * a->n_cols;
    const float *ascale = a->scale + (size_t)t * blocks;
    const int32_t *sums = a->sums + (size_t)t * blocks * 2;
    __m512 acc[8];
#pragma GCC unroll 8
    for (int i = 0; i < NT; i++)
        acc[i] = _mm512_setzero_ps();

    for (uint32_t b = 0; b < blocks; b++) {
        __m512i k[8];
        load_block(fmt, q, k);
        q += quant_bytes;
        if (NT == 1) { /* one stream of weights: keep the memory pipe full */
#pragma GCC unroll 8
            for (uint32_t line = 0; line < quant_bytes; line += 64)
                _mm_prefetch((const char *)(q + 2048 + line), _MM_HINT_T0);
        }
        __m512 s0 = v16_f16((const uint16_t *)(const void *)scales), s1 = s0;
        scales += 32;
        if (fmt == KERN_Q6) {
            s1 = v16_f16((const uint16_t *)(const void *)scales);
            scales += 32;
        }
        __m512 min = _mm512_setzero_ps();
        if (kern_fmt_has_min(fmt)) {
            min = v16_f16((const uint16_t *)(const void *)mins);
            mins += 32;
        }
        if (fmt == KERN_Q6) {
#pragma GCC unroll 8
            for (int i = 0; i < NT; i++) {
                const int8_t *x = aq + (size_t)i * a->n_cols + b * 32;
                const int32_t *sum = sums + (size_t)i * blocks * 2 + 2 * b;
                __m512 d = _mm512_set1_ps(ascale[(size_t)i * blocks + b]);
                __m512i lo = _mm512_set1_epi32(-offset * sum[0]);
                __m512i hi = _mm512_set1_epi32(-offset * sum[1]);
#pragma GCC unroll 4
                for (int j = 0; j < 4; j++) {
                    lo = _mm512_dpbusd_epi32(lo, k[j], bytes4(x + 4 * j));
                    hi = _mm512_dpbusd_epi32(hi, k[j + 4], bytes4(x + 16 + 4 * j));
                }
                acc[i] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(lo), _mm512_mul_ps(s0, d), acc[i]);
                acc[i] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(hi), _mm512_mul_ps(s1, d), acc[i]);
            }
            continue;
        }
        __m512i isum[8];
#pragma GCC unroll 8
        for (int i = 0; i < NT; i++) {
            const int32_t *sum = sums + (size_t)i * blocks * 2 + 2 * b;
            isum[i] =
                offset ? _mm512_set1_epi32(-offset * (sum[0] + sum[1])) : _mm512_setzero_si512();
        }
#pragma GCC unroll 8
        for (int j = 0; j < 8; j++)
#pragma GCC unroll 8
            for (int i = 0; i < NT; i++)
                isum[i] = _mm512_dpbusd_epi32(isum[i], k[j],
                                              bytes4(aq + (size_t)i * a->n_cols + b * 32 + 4 * j));
#pragma GCC unroll 8
        for (int i = 0; i < NT; i++) {
            float d = ascale[(size_t)i * blocks + b];
            acc[i] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(isum[i]),
                                     _mm512_mul_ps(s0, _mm512_set1_ps(d)), acc[i]);
            if (kern_fmt_has_min(fmt)) {
                const int32_t *sum = sums + (size_t)i * blocks * 2 + 2 * b;
                acc[i] = _mm512_fmadd_ps(min, _mm512_set1_ps(d * (float)(sum[0] + sum[1])), acc[i]);
            }
        }
    }
    __m512 mul = _mm512_set1_ps(w->mul);
#pragma GCC unroll 8
    for (int i = 0; i < NT; i++)
        ops_put(out + (t + (uint32_t)i) * out_ld + tile * 16, _mm512_mul_ps(acc[i], mul),
                w->n_rows - tile * 16);
}

static ALWAYS_INLINE void gemm_fmt(const struct kern_mat *w, const struct kern_act *a,
                                   uint32_t n_tokens, uint32_t tile0, uint32_t tile1, float *out,
                                   size_t out_ld, enum kern_fmt fmt)
{
    const struct kern_tile_map map = kern_tile_map(&layout, fmt, w->n_cols);
    for (uint32_t tile = tile0; tile < tile1; tile++) {
        uint32_t t = 0;
        for (; t + 8 <= n_tokens; t += 8)
            tile_tokens(w, a, tile, t, out, out_ld, fmt, 8, &map);
        for (; t + 4 <= n_tokens; t += 4)
            tile_tokens(w, a, tile, t, out, out_ld, fmt, 4, &map);
        for (; t + 2 <= n_tokens; t += 2)
            tile_tokens(w, a, tile, t, out, out_ld, fmt, 2, &map);
        for (; t < n_tokens; t++)
            tile_tokens(w, a, tile, t, out, out_ld, fmt, 1, &map);
    }
}

#define GEMM_OF(FMT)                                                                               \
    static void gemm_##FMT(const struct kern_mat *w, const struct kern_act *a, uint32_t n,         \
                           uint32_t tile0, uint32_t tile1, float *out, size_t out_ld)              \
    {                                                                                              \
        gemm_fmt(w, a, n, tile0, tile1, out, out_ld, FMT);                                         \
    }
GEMM_OF(KERN_Q8)
GEMM_OF(KERN_Q4)
GEMM_OF(KERN_Q4M)
GEMM_OF(KERN_Q5)
GEMM_OF(KERN_Q5M)
GEMM_OF(KERN_Q6)
#undef GEMM_OF

static void gemm(const struct kern_mat *w, const struct kern_act *a, uint32_t n_tokens,
                 uint32_t tile0, uint32_t tile1, float *out, size_t out_ld)
{
    switch (w->fmt) {
    case KERN_Q8:
        gemm_KERN_Q8(w, a, n_tokens, tile0, tile1, out, out_ld);
        break;
    case KERN_Q4:
        gemm_KERN_Q4(w, a, n_tokens, tile0, tile1, out, out_ld);
        break;
    case KERN_Q4M:
        gemm_KERN_Q4M(w, a, n_tokens, tile0, tile1, out, out_ld);
        break;
    case KERN_Q5:
        gemm_KERN_Q5(w, a, n_tokens, tile0, tile1, out, out_ld);
        break;
    case KERN_Q5M:
        gemm_KERN_Q5M(w, a, n_tokens, tile0, tile1, out, out_ld);
        break;
    case KERN_Q6:
        gemm_KERN_Q6(w, a, n_tokens, tile0, tile1, out, out_ld);
        break;
    default:
        ops_fgemm(w, a, n_tokens, tile0, tile1, out, out_ld);
        break;
    }
}

const struct kern_ops kern_avx512 = {
    .name = "avx512-vnni",
    .layout = {.tile_rows = 16, .group = 4, .q8_unsigned = true},
    .gemm = gemm,
    OPS_TABLE,
};
