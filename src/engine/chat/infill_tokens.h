/* infill_tokens.h - the tokens of an infill prompt: the model generates the text between two
 * others.
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

struct infill_file {
    const char *name; /* NULL: none */
    const char *text;
    size_t n_text;
};

struct infill {
    const char *prefix, *suffix;
    size_t n_prefix, n_suffix;
    /* Related files. If they do not fit into the context, with max_tokens for the answer, only
     * their end is used. */
    const struct infill_file *files;
    uint32_t n_files;
    uint32_t max_tokens; /* 0: an eighth of the context */
};

SHOAL_MUST_CHECK int infill_tokens_of(const struct shoal_engine *en, const struct infill *what,
                                      int32_t **tokens, size_t *n_tokens, struct err *e);

#endif
