/* tiles.c - see tiles.h; kern.h has the layouts.
 *
 * Every encoding first becomes tiles_blocks (numbers as they are in the file, no rounding, but for
 * products of scales, which round to F16, and Q2_K, IQ2_XS and IQ2_S, which are requantized to 8
 * bits); then one writer places them for any tile height. */
#include "kernels/tiles.h"

#include <math.h>
#include <string.h>

#include "kernels/quants/quant_iq.h"

static const struct {
    const char *name;
    uint8_t quant_bytes; /* per row and block of 32 */
} fmts[KERN_N_FMTS] = {
    [KERN_F32] = {"f32", 128}, [KERN_F16] = {"f16", 64}, [KERN_BF16] = {"bf16", 64},
    [KERN_Q8] = {"q8", 32},    [KERN_Q4] = {"q4", 16},   [KERN_Q4M] = {"q4m", 16},
    [KERN_Q5] = {"q5", 20},    [KERN_Q5M] = {"q5m", 20}, [KERN_Q6] = {"q6", 24},
    [KERN_Q8W] = {"q8w", 32},
};

const char *tiles_fmt_name(enum kern_fmt fmt)
{
    return fmts[fmt].name;
}

uint32_t tiles_block_quant_bytes(enum kern_fmt fmt)
{
    return fmts[fmt].quant_bytes;
}

enum kern_fmt tiles_fmt_of(enum quant_type type)
{
    switch (type) {
    case QUANT_F32:
        return KERN_F32;
    case QUANT_F16:
        return KERN_F16;
    case QUANT_BF16:
        return KERN_BF16;
    case QUANT_Q4_0:
        return KERN_Q4;
    case QUANT_Q4_1:
    case QUANT_Q4_K:
        return KERN_Q4M;
    case QUANT_Q5_0:
        return KERN_Q5;
    case QUANT_Q5_1:
    case QUANT_Q5_K:
        return KERN_Q5M;
    case QUANT_Q6_K:
        return KERN_Q6;
    case QUANT_TQ1_0: /* -1..2 */
    case QUANT_TQ2_0:
        return KERN_Q4;
    case QUANT_IQ3_S: /* -15..15 */
    case QUANT_IQ1_S: /* -9..9 */
    case QUANT_MXFP4: /* -12..12 */
        return KERN_Q5;
    case QUANT_IQ3_XXS: /* -31..31 */
    case QUANT_IQ1_M:   /* as IQ1_S and MXFP4, but a scale for 16 columns */
    case QUANT_NVFP4:
        return KERN_Q6;
    default: /* Q8_0; Q3_K, IQ4_NL, IQ4_XS, IQ2_XXS: their products fit 8 bits; those that do not
              * (Q2_K, IQ2_XS, IQ2_S) are rounded */
        return KERN_Q8;
    }
}

static size_t pad64(size_t n)
{
    return (n + 63) / 64 * 64;
}

struct tiles_map tiles_map(const struct kern_layout *l, enum kern_fmt fmt, uint32_t n_cols)
{
    struct tiles_map m = {0, 0, 0};
    size_t rows = l->tile_rows, blocks = n_cols / 32;
    if (kern_fmt_is_float(fmt)) {
        m.bytes = pad64(rows * n_cols * (fmt == KERN_F32 ? 4 : 2));
        return m;
    }
    if (fmt == KERN_Q8W) {
        m.mins = m.quants = pad64(rows * (n_cols / KERN_WIDE) * 2);
        m.bytes = m.quants + pad64(rows * n_cols);
        return m;
    }
    m.mins = pad64(blocks * rows * 2 * (fmt == KERN_Q6 ? 2 : 1));
    m.quants = m.mins + (tiles_fmt_has_min(fmt) ? pad64(blocks * rows * 2) : 0);
    m.bytes = m.quants + pad64(blocks * rows * fmts[fmt].quant_bytes);
    return m;
}

size_t tiles_bytes(const struct kern_layout *l, enum kern_fmt fmt, uint32_t n_cols)
{
    const uint32_t whole = kern_fmt_is_float(fmt) ? 1 : fmt == KERN_Q8W ? 64 : 32;
    if (n_cols == 0 || n_cols % whole != 0 || (fmt == KERN_Q8W && n_cols > KERN_WIDE_MAX))
        return 0;
    return tiles_map(l, fmt, n_cols).bytes;
}

/* ---- encodings to blocks ------------------------------------------------------------------- */

