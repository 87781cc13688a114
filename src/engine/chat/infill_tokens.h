/* infill_tokens.h - the tokens of a prompt that asks for what stands between two texts.
 *
 * Thread:    any.
 * Ownership: *tokens belongs to the caller: mem_free.
 * Failure:   SHOAL_EUNSUPPORTED if the model has no tokens for this; then *tokens is NULL. */
#ifndef SHOAL_ENGINE_INFILL_TOKENS_H
#define SHOAL_ENGINE_INFILL_TOKENS_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct shoal_engine;

SHOAL_MUST_CHECK int infill_tokens_of(const struct shoal_engine *en, const char *prefix,
                                      size_t n_prefix, const char *suffix, size_t n_suffix,
                                      int32_t **tokens, size_t *n_tokens, struct err *e);

#endif
