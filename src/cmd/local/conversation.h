/* conversation.h - the messages of a chat and their tokens.
 *
 * Thread:    the main thread.
 * Ownership: init/fini over the caller's storage; the engine is borrowed.
 * Failure:   SHOAL_E* with a text; the messages are then unchanged. */
#ifndef SHOAL_CMD_LOCAL_CONVERSATION_H
#define SHOAL_CMD_LOCAL_CONVERSATION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/value.h"
#include "shoal/shoal.h"

struct conversation_message {
    const char *role; /* "system", "user", "assistant" */
    char *text;
};

struct conversation {
    const struct shoal_engine *engine;
    const struct value_member *vars; /* for the template; borrowed */
    size_t n_vars;
    struct conversation_message *messages;
    size_t n, cap;
    /* Text and tokens that the model has seen: a prompt that starts with this text starts with
     * these tokens, even if tokenizing the text again would give others. */
    char *seen_text;
    size_t seen_bytes;
    int32_t *seen;
    size_t n_seen;
    char *asked_text; /* text of the last prompt; shoal_free */
    size_t asked_bytes;
};

void conversation_init(struct conversation *c, const struct shoal_engine *engine);
void conversation_fini(struct conversation *c);
/* Removes all but the system message. */
void conversation_reset(struct conversation *c);
/* Replaces or removes (NULL or "") the system message. */
SHOAL_MUST_CHECK int conversation_system(struct conversation *c, const char *text, struct err *e);
SHOAL_MUST_CHECK int conversation_add(struct conversation *c, const char *role, const char *text,
                                      size_t n, struct err *e);
/* Removes the last message. */
void conversation_pop(struct conversation *c);
/* Drops the oldest question and its answer; false if only the last question is left. */
bool conversation_forget(struct conversation *c);
/* Tokens of the prompt for the next answer; shoal_free. */
SHOAL_MUST_CHECK int conversation_prompt(struct conversation *c, int32_t **tokens, size_t *n,
                                         struct err *e);
/* Adds the answer to that prompt to the messages and remembers its tokens. */
SHOAL_MUST_CHECK int conversation_answer(struct conversation *c, const int32_t *prompt,
                                         size_t n_prompt, const int32_t *tokens, size_t n_tokens,
                                         const char *text, size_t n, struct err *e);
/* The messages as JSON. */
void conversation_json(const struct conversation *c, struct buf *b);

#endif
