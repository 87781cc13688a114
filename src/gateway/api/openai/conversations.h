/* conversations.h - OpenAI's /v1/conversations: lists of items that responses continue.
 *
 * A conversation is an entry of the store of responses, with its items as JSON: it belongs to the
 * key that made it, expires as responses do (each use counts anew) and survives a restart with
 * them.
 *
 * Thread: the loop's. */
#ifndef SHOAL_GATEWAY_API_CONVERSATIONS_H
#define SHOAL_GATEWAY_API_CONVERSATIONS_H

#include <stdbool.h>
#include <stddef.h>

#include <cjson/cJSON.h>

#include "base/err.h"
#include "gateway/call/fields.h"

struct call;
struct request;
struct response_entry;

extern const struct field conversations_fields[];
extern const size_t conversations_n_fields;

/* The conversation that the body of a response names; NULL: none.  An empty text is not one. */
const char *conversations_named(const cJSON *body);
/* Reads its messages, in the request's memory, as if they were a response to continue from.
 * SHOAL_ENOTFOUND: there is none. */
SHOAL_MUST_CHECK int conversations_read(struct call *c, const char *id, struct request *r,
                                        struct response_entry *out, struct fields_error *e);
/* The input of a response as items to append, in the request's memory; NULL: out of memory. */
const char *conversations_input(struct request *r, const cJSON *input);
/* Appends items and the output of a response. */
void conversations_append(struct call *c, const char *id, const char *items, const char *response,
                          size_t response_bytes);

/* Handlers. */
void conversations_create(struct call *c);
void conversations_post(struct call *c); /* metadata, or more items */
void conversations_get(struct call *c);
void conversations_delete(struct call *c);

#endif
