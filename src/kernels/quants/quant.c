/* quant.c - the table of tensor encodings, and decoding every readable type.
 *
 * The order of the float operations is part of the format: it is the one that GGUF tools use, so
 * that values agree bit for bit with theirs. */
#include "kernels/quants/quant.h"

#include <string.h>
#include <strings.h>

#include "kernels/quants/quant_iq.h"

/* Types that were withdrawn from the format keep their rows, so that an error can name them. */
static const struct quant_info infos[QUANT_N_TYPES] = {
    [QUANT_F32] = {"F32", 1, 4, true},
    [QUANT_F16] = {"F16", 1, 2, true},
    [QUANT_Q4_0] = {"Q4_0", 32, 18, true},
    [QUANT_Q4_1] = {"Q4_1", 32, 20, true},
    [4] = {"Q4_2", 16, 10, false},
    [5] = {"Q4_3", 16, 12, false},
    [QUANT_Q5_0] = {"Q5_0", 32, 22, true},
    [QUANT_Q5_1] = {"Q5_1", 32, 24, true},
    [QUANT_Q8_0] = {"Q8_0", 32, 34, true},
    [9] = {"Q8_1", 32, 36, false},
    [QUANT_Q2_K] = {"Q2_K", 256, 84, true},
    [QUANT_Q3_K] = {"Q3_K", 256, 110, true},
    [QUANT_Q4_K] = {"Q4_K", 256, 144, true},
    [QUANT_Q5_K] = {"Q5_K", 256, 176, true},
    [QUANT_Q6_K] = {"Q6_K", 256, 210, true},
    [15] = {"Q8_K", 256, 292, false},
    [QUANT_IQ2_XXS] = {"IQ2_XXS", 256, 66, true},
    [QUANT_IQ2_XS] = {"IQ2_XS", 256, 74, true},
    [QUANT_IQ3_XXS] = {"IQ3_XXS", 256, 98, true},
    [QUANT_IQ1_S] = {"IQ1_S", 256, 50, true},
    [QUANT_IQ4_NL] = {"IQ4_NL", 32, 18, true},
    [QUANT_IQ3_S] = {"IQ3_S", 256, 110, true},
    [QUANT_IQ2_S] = {"IQ2_S", 256, 82, true},
    [QUANT_IQ4_XS] = {"IQ4_XS", 256, 136, true},
    [24] = {"I8", 1, 1, false},
    [25] = {"I16", 1, 2, false},
    [26] = {"I32", 1, 4, false},
    [27] = {"I64", 1, 8, false},
    [28] = {"F64", 1, 8, false},
    [QUANT_IQ1_M] = {"IQ1_M", 256, 56, true},
    [QUANT_BF16] = {"BF16", 1, 2, true},
    [31] = {"Q4_0_4_4", 32, 18, false},
    [32] = {"Q4_0_4_8", 32, 18, false},
    [33] = {"Q4_0_8_8", 32, 18, false},
    [QUANT_TQ1_0] = {"TQ1_0", 256, 54, true},
    [QUANT_TQ2_0] = {"TQ2_0", 256, 66, true},
    [36] = {"IQ4_NL_4_4", 32, 18, false},
    [37] = {"IQ4_NL_4_8", 32, 18, false},
    [38] = {"IQ4_NL_8_8", 32, 18, false},
    [QUANT_MXFP4] = {"MXFP4", 32, 17, true},
    [QUANT_NVFP4] = {"NVFP4", 64, 36, true},
    [41] = {"Q1_0", 128, 18, false},
    [42] = {"Q2_0", 64, 18, false},
};

const struct quant_info *quant_info(uint32_t type)
{
    return type < QUANT_N_TYPES ? &infos[type] : NULL;
}

bool quant_from_name(const char *name, enum quant_type *type)
{
    for (size_t i = 0; i < QUANT_N_TYPES; i++)
        if (infos[i].supported && !strcasecmp(name, infos[i].name)) {
            *type = (enum quant_type)i;
            return true;
        }
    return false;
}

static float half_at(const uint8_t *p)
{
    uint16_t h;
    memcpy(&h, p, sizeof(h));
    return quant_f16_to_f32(h);
}

/* Blocks of 32: a scale (and a minimum), then nibbles; byte j holds values j and j + 16. */