static float f16_at(const uint8_t *p)
{
    uint16_t h;
    memcpy(&h, p, 2);
    return quant_f16_to_f32(h);
}

static uint16_t u16_at(const uint8_t *p)
{
    uint16_t h;
    memcpy(&h, p, 2);
    return h;
}

static void nibbles(uint8_t *q, const uint8_t *p)
{
    for (int i = 0; i < 16; i++) {
        q[i] = p[i] & 15;
        q[i + 16] = p[i] >> 4;
    }
}

static void fifth_bits(uint8_t *q, const uint8_t *p)
{
    uint32_t bits;
    memcpy(&bits, p, 4);
    for (int i = 0; i < 32; i++)
        q[i] |= (uint8_t)((bits >> i & 1) << 4);
}

/* The 6-bit scale and min number j (0..7) of a Q4_K or Q5_K superblock. */
static void k_scale(const uint8_t *s, int j, uint32_t *sc, uint32_t *m)
{
    if (j < 4) {
        *sc = s[j] & 63;
        *m = s[j + 4] & 63;
    } else {
        *sc = (s[j + 4] & 15u) | (uint32_t)(s[j - 4] >> 6) << 4;
        *m = (uint32_t)(s[j + 4] >> 4) | (uint32_t)(s[j] >> 6) << 4;
    }
}

/* Q4_K and Q5_K: value = d*sc * q - dmin*m, eight blocks of 32. */
static void k45_blocks(const uint8_t *p, bool five, float inv_mul, struct tiles_block *out)
{
    float d = f16_at(p), dmin = f16_at(p + 2);
    const uint8_t *scales = p + 4, *high = p + 16, *qs = p + (five ? 48 : 16);
    for (int j = 0; j < 8; j++) {
        uint32_t sc, m;
        k_scale(scales, j, &sc, &m);
        out[j].scale[0] = quant_f32_to_f16(d * (float)sc * inv_mul);
        out[j].min = quant_f32_to_f16(-(dmin * (float)m) * inv_mul);
        for (int i = 0; i < 32; i++) {
            uint8_t b = qs[(j / 2) * 32 + i];
            out[j].q[i] = (uint8_t)(j % 2 ? b >> 4 : b & 15);
            if (five)
                out[j].q[i] |= (uint8_t)((high[i] >> j & 1) << 4);
        }
    }
}

static void q6k_blocks(const uint8_t *p, float inv_mul, struct tiles_block *out)
{
    const uint8_t *ql = p, *qh = p + 128;
    const int8_t *sc = (const int8_t *)p + 192;
    float d = f16_at(p + 208);
    for (int half = 0; half < 2; half++, ql += 64, qh += 32, sc += 8)
        for (int k = 0; k < 4; k++) { /* columns half*128 + k*32 .. */
            struct tiles_block *b = &out[half * 4 + k];
            for (int i = 0; i < 32; i++) {
                uint32_t low = ql[(k & 1) * 32 + i] >> (k >= 2 ? 4 : 0) & 15u;
                b->q[i] = (uint8_t)(low | (uint32_t)(qh[i] >> (2 * k) & 3) << 4);
            }
            for (int h = 0; h < 2; h++)
                b->scale[h] = quant_f32_to_f16(d * (float)sc[2 * k + h] * inv_mul);
        }
}

/* Q3_K: scale (6 bits, -32..31) times q (-4..3) is a whole number in int8: one scale d a block. */
static void q3k_blocks(const uint8_t *p, struct tiles_block *out)
{
    const uint8_t *hmask = p, *qs = p + 32, *packed = p + 96;
    uint16_t d = u16_at(p + 108);
    for (int i = 0; i < 256; i++) {
        int sub = i / 16;
        uint32_t low = sub < 8 ? packed[sub] & 15u : (uint32_t)packed[sub - 8] >> 4;
        uint32_t high = (uint32_t)packed[8 + sub % 4] >> (2 * (sub / 4)) & 3u;
        int scale = (int)(low | high << 4) - 32;
        int half = i / 128, k = i % 128 / 32, c = i % 32;
        int q = (qs[half * 32 + c] >> (2 * k) & 3) - (hmask[c] >> (half * 4 + k) & 1 ? 0 : 4);
        int v = scale * q + 128; /* only -32 * -4 leaves the range, by one */
        out[i / 32].q[c] = (uint8_t)(v > 255 ? 255 : v);
    }
    for (int b = 0; b < 8; b++)
        out[b].scale[0] = d;
}

