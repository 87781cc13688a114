/* tiles.h - lays a weight matrix out as the tiles that a kernel set reads.
 *
 * A tile is a group of rows (kern_layout.tile_rows) with scales, minima and quants apart; kern.h
 * describes the formats.  The blocks below are the form that every layout is written from; only
 * src/kernels and its tests use them.
 *
 * Thread:    pure functions.
 * Failure:   none; tiles_bytes tells whether a shape fits a format. */
#ifndef SHOAL_KERNELS_TILES_H
#define SHOAL_KERNELS_TILES_H

#include "kernels/kern.h"

/* The format that a tensor encoding is laid out in. */
enum kern_fmt tiles_fmt_of(enum quant_type type);
const char *tiles_fmt_name(enum kern_fmt fmt);

static inline uint32_t tiles_count(const struct kern_layout *l, uint32_t n_rows)
{
    return (n_rows + l->tile_rows - 1) / l->tile_rows;
}
/* Bytes of one tile; 0 when the shape does not fit the format (columns not divisible). */
size_t tiles_bytes(const struct kern_layout *l, enum kern_fmt fmt, uint32_t n_cols);
/* The power of two for a matrix: 1 where scales are copied, otherwise the factor that brings
 * products of scales into F16's best range. Reads all of src. */
float tiles_mul(enum quant_type type, const void *src, uint32_t n_rows, uint32_t n_cols);
/* Writes tile number `tile` of the row-major matrix src to dst (tiles_bytes).  work: memory of
 * tiles_work_bytes. */
void tiles_fill(const struct kern_layout *l, enum quant_type type, const void *src, uint32_t n_rows,
                uint32_t n_cols, float mul, uint32_t tile, void *dst, void *work);
size_t tiles_work_bytes(uint32_t n_cols);
/* Writes one tile of KERN_Q8W from its rows as floats, [n_rows][n_cols]; scale = amax / 127. */
void tiles_fill_wide(const struct kern_layout *l, const float *rows, uint32_t n_rows,
                     uint32_t n_cols, void *dst);

/* ---- blocks: private to src/kernels and its tests ------------------------------------------ */

/* One block of 32 weights. */
struct tiles_block {
    uint8_t q[32]; /* including the format's offset */
    uint16_t scale[2];
    uint16_t min;
};

/* The blocks of one row (n_cols / 32 of them), scales and mins divided by mul. */
void tiles_row_blocks(enum quant_type type, const void *row, uint32_t n_cols, float mul,
                      struct tiles_block *out, float *work);

/* Where the parts of a tile begin. */
struct tiles_map {
    size_t mins, quants, bytes;
};
struct tiles_map tiles_map(const struct kern_layout *l, enum kern_fmt fmt, uint32_t n_cols);
uint32_t tiles_block_quant_bytes(enum kern_fmt fmt); /* per row and block */
static inline bool tiles_fmt_has_min(enum kern_fmt fmt)
{
    return fmt == KERN_Q4M || fmt == KERN_Q5M;
}
static inline int tiles_fmt_offset(enum kern_fmt fmt)
{
    return fmt == KERN_Q8    ? 128
           : fmt == KERN_Q8W ? 128
           : fmt == KERN_Q4  ? 8
           : fmt == KERN_Q5  ? 16
           : fmt == KERN_Q6  ? 32
                             : 0;
}

#endif
