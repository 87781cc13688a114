/* quant_iq.c - see quant_iq.h.
 *
 * Each function yields the numbers that GGUF tools multiply, factors of two moved between scale
 * and q where that lets q fit fewer bits: such a move changes no bit of the product. */
#include "kernels/quants/quant_iq.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "kernels/quants/quant_half.h"
#include "kernels/quants/quant_iq_points.h"

const int8_t quant_iq4_levels[16] = {-127, -104, -83, -65, -49, -35, -22, -10,
                                     1,    13,   25,  38,  53,  69,  89,  113};

static uint16_t u16_at(const uint8_t *p)
{
    uint16_t v;
    memcpy(&v, p, sizeof(v));
    return v;
}

static uint32_t u32_at(const uint8_t *p)
{
    uint32_t v;
    memcpy(&v, p, sizeof(v));
    return v;
}

static float half_at(const uint8_t *p)
{
    return quant_f16_to_f32(u16_at(p));
}

static void set_scale(struct quant_group *g, float scale)
{
    g->scale[0] = g->scale[1] = scale;
}

/* Sixteen bytes: values j and j + 16 in the low and the high half of byte j. */
static void nibbles(int8_t q[32], const uint8_t *p, const int8_t levels[16])
{
    for (int j = 0; j < 16; j++) {
        q[j] = levels[p[j] & 15];
        q[j + 16] = levels[p[j] >> 4];
    }
}

static void iq4_nl(const uint8_t *b, struct quant_group *out)
{
    set_scale(out, half_at(b));
    nibbles(out->q, b + 2, quant_iq4_levels);
}

/* Eight 6-bit scales: two high bits each in the first two bytes after d, then the low nibbles. */
static void iq4_xs(const uint8_t *b, struct quant_group *out)
{
    const float d = half_at(b);
    const uint32_t high = u16_at(b + 2);
    for (int i = 0; i < 8; i++) {
        const uint32_t low = (uint32_t)b[4 + i / 2] >> (4 * (i & 1)) & 15;
        const int scale = (int)(low | (high >> (2 * i) & 3) << 4) - 32;
        set_scale(&out[i], d * (float)scale);
        nibbles(out[i].q, b + 8 + 16 * i, quant_iq4_levels);
    }
}

/* ---- points of {8, 25, 43}^8 with signs ---------------------------------------------------- */

static void signed_point2(int8_t q[8], uint32_t point, uint32_t signs)
{
    static const int8_t levels[3] = {8, 25, 43};
    for (int j = 0; j < 8; j++, point /= 3)
        q[j] = (int8_t)(signs >> j & 1 ? -levels[point % 3] : levels[point % 3]);
}

/* Seven signs are stored; the eighth makes the number of minus signs even. */
static uint32_t even_signs(uint32_t seven)
{
    return seven | (uint32_t)__builtin_parity(seven) << 7;
}

static float iq2_scale(float d, uint32_t nibble)
{
    return d * (0.5f + (float)nibble) * 0.25f;
}

/* Each 32 values take two words: four list places, then four sets of signs and a 4-bit scale. */
static void iq2_xxs(const uint8_t *b, struct quant_group *out)
{
    const float d = half_at(b);
    b += 2;
    for (int i = 0; i < 8; i++, b += 8) {
        const uint32_t packed = u32_at(b + 4);
        set_scale(&out[i], iq2_scale(d, packed >> 28));
        for (int l = 0; l < 4; l++)
            signed_point2(out[i].q + 8 * l, quant_iq2_xxs_points[b[l]],
                          even_signs(packed >> (7 * l) & 127));
    }
}

static void iq2_scales(float d, const uint8_t *nibble_pairs, struct quant_group *out)
{
    for (int i = 0; i < 8; i++) {
        out[i].scale[0] = iq2_scale(d, nibble_pairs[i] & 15u);
        out[i].scale[1] = iq2_scale(d, (uint32_t)nibble_pairs[i] >> 4);
    }
}

/* Points of 9 bits with 7 signs on top of each. */
static void iq2_xs(const uint8_t *b, struct quant_group *out)
{
    iq2_scales(half_at(b), b + 66, out);
    for (int p = 0; p < 32; p++) {
        const uint32_t packed = u16_at(b + 2 + 2 * p);
        signed_point2(out[p / 4].q + p % 4 * 8, quant_iq2_xs_points[packed & 511],
                      even_signs(packed >> 9));
    }
}