/* Any encoding, rounded to 8 bits per block. */
static void requantize(const float *x, float inv_mul, struct tiles_block *out)
{
    float amax = 0.0f;
    for (int i = 0; i < 32; i++)
        amax = fabsf(x[i]) > amax ? fabsf(x[i]) : amax;
    out->scale[0] = quant_f32_to_f16(amax / 127.0f * inv_mul);
    float scale = quant_f16_to_f32(out->scale[0]) / inv_mul;
    for (int i = 0; i < 32; i++) {
        long v = scale > 0.0f ? lrintf(x[i] / scale) : 0;
        out->q[i] = (uint8_t)((v > 127 ? 127 : v < -127 ? -127 : v) + 128);
    }
}

/* Copies the numbers of a group; two scales where the format has room for one are rounded. */
static void group_block(enum kern_fmt fmt, const struct quant_group *g, float inv_mul,
                        struct tiles_block *out)
{
    if (fmt != KERN_Q6 && g->scale[0] != g->scale[1]) {
        float x[32];
        for (int i = 0; i < 32; i++)
            x[i] = g->scale[i / 16] * (float)g->q[i];
        requantize(x, inv_mul, out);
        return;
    }
    for (int h = 0; h < 2; h++)
        out->scale[h] = quant_f32_to_f16(g->scale[h] * inv_mul);
    for (int i = 0; i < 32; i++)
        out->q[i] = (uint8_t)(g->q[i] + tiles_fmt_offset(fmt));
}

void tiles_row_blocks(enum quant_type type, const void *row, uint32_t n_cols, float mul,
                      struct tiles_block *out, float *work)
{
    const struct quant_info *qi = quant_info(type);
    const uint8_t *p = row;
    const float inv = 1.0f / mul; /* exact: a power of two */
    const quant_group_fn groups = quant_group_decoder(type);
    struct quant_group g[8];
    memset(out, 0, n_cols / 32 * sizeof(*out));
    for (uint32_t c = 0; c < n_cols; c += qi->block, p += qi->block_bytes, out += qi->block / 32) {
        switch (type) {
        case QUANT_Q8_0:
            out->scale[0] = u16_at(p);
            for (int i = 0; i < 32; i++)
                out->q[i] = p[2 + i] ^ 0x80;
            break;
        case QUANT_Q4_0:
            out->scale[0] = u16_at(p);
            nibbles(out->q, p + 2);
            break;
        case QUANT_Q4_1:
            out->scale[0] = u16_at(p);
            out->min = u16_at(p + 2);
            nibbles(out->q, p + 4);
            break;
        case QUANT_Q5_0:
            out->scale[0] = u16_at(p);
            nibbles(out->q, p + 6);
            fifth_bits(out->q, p + 2);
            break;
        case QUANT_Q5_1:
            out->scale[0] = u16_at(p);
            out->min = u16_at(p + 2);
            nibbles(out->q, p + 8);
            fifth_bits(out->q, p + 4);
            break;
        case QUANT_Q4_K:
        case QUANT_Q5_K:
            k45_blocks(p, type == QUANT_Q5_K, inv, out);
            break;
        case QUANT_Q6_K:
            q6k_blocks(p, inv, out);
            break;
        case QUANT_Q3_K:
            q3k_blocks(p, out);
            break;
        default:
            if (groups) {
                groups(p, g);
                for (uint32_t b = 0; b < qi->block / 32; b++)
                    group_block(tiles_fmt_of(type), &g[b], inv, &out[b]);
                break;
            }
            quant_to_f32(type, p, work, qi->block);
            for (uint32_t b = 0; b < qi->block / 32; b++)
                requantize(work + b * 32, inv, &out[b]);
            break;
        }
    }
}

/* Scales that are products, or do not fit F16 as they are. */
static bool has_products(enum quant_type type)
{
    static const bool has[QUANT_N_TYPES] = {
        [QUANT_Q2_K] = true,  [QUANT_Q4_K] = true,    [QUANT_Q5_K] = true,    [QUANT_Q6_K] = true,
        [QUANT_IQ1_S] = true, [QUANT_IQ1_M] = true,   [QUANT_IQ2_XXS] = true, [QUANT_IQ2_XS] = true,
        [QUANT_IQ2_S] = true, [QUANT_IQ3_XXS] = true, [QUANT_IQ3_S] = true,   [QUANT_IQ4_XS] = true,
        [QUANT_MXFP4] = true};
    return has[type];
}

