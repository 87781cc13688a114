/* gemm_g4.h - arm64 products on groups of 4 columns, for NEON and for the dot product extension.
 *
 * Included by exactly one .c file per set, after neon_blocks.h.  That file must define
 *   dot16(fmt, sum, w, x): adds 16 columns of 4 rows to sum, w[j] holding columns 4j..4j+3;
 *   PANEL_TOKENS, PANEL_VECS: how many tokens (4 or 8) are multiplied with how many vectors of 4
 *   rows at once. */
static const struct kern_layout layout = {.tile_rows = 16, .group = 4, .q8_unsigned = false};

/* Columns 16 * pass .. + 15 of rows 4r .. 4r + 3 of a block. */
static ALWAYS_INLINE void weights16(enum kern_fmt fmt, const uint8_t *q, int pass, int r,
                                    int8x16_t w[4])
{
    UNROLL for (int j = 0; j < 4; j++)
    {
        if (fmt == KERN_Q8) {
            w[j] = vld1q_s8((const int8_t *)q + 64 * (4 * pass + j) + 16 * r);
            continue;
        }
        uint8x16_t raw = vld1q_u8(q + 64 * j + 16 * r);
        if (is_5bit(fmt)) /* 8 bytes of high bits per group, two groups per vector */
            w[j] = with_fifth_bit(raw, pass, vmvnq_u8(vld1q_u8(q + 256 + 32 * pass + j / 2 * 16)),
                                  two_bytes(8 * (j % 2) + 2 * r));
        else if (fmt == KERN_Q6)
            w[j] = with_two_bits(raw, pass, vld1q_u8(q + 256 + 64 * (j % 2) + 16 * r),
                                 2 * pass + j / 2);
        else
            w[j] = nibbles(raw, pass);
    }
}

/* One block of NV * 4 rows, starting at row 4 * r0, times NT tokens.
 * x: [2][NT][16], start: [1, for 6 bits 2][NT]; ascale, minf: [NT] */
static ALWAYS_INLINE void block_g4(enum kern_fmt fmt, struct neon_block w, int r0, const int NV,
                                   const int NT, const int8_t *x, const int32x4_t *start,
                                   const float *ascale, const float *minf, float32x4_t acc[8][4])
{
    const bool split = fmt == KERN_Q6; /* the halves of a block have separate scales */
    UNROLL for (int v = 0; v < NV; v++)
    {
        int32x4_t sum[8];
        UNROLL for (int pass = 0; pass < 2; pass++)
        {
            if (pass == 0 || split)
                UNROLL for (int i = 0; i < NT; i++) sum[i] = start[pass * NT + i];
            int8x16_t k[4];
            weights16(fmt, w.q, pass, r0 + v, k);
            UNROLL for (int i = 0; i < NT; i++) sum[i] =
                dot16(fmt, sum[i], k, vld1q_s8(x + (pass * NT + i) * 16));
            if (pass == 0 && !split)
                continue;
            float32x4_t scale = half4(w.scales + (split ? 16 * pass : 0) + 4 * (r0 + v));
            UNROLL for (int i = 0; i < NT; i++) acc[i][v] =
                vfmaq_f32(acc[i][v], to_float(sum[i]), vmulq_n_f32(scale, ascale[i]));
        }
        if (tiles_fmt_has_min(fmt)) {
            float32x4_t min = half4(w.mins + 4 * (r0 + v));
            UNROLL for (int i = 0; i < NT; i++) acc[i][v] = vfmaq_n_f32(acc[i][v], min, minf[i]);
        }
    }
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
    float32x4_t acc[2][8][4];
    UNROLL for (int s = 0; s < NS; s++) UNROLL for (int v = 0; v < 4; v++) acc[s][0][v] =
        vdupq_n_f32(0.0f);
    for (uint32_t b = 0; b < blocks; b++, x += 32, sums += 2) {
        int32_t sum = sums[0] + sums[1];
        int32x4_t start[2] = {start_of(fmt, fmt == KERN_Q6 ? sums[0] : sum),
                              start_of(fmt, fmt == KERN_Q6 ? sums[1] : 0)};
        float minf = ascale[b] * (float)sum;
        UNROLL for (int s = 0; s < NS; s++)
        {
            struct neon_block at = block_at(fmt, w, map, tile + (uint32_t)s, b);
            prefetch_block(fmt, at.q);
            block_g4(fmt, at, 0, 4, 1, x, start, ascale + b, &minf, acc[s]);
        }
    }
    UNROLL for (int s = 0; s < NS; s++) UNROLL for (int v = 0; v < 4; v++)
    {
        uint32_t row = (tile + (uint32_t)s) * 16 + 4 * (uint32_t)v;
        store_rows(out + row, vmulq_n_f32(acc[s][0][v], w->mul), rows_left(w, row));
    }
}

struct g4_panel {
    int8_t x[PANEL_BLOCKS * 8 * 32];       /* [block][2][token][16] */
    int32x4_t start[PANEL_BLOCKS * 8 * 2]; /* [block][1 or 2][token] */
    float scale[PANEL_BLOCKS * 8];         /* [block][token] */
    float minf[PANEL_BLOCKS * 8];
    uint32_t b0, n_blocks, n_tokens;
    bool first, last;
};
#define PANEL_TYPE struct g4_panel
#define PANEL_PAD 0

