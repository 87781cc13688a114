/* quant_encode.c - encoding F32 rows: the small blocks.  Scales come from quant_fit.h; this file
 * decides where the bits go.  Codes are always chosen against the scale as it is stored, not as
 * it was before rounding. */
#include "kernels/quants/quant.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "kernels/quants/quant_encode.h"
#include "kernels/quants/quant_fit.h"
#include "kernels/quants/quant_iq.h"

static uint16_t to_bf16(float f)
{
    uint32_t u;
    memcpy(&u, &f, sizeof(u));
    if ((u & 0x7fffffffu) > 0x7f800000u)
        return (uint16_t)(u >> 16 | 64u); /* quiet: dropping bits must not make infinity of it */
    return (uint16_t)((u + 0x7fffu + (u >> 16 & 1)) >> 16);
}

static void put_nibbles(uint8_t *p, const uint8_t codes[32])
{
    for (int j = 0; j < 16; j++)
        p[j] = (uint8_t)((codes[j] & 15) | (codes[j + 16] & 15) << 4);
}

static void put_fifth_bits(uint8_t *p, const uint8_t codes[32])
{
    uint32_t high = 0;
    for (int i = 0; i < 32; i++)
        high |= (uint32_t)(codes[i] >> 4) << i;
    memcpy(p, &high, sizeof(high));
}

static void encode_q4_0(const float *x, const float *w, uint8_t *b)
{
    uint8_t codes[32];
    float d = quant_encode_half(b, quant_fit_scale(x, w, 32, -8, 7));
    quant_encode_codes(codes, x, 32, d, 0, -8, 7);
    put_nibbles(b + 2, codes);
}

static void encode_q4_1(const float *x, const float *w, uint8_t *b)
{
    uint8_t codes[32];
    float min, d = quant_fit_scale_min(&min, x, w, 32, 15, true);
    d = quant_encode_half(b, d);
    min = quant_encode_half(b + 2, min);
    quant_encode_codes(codes, x, 32, d, min, 0, 15);
    put_nibbles(b + 4, codes);
}

static void encode_q5_0(const float *x, const float *w, uint8_t *b)
{
    uint8_t codes[32];
    float d = quant_encode_half(b, quant_fit_scale(x, w, 32, -16, 15));
    quant_encode_codes(codes, x, 32, d, 0, -16, 15);
    put_fifth_bits(b + 2, codes);
    put_nibbles(b + 6, codes);
}

static void encode_q5_1(const float *x, const float *w, uint8_t *b)
{
    uint8_t codes[32];
    float min, d = quant_fit_scale_min(&min, x, w, 32, 31, true);
    d = quant_encode_half(b, d);
    min = quant_encode_half(b + 2, min);
    quant_encode_codes(codes, x, 32, d, min, 0, 31);
    put_fifth_bits(b + 4, codes);
    put_nibbles(b + 8, codes);
}

/* No search: with 8 bits the largest value decides.  -128 stays unused, so that kernels may negate
 * a code. */
static void encode_q8_0(const float *x, const float *w, uint8_t *b)
{
    float max = 0;
    (void)w;
    for (int j = 0; j < 32; j++)
        max = fmaxf(max, fabsf(x[j]));
    float d = quant_encode_half(b, max / 127), inverse = d > 0 ? 1 / d : 0;
    for (int j = 0; j < 32; j++)
        b[2 + j] = (uint8_t)(int8_t)quant_fit_round(x[j] * inverse, -127, 127);
}

static void encode_iq4_nl(const float *x, const float *w, uint8_t *b)
{
    float levels[16], mids[15];
    uint8_t codes[32];
    for (int k = 0; k < 16; k++)
        levels[k] = (float)quant_iq4_levels[k];
    for (int k = 0; k < 15; k++)
        mids[k] = (levels[k] + levels[k + 1]) * 0.5f;
    float d = quant_encode_half(b, quant_fit_levels(x, w, 32, levels, mids));
    float inverse = d != 0 ? 1 / d : 0;
    for (int i = 0; i < 32; i++)
        codes[i] = (uint8_t)quant_fit_level(x[i] * inverse, mids);
    put_nibbles(b + 2, codes);
}

typedef void (*encode_fn)(const float *x, const float *w, uint8_t *b);

static encode_fn block_encoder(enum quant_type type)
{
    switch (type) {
    case QUANT_Q4_0:
        return encode_q4_0;
    case QUANT_Q4_1:
        return encode_q4_1;
    case QUANT_Q5_0:
        return encode_q5_0;
    case QUANT_Q5_1:
        return encode_q5_1;
    case QUANT_Q8_0:
        return encode_q8_0;
    case QUANT_IQ4_NL:
        return encode_iq4_nl;
    case QUANT_Q4_K:
        return quant_encode_q4_k;
    case QUANT_Q5_K:
        return quant_encode_q5_k;
    case QUANT_Q6_K:
        return quant_encode_q6_k;
    default:
        return NULL;
    }
}

/* Weights of one block with mean 1 and none quite zero, so that no fit meets numbers of extreme
 * size and unimportant values still come out sanely; flat ones where none are given or they say
 * nothing. */
static void block_weights(float *out, const float *weight, uint32_t n)
{
    double sum = 0;
    bool usable = weight;
    for (uint32_t i = 0; usable && i < n; i++) {
        usable = weight[i] >= 0 && weight[i] <= FLT_MAX;
        sum += (double)weight[i];
    }
    usable = usable && sum > 0;
    for (uint32_t i = 0; i < n; i++)
        out[i] = usable ? fmaxf((float)((double)weight[i] * n / sum), 1e-6f) : 1;
}

bool quant_from_f32(enum quant_type type, const float *src, void *dst, size_t n,
                    const float *weight)
{
    uint8_t *p = dst;
    encode_fn encode = block_encoder(type);
    float w[256];

    if (encode) {
        const struct quant_info *qi = quant_info(type);
        size_t whole = n;
        for (; n >= qi->block; n -= qi->block, src += qi->block, p += qi->block_bytes) {
            if (weight || n == whole)
                block_weights(w, weight, qi->block);
            encode(src, w, p);
            if (weight)
                weight += qi->block;
        }
    } else if (type == QUANT_F32) {
        memcpy(dst, src, n * sizeof(*src));
    } else if (type == QUANT_F16) {
        for (size_t i = 0; i < n; i++)
            quant_encode_half(p + 2 * i, src[i]);
    } else if (type == QUANT_BF16) {
        for (size_t i = 0; i < n; i++) {
            uint16_t h = to_bf16(src[i]);
            memcpy(p + 2 * i, &h, sizeof(h));
        }
    } else {
        return false;
    }
    return true;
}
