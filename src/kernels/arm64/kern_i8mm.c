/* kern_i8mm.c - NEON with smmla (Armv8.6 i8mm): Neoverse V1 and N2, Cortex-A510, A710 and later.
 *
 * Groups of 8 columns: a vector holds 8 columns of two rows.  smmla multiplies it with 8 columns of
 * two tokens into 2 x 2 sums, in lanes (token 0, row 0), (0, 1), (1, 0), (1, 1).  A single token
 * uses sdot on the same layout: two lanes per row, added at the end of a block. */
#include "kernels/arm64/v16_neon.h"

#include "kernels/ops_body.h"
#include "kernels/tiles.h"
#include "kernels/arm64/neon_blocks.h"

static const struct kern_layout layout = {.tile_rows = 16, .group = 8, .q8_unsigned = false};

/* Columns 16 * pass + 8 * j .. + 7 of rows 2p and 2p + 1 of a block. */
static ALWAYS_INLINE int8x16_t weights8(enum kern_fmt fmt, const uint8_t *q, int pass, int j, int p)
{
    if (fmt == KERN_Q8)
        return vld1q_s8((const int8_t *)q + 128 * (2 * pass + j) + 16 * p);
    uint8x16_t raw = vld1q_u8(q + 128 * j + 16 * p);
    if (is_5bit(fmt)) /* one byte of high bits per row, 16 rows per vector */
        return with_fifth_bit(raw, pass, vmvnq_u8(vld1q_u8(q + 256 + 16 * (2 * pass + j))),
                              two_bytes(2 * p));
    if (fmt == KERN_Q6)
        return with_two_bits(raw, pass, vld1q_u8(q + 256 + 16 * p), 2 * pass + j);
    return nibbles(raw, pass);
}

/* ---- one token ---------------------------------------------------------------------------- */

/* 16 columns of rows 4r .. 4r + 3 */
static ALWAYS_INLINE int32x4_t dot16_rows4(enum kern_fmt fmt, const uint8_t *q, int pass, int r,
                                           int8x16_t x, int32x4_t sum[2])
{
    const int64x2_t halves = vreinterpretq_s64_s8(x);
    const int8x16_t x0 = vreinterpretq_s8_s64(vdupq_laneq_s64(halves, 0));
    const int8x16_t x1 = vreinterpretq_s8_s64(vdupq_laneq_s64(halves, 1));
    UNROLL for (int p = 0; p < 2; p++)
    {
        sum[p] = vdotq_s32(sum[p], weights8(fmt, q, pass, 0, 2 * r + p), x0);
        sum[p] = vdotq_s32(sum[p], weights8(fmt, q, pass, 1, 2 * r + p), x1);
    }
    return vpaddq_s32(sum[0], sum[1]);
}

static ALWAYS_INLINE void block_vector(enum kern_fmt fmt, struct neon_block w, const int8_t *x,
                                       const int32x4_t start[2], float ascale, float minf,
                                       float32x4_t acc[4])
{
    UNROLL for (int r = 0; r < 4; r++)
    {
        int32x4_t sum[2] = {start[0], start[0]}, s;
        s = dot16_rows4(fmt, w.q, 0, r, vld1q_s8(x), sum);
        if (fmt == KERN_Q6) { /* the halves of a block have separate scales */
            acc[r] = vfmaq_f32(acc[r], to_float(s), vmulq_n_f32(half4(w.scales + 4 * r), ascale));
            sum[0] = sum[1] = start[1];
        }
        s = dot16_rows4(fmt, w.q, 1, r, vld1q_s8(x + 16), sum);
        acc[r] =
            vfmaq_f32(acc[r], to_float(s),
                      vmulq_n_f32(half4(w.scales + (fmt == KERN_Q6 ? 16 : 0) + 4 * r), ascale));
        if (tiles_fmt_has_min(fmt))
            acc[r] = vfmaq_n_f32(acc[r], half4(w.mins + 4 * r), minf);
    }
}

/* Initial sums with two lanes per row: the first lane gets the whole value. */
static ALWAYS_INLINE int32x4_t start_pair(enum kern_fmt fmt, int32_t sum)
{
    return vreinterpretq_s32_u64(vdupq_n_u64((uint32_t)(NEON_MAGIC + neon_shift(fmt) * sum)));
}

/* NS tiles from `tile` times token t, in parallel: each is one stream for the hardware prefetcher.
 */
