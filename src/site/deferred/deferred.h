/* deferred.h - deferred requests: kept in a file, run when models are reachable
 * (deferred_runner.h), with answers to be fetched later.
 *
 * Thread:    open, close: the owner's; the rest any.
 * Ownership: open gives, close takes back (NULL is fine).
 * Failure:   open: those of deferred_store.h. */
#ifndef SHOAL_SITE_DEFERRED_DEFERRED_H
#define SHOAL_SITE_DEFERRED_DEFERRED_H

#include <stdatomic.h>
#include <stdint.h>

#include "base/err.h"

struct buf;
struct config;
struct deferred_store;

struct deferred {
    struct deferred_store *store;
    uint32_t max_ttl_ms;
    _Atomic int64_t next_ms; /* next time the runner should look, Unix time; a put sets it to 0 */
    _Atomic uint64_t n_put, n_tried, n_answered; /* since the start */
};

/* *out is NULL if the configuration names no file. */
SHOAL_MUST_CHECK int deferred_open(struct deferred **out, const struct config *c, struct err *e);
void deferred_close(struct deferred *d);

/* Unix time in milliseconds. */
int64_t deferred_now_ms(void);
/* Metrics as Prometheus text. */
void deferred_metrics(struct deferred *d, struct buf *b);

#endif
