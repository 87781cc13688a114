/* panel_tokens.h - tokens of an answer, kept until it is clear whether the client gets them.
 *
 * Thread:    the owner's.
 * Ownership: everything is in the given arena.
 * Failure:   without memory a token is lost, and the arena's rc says so. */
#ifndef SHOAL_FLOW_PANEL_PANEL_TOKENS_H
#define SHOAL_FLOW_PANEL_PANEL_TOKENS_H

#include "base/arena.h"
#include "flow/sink.h"

struct panel_token {
    struct panel_token *next;
    struct sink_token event;
};

struct panel_tokens { /* all zero: none */
    struct panel_token *first, *last;
    uint32_t n;
    size_t text_bytes;
};

/* logprobs: keep them too. */
void panel_tokens_add(struct panel_tokens *t, struct arena *a, const struct sink_token *e,
                      bool logprobs);
/* As choice 0. */
void panel_tokens_send(const struct panel_tokens *t, struct sink *to);
/* The whole text, NUL-terminated; "" without memory. */
const char *panel_tokens_text(const struct panel_tokens *t, struct arena *a);

#endif
