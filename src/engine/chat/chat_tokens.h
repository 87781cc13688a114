/* chat_tokens.h - turns a conversation of typed messages into the tokens of a prompt.
 *
 * Only the template produces special tokens: the spelling of one in a message stays text.
 *
 * Thread:    any.
 * Ownership: the conversation is borrowed for the call; *tokens belongs to the caller: mem_free.
 * Failure:   as shoal_chat_tokens; then *tokens and *text are NULL. */
#ifndef SHOAL_ENGINE_CHAT_TOKENS_H
#define SHOAL_ENGINE_CHAT_TOKENS_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "engine/chat/chat_messages.h"

struct shoal_engine;

SHOAL_MUST_CHECK int chat_tokens_of(const struct shoal_engine *en, const struct chat *chat,
                                    int32_t **tokens, size_t *n_tokens, struct err *e);
/* The prompt's text.  The spelling of a special token in a message cannot be told from one of the
 * template, so this is for messages of the person at this terminal only.  *text: shoal_free. */
SHOAL_MUST_CHECK int chat_prompt_of(const struct shoal_engine *en, const struct chat *chat,
                                    char **text, size_t *n, struct err *e);

#endif
