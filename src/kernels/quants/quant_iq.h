/* quant_iq.h - encodings whose values are whole numbers times a scale: the IQ, TQ and FP4 types.
 * Private to src/kernels.
 *
 * Both the values and the tiles of a matrix are made from the form below, so that they cannot
 * differ.
 *
 * Thread:    pure functions and const tables. */
#ifndef SHOAL_KERNELS_QUANTS_QUANT_IQ_H
#define SHOAL_KERNELS_QUANTS_QUANT_IQ_H

#include <stdint.h>

#include "kernels/quants/quant_type.h"

/* What the 16 nibbles of IQ4_NL and IQ4_XS stand for, ascending. */
extern const int8_t quant_iq4_levels[16];

/* 32 values: scale[i / 16] * q[i].  Types that have one scale for all 32 set both to it. */
struct quant_group {
    float scale[2];
    int8_t q[32];
};

/* Decodes one block into block / 32 groups. */
typedef void (*quant_group_fn)(const uint8_t *b, struct quant_group *out);
/* NULL: not such a type. */
quant_group_fn quant_group_decoder(enum quant_type type);

/* The F16 scale of an IQ1_M block, which is stored in four pieces. */
float quant_iq1_m_scale(const uint8_t *b);
/* The scale of an MXFP4 block: a power of two, halved because the levels are doubled. */
float quant_mxfp4_scale(uint8_t exponent);

#endif
