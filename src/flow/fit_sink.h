/* fit_sink.h - a conversation that is too long for its model continues with its last turns.
 *
 * Only the node that runs a request knows the model's context: it refuses, and the request is sent
 * again with fewer turns, the oldest left out first. A turn begins with a message of the user and
 * has everything up to the next one, so calls of tools and their results stay together. System
 * messages stay, and so does the last turn.
 *
 * Thread:    the owner's.
 * Ownership: lives in the arena of its request. */
#ifndef SHOAL_FLOW_FIT_SINK_H
#define SHOAL_FLOW_FIT_SINK_H

#include <stdbool.h>
#include <stdint.h>

struct chat_message;
struct flow_owner;
struct request;
struct sink;

/* STAGE_FIT: takes chats with request.truncates and more than one turn. sink_start says how many
 * messages were left out. */
bool fit_sink_take(struct flow_owner *o, struct request *r, struct sink *s);

/* Copies the messages without the oldest `drop` turns; the number of copied ones. */
uint32_t fit_sink_trim(struct chat_message *to, const struct chat_message *from, uint32_t n,
                       uint32_t drop);
/* Turns of a conversation. */
uint32_t fit_sink_turns(const struct chat_message *m, uint32_t n);

#endif