static ALWAYS_INLINE void panel_fill(struct g4_panel *p, enum kern_fmt fmt,
                                     const struct kern_act *a, uint32_t t)
{
    const uint32_t blocks = a->n_cols / 32, NT = p->n_tokens;
    const bool split = fmt == KERN_Q6;
    for (uint32_t i = 0; i < NT; i++) {
        const int8_t *x = a->q + (size_t)(t + i) * a->n_cols + p->b0 * 32;
        const float *scale = a->scale + (size_t)(t + i) * blocks + p->b0;
        const int32_t *sums = a->sums + ((size_t)(t + i) * blocks + p->b0) * 2;
        for (uint32_t b = 0; b < p->n_blocks; b++, x += 32, sums += 2) {
            int32_t sum = sums[0] + sums[1];
            vst1q_s8(p->x + ((b * 2 + 0) * NT + i) * 16, vld1q_s8(x));
            vst1q_s8(p->x + ((b * 2 + 1) * NT + i) * 16, vld1q_s8(x + 16));
            p->scale[b * NT + i] = scale[b];
            p->minf[b * NT + i] = scale[b] * (float)sum;
            if (split) {
                p->start[(b * 2 + 0) * NT + i] = start_of(fmt, sums[0]);
                p->start[(b * 2 + 1) * NT + i] = start_of(fmt, sums[1]);
            } else {
                p->start[b * NT + i] = start_of(fmt, sum);
            }
        }
    }
}

static ALWAYS_INLINE void panel_tile(enum kern_fmt fmt, const struct kern_mat *w,
                                     const struct tiles_map *map, const struct g4_panel *p,
                                     uint32_t tile, const int NT, float *out, size_t out_ld)
{
    const int NV = PANEL_VECS;
    const int starts = NT * (fmt == KERN_Q6 ? 2 : 1);
    for (int r = 0; r < 4; r += NV) {
        const uint32_t row = tile * 16 + 4 * (uint32_t)r;
        float32x4_t acc[8][4];
        UNROLL for (int i = 0; i < NT; i++) UNROLL for (int v = 0; v < NV; v++) acc[i][v] =
            p->first ? vdupq_n_f32(0.0f)
                     : load_rows(out + (size_t)i * out_ld + row + 4 * v,
                                 rows_left(w, row + 4 * (uint32_t)v));
        const int8_t *x = p->x;
        const int32x4_t *start = p->start;
        const float *scale = p->scale, *minf = p->minf;
        for (uint32_t b = 0; b < p->n_blocks; b++) {
            block_g4(fmt, block_at(fmt, w, map, tile, p->b0 + b), r, NV, NT, x, start, scale, minf,
                     acc);
            x += 32 * NT;
            start += starts;
            scale += NT;
            minf += NT;
            __asm__("" : "+r"(x)); /* use one base pointer, not one register per offset */
        }
        UNROLL for (int i = 0; i < NT; i++) UNROLL for (int v = 0; v < NV; v++)
        {
            float32x4_t o = p->last ? vmulq_n_f32(acc[i][v], w->mul) : acc[i][v];
            store_rows(out + (size_t)i * out_ld + row + 4 * v, o,
                       rows_left(w, row + 4 * (uint32_t)v));
        }
    }
}

/* KERN_Q8W: one tile times NT tokens, 4 rows at a time. */
static ALWAYS_INLINE void wide_tile(const struct kern_mat *w, const struct kern_act *a,
                                    uint32_t tile, uint32_t t, float *out, size_t out_ld,
                                    const int NT)
{
    const uint8_t *base = w->data + tile * w->tile_bytes;
    const uint16_t *scales = (const uint16_t *)(const void *)base;
    const size_t quants = tiles_map(&layout, KERN_Q8W, w->n_cols).quants;
    const size_t blocks = w->n_cols / 32;
    const int8_t *x = a->q + (size_t)t * a->n_cols;
    const float *ascale = a->scale + t * blocks;
    for (uint32_t r = 0; r < 4; r++) {
        const uint8_t *q = base + quants;
        const uint32_t row = tile * 16 + 4 * r;
        float32x4_t acc[8];
        UNROLL for (int i = 0; i < NT; i++) acc[i] = wide_start(w, row);
        for (uint32_t g = 0; g < w->n_cols / KERN_WIDE; g++, q += 1024) {
            int32x4_t sum[8];
            UNROLL for (int i = 0; i < NT; i++) sum[i] = vdupq_n_s32(0);
            for (uint32_t part = 0; part < 4; part++) {
                int8x16_t k[4];
                weights16(KERN_Q8, q + 512 * (part / 2), (int)(part % 2), (int)r, k);
                UNROLL for (int i = 0; i < NT; i++) sum[i] =
                    dot16(KERN_Q8, sum[i], k,
                          vld1q_s8(x + (size_t)i * a->n_cols + g * KERN_WIDE + 16 * part));
            }
            const float32x4_t scale = half4(scales + 16 * g + 4 * r);
            UNROLL for (int i = 0; i < NT; i++) acc[i] = vfmaq_f32(
                acc[i], vcvtq_f32_s32(sum[i]), vmulq_n_f32(scale, ascale[(size_t)i * blocks + g]));
        }
        UNROLL for (int i = 0; i < NT; i++)
            store_rows(out + (t + (uint32_t)i) * out_ld + row, acc[i], rows_left(w, row));
    }
}

static void gemm_wide(const struct kern_mat *w, const struct kern_act *a, uint32_t n_tokens,
                      uint32_t tile0, uint32_t tile1, float *out, size_t out_ld)
{
    for (uint32_t tile = tile0; tile < tile1; tile++) {
        uint32_t t = 0;
        for (; t + PANEL_TOKENS <= n_tokens; t += PANEL_TOKENS)
            wide_tile(w, a, tile, t, out, out_ld, PANEL_TOKENS);
        for (; t < n_tokens; t++)
            wide_tile(w, a, tile, t, out, out_ld, 1);
    }
}

#include "kernels/arm64/gemm_drive.h"
