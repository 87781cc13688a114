/* deferred_store.h - requests that may be answered later, and their answers, in a SQLite file.
 *
 * A request waits, is taken to be run, and is finished with an answer, or put back with a later
 * time. Requests taken when the process died wait again after the next open. Requests without an
 * answer expire; answers are deleted after a while. Requests and answers are not encrypted: the
 * file has mode 0600.
 *
 * Thread:    any that may block; one lock inside.
 * Ownership: open gives, close takes back (NULL is fine).  A taken item's memory is the arena's.
 * Failure:   SHOAL_EBUSY: another process uses the file; SHOAL_ENOTFOUND; SHOAL_ELIMIT: the store
 *            is full; SHOAL_EINVAL: another request has this key; those of db.h. */
#ifndef SHOAL_STORE_DEFERRED_STORE_H
#define SHOAL_STORE_DEFERRED_STORE_H

#include <stdint.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"

#define DEFERRED_STORE_ID_BYTES 40u     /* with the NUL */
#define DEFERRED_STORE_DIGEST_BYTES 32u /* of a request, and of an idempotency key */

struct deferred_store;

struct deferred_store_opts {
    uint32_t max_requests; /* including finished ones; a named client may have at most a quarter */
    uint64_t max_bytes;    /* limit of requests and answers; old answers are evicted for new ones */
    uint32_t keep_ms;      /* how long answers, and expired requests, are kept */
};

struct deferred_item { /* a request */
    char id[DEFERRED_STORE_ID_BYTES];
    const char *client; /* name of its key; "": none */
    const char *path, *query;
    const char *headers; /* name, NUL, value, NUL, ... */
    size_t n_headers;    /* bytes */
    const char *body;    /* NUL-terminated; n_body does not count the NUL */
    size_t n_body;
    uint32_t n_tries; /* before this one */
};

enum deferred_state { DEFERRED_WAITING, DEFERRED_RUNNING, DEFERRED_DONE, DEFERRED_EXPIRED };

struct deferred_view { /* the part that its client may see */
    enum deferred_state state;
    int64_t created_ms, expires_ms;
    uint32_t n_tries;
    char why[200]; /* error of the last attempt; "": none */
    int status;    /* DONE: of the answer */
    char type[96];
};

SHOAL_MUST_CHECK int deferred_store_open(struct deferred_store **out, const char *path,
                                         const struct deferred_store_opts *o, struct err *e);
void deferred_store_close(struct deferred_store *s);

/* Keeps a request until expires_ms; times are Unix time in milliseconds. key: of the client's
 * idempotency key, or NULL. 0: id is set; 1: the same request already exists, and id is its id. */
SHOAL_MUST_CHECK int deferred_store_put(struct deferred_store *s, const struct deferred_item *r,
                                        const uint8_t digest[DEFERRED_STORE_DIGEST_BYTES],
                                        const uint8_t *key, int64_t now_ms, int64_t expires_ms,
                                        char id[DEFERRED_STORE_ID_BYTES], struct err *e);
/* Takes the request that is due first. 1: there is one; 0: none, and *next_ms is when to call
 * again. */
SHOAL_MUST_CHECK int deferred_store_take(struct deferred_store *s, int64_t now_ms,
                                         struct deferred_item *out, struct arena *a,
                                         int64_t *next_ms, struct err *e);
/* Puts a taken request back, to be retried. */
SHOAL_MUST_CHECK int deferred_store_put_back(struct deferred_store *s, const char *id,
                                             int64_t due_ms, const char *why, struct err *e);
SHOAL_MUST_CHECK int deferred_store_finish(struct deferred_store *s, const char *id, int64_t now_ms,
                                           int status, const char *type, const void *answer,
                                           size_t n, struct err *e);

/* out: the answer, appended if there is one. */
SHOAL_MUST_CHECK int deferred_store_show(struct deferred_store *s, const char *client,
                                         const char *id, struct deferred_view *v, struct buf *out,
                                         struct err *e);
SHOAL_MUST_CHECK int deferred_store_drop(struct deferred_store *s, const char *client,
                                         const char *id, struct err *e);

#endif