/* Of tiles_mul: its reciprocal stays a number.  Only scales of MXFP4 can be so small. */
enum { MUL_MIN_EXP = -100 };

/* Bounds of |scale| and |min| over one source block. */
static float block_scale_bound(enum quant_type type, const uint8_t *p)
{
    float d, dmin;
    switch (type) {
    case QUANT_Q4_K:
    case QUANT_Q5_K:
        d = fabsf(f16_at(p));
        dmin = fabsf(f16_at(p + 2));
        return 63.0f * (d > dmin ? d : dmin);
    case QUANT_Q6_K:
        return 128.0f * fabsf(f16_at(p + 208));
    case QUANT_IQ4_XS:
    case QUANT_IQ3_S:
        return 32.0f * fabsf(f16_at(p));
    case QUANT_IQ3_XXS:
        return 16.0f * fabsf(f16_at(p));
    case QUANT_IQ2_XXS:
    case QUANT_IQ2_XS:
    case QUANT_IQ2_S:
        return 4.0f * fabsf(f16_at(p));
    case QUANT_IQ1_S:
        return 2.0f * fabsf(f16_at(p));
    case QUANT_IQ1_M:
        return 2.0f * fabsf(quant_iq1_m_scale(p));
    case QUANT_MXFP4:
        return quant_mxfp4_scale(p[0]);
    case QUANT_Q2_K:
        d = fabsf(f16_at(p + 80));
        dmin = fabsf(f16_at(p + 82));
        return (45.0f * d + 15.0f * dmin) / 127.0f;
    default:
        return 0.0f; /* scales are copied */
    }
}

float tiles_mul(enum quant_type type, const void *src, uint32_t n_rows, uint32_t n_cols)
{
    const struct quant_info *qi = quant_info(type);
    const uint8_t *p = src;
    float max = 0.0f;
    if (has_products(type))
        for (size_t i = 0, n = (size_t)n_rows * (n_cols / qi->block); i < n; i++) {
            float b = block_scale_bound(type, p + i * qi->block_bytes);
            max = b > max && b < INFINITY ? b : max;
        }
    if (!(max > 0.0f))
        return 1.0f;
    int exp;
    (void)frexpf(max, &exp); /* max < 2^exp */
    return ldexpf(1.0f, exp - 15 > MUL_MIN_EXP ? exp - 15 : MUL_MIN_EXP);
}

/* ---- blocks to tiles ----------------------------------------------------------------------- */

static void put_q8_block(const struct kern_layout *l, const struct tiles_block *blk, uint32_t row,
                         uint8_t *q)
{
    const uint32_t g = l->group;
    uint64_t words[4], flip = l->q8_unsigned ? 0 : 0x8080808080808080u;
    memcpy(words, blk->q, 32);
    for (int i = 0; i < 4; i++)
        words[i] ^= flip;
    for (uint32_t c = 0; c < 32; c += g)
        memcpy(q + (size_t)(c / g * l->tile_rows + row) * g, (const uint8_t *)words + c, g);
}

static void put_block(const struct kern_layout *l, enum kern_fmt fmt, const struct tiles_block *blk,
                      uint32_t row, uint8_t *q)
{
    const uint32_t rows = l->tile_rows, g = l->group;
    uint8_t *high = q + (size_t)16 * rows;
    for (uint32_t c = 0; c < 32; c++) {
        uint8_t v = blk->q[c];
        /* place of column c in the order [32/g][row][g] */
        uint32_t at = (c / g * rows + row) * g + c % g;
        uint32_t c16 = c % 16, at16 = (c16 / g * rows + row) * g + c16 % g;
        q[at16] |= (uint8_t)((v & 15) << (c < 16 ? 0 : 4));
        if (fmt == KERN_Q5 || fmt == KERN_Q5M) {
            high[at / 8] |= (uint8_t)((v >> 4 & 1) << (at % 8));
        } else if (fmt == KERN_Q6) {
            uint32_t c8 = c % 8, at8 = (c8 / g * rows + row) * g + c8 % g;
            high[at8] |= (uint8_t)((v >> 4) << (2 * (c / 8)));
        }
    }
}

