/* wyoming_turn.h - what one Wyoming client asks, event by event: sound to a transcript, a
 * transcript to deeds and a reply, a text to an intent or to sound.
 *
 * Thread:    the loop's.
 * Ownership: the caller destroys, not inside a callback; the account is borrowed. */
#ifndef SHOAL_GATEWAY_WYOMING_WYOMING_TURN_H
#define SHOAL_GATEWAY_WYOMING_WYOMING_TURN_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

struct gw_loop;
struct peer;
struct wyoming_event;
struct wyoming_turn;

struct wyoming_turn_ops {
    void (*send)(void *ctx, const char *type, const char *data, size_t n, const void *payload,
                 size_t n_payload);
    void (*room)(void *ctx); /* wyoming_turn_full is false again */
};

SHOAL_MUST_CHECK int wyoming_turn_create(struct wyoming_turn **out, struct gw_loop *gl,
                                         struct peer *account, const struct wyoming_turn_ops *ops,
                                         void *ctx, struct err *e);
void wyoming_turn_destroy(struct wyoming_turn *t); /* NULL is fine */
void wyoming_turn_event(struct wyoming_turn *t, const struct wyoming_event *ev);
/* Whether no more events should be read: sound waits, or a text is being answered. */
bool wyoming_turn_full(const struct wyoming_turn *t);
/* Tells the client what is wrong. */
void wyoming_turn_error(struct wyoming_turn *t, const char *code, const char *text);

#endif
