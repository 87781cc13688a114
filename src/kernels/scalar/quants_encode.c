/* quants_encode.c - encoding F32 rows. */
#include "kernels/quants.h"

#include <math.h>
#include <string.h>

static void put_half(uint8_t *p, float f)
{
    uint16_t h = quant_f32_to_f16(f);
    memcpy(p, &h, sizeof(h));
}

static uint16_t to_bf16(float f)
{
    uint32_t u;
    memcpy(&u, &f, sizeof(u));
    if ((u & 0x7fffffffu) > 0x7f800000u)
        return (uint16_t)(u >> 16 | 64u); /* quiet: dropping bits must not make infinity of it */
    return (uint16_t)((u + 0x7fffu + (u >> 16 & 1)) >> 16);
}

static void encode_q8_0(const float *x, uint8_t *b)
{
    float max = 0;
    for (int j = 0; j < 32; j++)
        max = fmaxf(max, fabsf(x[j]));
    float d = max / 127, inverse = d > 0 ? 1 / d : 0;
    put_half(b, d);
    for (int j = 0; j < 32; j++)
        b[2 + j] = (uint8_t)(int8_t)roundf(x[j] * inverse);
}

bool quant_from_f32(enum quant_type type, const float *src, void *dst, size_t n,
                    const float *weight)
{
    uint8_t *p = dst;

    (void)weight;
    switch (type) {
    case QUANT_F32:
        memcpy(dst, src, n * sizeof(*src));
        return true;
    case QUANT_F16:
        for (size_t i = 0; i < n; i++)
            put_half(p + 2 * i, src[i]);
        return true;
    case QUANT_BF16:
        for (size_t i = 0; i < n; i++) {
            uint16_t h = to_bf16(src[i]);
            memcpy(p + 2 * i, &h, sizeof(h));
        }
        return true;
    case QUANT_Q8_0:
        for (; n >= 32; n -= 32, src += 32, p += 34)
            encode_q8_0(src, p);
        return true;
    default:
        return false;
    }
}
