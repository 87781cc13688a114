/* load_avx512.h - unpacks blocks of weights into AVX-512 registers as unsigned bytes; shared by the
 * sets with tiles of 16 rows and groups of 4 columns. */
#ifndef SHOAL_KERNELS_LOAD_AVX512_H
#define SHOAL_KERNELS_LOAD_AVX512_H

#include <immintrin.h>

#include "kernels/kern.h"

#define AVX512_STREAMS 8 /* weight streams for a single token (kern_ops.streams) */

#define ALWAYS_INLINE inline __attribute__((always_inline))

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

/* One of these vectors: columns 4j..4j+3. */
static ALWAYS_INLINE __m512i load_words(enum kern_fmt fmt, const uint8_t *q, int j)
{
    if (fmt == KERN_Q8)
        return _mm512_load_si512(q + 64 * j);
    __m512i v = _mm512_load_si512(q + 64 * (j & 3));
    if (j >= 4)
        v = _mm512_srli_epi16(v, 4);
    v = _mm512_and_si512(v, _mm512_set1_epi8(15));
    if (fmt == KERN_Q5 || fmt == KERN_Q5M) {
        __mmask64 m = _load_mask64((__mmask64 *)(uintptr_t)(q + 256 + 8 * j));
        v = _mm512_mask_add_epi8(v, m, v, _mm512_set1_epi8(16));
    } else if (fmt == KERN_Q6) {
        __m512i h = _mm512_load_si512(q + 256 + 64 * (j & 1));
        h = j < 2   ? _mm512_slli_epi16(h, 4)
            : j < 4 ? _mm512_slli_epi16(h, 2)
            : j < 6 ? h
                    : _mm512_srli_epi16(h, 2);
        v = _mm512_or_si512(v, _mm512_and_si512(h, _mm512_set1_epi8(0x30)));
    }
    return v;
}

#endif
