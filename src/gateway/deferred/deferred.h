/* deferred.h - deferred requests: kept in a file, run when models are reachable
 * (deferred_runner.h), with answers to be fetched later.
 *
 * A request with the header x-shoal-defer is answered with 202 and an id as soon as it is on disk.
 *
 * Thread:    open, close: the owner's.  The handlers: the loop's; files are the pool's.
 * Ownership: open gives, close takes back (NULL is fine).
 * Failure:   open: those of deferred_store.h.  Calls that are refused are answered. */
#ifndef SHOAL_GATEWAY_DEFERRED_DEFERRED_H
#define SHOAL_GATEWAY_DEFERRED_DEFERRED_H

#include <stdatomic.h>

#include "gateway/call.h"

struct deferred_store;
struct gw_config;

struct deferred {
    struct deferred_store *store;
    uint32_t max_ttl_ms;
    _Atomic int64_t next_ms; /* next time the runner should look, Unix time; a put sets it to 0 */
    _Atomic uint64_t n_put, n_tried, n_answered; /* since the start */
};

/* *out is NULL if the configuration names no file. */
SHOAL_MUST_CHECK int deferred_open(struct deferred **out, const struct gw_config *c, struct err *e);
void deferred_close(struct deferred *d);

/* Unix time in milliseconds. */
int64_t deferred_now_ms(void);
/* Whether the client allows a deferred answer. */
bool deferred_asked(const struct call *c);
/* Keeps the request, whose body is parsed, and answers. */
void deferred_take(struct call *c);
void deferred_show(struct call *c); /* GET /v1/deferred/ID */
void deferred_drop(struct call *c); /* DELETE */
void deferred_metrics(struct deferred *d, struct buf *b);

#endif
