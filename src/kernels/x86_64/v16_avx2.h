/* v16_avx2.h - sixteen floats in two ymm registers; see scalar/v16_scalar.h. */
#ifndef SHOAL_KERNELS_V16_AVX2_H
#define SHOAL_KERNELS_V16_AVX2_H

#include <immintrin.h>
#include <stdint.h>

typedef struct {
    __m256 lo, hi;
} v16;

#define V16_NEAREST (_MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC)
#define V16_REGS 8 /* how many v16 fit into the registers; ops_body.h chooses tile sizes by it */

static inline v16 v16_set1(float x)
{
    __m256 v = _mm256_set1_ps(x);
    return (v16){v, v};
}
static inline v16 v16_zero(void)
{
    return (v16){_mm256_setzero_ps(), _mm256_setzero_ps()};
}
static inline v16 v16_load(const float *p)
{
    return (v16){_mm256_loadu_ps(p), _mm256_loadu_ps(p + 8)};
}
/* Mask of lanes first .. first+7 that are below n. */
static inline __m256i v16_lanes(uint32_t n, int first)
{
    __m256i lane =
        _mm256_add_epi32(_mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7), _mm256_set1_epi32(first));
    return _mm256_cmpgt_epi32(_mm256_set1_epi32((int)n), lane);
}
static inline v16 v16_load_n(const float *p, uint32_t n)
{
    return (v16){_mm256_maskload_ps(p, v16_lanes(n, 0)),
                 _mm256_maskload_ps(p + 8, v16_lanes(n, 8))};
}
static inline void v16_store(float *p, v16 a)
{
    _mm256_storeu_ps(p, a.lo);
    _mm256_storeu_ps(p + 8, a.hi);
}
static inline void v16_store_n(float *p, v16 a, uint32_t n)
{
    _mm256_maskstore_ps(p, v16_lanes(n, 0), a.lo);
    _mm256_maskstore_ps(p + 8, v16_lanes(n, 8), a.hi);
}
static inline v16 v16_add(v16 a, v16 b)
{
    return (v16){_mm256_add_ps(a.lo, b.lo), _mm256_add_ps(a.hi, b.hi)};
}
static inline v16 v16_sub(v16 a, v16 b)
{
    return (v16){_mm256_sub_ps(a.lo, b.lo), _mm256_sub_ps(a.hi, b.hi)};
}
static inline v16 v16_mul(v16 a, v16 b)
{
    return (v16){_mm256_mul_ps(a.lo, b.lo), _mm256_mul_ps(a.hi, b.hi)};
}
static inline v16 v16_div(v16 a, v16 b)
{
    return (v16){_mm256_div_ps(a.lo, b.lo), _mm256_div_ps(a.hi, b.hi)};
}
static inline v16 v16_fma(v16 a, v16 b, v16 c)
{
    return (v16){_mm256_fmadd_ps(a.lo, b.lo, c.lo), _mm256_fmadd_ps(a.hi, b.hi, c.hi)};
}
static inline v16 v16_max(v16 a, v16 b)
{
    return (v16){_mm256_max_ps(a.lo, b.lo), _mm256_max_ps(a.hi, b.hi)};
}
static inline v16 v16_min(v16 a, v16 b)
{
    return (v16){_mm256_min_ps(a.lo, b.lo), _mm256_min_ps(a.hi, b.hi)};
}
static inline v16 v16_abs(v16 a)
{
    __m256 sign = _mm256_set1_ps(-0.0f);
    return (v16){_mm256_andnot_ps(sign, a.lo), _mm256_andnot_ps(sign, a.hi)};
}
static inline v16 v16_round(v16 a)
{
    return (v16){_mm256_round_ps(a.lo, V16_NEAREST), _mm256_round_ps(a.hi, V16_NEAREST)};
}
static inline __m256 v16_pow2_half(__m256 n)
{
    __m256i i = _mm256_add_epi32(_mm256_cvttps_epi32(n), _mm256_set1_epi32(127));
    return _mm256_castsi256_ps(_mm256_slli_epi32(i, 23));
}
static inline v16 v16_pow2(v16 n)
{
    return (v16){v16_pow2_half(n.lo), v16_pow2_half(n.hi)};
}
static inline v16 v16_f16(const uint16_t *p)
{
    return (v16){_mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)p)),
                 _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(p + 8)))};
}
static inline __m256 v16_bf16_half(const uint16_t *p)
{
    __m256i w = _mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)p));
    return _mm256_castsi256_ps(_mm256_slli_epi32(w, 16));
}
static inline v16 v16_bf16(const uint16_t *p)
{
    return (v16){v16_bf16_half(p), v16_bf16_half(p + 8)};
}
static inline v16 v16_i8(const int8_t *p)
{
    __m256i lo = _mm256_cvtepi8_epi32(_mm_loadl_epi64((const __m128i *)p));
    __m256i hi = _mm256_cvtepi8_epi32(_mm_loadl_epi64((const __m128i *)(p + 8)));
    return (v16){_mm256_cvtepi32_ps(lo), _mm256_cvtepi32_ps(hi)};
}
static inline void v16_store_f16(uint16_t *p, v16 a)
{
    _mm_storeu_si128((__m128i *)p, _mm256_cvtps_ph(a.lo, V16_NEAREST));
    _mm_storeu_si128((__m128i *)(p + 8), _mm256_cvtps_ph(a.hi, V16_NEAREST));
}
static inline int32_t v16_store_i8(int8_t *p, v16 a)
{
    const __m256i byte = _mm256_set1_epi32(255);
    __m256i lo = _mm256_cvtps_epi32(a.lo), hi = _mm256_cvtps_epi32(a.hi);
    /* packing works within 128-bit lanes, so the quarters are put back in order in between */
    __m256i w = _mm256_packus_epi32(_mm256_and_si256(lo, byte), _mm256_and_si256(hi, byte));
    w = _mm256_permute4x64_epi64(w, 0xd8);
    _mm_storeu_si128((__m128i *)p,
                     _mm_packus_epi16(_mm256_castsi256_si128(w), _mm256_extracti128_si256(w, 1)));
    __m256i s = _mm256_add_epi32(lo, hi);
    __m128i q = _mm_add_epi32(_mm256_castsi256_si128(s), _mm256_extracti128_si256(s, 1));
    q = _mm_add_epi32(q, _mm_shuffle_epi32(q, 0x4e));
    return _mm_cvtsi128_si32(_mm_add_epi32(q, _mm_shuffle_epi32(q, 0xb1)));
}
static inline v16 v16_swap(v16 a)
{
    return (v16){_mm256_permute_ps(a.lo, 0xb1), _mm256_permute_ps(a.hi, 0xb1)};
}
static inline float v16_sum(v16 a)
{
    __m256 h = _mm256_add_ps(a.lo, a.hi);
    __m128 q = _mm_add_ps(_mm256_castps256_ps128(h), _mm256_extractf128_ps(h, 1));
    q = _mm_add_ps(q, _mm_movehl_ps(q, q));
    return _mm_cvtss_f32(_mm_add_ss(q, _mm_shuffle_ps(q, q, 1)));
}
static inline float v16_hmax(v16 a)
{
    __m256 h = _mm256_max_ps(a.lo, a.hi);
    __m128 q = _mm_max_ps(_mm256_castps256_ps128(h), _mm256_extractf128_ps(h, 1));
    q = _mm_max_ps(q, _mm_movehl_ps(q, q));
    return _mm_cvtss_f32(_mm_max_ss(q, _mm_shuffle_ps(q, q, 1)));
}
static inline int32_t v16_dot_i8(const int8_t *a, const int8_t *b, uint32_t n)
{
    __m256i sum = _mm256_setzero_si256();
    for (uint32_t i = 0; i < n; i += 16) {
        __m256i x = _mm256_cvtepi8_epi16(_mm_loadu_si128((const __m128i *)(a + i)));
        __m256i y = _mm256_cvtepi8_epi16(_mm_loadu_si128((const __m128i *)(b + i)));
        sum = _mm256_add_epi32(sum, _mm256_madd_epi16(x, y));
    }
    __m128i q = _mm_add_epi32(_mm256_castsi256_si128(sum), _mm256_extracti128_si256(sum, 1));
    q = _mm_add_epi32(q, _mm_shuffle_epi32(q, 0x4e));
    return _mm_cvtsi128_si32(_mm_add_epi32(q, _mm_shuffle_epi32(q, 0xb1)));
}

#endif
