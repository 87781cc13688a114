/* kern_dotprod.c - NEON with sdot (Armv8.2 dotprod): Cortex-A55, A76, Neoverse N1 and later. */
#include "kernels/arm64/v16_neon.h"

#include "kernels/ops_body.h"
#include "kernels/tiles.h"
#include "kernels/arm64/neon_blocks.h"

static ALWAYS_INLINE int32x4_t dot16(enum kern_fmt fmt, int32x4_t sum, const int8x16_t w[4],
                                     int8x16_t x)
{
    (void)fmt;
    sum = vdotq_laneq_s32(sum, w[0], x, 0);
    sum = vdotq_laneq_s32(sum, w[1], x, 1);
    sum = vdotq_laneq_s32(sum, w[2], x, 2);
    return vdotq_laneq_s32(sum, w[3], x, 3);
}
#define PANEL_TOKENS 8
#define PANEL_VECS 1
#include "kernels/arm64/gemm_g4.h"

const struct kern_ops kern_dotprod = {
    .name = "dotprod",
    .layout = {.tile_rows = 16, .group = 4, .q8_unsigned = false},
    .gemm = gemm,
    OPS_TABLE,
};
