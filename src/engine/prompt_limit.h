/* prompt_limit.h - how much of a prompt is tokenized. What cannot fit into the context is refused
 * before that, since the tokens of 15 MiB take seconds.
 *
 * A prompt a few times as long as the context is counted exactly, so that its error says by how
 * much it is too long.
 *
 * Thread:    pure.
 * Failure:   SHOAL_ELIMIT: the prompt is too long. */
#ifndef SHOAL_ENGINE_PROMPT_LIMIT_H
#define SHOAL_ENGINE_PROMPT_LIMIT_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct shoal_engine;

/* Tokens of a prompt that are made at most. */
size_t prompt_limit_tokens(const struct shoal_engine *en);
/* Whether a text of n bytes may fit: a token spells only so many. */
SHOAL_MUST_CHECK int prompt_limit_check(const struct shoal_engine *en, size_t n, struct err *e);
/* rc of a tokenizer that was to make prompt_limit_tokens at most, with its message. */
SHOAL_MUST_CHECK int prompt_limit_passed(const struct shoal_engine *en, int rc, struct err *e);
/* As shoal_tokenize, within both limits. */
SHOAL_MUST_CHECK int prompt_limit_tokenize(const struct shoal_engine *en, const char *text,
                                           size_t n, unsigned flags, int32_t **tokens,
                                           size_t *n_tokens, struct err *e);

#endif
