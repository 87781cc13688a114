/* kern_scalar.c - the reference set: plain C, tiles of one row. */
#include "kernels/scalar/v16_scalar.h"

#include "kernels/ops_body.h"
#include "kernels/tiles.h"

static const struct kern_layout layout = {.tile_rows = 1, .group = 8, .q8_unsigned = false};

/* Value of column c in one row's block, with the offset subtracted. */
static int weight(enum kern_fmt fmt, const uint8_t *q, uint32_t c)
{
    if (fmt == KERN_Q8 || fmt == KERN_Q8W)
        return (int8_t)q[c];
    int v = c < 16 ? q[c] & 15 : q[c - 16] >> 4;
    const uint8_t *high = q + 16;
    if (fmt == KERN_Q5 || fmt == KERN_Q5M)
        v |= (high[c / 8] >> (c % 8) & 1) << 4;
    else if (fmt == KERN_Q6)
        v |= (high[c % 8] >> (2 * (c / 8)) & 3) << 4;
    return v - tiles_fmt_offset(fmt);
}

static float row_dot(const struct kern_mat *w, const struct kern_act *a, uint32_t t, uint32_t row)
{
    const uint8_t *tile = w->data + row * w->tile_bytes;
    float acc = 0.0f;
    if (kern_fmt_is_float(w->fmt)) {
        const float *x = a->x + t * a->ld;
        for (uint32_t c = 0; c < w->n_cols; c++) {
            float v;
            uint16_t h;
            if (w->fmt == KERN_F32) {
                memcpy(&v, tile + (size_t)c * 4, 4);
            } else {
                memcpy(&h, tile + (size_t)c * 2, 2);
                v = w->fmt == KERN_F16 ? quant_f16_to_f32(h) : quant_bf16_to_f32(h);
            }
            acc = fmaf(v, x[c], acc);
        }
        return acc * w->mul;
    }
    const struct tiles_map map = tiles_map(&layout, w->fmt, w->n_cols);
    const uint32_t blocks = w->n_cols / 32, halves = w->fmt == KERN_Q6 ? 2 : 1;
    const uint32_t quant_bytes = tiles_block_quant_bytes(w->fmt);
    const int8_t *aq = a->q + (size_t)t * a->n_cols;
    const float *ascale = a->scale + (size_t)t * blocks;
    const int32_t *sums = a->sums + (size_t)t * blocks * 2;
    for (uint32_t b = 0; b < blocks; b++) {
        const uint8_t *q = tile + map.quants + (size_t)b * quant_bytes;
        for (uint32_t h = 0; h < halves; h++) {
            uint16_t scale;
            int32_t isum = 0;
            memcpy(&scale, tile + ((size_t)b * halves + h) * 2, 2);
            for (uint32_t c = h * 16; c < (halves == 2 ? h * 16 + 16 : 32); c++)
                isum += weight(w->fmt, q, c) * aq[b * 32 + c];
            acc = fmaf((float)isum, quant_f16_to_f32(scale) * ascale[b], acc);
        }
        if (tiles_fmt_has_min(w->fmt)) {
            uint16_t min;
            memcpy(&min, tile + map.mins + (size_t)b * 2, 2);
            acc = fmaf(quant_f16_to_f32(min), ascale[b] * (float)(sums[2 * b] + sums[2 * b + 1]),
                       acc);
        }
    }
    return acc * w->mul;
}

static float row_dot_wide(const struct kern_mat *w, const struct kern_act *a, uint32_t t,
                          uint32_t row)
{
    const uint8_t *tile = w->data + row * w->tile_bytes;
    const struct tiles_map map = tiles_map(&layout, KERN_Q8W, w->n_cols);
    const int8_t *aq = a->q + (size_t)t * a->n_cols;
    const float *ascale = a->scale + (size_t)t * (a->n_cols / 32);
    float acc = w->bias ? w->bias[row] : 0.0f;
    for (uint32_t g = 0; g < w->n_cols / KERN_WIDE; g++) {
        uint16_t scale;
        int32_t isum = 0;
        memcpy(&scale, tile + (size_t)g * 2, 2);
        for (uint32_t c = g * KERN_WIDE; c < (g + 1) * KERN_WIDE; c++)
            isum += weight(KERN_Q8W, tile + map.quants, c) * aq[c];
        acc = fmaf((float)isum, quant_f16_to_f32(scale) * ascale[g], acc);
    }
    return acc;
}

static void gemm(const struct kern_mat *w, const struct kern_act *a, uint32_t n_tokens,
                 uint32_t tile0, uint32_t tile1, float *out, size_t out_ld)
{
    for (uint32_t t = 0; t < n_tokens; t++)
        for (uint32_t row = tile0; row < tile1; row++)
            out[t * out_ld + row] =
                w->fmt == KERN_Q8W ? row_dot_wide(w, a, t, row) : row_dot(w, a, t, row);
}

const struct kern_ops kern_scalar = {
    .name = "scalar",
    .layout = {.tile_rows = 1, .group = 8, .q8_unsigned = false},
    .gemm = gemm,
    OPS_TABLE,
};
