/* quant_iq_points.h - lists of lattice points that encodings refer to by number.  Private to
 * src/kernels.
 *
 * The lists are part of the format.  A point is kept as one number, its first coordinate in the
 * lowest digit: 8 digits in base 3 (which magnitude, or -1, 0, 1 in quant_iq1_points), or 4 in
 * base 8.
 *
 * Thread:    const tables. */
#ifndef SHOAL_KERNELS_QUANTS_QUANT_IQ_POINTS_H
#define SHOAL_KERNELS_QUANTS_QUANT_IQ_POINTS_H

#include <stdint.h>

extern const uint16_t quant_iq2_xxs_points[256];
extern const uint16_t quant_iq2_xs_points[512];
extern const uint16_t quant_iq2_s_points[1024];
extern const uint16_t quant_iq3_xxs_points[256];
extern const uint16_t quant_iq3_s_points[512];
extern const uint16_t quant_iq1_points[2048]; /* IQ1_S and IQ1_M */

#endif
