/* decoder_rows.h - a decoder's layers over several processes by rows: each has some rows of every
 * matrix, computes those, and gets the rest of each result from the others before the next product
 * needs it.  A row's sum is never divided, so the results are those of the whole model, to the bit.
 *
 *   a layer     norm | q k v of own heads, attention | gather | own rows of attn_out | gather | norm
 *               | own rows of gate and up, activation | gather | own rows of down | gather
 *
 * That is four gathers of one way each.  (Sums over columns, as they are usual, need two that go
 * both ways, and their order would be another.)  The last part has the head.
 *
 * Thread:    no state.
 * Failure:   SHOAL_EINVAL: no such cut; SHOAL_EUNSUPPORTED: the architecture has a block that
 * cannot
 *            be cut. */
#ifndef SHOAL_MODEL_DECODER_ROWS_H
#define SHOAL_MODEL_DECODER_ROWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

#define DECODER_ROWS_MAX 8u
#define DECODER_ROWS_GATHERS 4u /* of a layer */

/* Part i has what lies between cut i and cut i + 1. */
struct decoder_rows {
    uint32_t n_parts;                     /* 0: the model is not cut by rows */
    uint32_t index;                       /* of this part */
    uint32_t heads[DECODER_ROWS_MAX + 1]; /* of keys and values, with their queries; may be empty */
    uint32_t ffn[DECODER_ROWS_MAX + 1];
    uint32_t dim[DECODER_ROWS_MAX + 1];
};

/* A result of which this part has its own columns, and shall have all. */
struct decoder_gather {
    float *data; /* [n_tokens][ld] */
    size_t ld;
    uint32_t n_tokens;
    uint32_t number;                     /* within the pass, from 0 */
    uint32_t cuts[DECODER_ROWS_MAX + 1]; /* columns: of part i from cuts[i] to cuts[i + 1] */
};
/* Fills in the columns of the others.  false: they are lost, and the pass is worth nothing; it is
 * not called again in this pass.  Called by whichever compute thread comes to it; it may block. */
typedef bool (*decoder_gather_fn)(void *ctx, const struct decoder_gather *g);

/* Widths that are cut. */
struct decoder_rows_of {
    uint32_t n_kv_heads, ffn_dim, dim;
};
/* Cuts by shares, of which none may be 0 or less.  SHOAL_EINVAL: there are fewer rows than parts
 * need. */
SHOAL_MUST_CHECK int decoder_rows_cut(struct decoder_rows *out, const struct decoder_rows_of *of,
                                      const double *shares, uint32_t n_parts, struct err *e);
/* As it, for others than the last part, which keeps what it has in `now`. */
SHOAL_MUST_CHECK int decoder_rows_recut(struct decoder_rows *out, const struct decoder_rows *now,
                                        const double *shares, uint32_t n_parts, struct err *e);

#endif