static void block_q4_0(const uint8_t *b, float *y)
{
    float d = half_at(b);
    for (int j = 0; j < 16; j++) {
        y[j] = d * (float)((b[2 + j] & 15) - 8);
        y[j + 16] = d * (float)((b[2 + j] >> 4) - 8);
    }
}

static void block_q4_1(const uint8_t *b, float *y)
{
    float d = half_at(b), m = half_at(b + 2);
    for (int j = 0; j < 16; j++) {
        y[j] = d * (float)(b[4 + j] & 15) + m;
        y[j + 16] = d * (float)(b[4 + j] >> 4) + m;
    }
}

/* Bit i of the 32-bit word in front of the nibbles is the fifth bit of value i. */
static void block_q5_0(const uint8_t *b, float *y)
{
    float d = half_at(b);
    uint32_t high;
    memcpy(&high, b + 2, sizeof(high));
    for (int j = 0; j < 16; j++) {
        int h0 = (int)(high >> j & 1) << 4, h1 = (int)(high >> (j + 16) & 1) << 4;
        y[j] = d * (float)(((b[6 + j] & 15) | h0) - 16);
        y[j + 16] = d * (float)(((b[6 + j] >> 4) | h1) - 16);
    }
}

static void block_q5_1(const uint8_t *b, float *y)
{
    float d = half_at(b), m = half_at(b + 2);
    uint32_t high;
    memcpy(&high, b + 4, sizeof(high));
    for (int j = 0; j < 16; j++) {
        int h0 = (int)(high >> j & 1) << 4, h1 = (int)(high >> (j + 16) & 1) << 4;
        y[j] = d * (float)((b[8 + j] & 15) | h0) + m;
        y[j + 16] = d * (float)((b[8 + j] >> 4) | h1) + m;
    }
}

static void block_q8_0(const uint8_t *b, float *y)
{
    float d = half_at(b);
    for (int j = 0; j < 32; j++)
        y[j] = (float)(int8_t)b[2 + j] * d;
}

/* Super-blocks of 256.  Q2_K and Q3_K: two halves of 128 values share 32 bytes each; two bits at
 * shift 2j are values 32j..32j+31 of the half, and every 16 values have their own scale. */

static void block_q2_k(const uint8_t *b, float *y)
{
    const uint8_t *scales = b, *q = b + 16;
    float d = half_at(b + 80), dmin = half_at(b + 82);

    for (int s = 0; s < 16; s++) {
        float dl = d * (float)(scales[s] & 15), ml = dmin * (float)(scales[s] >> 4);
        const uint8_t *at = q + 32 * (s / 8) + 16 * (s & 1);
        int shift = 2 * (s % 8 / 2);
        for (int l = 0; l < 16; l++)
            *y++ = dl * (float)(at[l] >> shift & 3) - ml;
    }
}

/* Sixteen 6-bit scales in 12 bytes: low nibbles in bytes 0..7, then two high bits each. */
static int q3_k_scale(const uint8_t *p, int s)
{
    int low = s < 8 ? p[s] & 15 : p[s - 8] >> 4;
    return (low | (p[8 + s % 4] >> (2 * (s / 4)) & 3) << 4) - 32;
}

static void block_q3_k(const uint8_t *b, float *y)
{
    const uint8_t *high = b, *q = b + 32, *scales = b + 96;
    float d = half_at(b + 108);

    for (int s = 0; s < 16; s++) {
        float dl = d * (float)q3_k_scale(scales, s);
        const uint8_t *at = q + 32 * (s / 8) + 16 * (s & 1), *h = high + 16 * (s & 1);
        int shift = 2 * (s % 8 / 2), bit = s / 2;
        for (int l = 0; l < 16; l++) /* a clear high bit means minus four */
            *y++ = dl * (float)((at[l] >> shift & 3) - (h[l] >> bit & 1 ? 0 : 4));
    }
}

/* Eight pairs of 6-bit scale and minimum in 12 bytes: whole in bytes 0..7 for the first four; the
 * last four have their low nibbles in bytes 8..11 and their high bits on top of bytes 0..7. */
static void k4_scale_min(const uint8_t *p, int j, int *scale, int *min)
{
    if (j < 4) {
        *scale = p[j] & 63;
        *min = p[j + 4] & 63;
    } else {
        *scale = (p[j + 4] & 15) | (p[j - 4] >> 6) << 4;
        *min = p[j + 4] >> 4 | (p[j] >> 6) << 4;
    }
}

