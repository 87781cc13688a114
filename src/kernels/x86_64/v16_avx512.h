/* v16_avx512.h - sixteen floats in one zmm register; see scalar/v16_scalar.h. */
#ifndef SHOAL_KERNELS_V16_AVX512_H
#define SHOAL_KERNELS_V16_AVX512_H

#include <immintrin.h>
#include <stdint.h>

typedef __m512 v16;

static inline v16 v16_set1(float x)
{
    return _mm512_set1_ps(x);
}
static inline v16 v16_zero(void)
{
    return _mm512_setzero_ps();
}
static inline v16 v16_load(const float *p)
{
    return _mm512_loadu_ps(p);
}
static inline v16 v16_load_n(const float *p, uint32_t n)
{
    return _mm512_maskz_loadu_ps((__mmask16)((1u << n) - 1), p);
}
static inline void v16_store(float *p, v16 a)
{
    _mm512_storeu_ps(p, a);
}
static inline void v16_store_n(float *p, v16 a, uint32_t n)
{
    _mm512_mask_storeu_ps(p, (__mmask16)((1u << n) - 1), a);
}
static inline v16 v16_add(v16 a, v16 b)
{
    return _mm512_add_ps(a, b);
}
static inline v16 v16_sub(v16 a, v16 b)
{
    return _mm512_sub_ps(a, b);
}
static inline v16 v16_mul(v16 a, v16 b)
{
    return _mm512_mul_ps(a, b);
}
static inline v16 v16_div(v16 a, v16 b)
{
    return _mm512_div_ps(a, b);
}
static inline v16 v16_fma(v16 a, v16 b, v16 c)
{
    return _mm512_fmadd_ps(a, b, c);
}
static inline v16 v16_max(v16 a, v16 b)
{
    return _mm512_max_ps(a, b);
}
static inline v16 v16_min(v16 a, v16 b)
{
    return _mm512_min_ps(a, b);
}
static inline v16 v16_abs(v16 a)
{
    return _mm512_abs_ps(a);
}
static inline v16 v16_round(v16 a)
{
    return _mm512_roundscale_ps(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}
static inline v16 v16_pow2(v16 n)
{
    __m512i i = _mm512_add_epi32(_mm512_cvttps_epi32(n), _mm512_set1_epi32(127));
    return _mm512_castsi512_ps(_mm512_slli_epi32(i, 23));
}
static inline v16 v16_f16(const uint16_t *p)
{
    return _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)p));
}
static inline v16 v16_bf16(const uint16_t *p)
{
    __m512i w = _mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)p));
    return _mm512_castsi512_ps(_mm512_slli_epi32(w, 16));
}
static inline v16 v16_i8(const int8_t *p)
{
    return _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128((const __m128i *)p)));
}
static inline void v16_store_f16(uint16_t *p, v16 a)
{
    _mm256_storeu_si256((__m256i *)p,
                        _mm512_cvtps_ph(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
}
static inline int32_t v16_store_i8(int8_t *p, v16 a)
{
    __m512i w = _mm512_cvtps_epi32(a);
    _mm_storeu_si128((__m128i *)p, _mm512_cvtepi32_epi8(w));
    return _mm512_reduce_add_epi32(w);
}
#define V16_STORE_BLOCK 1 /* faster than two v16_store_i8 */
static inline void v16_store_block(int8_t *p, v16 lo, v16 hi, int32_t *sums)
{
    __m128i a = _mm512_cvtepi32_epi8(_mm512_cvtps_epi32(lo));
    __m128i b = _mm512_cvtepi32_epi8(_mm512_cvtps_epi32(hi));
    __m256i q = _mm256_set_m128i(b, a);
    _mm256_storeu_si256((__m256i *)p, q);
    __m256i s = _mm256_dpbusd_epi32(_mm256_setzero_si256(), _mm256_set1_epi8(1), q);
    s = _mm256_add_epi32(s, _mm256_shuffle_epi32(s, 0x4e));
    s = _mm256_add_epi32(s, _mm256_shuffle_epi32(s, 0xb1));
    sums[0] = _mm256_extract_epi32(s, 0);
    sums[1] = _mm256_extract_epi32(s, 4);
}
static inline v16 v16_swap(v16 a)
{
    return _mm512_permute_ps(a, 0xb1);
}
static inline float v16_sum(v16 a)
{
    __m256 h = _mm256_add_ps(_mm512_castps512_ps256(a), _mm512_extractf32x8_ps(a, 1));
    __m128 q = _mm_add_ps(_mm256_castps256_ps128(h), _mm256_extractf128_ps(h, 1));
    q = _mm_add_ps(q, _mm_movehl_ps(q, q));
    return _mm_cvtss_f32(_mm_add_ss(q, _mm_shuffle_ps(q, q, 1)));
}
static inline float v16_hmax(v16 a)
{
    return _mm512_reduce_max_ps(a);
}
static inline int32_t v16_dot_i8(const int8_t *a, const int8_t *b, uint32_t n)
{
    __m512i sum = _mm512_setzero_si512();
    for (uint32_t i = 0; i < n; i += 32) {
        __m512i x = _mm512_cvtepi8_epi16(_mm256_loadu_si256((const __m256i *)(a + i)));
        __m512i y = _mm512_cvtepi8_epi16(_mm256_loadu_si256((const __m256i *)(b + i)));
        sum = _mm512_dpwssd_epi32(sum, x, y);
    }
    return _mm512_reduce_add_epi32(sum);
}

#endif
