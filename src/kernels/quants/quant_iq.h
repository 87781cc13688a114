/* quant_iq.h - codebooks of the IQ encodings.  Private to src/kernels.
 *
 * Thread:    pure functions and const tables. */
#ifndef SHOAL_KERNELS_QUANTS_QUANT_IQ_H
#define SHOAL_KERNELS_QUANTS_QUANT_IQ_H

#include <stdint.h>

/* What the 16 nibbles of IQ4_NL stand for, ascending. */
extern const int8_t quant_iq4_levels[16];

/* One block: 66 bytes to 256 values. */
void quant_iq2_xxs_block(const uint8_t *b, float *y);

#endif
