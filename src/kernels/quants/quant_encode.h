/* quant_encode.h - shared parts of the encoders.  Private to src/kernels.
 *
 * Thread:    pure functions. */
#ifndef SHOAL_KERNELS_QUANTS_QUANT_ENCODE_H
#define SHOAL_KERNELS_QUANTS_QUANT_ENCODE_H

#include <stdint.h>
#include <string.h>

#include "kernels/quants/quant.h"
#include "kernels/quants/quant_fit.h"

/* Stores f as a half and returns what was stored. */
static inline float quant_encode_half(uint8_t *p, float f)
{
    uint16_t h = quant_f32_to_f16(f);
    memcpy(p, &h, sizeof(h));
    return quant_f16_to_f32(h);
}

/* Nearest codes of x ~ scale * code + min, code in lo..hi, each less lo. */
static inline void quant_encode_codes(uint8_t *codes, const float *x, int n, float scale, float min,
                                      int lo, int hi)
{
    float inverse = scale != 0 ? 1 / scale : 0;
    for (int i = 0; i < n; i++)
        codes[i] =
            (uint8_t)((int)quant_fit_round((x[i] - min) * inverse, (float)lo, (float)hi) - lo);
}

/* One super-block: 256 values and their weights, as quant_fit.h wants them. */
void quant_encode_q4_k(const float *x, const float *w, uint8_t *b);
void quant_encode_q5_k(const float *x, const float *w, uint8_t *b);
void quant_encode_q6_k(const float *x, const float *w, uint8_t *b);

#endif