static ALWAYS_INLINE void vector_tiles(enum kern_fmt fmt, const struct kern_mat *w,
                                       const struct tiles_map *map, const struct kern_act *a,
                                       uint32_t t, uint32_t tile, const int NS, float *out)
{
    const uint32_t blocks = w->n_cols / 32;
    const int8_t *x = a->q + (size_t)t * a->n_cols;
    const float *ascale = a->scale + (size_t)t * blocks;
    const int32_t *sums = a->sums + (size_t)t * blocks * 2;
    float32x4_t acc[2][4];
    UNROLL for (int s = 0; s < NS; s++) UNROLL for (int r = 0; r < 4; r++) acc[s][r] =
        vdupq_n_f32(0.0f);
    for (uint32_t b = 0; b < blocks; b++, x += 32, sums += 2) {
        int32_t sum = sums[0] + sums[1];
        int32x4_t start[2] = {start_pair(fmt, fmt == KERN_Q6 ? sums[0] : sum),
                              start_pair(fmt, fmt == KERN_Q6 ? sums[1] : 0)};
        float minf = ascale[b] * (float)sum;
        UNROLL for (int s = 0; s < NS; s++)
        {
            struct neon_block at = block_at(fmt, w, map, tile + (uint32_t)s, b);
            prefetch_block(fmt, at.q);
            block_vector(fmt, at, x, start, ascale[b], minf, acc[s]);
        }
    }
    UNROLL for (int s = 0; s < NS; s++) UNROLL for (int r = 0; r < 4; r++)
    {
        uint32_t row = (tile + (uint32_t)s) * 16 + 4 * (uint32_t)r;
        store_rows(out + row, vmulq_n_f32(acc[s][r], w->mul), rows_left(w, row));
    }
}

/* ---- several tokens ----------------------------------------------------------------------- */

#define PANEL_TYPE struct i8mm_panel
#define PANEL_TOKENS 8
#define PANEL_PAD 1 /* missing tokens are read as zero and their results are not stored */

struct i8mm_panel { /* a pair is two tokens; vector lanes belong to tokens (0, 0, 1, 1) */
    int8_t x[PANEL_BLOCKS * 8 * 32];     /* [block][4][pair][2][8]: columns 8j .. 8j + 7 */
    int32_t start[PANEL_BLOCKS * 8 * 4]; /* [block][1 or 2][pair][4] */
    float scale[PANEL_BLOCKS * 4 * 4];   /* [block][pair][4] */
    float minf[PANEL_BLOCKS * 4 * 4];
    uint32_t b0, n_blocks, n_tokens;
    bool first, last;
};

/* The number of tokens that panel_tile() will process for n_tokens. */
static ALWAYS_INLINE uint32_t panel_width(uint32_t n_tokens)
{
    return n_tokens > 4 ? 8 : n_tokens > 2 ? 4 : 2;
}

static ALWAYS_INLINE void panel_fill(struct i8mm_panel *p, enum kern_fmt fmt,
                                     const struct kern_act *a, uint32_t t)
{
    static const int8_t no_x[32];
    static const int32_t no_sums[2];
    const uint32_t blocks = a->n_cols / 32, NP = panel_width(p->n_tokens) / 2;
    const uint32_t starts = fmt == KERN_Q6 ? 2 : 1;
    for (uint32_t i = 0; i < 2 * NP; i++) {
        const bool real = i < p->n_tokens;
        const size_t at = real ? (size_t)(t + i) * blocks + p->b0 : 0;
        for (uint32_t b = 0; b < p->n_blocks; b++) {
            const int8_t *x = real ? a->q + (at + b) * 32 : no_x;
            const int32_t *sums = real ? a->sums + (at + b) * 2 : no_sums;
            const float scale = real ? a->scale[at + b] : 0.0f;
            const int32_t sum = sums[0] + sums[1];
            for (uint32_t j = 0; j < 4; j++)
                memcpy(p->x + (((b * 4 + j) * NP + i / 2) * 2 + i % 2) * 8, x + 8 * j, 8);
            for (uint32_t h = 0; h < starts; h++)
                vst1_s32(p->start + ((b * starts + h) * NP + i / 2) * 4 + i % 2 * 2,
                         vget_low_s32(start_of(fmt, starts == 2 ? sums[h] : sum)));
            vst1_f32(p->scale + (b * NP + i / 2) * 4 + i % 2 * 2, vdup_n_f32(scale));
            vst1_f32(p->minf + (b * NP + i / 2) * 4 + i % 2 * 2, vdup_n_f32(scale * (float)sum));
        }
    }
}

/* Rows 4r .. 4r + 3 as (4r, 4r + 1) twice and (4r + 2, 4r + 3) twice. */
static ALWAYS_INLINE void row_pairs(const uint16_t *p, float32x4_t out[2])
{
    float64x2_t v = vreinterpretq_f64_f32(half4(p));
    out[0] = vreinterpretq_f32_f64(vdupq_laneq_f64(v, 0));
    out[1] = vreinterpretq_f32_f64(vdupq_laneq_f64(v, 1));
}

