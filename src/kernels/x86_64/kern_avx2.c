/* kern_avx2.c - AVX2 with FMA and F16C: every x86-64 since Haswell and Zen. */
#include "kernels/x86_64/v16_avx2.h"

#include "kernels/ops_body.h"
#include "kernels/tiles.h"

#define YMM_VNNI 0
#include "kernels/x86_64/gemm_ymm.h"

const struct kern_ops kern_avx2 = {
    .name = "avx2",
    .layout = {.tile_rows = 16, .group = 4, .q8_unsigned = false},
    .gemm = gemm,
    OPS_TABLE,
};
