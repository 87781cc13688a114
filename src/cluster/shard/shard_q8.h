/* shard_q8.h - floats in 8 bits for the wire: blocks of 32 with a scale of their own, 36 bytes
 * each. An error is at most 1/254 of the largest value of its block.
 *
 * Thread:    no state. */
#ifndef SHOAL_CLUSTER_SHARD_SHARD_Q8_H
#define SHOAL_CLUSTER_SHARD_SHARD_Q8_H

#include <stddef.h>
#include <stdint.h>

struct buf;

#define SHARD_Q8_BLOCK 32u
#define SHARD_Q8_BYTES 36u

/* Of a row with n_cols floats; the last block is filled up with zeros. */
static inline size_t shard_q8_row_bytes(uint32_t n_cols)
{
    return (size_t)(n_cols + SHARD_Q8_BLOCK - 1) / SHARD_Q8_BLOCK * SHARD_Q8_BYTES;
}
/* Appends a row.  Values that are not numbers make their block NaN on the other side. */
void shard_q8_put(struct buf *out, const float *x, uint32_t n_cols);
/* A row of shard_q8_row_bytes at any alignment. */
void shard_q8_get(float *x, const uint8_t *bytes, uint32_t n_cols);

#endif
