/* lease.h - election of the controller: a lease in NATS that at most one member holds at any time.
 *
 * The lease is one value of the bucket shoal-CLUSTER-lease, written by compare-and-set. The holder
 * renews it every third of the ttl. It counts as held for 9/10 of the ttl from the moment the last
 * successful renewal was *sent*; then the holder steps down by itself. The others watch the
 * revision: a member that has seen the same one for 11/10 of the ttl on its own clock may replace
 * it, if it is still the newest. So no member's time of day matters, clock rates may differ by 10
 * %, and no event of NATS is needed. The clocks count while a machine sleeps.
 *
 * A holder's fence is the revision with which it took the lease plus a base that the lease carries
 * from holder to holder.  So it grows from holder to holder, also when NATS has lost its data and
 * counts revisions from 1 again: then the next holder chooses a base above every fence that is
 * known (lease_known).  Every command of a controller carries it, and receivers refuse a command
 * with a lower fence than the highest they have seen. lease_held() must be checked just before a
 * command is sent; the fence covers the time between the check and the arrival.
 *
 * Thread:    held, get_status: any.  Everything else: the owner's; on_change is called there.
 *            Inside, a thread "lease" talks to NATS and calls claim.
 * Ownership: open gives, close takes back (NULL is fine): it releases the lease, so that others
 *            need not wait. The bus must outlive it. A posted task may still be in the executor,
 *            see bus.h.
 * Failure:   SHOAL_ENOMEM, SHOAL_EINVAL. An unavailable NATS is not an error: the lease is then
 *            lost. */
#ifndef SHOAL_CLUSTER_CONTROL_LEASE_H
#define SHOAL_CLUSTER_CONTROL_LEASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct bus;
struct executor;
struct lease;

#define LEASE_MAX_NAME 127u

/* If NATS has no lease: was there one?  Then its holder may still count on it for a while, so the
 * others wait for as long as an unrenewed lease lasts. */
struct lease_known {
    uint64_t fence;        /* the highest fence ever heard of; 0: none */
    uint64_t heard_ago_ns; /* since a controller was last heard; 0: never */
};

struct lease_opts {
    struct bus *bus;
    const char *name;  /* of this member */
    uint32_t ttl_ms;   /* 0: 10000; 500 to 300000. JetStream may accept no writes for 7 s. */
    unsigned replicas; /* servers that hold the bucket; 0: derived from the bus's addresses */
    /* Called with a new fence before the lease counts as held; may block for a while. It fences off
     * older controllers (desired_store_claim). Until it returns 0 the lease is renewed but not
     * held. SHOAL_ECHANGED: a higher fence is in force; the lease is taken again with one above it.
     * SHOAL_ENOTFOUND: the state is lost, and members are still asked for it. NULL: none. */
    int (*claim)(void *ctx, uint64_t fence, struct err *e);
    /* What is known outside the lease; called on the thread "lease" with claim_ctx.  NULL: nothing.
     */
    void (*known)(void *ctx, struct lease_known *out);
    void *claim_ctx;
};

struct lease_status {
    bool held;
    uint64_t fence;                  /* our fencing token, if held */
    char holder[LEASE_MAX_NAME + 1]; /* as last seen; "": no holder */
    uint64_t revision;               /* as last seen */
    uint64_t n_taken, n_lost, n_renewed;
    char error[320]; /* why the last attempt failed; "": it succeeded */
};

typedef void (*lease_fn)(void *ctx, bool held, uint64_t fence);

/* on_change is called whenever the lease was gained or lost; a loss and a gain in quick succession
 * are both reported, or neither. */
SHOAL_MUST_CHECK int lease_open(struct lease **out, const struct lease_opts *o, struct executor *x,
                                lease_fn on_change, void *ctx, struct err *e);
void lease_close(struct lease *l);
/* True if this member is the controller now; sets *fence. */
bool lease_held(struct lease *l, uint64_t *fence);
void lease_get_status(struct lease *l, struct lease_status *out);

/* The value of the bucket.  SHOAL_EFORMAT: not a lease. */
struct lease_value {
    char holder[LEASE_MAX_NAME + 1]; /* "": given up */
    uint8_t run[16];                 /* random id of one run of a process */
    uint64_t renewal;
    uint32_t ttl_ms;
    uint64_t base; /* of the fence */
};
SHOAL_MUST_CHECK int lease_parse(struct lease_value *out, const void *bytes, size_t n,
                                 struct err *e);
/* How long a member with a lease of mine_ms must see another's lease of theirs_ms unchanged before
 * it may take it: the longer of both, and a tenth for the clocks. */
uint64_t lease_expiry_ns(uint32_t mine_ms, uint32_t theirs_ms);

#endif
