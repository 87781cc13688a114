/* chained_lm.h - a decoder of which other processes compute a part (decode/chain.h): the first
 * layers, or rows of all.
 *
 * By layers, a pass is cut into pieces of a few tokens of each prompt, which follow each other
 * through the
 * parts: while one part computes a piece, the part before it computes the next.  The order of sums
 * does not depend on how tokens are grouped, so the results are those of the whole model.  By rows,
 * all processes compute a pass together.
 *
 * Thread, ownership: as lm.h. */
#ifndef SHOAL_ENGINE_NATIVE_CHAINED_LM_H
#define SHOAL_ENGINE_NATIVE_CHAINED_LM_H

#include "engine/decode/chain.h"
#include "engine/decode/lm.h"

#define CHAINED_PIECE 64u /* tokens of a prompt that travel together */

/* Takes the decoder and the chain, also if it fails.  rows: it is cut by rows.  max_runs: of a
 * pass. */
SHOAL_MUST_CHECK int chained_lm_create(struct lm *out, struct decoder *d, struct chain *chain,
                                       bool rows, uint32_t max_runs, struct err *e);

#endif