/* Points of 10 bits, the high two apart, and all eight signs. */
static void iq2_s(const uint8_t *b, struct quant_group *out)
{
    const uint8_t *low = b + 2, *signs = b + 34, *high = b + 66;
    iq2_scales(half_at(b), b + 74, out);
    for (int p = 0; p < 32; p++) {
        const uint32_t at = low[p] | (uint32_t)(high[p / 4] >> (2 * (p % 4)) & 3) << 8;
        signed_point2(out[p / 4].q + p % 4 * 8, quant_iq2_s_points[at], signs[p]);
    }
}

/* ---- points of four magnitudes with signs -------------------------------------------------- */

static void signed_point3(int8_t q[4], const int8_t levels[8], uint32_t point, uint32_t signs)
{
    for (int j = 0; j < 4; j++, point >>= 3)
        q[j] = (int8_t)(signs >> j & 1 ? -levels[point & 7] : levels[point & 7]);
}

/* 64 list places, then a word for each 32 values as in IQ2_XXS.  The format's magnitudes are
 * twice those here and its scale is half. */
static void iq3_xxs(const uint8_t *b, struct quant_group *out)
{
    static const int8_t levels[8] = {2, 6, 10, 14, 18, 22, 26, 31};
    const float d = half_at(b);
    const uint8_t *places = b + 2;
    for (int i = 0; i < 8; i++) {
        const uint32_t packed = u32_at(b + 66 + 4 * i);
        set_scale(&out[i], d * (0.5f + (float)(packed >> 28)));
        for (int l = 0; l < 8; l++) {
            const uint32_t signs = even_signs(packed >> (7 * (l / 2)) & 127) >> (l % 2 * 4);
            signed_point3(out[i].q + 4 * l, levels, quant_iq3_xxs_points[*places++], signs);
        }
    }
}

/* Points of 9 bits, the highest apart, all signs, and a 4-bit scale for each 32 values. */
static void iq3_s(const uint8_t *b, struct quant_group *out)
{
    static const int8_t levels[8] = {1, 3, 5, 7, 9, 11, 13, 15};
    const uint8_t *low = b + 2, *high = b + 66, *signs = b + 74, *scales = b + 106;
    const float d = half_at(b);
    for (int i = 0; i < 8; i++) {
        set_scale(&out[i], d * (float)(1 + 2 * (scales[i / 2] >> (4 * (i & 1)) & 15)));
        for (int l = 0; l < 8; l++) {
            const uint32_t at = low[8 * i + l] | (uint32_t)(high[i] >> l & 1) << 8;
            signed_point3(out[i].q + 4 * l, levels, quant_iq3_s_points[at],
                          (uint32_t)signs[4 * i + l / 2] >> (l % 2 * 4));
        }
    }
}

/* ---- points of {-1, 0, 1}^8, moved by an eighth up or down --------------------------------- */

/* The values times 8. */
static void moved_point(int8_t q[8], uint32_t point, bool down)
{
    for (int j = 0; j < 8; j++, point /= 3)
        q[j] = (int8_t)(8 * ((int)(point % 3) - 1) + (down ? -1 : 1));
}

/* For each 32 values 16 bits: the high bits of four places, a 3-bit scale, the direction. */
static void iq1_s(const uint8_t *b, struct quant_group *out)
{
    const float d = half_at(b);
    for (int i = 0; i < 8; i++) {
        const uint32_t high = u16_at(b + 34 + 2 * i);
        set_scale(&out[i], d * (float)(2 * (high >> 12 & 7) + 1) * 0.125f);
        for (int l = 0; l < 4; l++)
            moved_point(out[i].q + 8 * l,
                        quant_iq1_points[b[2 + 4 * i + l] | (high >> (3 * l) & 7) << 8],
                        high >> 15);
    }
}

float quant_iq1_m_scale(const uint8_t *b)
{
    uint32_t h = 0;
    for (int i = 0; i < 4; i++)
        h |= (uint32_t)u16_at(b + 48 + 2 * i) >> 12 << (4 * i);
    return quant_f16_to_f32((uint16_t)h);
}

/* A nibble for each 8 values: the high bits of the place and the direction; scales of 3 bits. */
static void iq1_m(const uint8_t *b, struct quant_group *out)
{
    const float d = quant_iq1_m_scale(b);
    for (int s = 0; s < 16; s++) {
        const uint32_t scale = (uint32_t)u16_at(b + 48 + s / 4 * 2) >> (3 * (s % 4)) & 7;
        out[s / 2].scale[s & 1] = d * (float)(2 * scale + 1) * 0.125f;
    }
    for (int p = 0; p < 32; p++) {
        const uint32_t high = (uint32_t)b[32 + p / 2] >> (4 * (p & 1)) & 15;
        moved_point(out[p / 4].q + p % 4 * 8, quant_iq1_points[b[p] | (high & 7) << 8], high >> 3);
    }
}

