/* session_store.h - storage of conversations: by tenant and id, encrypted, with a TTL.
 *
 * A conversation has a version, which grows with each save: if two gateways continue it at once,
 * one gets SHOAL_EBUSY and saves on top of the other.
 *
 * Thread:    any; every call may wait for a disk or a server (at most about a second).
 * Ownership: open/close; the keys must outlive it.
 * Failure:   SHOAL_EIO: the store is unavailable; it is retried about a second later, and fails at
 *            once until then. */
#ifndef SHOAL_STORE_SESSION_SESSION_STORE_H
#define SHOAL_STORE_SESSION_SESSION_STORE_H

#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"

struct session_keys;
struct session_store;

#define SESSION_STORE_MAX_BYTES ((size_t)8 << 20) /* limit of a conversation */
#define SESSION_STORE_MAX_ID 63u

struct session_store_opts {
    const char *place; /* sqlite:PATH, or redis://HOST:PORT[/DB] */
    const struct session_keys *keys;
    uint32_t ttl_s; /* after the last save */
};

/* An unavailable store is not an error: it may come back. */
SHOAL_MUST_CHECK int session_store_open(struct session_store **out,
                                        const struct session_store_opts *o, struct err *e);
void session_store_close(struct session_store *s);
/* Appends the text; *version 0 and no text: there is no such conversation. */
SHOAL_MUST_CHECK int session_store_load(struct session_store *s, const char *tenant, const char *id,
                                        struct buf *out, uint64_t *version, struct err *e);
/* version: that of the load that the text is based on; becomes the new one. SHOAL_EBUSY: another
 * gateway saved in the meantime. */
SHOAL_MUST_CHECK int session_store_save(struct session_store *s, const char *tenant, const char *id,
                                        const char *text, size_t n, uint64_t *version,
                                        struct err *e);
SHOAL_MUST_CHECK int session_store_delete(struct session_store *s, const char *tenant,
                                          const char *id, struct err *e);

#endif
