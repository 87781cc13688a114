/* session_place.h - interface of a store for encrypted conversations, implemented by SQLite and
 * Redis.
 *
 * Thread:    any; a store locks internally.
 * Failure:   as session_store.h says. */
#ifndef SHOAL_STORE_SESSION_SESSION_PLACE_H
#define SHOAL_STORE_SESSION_SESSION_PLACE_H

#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"

#define SESSION_PLACE_KEY_BYTES 64u /* hex digits */

struct session_place;

struct session_place_ops {
    /* *version 0: none. */
    int (*load)(struct session_place *p, const char *key, struct buf *out, uint64_t *version,
                struct err *e);
    /* Saves only if the stored version is `version` (0: none); it becomes version + 1. */
    int (*save)(struct session_place *p, const char *key, const void *bytes, size_t n,
                uint64_t version, uint32_t ttl_s, struct err *e);
    int (*remove)(struct session_place *p, const char *key, struct err *e);
    void (*close)(struct session_place *p);
};

struct session_place {
    const struct session_place_ops *ops;
};

SHOAL_MUST_CHECK int session_sqlite_open(struct session_place **out, const char *path,
                                         struct err *e);
/* address: HOST:PORT or HOST:PORT/DB. */
SHOAL_MUST_CHECK int session_redis_open(struct session_place **out, const char *address,
                                        struct err *e);

#endif
