/* history.h - the messages of a conversation: reading, writing, and trimming by tokens.
 *
 * Token counts are estimated from the words (store/chunk.h): the model that will read them is not
 * known yet, and may change from turn to turn.
 *
 * Thread:    pure functions over the caller's arena.
 * Failure:   SHOAL_EFORMAT, SHOAL_ENOMEM. */
#ifndef SHOAL_KNOWLEDGE_HISTORY_H
#define SHOAL_KNOWLEDGE_HISTORY_H

#include "base/arena.h"
#include "base/buf.h"
#include "engine/chat/chat_tokens.h"

#define HISTORY_MAX_MESSAGES 2048u

struct history {
    struct chat_message *messages;
    uint32_t n;
    const char *note; /* what was said before them, condensed; NULL: nothing */
};

/* Stored text to messages, in the arena. */
SHOAL_MUST_CHECK int history_read(struct history *h, const char *text, size_t n, struct arena *a,
                                  struct err *e);
void history_write(const struct history *h, struct buf *out);
/* The stored messages, then the new ones; a system message among the new ones replaces the stored
 * one. Only pure text messages are stored, so `old` has no others. */
SHOAL_MUST_CHECK int history_join(struct history *to, const struct history *old,
                                  const struct chat_message *add, uint32_t n_add, struct arena *a,
                                  struct err *e);
/* Drops the oldest messages, but neither the system message nor the last `keep`, until about
 * max_tokens are left; the rest begins with a user's message. */
void history_trim(struct history *h, uint32_t max_tokens, uint32_t keep);
/* How many messages that would drop; the first ones after the system message. */
uint32_t history_excess(const struct history *h, uint32_t max_tokens, uint32_t keep);
void history_drop(struct history *h, uint32_t n);
/* The note and the first n messages as a text to condense. */
void history_tell(const struct history *h, uint32_t n, struct buf *out);
/* Puts the note into the system message, for the model; h has room for one more message. */
SHOAL_MUST_CHECK int history_use_note(struct history *h, struct arena *a, struct err *e);

#endif
