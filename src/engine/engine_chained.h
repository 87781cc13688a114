/* engine_chained.h - an engine whose first layers other processes compute (decode/chain.h).
 *
 * Thread, failure: as shoal_engine_open. */
#ifndef SHOAL_ENGINE_ENGINE_CHAINED_H
#define SHOAL_ENGINE_ENGINE_CHAINED_H

#include "engine/decode/chain.h"
#include "shoal/shoal.h"

/* Takes the chain, also if it fails.  Only native decoders can be chained. */
SHOAL_MUST_CHECK int engine_open_chained(struct shoal_engine **out, const char *path,
                                         const struct shoal_engine_opts *o, struct chain *chain,
                                         struct err *e);

#endif