/* One block of rows 4r .. 4r + 3 times NP pairs of tokens: acc[pair of tokens][pair of rows]. */
static ALWAYS_INLINE void block_pairs(enum kern_fmt fmt, struct neon_block w, int r, const int NP,
                                      const int8_t *x, const int32_t *start, const float *ascale,
                                      const float *minf, float32x4_t acc[4][2])
{
    const bool split = fmt == KERN_Q6;
    int32x4_t sum[4][2];
    const int32_t *again = start;
    __asm__("" : "+r"(again)); /* hides from gcc that it equals start: a load beats a move */
    UNROLL for (int pass = 0; pass < 2; pass++)
    {
        if (pass == 0 || split)
            UNROLL for (int i = 0; i < NP; i++)
            {
                sum[i][0] = vld1q_s32(start + (pass * NP + i) * 4);
                sum[i][1] = vld1q_s32(again + (pass * NP + i) * 4);
            }
        UNROLL for (int j = 0; j < 2; j++)
        {
            int8x16_t k0 = weights8(fmt, w.q, pass, j, 2 * r);
            int8x16_t k1 = weights8(fmt, w.q, pass, j, 2 * r + 1);
            UNROLL for (int i = 0; i < NP; i++)
            {
                int8x16_t v = vld1q_s8(x + ((2 * pass + j) * NP + i) * 16);
                sum[i][0] = vmmlaq_s32(sum[i][0], v, k0);
                sum[i][1] = vmmlaq_s32(sum[i][1], v, k1);
            }
        }
        if (pass == 0 && !split)
            continue;
        float32x4_t scale[2];
        row_pairs(w.scales + (split ? 16 * pass : 0) + 4 * r, scale);
        UNROLL for (int i = 0; i < NP; i++)
        {
            float32x4_t d = vld1q_f32(ascale + 4 * i);
            UNROLL for (int v = 0; v < 2; v++) acc[i][v] =
                vfmaq_f32(acc[i][v], to_float(sum[i][v]), vmulq_f32(scale[v], d));
        }
    }
    if (tiles_fmt_has_min(fmt)) {
        float32x4_t min[2];
        row_pairs(w.mins + 4 * r, min);
        UNROLL for (int i = 0; i < NP; i++) UNROLL for (int v = 0; v < 2; v++) acc[i][v] =
            vfmaq_f32(acc[i][v], min[v], vld1q_f32(minf + 4 * i));
    }
}

static ALWAYS_INLINE void panel_tile(enum kern_fmt fmt, const struct kern_mat *w,
                                     const struct tiles_map *map, const struct i8mm_panel *p,
                                     uint32_t tile, const int NT, float *out, size_t out_ld)
{
    const int NP = NT / 2;
    const int starts = 4 * NP * (fmt == KERN_Q6 ? 2 : 1);
    for (int r = 0; r < 4; r++) {
        const uint32_t row = tile * 16 + 4 * (uint32_t)r, left = rows_left(w, row);
        float32x4_t acc[4][2];
        UNROLL for (int i = 0; i < NP; i++)
        {
            float *o = out + (size_t)(2 * i) * out_ld + row;
            float32x4_t a = vdupq_n_f32(0.0f), b = a;
            if (!p->first && (uint32_t)(2 * i) < p->n_tokens)
                a = load_rows(o, left);
            if (!p->first && (uint32_t)(2 * i + 1) < p->n_tokens)
                b = load_rows(o + out_ld, left);
            acc[i][0] = vcombine_f32(vget_low_f32(a), vget_low_f32(b));
            acc[i][1] = vcombine_f32(vget_high_f32(a), vget_high_f32(b));
        }
        const int8_t *x = p->x;
        const int32_t *start = p->start;
        const float *scale = p->scale, *minf = p->minf;
        for (uint32_t b = 0; b < p->n_blocks; b++) {
            block_pairs(fmt, block_at(fmt, w, map, tile, p->b0 + b), r, NP, x, start, scale, minf,
                        acc);
            x += 32 * NT;
            start += starts;
            scale += 4 * NP;
            minf += 4 * NP;
            __asm__("" : "+r"(x)); /* use one base pointer, not one register per offset */
        }
        const float32x4_t mul = vdupq_n_f32(p->last ? w->mul : 1.0f);
        UNROLL for (int i = 0; i < NP; i++)
        {
            float *o = out + (size_t)(2 * i) * out_ld + row;
            float32x4_t x0 = vmulq_f32(acc[i][0], mul), x1 = vmulq_f32(acc[i][1], mul);
            if ((uint32_t)(2 * i) < p->n_tokens)
                store_rows(o, vcombine_f32(vget_low_f32(x0), vget_low_f32(x1)), left);
            if ((uint32_t)(2 * i + 1) < p->n_tokens)
                store_rows(o + out_ld, vcombine_f32(vget_high_f32(x0), vget_high_f32(x1)), left);
        }
    }
}

