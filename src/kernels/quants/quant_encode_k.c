/* quant_encode_k.c - encoding F32 rows: super-blocks of 256 values.
 *
 * A super-block holds the scales of its parts as small integers times one (or two) half floats.
 * Each part is fitted alone; then the integers and the half floats are improved in turn on the
 * error that remains after decoding, as long as it falls. */
#include "kernels/quants/quant_encode.h"

#include <math.h>
#include <string.h>

#include "kernels/quants/quant.h"
#include "kernels/quants/quant_fit.h"

#define SUPER 256
#define ROUNDS 3

static int clamp_int(float v, int lo, int hi)
{
    return (int)quant_fit_round(v, (float)lo, (float)hi);
}

/* f rounded to a half, as the file will store it. */
static float as_half(float f)
{
    return quant_f16_to_f32(quant_f32_to_f16(f));
}

/* Q4_K and Q5_K: eight parts of 32 values, x ~ d * scale[j] * code - dmin * min[j]. */
struct k45 {
    float d, dmin;
    int scale[8], min[8]; /* 0..63 */
};

static float k45_part_error(const struct k45 *k, int j, int scale, int min, const float *x,
                            const float *w, float hi)
{
    return quant_fit_error(x + 32 * j, w + 32 * j, 32, k->d * (float)scale, -(k->dmin * (float)min),
                           0, hi);
}

/* Best integers of each part near where they are; returns the error of the whole. */
static float k45_step_integers(struct k45 *k, const float *x, const float *w, float hi)
{
    float total = 0;
    for (int j = 0; j < 8; j++) {
        int s0 = k->scale[j], m0 = k->min[j];
        float best = INFINITY;
        for (int s = s0 > 0 ? s0 - 1 : 0; s <= s0 + 1 && s < 64; s++)
            for (int m = m0 > 0 ? m0 - 1 : 0; m <= m0 + 1 && m < 64; m++) {
                float error = k45_part_error(k, j, s, m, x, w, hi);
                if (error < best) {
                    best = error;
                    k->scale[j] = s;
                    k->min[j] = m;
                }
            }
        total += best;
    }
    return total;
}

/* Best d and dmin for the codes and integers there are. */
static void k45_step_halves(struct k45 *k, const float *x, const float *w, int hi)
{
    double uu = 0, uv = 0, vv = 0, xu = 0, xv = 0; /* x ~ d * u + dmin * v */
    for (int j = 0; j < 8; j++) {
        uint8_t codes[32];
        double v = -k->min[j];
        quant_encode_codes(codes, x + 32 * j, 32, k->d * (float)k->scale[j],
                           -(k->dmin * (float)k->min[j]), 0, hi);
        for (int i = 0; i < 32; i++) {
            double wi = (double)w[32 * j + i], xi = (double)x[32 * j + i];
            double u = k->scale[j] * codes[i];
            uu += wi * u * u;
            uv += wi * u * v;
            vv += wi * v * v;
            xu += wi * xi * u;
            xv += wi * xi * v;
        }
    }
    double det = uu * vv - uv * uv;
    if (det > 1e-9 * uu * vv) {
        k->d = as_half((float)((xu * vv - xv * uv) / det));
        k->dmin = as_half((float)((xv * uu - xu * uv) / det));
    } else if (uu > 0 && vv <= 0) {
        k->d = as_half((float)(xu / uu));
    }
}

static void k45_fit(struct k45 *k, const float *x, const float *w, int hi)
{
    float scale[8], min[8], max_scale = 0, max_min = 0;
    for (int j = 0; j < 8; j++) {
        scale[j] = quant_fit_scale_min(&min[j], x + 32 * j, w + 32 * j, 32, (float)hi, false);
        max_scale = fmaxf(max_scale, scale[j]);
        max_min = fmaxf(max_min, -min[j]);
    }
    k->d = as_half(max_scale / 63);
    k->dmin = as_half(max_min / 63);
    for (int j = 0; j < 8; j++) {
        k->scale[j] = k->d > 0 ? clamp_int(scale[j] / k->d, 0, 63) : 0;
        k->min[j] = k->dmin > 0 ? clamp_int(-min[j] / k->dmin, 0, 63) : 0;
    }
    float best = k45_step_integers(k, x, w, (float)hi);
    for (int round = 0; round < ROUNDS; round++) {
        struct k45 next = *k;
        k45_step_halves(&next, x, w, hi);
        float error = k45_step_integers(&next, x, w, (float)hi);
        if (!(error < best) || next.d < 0 || next.dmin < 0)
            break;
        best = error;
        *k = next;
    }
}

