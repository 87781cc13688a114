/* adapter_int.h - the inside of an adapter, for those that make and apply it.  Private to
 * src/model.
 */
#ifndef SHOAL_MODEL_ADAPTER_INT_H
#define SHOAL_MODEL_ADAPTER_INT_H

#include "model/adapter.h"
#include "model/weights.h"

#define ADAPTER_MAX_PARTS 4u /* matrices of a place */

struct adapter_part {      /* one matrix of the base */
    uint32_t b;            /* in weights: [rows][rank] */
    uint32_t low_at, rank; /* its columns of A's result */
    uint32_t out, out_at;  /* which result, and its first column there */
    float factor;          /* alpha / rank */
};

struct adapter_site {
    uint32_t a, n_low; /* in weights: [n_low][columns], the A of all parts */
    uint32_t n_parts;
    struct adapter_part parts[ADAPTER_MAX_PARTS];
};

struct adapter {
    const struct kern_ops *k;
    struct weights weights;
    struct adapter_site *sites; /* [n_layers][ADAPTER_PLACES] */
    uint32_t n_layers;
    unsigned places;
};

#endif