static void block_q4_k(const uint8_t *b, float *y)
{
    const uint8_t *q = b + 16;
    float d = half_at(b), dmin = half_at(b + 2);

    for (int j = 0; j < 8; j++) {
        int sc, m;
        k4_scale_min(b + 4, j, &sc, &m);
        float dl = d * (float)sc, ml = dmin * (float)m;
        const uint8_t *at = q + 32 * (j / 2);
        int shift = 4 * (j & 1);
        for (int l = 0; l < 32; l++)
            *y++ = dl * (float)(at[l] >> shift & 15) - ml;
    }
}

static void block_q5_k(const uint8_t *b, float *y)
{
    const uint8_t *high = b + 16, *q = b + 48;
    float d = half_at(b), dmin = half_at(b + 2);

    for (int j = 0; j < 8; j++) {
        int sc, m;
        k4_scale_min(b + 4, j, &sc, &m);
        float dl = d * (float)sc, ml = dmin * (float)m;
        const uint8_t *at = q + 32 * (j / 2);
        int shift = 4 * (j & 1);
        for (int l = 0; l < 32; l++)
            *y++ = dl * (float)((at[l] >> shift & 15) | (high[l] >> j & 1) << 4) - ml;
    }
}

/* Halves of 128 values: 64 bytes of low nibbles, 32 bytes of two high bits, 8 signed scales. */
static void block_q6_k(const uint8_t *b, float *y)
{
    float d = half_at(b + 208);

    for (int j = 0; j < 8; j++) { /* runs of 32 values */
        int r = j % 4;
        const uint8_t *low = b + 64 * (j / 4) + 32 * (r & 1);
        const uint8_t *high = b + 128 + 32 * (j / 4);
        for (int l = 0; l < 32; l++) {
            int q = (low[l] >> (4 * (r / 2)) & 15) | (high[l] >> (2 * r) & 3) << 4;
            *y++ = d * (float)(int8_t)b[192 + 2 * j + l / 16] * (float)(q - 32);
        }
    }
}

typedef void (*block_fn)(const uint8_t *b, float *y);

static block_fn block_decoder(enum quant_type type)
{
    switch (type) {
    case QUANT_Q4_0:
        return block_q4_0;
    case QUANT_Q4_1:
        return block_q4_1;
    case QUANT_Q5_0:
        return block_q5_0;
    case QUANT_Q5_1:
        return block_q5_1;
    case QUANT_Q8_0:
        return block_q8_0;
    case QUANT_Q2_K:
        return block_q2_k;
    case QUANT_Q3_K:
        return block_q3_k;
    case QUANT_Q4_K:
        return block_q4_k;
    case QUANT_Q5_K:
        return block_q5_k;
    case QUANT_Q6_K:
        return block_q6_k;
    default: /* floats and groups */
        return NULL;
    }
}

static void groups_to_f32(const struct quant_group *g, uint32_t n, float *y)
{
    for (; n > 0; n--, g++)
        for (int i = 0; i < 32; i++)
            *y++ = g->scale[i / 16] * (float)g->q[i];
}

void quant_to_f32(enum quant_type type, const void *src, float *dst, size_t n)
{
    const uint8_t *p = src;
    const struct quant_info *qi = &infos[type];
    const quant_group_fn groups = quant_group_decoder(type);
    block_fn decode = block_decoder(type);

    if (groups) {
        struct quant_group g[8];
        for (; n >= qi->block; n -= qi->block, p += qi->block_bytes, dst += qi->block) {
            groups(p, g);
            groups_to_f32(g, qi->block / 32, dst);
        }
    } else if (decode) {
        for (; n >= qi->block; n -= qi->block, p += qi->block_bytes, dst += qi->block)
            decode(p, dst);
    } else if (type == QUANT_F32) {
        memcpy(dst, src, n * sizeof(*dst));
    } else if (type == QUANT_F16) {
        for (size_t i = 0; i < n; i++)
            dst[i] = half_at(p + 2 * i);
    } else if (type == QUANT_BF16) {
        for (size_t i = 0; i < n; i++) {
            uint16_t h;
            memcpy(&h, p + 2 * i, sizeof(h));
            dst[i] = quant_bf16_to_f32(h);
        }
    }
}
