/* kern_avxvnni.c - AVX2 with the VEX-encoded VNNI: client CPUs without AVX-512, from Alder Lake and
 * its E-core-only successors on. */
#include "kernels/x86_64/v16_avx2.h"

#define OPS_WIDE_SUMS 1
#include "kernels/ops_body.h"
#include "kernels/tiles.h"

#define YMM_VNNI 1
#include "kernels/x86_64/gemm_ymm.h"

const struct kern_ops kern_avxvnni = {
    .name = "avx-vnni",
    .layout = {.tile_rows = 16, .group = 4, .q8_unsigned = true},
    .gemm = gemm,
    OPS_TABLE,
};