static void fill_float_tile(const struct kern_layout *l, enum quant_type type, const uint8_t *src,
                            uint32_t n_rows, uint32_t n_cols, uint32_t tile, uint8_t *dst)
{
    const uint32_t rows = l->tile_rows, size = type == QUANT_F32 ? 4 : 2;
    for (uint32_t r = 0; r < rows && tile * rows + r < n_rows; r++) {
        const uint8_t *from = src + (size_t)(tile * rows + r) * n_cols * size;
        for (uint32_t c = 0; c < n_cols; c++)
            memcpy(dst + ((size_t)c * rows + r) * size, from + (size_t)c * size, size);
    }
}

size_t tiles_work_bytes(uint32_t n_cols)
{
    return 256 * sizeof(float) + (size_t)n_cols / 32 * sizeof(struct tiles_block);
}

void tiles_fill(const struct kern_layout *l, enum quant_type type, const void *src, uint32_t n_rows,
                uint32_t n_cols, float mul, uint32_t tile, void *dst, void *work)
{
    const enum kern_fmt fmt = tiles_fmt_of(type);
    const struct tiles_map map = tiles_map(l, fmt, n_cols);
    const struct quant_info *qi = quant_info(type);
    const uint32_t rows = l->tile_rows, halves = fmt == KERN_Q6 ? 2 : 1;
    uint8_t *out = dst;
    memset(out, 0, map.bytes);
    if (kern_fmt_is_float(fmt)) {
        fill_float_tile(l, type, src, n_rows, n_cols, tile, out);
        return;
    }
    float *values = work;
    struct tiles_block *blocks = (struct tiles_block *)(values + 256);
    const size_t row_bytes = (size_t)n_cols / qi->block * qi->block_bytes;
    const size_t block_bytes = (size_t)fmts[fmt].quant_bytes * rows;
    for (uint32_t r = 0; r < rows && tile * rows + r < n_rows; r++) {
        const uint8_t *row = (const uint8_t *)src + (tile * rows + r) * row_bytes;
        tiles_row_blocks(type, row, n_cols, mul, blocks, values);
        for (uint32_t b = 0; b < n_cols / 32; b++) {
            for (uint32_t h = 0; h < halves; h++)
                memcpy(out + (((size_t)b * halves + h) * rows + r) * 2, &blocks[b].scale[h], 2);
            if (tiles_fmt_has_min(fmt))
                memcpy(out + map.mins + ((size_t)b * rows + r) * 2, &blocks[b].min, 2);
            uint8_t *quants = out + map.quants + b * block_bytes;
            if (fmt == KERN_Q8)
                put_q8_block(l, &blocks[b], r, quants);
            else
                put_block(l, fmt, &blocks[b], r, quants);
        }
    }
}

/* One group of a row: two blocks and their scale. */
static void wide_group(const float *x, struct tiles_block blocks[2], uint16_t *scale)
{
    float amax = 0.0f;
    for (uint32_t i = 0; i < KERN_WIDE; i++)
        amax = fabsf(x[i]) > amax ? fabsf(x[i]) : amax;
    *scale = quant_f32_to_f16(amax / 127.0f);
    const float back = quant_f16_to_f32(*scale), inv = back > 0.0f ? 1.0f / back : 0.0f;
    for (uint32_t i = 0; i < KERN_WIDE; i++) {
        float v = x[i] * inv; /* NaN becomes -127 */
        v = v > -127.0f ? v : -127.0f;
        blocks[i / 32].q[i % 32] = (uint8_t)(lrintf(v < 127.0f ? v : 127.0f) + 128);
    }
}

void tiles_fill_wide(const struct kern_layout *l, const float *rows, uint32_t n_rows,
                     uint32_t n_cols, void *dst)
{
    const struct tiles_map map = tiles_map(l, KERN_Q8W, n_cols);
    const size_t block_bytes = (size_t)32 * l->tile_rows;
    struct kern_layout own = *l;
    own.q8_unsigned = l->q8_unsigned && !l->wide_signed;
    uint8_t *out = dst;
    memset(out, 0, map.bytes);
    for (uint32_t r = 0; r < n_rows; r++, rows += n_cols)
        for (uint32_t g = 0; g < n_cols / KERN_WIDE; g++) {
            struct tiles_block blocks[2];
            uint16_t scale;
            wide_group(rows + g * KERN_WIDE, blocks, &scale);
            memcpy(out + ((size_t)g * l->tile_rows + r) * 2, &scale, 2);
            for (uint32_t b = 0; b < 2; b++)
                put_q8_block(&own, &blocks[b], r, out + map.quants + (2 * g + b) * block_bytes);
        }
}
