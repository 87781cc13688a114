/* quant.h - the tensor encodings that GGUF files carry, and their plain C codecs.
 *
 * These are the reference: every tile layout is made from, and tested against, quant_to_f32.
 *
 * Thread:    pure functions. */
#ifndef SHOAL_KERNELS_QUANTS_QUANT_H
#define SHOAL_KERNELS_QUANTS_QUANT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/quants/quant_half.h"
#include "kernels/quants/quant_type.h"

struct quant_info {
    const char *name; /* as GGUF tools print it: "Q4_K" */
    uint32_t block;   /* values per block; a row is a whole number of blocks */
    uint32_t block_bytes;
    bool supported;
};

/* NULL if the number is not a tensor type; types we know by name but cannot read have
 * supported == false. */
const struct quant_info *quant_info(uint32_t type);
/* "q4_0" or "Q4_0" -> type; false when unknown or not supported. */
bool quant_from_name(const char *name, enum quant_type *type);

/* n values; n is a multiple of the block. */
void quant_to_f32(enum quant_type type, const void *src, float *dst, size_t n);

/* Encoders: F32, F16, BF16, Q8_0, Q4_0, Q4_1, Q5_0, Q5_1, Q4_K, Q5_K, Q6_K, IQ4_NL; false for the
 * other types. Scales minimize sum of weight[i] * error^2; weight: importance per value (only the
 * ratios within a block matter) or NULL for equal weights. Values must be finite; others affect
 * only their own block. */
bool quant_from_f32(enum quant_type type, const float *src, void *dst, size_t n,
                    const float *weight);

#endif
