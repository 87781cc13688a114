/* quant_fit.h - scales of one block by weighted least squares.  Private to src/kernels.
 *
 * Every fit minimizes sum of w[i] * (x[i] - decoded[i])^2 over n values; n is 16 or 32. Weights are
 * positive, with a mean of about 1.
 *
 * Thread:    pure functions. */
#ifndef SHOAL_KERNELS_QUANTS_QUANT_FIT_H
#define SHOAL_KERNELS_QUANTS_QUANT_FIT_H

#include <stdbool.h>

/* Nearest integer in lo..hi; a NaN gives hi.  Adding 1.5 * 2^23 makes the FPU round, and unlike
 * roundf the loop around it becomes vector code on every machine. */
static inline float quant_fit_round(float v, float lo, float hi)
{
    v = v < hi ? v : hi;
    v = v > lo ? v : lo;
    return (v + 0x1.8p23f) - 0x1.8p23f;
}

/* x ~ scale * code, code in lo..hi.  The scale may be negative: that puts the longer side of the
 * codes (lo = -8, hi = 7) under the longer side of the values.  0 when all values are. */
float quant_fit_scale(const float *x, const float *w, int n, float lo, float hi);

/* x ~ scale * code + min, code in 0..hi, scale >= 0.  When !any_min, min <= 0. */
float quant_fit_scale_min(float *min, const float *x, const float *w, int n, float hi,
                          bool any_min);

/* x ~ scale * levels[code], levels ascending, mids half way between neighbours; and the code whose
 * level is nearest to v. */
float quant_fit_levels(const float *x, const float *w, int n, const float levels[16],
                       const float mids[15]);
int quant_fit_level(float v, const float mids[15]);

/* The remaining error: sum of w * (x - (scale * code + min))^2 with the nearest codes in lo..hi. */
float quant_fit_error(const float *x, const float *w, int n, float scale, float min, float lo,
                      float hi);

#endif
