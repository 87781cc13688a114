/* pack.h - inside of the packer: one block of 32 weights in the form every layout is written from.
 * Private to src/kernels and its tests. */
#ifndef SHOAL_KERNELS_PACK_H
#define SHOAL_KERNELS_PACK_H

#include "kernels/kern.h"

struct kern_block {
    uint8_t q[32]; /* with the format's offset in it */
    uint16_t scale[2];
    uint16_t min;
};

/* The blocks of one row (n_cols / 32 of them), scales and mins divided by mul. */
void kern_row_blocks(enum quant_type type, const void *row, uint32_t n_cols, float mul,
                     struct kern_block *out, float *work);

/* Where the parts of a tile begin. */
struct kern_tile_map {
    size_t mins, quants, bytes;
};
struct kern_tile_map kern_tile_map(const struct kern_layout *l, enum kern_fmt fmt, uint32_t n_cols);
uint32_t kern_block_quant_bytes(enum kern_fmt fmt); /* per row and block */
static inline bool kern_fmt_has_min(enum kern_fmt fmt)
{
    return fmt == KERN_Q4M || fmt == KERN_Q5M;
}
static inline int kern_fmt_offset(enum kern_fmt fmt)
{
    return fmt == KERN_Q8    ? 128
           : fmt == KERN_Q8W ? 128
           : fmt == KERN_Q4  ? 8
           : fmt == KERN_Q5  ? 16
           : fmt == KERN_Q6  ? 32
                             : 0;
}

#endif
