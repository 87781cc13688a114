/* response_store.h - stored answers of /v1/responses, which clients can read again or continue
 * from.
 *
 * Entries are found by their id and by the client that made them.  They are kept for a time and
 * within a number of bytes; the oldest are forgotten first.
 *
 * Thread:    any; one lock inside.
 * Ownership: put copies; get gives the caller a reference that unref takes back.  What an entry
 *            points to does not change and lives as long as the reference.
 * Failure:   an entry that does not fit is not kept. */
#ifndef SHOAL_GATEWAY_API_RESPONSE_STORE_H
#define SHOAL_GATEWAY_API_RESPONSE_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "flow/request.h"

struct buf;
struct response_store;

#define RESPONSE_STORE_ID_BYTES 64u

struct response_entry {
    char id[RESPONSE_STORE_ID_BYTES], owner[RESPONSE_STORE_ID_BYTES];
    const char *json; /* the answer as it was sent */
    size_t json_bytes;
    /* [n_messages]: all so far, with the answer.  Their roles are constants. */
    const struct chat_message *messages;
    uint32_t n_messages, n_input; /* n_input: messages of this call's input, before the last one */
};

SHOAL_MUST_CHECK int response_store_create(struct response_store **out, size_t max_bytes,
                                           uint32_t ttl_ms, struct err *e);
void response_store_destroy(struct response_store *s); /* NULL is fine */
/* False: it is not kept. */
bool response_store_put(struct response_store *s, const struct response_entry *e, uint64_t now_ns);
/* NULL: none. */
const struct response_entry *response_store_get(struct response_store *s, const char *id,
                                                const char *owner, uint64_t now_ns);
void response_store_unref(struct response_store *s, const struct response_entry *e);
/* False: none. */
bool response_store_delete(struct response_store *s, const char *id, const char *owner,
                           uint64_t now_ns);
/* How many there are, and their bytes. */
void response_store_count(struct response_store *s, uint32_t *n, size_t *bytes);

#endif
