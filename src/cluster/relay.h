/* relay.h - a request that runs on replicas and survives them.
 *
 * The relay stands between a replica and the client's sink.  It keeps the ticket of a generation:
 * what the client has seen of every choice, as tokens.  When the replica breaks off, another one
 * goes on from the ticket; logits and sampling are the same on every machine, so the client sees a
 * pause and not a changed token.  Requests to specialists and flows are run again as a whole: their
 * results reach the client only when all of them are there.
 *
 * A second replica is started beside the first when the first delivers nothing for much longer than
 * expected, or, for a request with a deadline, for hedge_ms.  Whoever brings the next piece of the
 * answer first goes on, the other one is cancelled.  At most one request in ten runs twice, so that
 * an overload does not feed itself.
 *
 * Nothing that a replica sends is trusted: an event that does not fit the request counts as a
 * failure of the replica.
 *
 * Thread:    the owner's.
 * Failure:   what is wrong with the request itself is told at once.  What may be better elsewhere
 * is tried elsewhere; with no replica left the relay waits for one.  patience.h has the rule. */
#ifndef SHOAL_CLUSTER_RELAY_H
#define SHOAL_CLUSTER_RELAY_H

#include "cluster/replica.h"
#include "flow/flow.h"

struct relay_opts {
    struct replica_source *source;
    uint32_t wait_ms;  /* for a replica to come back, and */
    uint32_t total_ms; /* without a piece of the answer: see patience.h */
    uint32_t hedge_ms; /* without an answer, before a second replica is asked; 0: never */
    uint32_t stall_ms; /* the least silence that counts as too long; 0: 500 */
};

/* Takes the request.  Events may come before this returns. */
void relay_run(const struct relay_opts *opts, struct flow_owner *o, struct request *r,
               struct sink *s);

#endif
