/* chat_tokens.h - turns a conversation of typed messages into the tokens of a prompt.
 *
 * Only the template produces special tokens: the spelling of one in a message stays text.
 *
 * Thread:    any.
 * Ownership: the conversation is borrowed for the call; *tokens belongs to the caller: mem_free.
 * Failure:   as shoal_chat_tokens; then *tokens is NULL. */
#ifndef SHOAL_ENGINE_CHAT_TOKENS_H
#define SHOAL_ENGINE_CHAT_TOKENS_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct shoal_engine;
struct value_member;

/* All texts end with NUL and are valid UTF-8. */
struct chat_message {
    const char *role;
    const char *name; /* NULL: none */
    const char *content;
    size_t content_bytes;
};

/* A variable of this name that is true: the answer continues the last message. */
#define CHAT_CONTINUE_VAR "continue_final_message"

struct chat {
    const struct chat_message *messages;
    uint32_t n_messages;
    const struct value_member *vars; /* further variables of the template */
    uint32_t n_vars;
};

SHOAL_MUST_CHECK int chat_tokens_of(const struct shoal_engine *en, const struct chat *chat,
                                    int32_t **tokens, size_t *n_tokens, struct err *e);

#endif
