/* quant_encode.h - shared parts of the encoders.  Private to src/kernels.
 *
 * Thread:    pure functions. */
#ifndef SHOAL_KERNELS_QUANTS_QUANT_ENCODE_H
#define SHOAL_KERNELS_QUANTS_QUANT_ENCODE_H

#include <stdint.h>

/* Stores f as a half and returns what was stored. */
float quant_encode_half(uint8_t *p, float f);
/* Nearest codes of x ~ scale * code + min, code in lo..hi, each less lo. */
void quant_encode_codes(uint8_t *codes, const float *x, int n, float scale, float min, int lo,
                        int hi);

/* One super-block: 256 values and their weights, as quant_fit.h wants them. */
void quant_encode_q4_k(const float *x, const float *w, uint8_t *b);
void quant_encode_q5_k(const float *x, const float *w, uint8_t *b);
void quant_encode_q6_k(const float *x, const float *w, uint8_t *b);

#endif
