/* kern_neon.c - plain NEON, available on every Armv8 CPU: Cortex-A53, A72.
 *
 * Bytes are multiplied into 16-bit lanes.  Activations are at most 127, so one lane can hold
 *   4 and 5 bits (at most 16 in size): 8 products, 8 * 16 * 127 = 16256;
 *   6 bits: 4 products, 4 * 63 * 127 = 32004;
 *   8 bits: 2 products, 2 * 128 * 127 = 32512. */
#include "kernels/arm64/v16_neon.h"

#include "kernels/ops_body.h"
#include "kernels/tiles.h"
#include "kernels/arm64/neon_blocks.h"

/* Four steps of four columns: lo gets rows 0 and 1, hi rows 2 and 3; two lanes per column pair. */
static ALWAYS_INLINE int32x4_t dot16(enum kern_fmt fmt, int32x4_t sum, const int8x16_t w[4],
                                     int8x16_t x)
{
    const int32x4_t quads = vreinterpretq_s32_s8(x);
    const int8x16_t x0 = vreinterpretq_s8_s32(vdupq_laneq_s32(quads, 0));
    const int8x16_t x1 = vreinterpretq_s8_s32(vdupq_laneq_s32(quads, 1));
    const int8x16_t x2 = vreinterpretq_s8_s32(vdupq_laneq_s32(quads, 2));
    const int8x16_t x3 = vreinterpretq_s8_s32(vdupq_laneq_s32(quads, 3));
    int16x8_t lo = vmull_s8(vget_low_s8(w[0]), vget_low_s8(x0)), hi = vmull_high_s8(w[0], x0);
    lo = vmlal_s8(lo, vget_low_s8(w[1]), vget_low_s8(x1));
    hi = vmlal_high_s8(hi, w[1], x1);
    int32x4_t lo2 = vdupq_n_s32(0), hi2 = lo2;
    if (fmt == KERN_Q8) {
        lo2 = vpaddlq_s16(lo);
        hi2 = vpaddlq_s16(hi);
        lo = vmull_s8(vget_low_s8(w[2]), vget_low_s8(x2));
        hi = vmull_high_s8(w[2], x2);
    } else {
        lo = vmlal_s8(lo, vget_low_s8(w[2]), vget_low_s8(x2));
        hi = vmlal_high_s8(hi, w[2], x2);
    }
    lo = vmlal_s8(lo, vget_low_s8(w[3]), vget_low_s8(x3));
    hi = vmlal_high_s8(hi, w[3], x3);
    if (fmt == KERN_Q8)
        return vaddq_s32(sum, vpaddq_s32(vpadalq_s16(lo2, lo), vpadalq_s16(hi2, hi)));
    if (fmt == KERN_Q6)
        return vaddq_s32(sum, vpaddq_s32(vpaddlq_s16(lo), vpaddlq_s16(hi)));
    return vpadalq_s16(sum, vpaddq_s16(lo, hi));
}
#define PANEL_TOKENS 4
#define PANEL_VECS 2 /* vectors that share the broadcast activations */
#include "kernels/arm64/gemm_g4.h"

const struct kern_ops kern_neon = {
    .name = "neon",
    .layout = {.tile_rows = 16, .group = 4, .q8_unsigned = false},
    .gemm = gemm,
    OPS_TABLE,
};