/* ---- three levels -------------------------------------------------------------------------- */

/* n_bytes bytes of n digits each, the highest digit of every byte first.  A byte is a fraction of
 * 256 in base 3: times three, its overflow is the next digit. */
static int8_t *base3(int8_t *q, const uint8_t *p, int n_bytes, int n)
{
    uint32_t power = 1;
    for (int digit = 0; digit < n; digit++, power *= 3)
        for (int i = 0; i < n_bytes; i++)
            *q++ = (int8_t)((int)((uint8_t)(p[i] * power) * 3u >> 8) - 1);
    return q;
}

static void tq1_0(const uint8_t *b, struct quant_group *out)
{
    int8_t q[256];
    int8_t *next = base3(q, b, 32, 5);
    next = base3(next, b + 32, 16, 5);
    (void)base3(next, b + 48, 4, 4);
    for (int i = 0; i < 8; i++) {
        set_scale(&out[i], half_at(b + 52));
        memcpy(out[i].q, q + 32 * i, 32);
    }
}

static void tq2_0(const uint8_t *b, struct quant_group *out)
{
    for (int i = 0; i < 8; i++) {
        set_scale(&out[i], half_at(b + 64));
        for (int j = 0; j < 32; j++)
            out[i].q[j] = (int8_t)((b[32 * (i / 4) + j] >> (2 * (i % 4)) & 3) - 1);
    }
}

/* ---- four-bit floats ----------------------------------------------------------------------- */

/* Twice the values of E2M1. */
static const int8_t fp4_levels[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};

float quant_mxfp4_scale(uint8_t exponent)
{
    const uint32_t bits = exponent < 2 ? 0x00200000u << exponent : (exponent - 1u) << 23;
    float scale;
    memcpy(&scale, &bits, sizeof(scale));
    return scale;
}

static void mxfp4(const uint8_t *b, struct quant_group *out)
{
    set_scale(out, quant_mxfp4_scale(b[0]));
    nibbles(out->q, b + 1, fp4_levels);
}

/* Half of an unsigned E4M3; 0x7f, which would not be a number, counts as 0. */
static float nvfp4_scale(uint8_t x)
{
    const uint32_t exponent = x >> 3 & 15u, fraction = x & 7u;
    if (x == 0x7f)
        return 0.0f;
    if (exponent == 0)
        return (float)fraction * 0x1p-10f;
    const uint32_t bits = (exponent + 127 - 8) << 23 | fraction << 20;
    float scale;
    memcpy(&scale, &bits, sizeof(scale));
    return scale;
}

/* Four runs of 16 values, each with its scale in front and its nibbles j and j + 8 in a byte. */
static void nvfp4(const uint8_t *b, struct quant_group *out)
{
    for (int s = 0; s < 4; s++) {
        int8_t *q = out[s / 2].q + 16 * (s & 1);
        out[s / 2].scale[s & 1] = nvfp4_scale(b[s]);
        for (int j = 0; j < 8; j++) {
            q[j] = fp4_levels[b[4 + 8 * s + j] & 15];
            q[j + 8] = fp4_levels[b[4 + 8 * s + j] >> 4];
        }
    }
}

quant_group_fn quant_group_decoder(enum quant_type type)
{
    static const quant_group_fn decoders[QUANT_N_TYPES] = {
        [QUANT_IQ1_S] = iq1_s,   [QUANT_IQ1_M] = iq1_m,   [QUANT_IQ2_XXS] = iq2_xxs,
        [QUANT_IQ2_XS] = iq2_xs, [QUANT_IQ2_S] = iq2_s,   [QUANT_IQ3_XXS] = iq3_xxs,
        [QUANT_IQ3_S] = iq3_s,   [QUANT_IQ4_NL] = iq4_nl, [QUANT_IQ4_XS] = iq4_xs,
        [QUANT_TQ1_0] = tq1_0,   [QUANT_TQ2_0] = tq2_0,   [QUANT_MXFP4] = mxfp4,
        [QUANT_NVFP4] = nvfp4,
    };
    return (unsigned)type < QUANT_N_TYPES ? decoders[type] : NULL;
}
