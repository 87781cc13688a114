/* quant_half.h - conversions between F32 and the 16-bit floats F16 and BF16.
 *
 * Thread:    pure functions. */
#ifndef SHOAL_KERNELS_QUANTS_QUANT_HALF_H
#define SHOAL_KERNELS_QUANTS_QUANT_HALF_H

#include <stdint.h>
#include <string.h>

static inline float quant_half_bits(uint32_t u)
{
    float f;
    memcpy(&f, &u, sizeof(f));
    return f;
}

static inline float quant_f16_to_f32(uint16_t h)
{
    uint32_t sign = (uint32_t)(h & 0x8000u) << 16;
    uint32_t mag = h & 0x7fffu;

    if (mag >= 0x7c00) /* infinity and NaN, payload and all */
        return quant_half_bits(sign | 0x7f800000u | mag << 13);
    if (mag >= 0x0400)
        return quant_half_bits(sign | ((mag << 13) + ((127u - 15u) << 23)));
    /* Subnormal: the mantissa counts units of 2^-24, and both steps are exact. */
    float f = (float)mag * 0x1p-24f;
    return sign ? -f : f;
}

/* Rounds to nearest, ties to even. */
static inline uint16_t quant_f32_to_f16(float f)
{
    uint32_t u;
    memcpy(&u, &f, sizeof(u));
    uint16_t sign = (uint16_t)(u >> 16 & 0x8000u);
    u &= 0x7fffffffu;

    if (u > 0x7f800000u)
        return sign | 0x7e00;
    if (u >= 0x477ff000u) /* from 65520 on the nearest half is infinity */
        return sign | 0x7c00;
    if (u >= 0x38800000u) { /* normal: rebias, then round the 13 bits that fall away */
        uint32_t r = u - ((127u - 15u) << 23);
        return sign | (uint16_t)((r + 0xfffu + (r >> 13 & 1)) >> 13);
    }
    /* Subnormal: adding 0.5 puts one unit of 2^-24 at the last bit, and the FPU rounds. */
    float shifted = quant_half_bits(u) + 0.5f;
    memcpy(&u, &shifted, sizeof(u));
    return sign | (uint16_t)(u - 0x3f000000u);
}

static inline float quant_bf16_to_f32(uint16_t h)
{
    union {
        uint32_t u;
        float f;
    } v = {(uint32_t)h << 16};
    return v.f;
}

#endif