/* d, dmin and the eight 6-bit pairs: 16 bytes. */
static void k45_put_head(const struct k45 *k, uint8_t *b)
{
    quant_encode_half(b, k->d);
    quant_encode_half(b + 2, k->dmin);
    for (int j = 0; j < 4; j++) {
        b[4 + j] = (uint8_t)(k->scale[j] | (k->scale[j + 4] >> 4) << 6);
        b[8 + j] = (uint8_t)(k->min[j] | (k->min[j + 4] >> 4) << 6);
        b[12 + j] = (uint8_t)((k->scale[j + 4] & 15) | (k->min[j + 4] & 15) << 4);
    }
}

static void k45_encode(const float *x, const float *w, uint8_t *b, uint8_t *codes, int hi)
{
    struct k45 k;
    k45_fit(&k, x, w, hi);
    k45_put_head(&k, b);
    for (int j = 0; j < 8; j++)
        quant_encode_codes(codes + 32 * j, x + 32 * j, 32, k.d * (float)k.scale[j],
                           -(k.dmin * (float)k.min[j]), 0, hi);
}

static void put_nibble_pairs(uint8_t *p, const uint8_t *codes)
{
    for (int j = 0; j < 8; j += 2, p += 32)
        for (int l = 0; l < 32; l++)
            p[l] = (uint8_t)((codes[32 * j + l] & 15) | (codes[32 * j + 32 + l] & 15) << 4);
}

void quant_encode_q4_k(const float *x, const float *w, uint8_t *b)
{
    uint8_t codes[SUPER];
    k45_encode(x, w, b, codes, 15);
    put_nibble_pairs(b + 16, codes);
}

void quant_encode_q5_k(const float *x, const float *w, uint8_t *b)
{
    uint8_t codes[SUPER];
    k45_encode(x, w, b, codes, 31);
    memset(b + 16, 0, 32);
    for (int i = 0; i < SUPER; i++)
        b[16 + i % 32] |= (uint8_t)(codes[i] >> 4 << i / 32);
    put_nibble_pairs(b + 48, codes);
}

/* Q6_K: sixteen parts of 16 values, x ~ d * scale[j] * code. */
struct k6 {
    float d;
    int scale[16]; /* -128..127 */
};

static float k6_step_integers(struct k6 *k, const float *x, const float *w)
{
    float total = 0;
    for (int j = 0; j < 16; j++) {
        int s0 = k->scale[j];
        float best = INFINITY;
        for (int s = s0 > -128 ? s0 - 1 : s0; s <= s0 + 1 && s < 128; s++) {
            float error = quant_fit_error(x + 16 * j, w + 16 * j, 16, k->d * (float)s, 0, -32, 31);
            if (error < best) {
                best = error;
                k->scale[j] = s;
            }
        }
        total += best;
    }
    return total;
}

static void k6_step_half(struct k6 *k, const float *x, const float *w)
{
    double uu = 0, xu = 0; /* x ~ d * u */
    for (int j = 0; j < 16; j++) {
        uint8_t codes[16];
        quant_encode_codes(codes, x + 16 * j, 16, k->d * (float)k->scale[j], 0, -32, 31);
        for (int i = 0; i < 16; i++) {
            double wi = (double)w[16 * j + i], u = k->scale[j] * (codes[i] - 32);
            uu += wi * u * u;
            xu += wi * u * (double)x[16 * j + i];
        }
    }
    if (uu > 0)
        k->d = as_half((float)(xu / uu));
}

void quant_encode_q6_k(const float *x, const float *w, uint8_t *b)
{
    float scale[16], max = 0;
    uint8_t codes[SUPER];
    struct k6 k;

    for (int j = 0; j < 16; j++) {
        scale[j] = quant_fit_scale(x + 16 * j, w + 16 * j, 16, -32, 31);
        if (fabsf(scale[j]) > fabsf(max))
            max = scale[j];
    }
    k.d = as_half(max / -128);
    for (int j = 0; j < 16; j++)
        k.scale[j] = k.d != 0 ? clamp_int(scale[j] / k.d, -128, 127) : 0;
    float best = k6_step_integers(&k, x, w);
    for (int round = 0; round < ROUNDS; round++) {
        struct k6 next = k;
        k6_step_half(&next, x, w);
        float error = k6_step_integers(&next, x, w);
        if (!(error < best))
            break;
        best = error;
        k = next;
    }
    for (int j = 0; j < 16; j++) {
        quant_encode_codes(codes + 16 * j, x + 16 * j, 16, k.d * (float)k.scale[j], 0, -32, 31);
        b[192 + j] = (uint8_t)(int8_t)k.scale[j];
    }
    quant_encode_half(b + 208, k.d);
    memset(b, 0, 192);
    for (int i = 0; i < SUPER; i++) { /* the same walk as decoding */
        int j = i / 32, r = j % 4, l = i % 32;
        b[64 * (j / 4) + 32 * (r & 1) + l] |= (uint8_t)((codes[i] & 15) << 4 * (r / 2));
        b[128 + 32 * (j / 4) + l] |= (uint8_t)(codes[i] >> 4 << 2 * r);
    }
}
