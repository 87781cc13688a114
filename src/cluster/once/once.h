/* once.h - calls with an idempotency key: the same key and request again gets the first answer.
 *
 * The first call with a key starts a run that does not depend on its client: it continues when the
 * client disconnects. Every client with the key, the first one too, reads the run's events: from
 * the beginning, as fast as they want, also while the run is in progress, also on another event
 * loop. The same key with another request is refused. A failed answer is not kept: the next call
 * tries again.
 *
 * With a ledger (once_ledger.h) this holds for all gateways that share it: the first call is run by
 * one of them, and the others wait for its answer.  Without one, each gateway is alone.
 *
 * Answers are kept for ttl_ms and within max_bytes; beyond it the oldest of the client that holds
 * most are forgotten. A client may have as many runs as are free.
 *
 * Thread:    any owner's; one lock inside.
 * Ownership: owners leave before destroy.
 * Failure:   a call that cannot be kept in memory fails with FAILURE_UNAVAILABLE; too many keys in
 *            progress: FAILURE_BUSY; another request: FAILURE_CONFLICT. */
#ifndef SHOAL_CLUSTER_ONCE_H
#define SHOAL_CLUSTER_ONCE_H

#include "flow/dispatch.h"
#include "flow/flow.h"

struct once;
struct once_ledger;

struct once_opts {
    size_t max_bytes;           /* bytes of kept answers */
    uint32_t ttl_ms;            /* kept for this long after completion */
    uint32_t max_running;       /* keys whose answer is not complete; 0: 1024 */
    struct once_ledger *ledger; /* borrowed, until destroy; NULL: none */
};

struct once_counts { /* since the start */
    uint64_t n_first, n_joined, n_replayed, n_conflicts;
    uint32_t n_kept, n_running; /* now */
    size_t bytes;
};

SHOAL_MUST_CHECK int once_create(struct once **out, const struct once_opts *o, struct err *e);
void once_destroy(struct once *w); /* NULL is fine */
/* For flow_owner.once: takes requests with a key. */
struct dispatch *once_dispatch(struct once *w);
/* Cancels the runs of an owner, on its thread; their events still arrive. NULL is fine. */
void once_leave(struct once *w, const struct flow_owner *o);
void once_count(struct once *w, struct once_counts *out);

#endif