/* KERN_Q8W: rows 4r .. 4r + 3 of a tile times NP pairs of tokens; an odd last token is paired with
 * itself. */
static ALWAYS_INLINE void wide_rows(const struct kern_mat *w, const struct kern_act *a,
                                    uint32_t tile, uint32_t r, uint32_t t, uint32_t n, float *out,
                                    size_t out_ld, const int NP)
{
    const uint8_t *base = w->data + tile * w->tile_bytes;
    const uint16_t *scales = (const uint16_t *)(const void *)base + 4 * r;
    const uint8_t *q = base + tiles_map(&layout, KERN_Q8W, w->n_cols).quants + 32 * r;
    const size_t blocks = w->n_cols / 32;
    const uint32_t row = tile * 16 + 4 * r;
    const int8_t *x[8];
    const float *ascale[8];
    float32x4_t acc[4][2], start = wide_start(w, row);
    UNROLL for (uint32_t i = 0; i < 2 * (uint32_t)NP; i++)
    {
        const size_t token = t + (i < n ? i : n - 1);
        x[i] = a->q + token * a->n_cols;
        ascale[i] = a->scale + token * blocks;
    }
    UNROLL for (int i = 0; i < NP; i++)
    {
        acc[i][0] = vcombine_f32(vget_low_f32(start), vget_low_f32(start));
        acc[i][1] = vcombine_f32(vget_high_f32(start), vget_high_f32(start));
    }
    for (uint32_t g = 0, c = 0; c < w->n_cols; g++) {
        const uint32_t end = c + KERN_WIDE;
        int32x4_t sum[4][2];
        float32x4_t scale[2];
        UNROLL for (int i = 0; i < NP; i++) sum[i][0] = sum[i][1] = vdupq_n_s32(0);
        for (; c < end; c += 8, q += 128) {
            int8x16_t k0 = vld1q_s8((const int8_t *)q), k1 = vld1q_s8((const int8_t *)q + 16);
            UNROLL for (int i = 0; i < NP; i++)
            {
                /* cppcheck-suppress uninitvar */
                int8x16_t v = vcombine_s8(vld1_s8(x[2 * i] + c), vld1_s8(x[2 * i + 1] + c));
                sum[i][0] = vmmlaq_s32(sum[i][0], v, k0);
                sum[i][1] = vmmlaq_s32(sum[i][1], v, k1);
            }
        }
        row_pairs(scales + 16 * g, scale);
        UNROLL for (int i = 0; i < NP; i++)
        {
            float32x4_t d =
                vcombine_f32(vdup_n_f32(ascale[2 * i][g]), vdup_n_f32(ascale[2 * i + 1][g]));
            UNROLL for (int h = 0; h < 2; h++) acc[i][h] =
                vfmaq_f32(acc[i][h], vcvtq_f32_s32(sum[i][h]), vmulq_f32(scale[h], d));
        }
    }
    UNROLL for (uint32_t i = 0; i < 2 * (uint32_t)NP; i++)
    {
        float32x4_t v =
            i % 2 ? vcombine_f32(vget_high_f32(acc[i / 2][0]), vget_high_f32(acc[i / 2][1]))
                  : vcombine_f32(vget_low_f32(acc[i / 2][0]), vget_low_f32(acc[i / 2][1]));
        if (i < n)
            store_rows(out + (t + i) * out_ld + row, v, rows_left(w, row));
    }
}

static void gemm_wide(const struct kern_mat *w, const struct kern_act *a, uint32_t n_tokens,
                      uint32_t tile0, uint32_t tile1, float *out, size_t out_ld)
{
    for (uint32_t tile = tile0; tile < tile1; tile++)
        for (uint32_t t = 0; t < n_tokens;) {
            const uint32_t left = n_tokens - t, n = left < 8 ? left : 8;
            for (uint32_t r = 0; r < 4; r++)
                if (n > 2)
                    wide_rows(w, a, tile, r, t, n, out, out_ld, 4);
                else
                    wide_rows(w, a, tile, r, t, n, out, out_ld, 1);
            t += n;
        }
}

#include "kernels/arm64/gemm_drive.h"

const struct kern_ops kern_i8mm = {
    .name = "i8mm",
    .layout = {.tile_rows = 16, .group = 8, .q8_unsigned = false},
    .gemm = gemm,
    OPS_TABLE,
};
