/* response_background.h - a response that is made without its client: a call whose answer goes to
 * the store, and that another call can cancel.
 *
 * Thread:    the loop's of the call that began it.
 * Ownership: the call belongs to itself; it ends like any other. */
#ifndef SHOAL_GATEWAY_API_RESPONSE_BACKGROUND_H
#define SHOAL_GATEWAY_API_RESPONSE_BACKGROUND_H

#include <stdbool.h>

struct call;
struct buf;
struct response_store;

/* A call for the same client, with the places that `outer` has taken.  NULL: out of memory. */
struct call *response_background_open(struct call *outer);
/* From now on it can be cancelled under this id; the store has its entry. */
void response_background_begin(struct call *c, const char *id);
/* Ends an entry that is running: its status and why, for its owner.  out: the response, or NULL.
 * False: there is none, or it is complete. */
bool response_background_settle(struct response_store *s, const char *id, const char *owner,
                                const char *status, const char *code, const char *message,
                                struct buf *out);

#endif
