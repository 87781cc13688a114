/* relay.h - a request that survives the loss of its replica.
 *
 * The relay sits between a replica and the client's sink. It keeps the ticket of a generation:
 * what the client has seen of every choice, as tokens. When the replica fails, another one
 * continues from the ticket; logits and sampling are the same on every machine, so the client sees
 * a pause but no changed token. If the version that began is not known, because its node had not
 * hashed the model, the next replica begins anew and must write the client's tokens once more
 * before it may go on. Requests to specialists and flows are run again as a whole: their results
 * reach the client only when all of them are there.
 *
 * A second replica is started beside the first when the first delivers nothing for much longer than
 * usual in this stream (pace.h) or than expected, or, for a request with a deadline, for hedge_ms.
 * The replica that delivers the next piece first continues; the other one is cancelled. At most one
 * request in ten runs twice, so that hedging cannot amplify an overload; of streams that have
 * stopped, one in three, which is what a node that stands still takes with it. A replica that loads
 * its model is left as soon as another one has it loaded.
 *
 * Nothing that a replica sends is trusted: an event that does not fit the request counts as a
 * failure of the replica.
 *
 * Thread:    the owner's.
 * Failure:   errors of the request itself are reported at once. Other failures are retried on
 *            another replica; if none is left, the relay waits for one. patience.h has the rule. */
#ifndef SHOAL_CLUSTER_RELAY_H
#define SHOAL_CLUSTER_RELAY_H

#include "cluster/replica.h"
#include "flow/flow.h"

struct relay_opts {
    struct replica_source *source;
    const struct prefix_chain *prefix; /* of the request, as long as that lives; NULL: none */
    uint32_t wait_ms;                  /* how long to wait for a replica to come back, and */
    uint32_t total_ms;                 /* how long without a piece of the answer: see patience.h */
    uint32_t hedge_ms; /* silence before a second replica is tried as well; 0: never */
    uint32_t stall_ms; /* shortest silence that counts as a stall; 0: 500 */
};

/* Takes the request. Events may arrive before this returns. */
void relay_run(const struct relay_opts *opts, struct flow_owner *o, struct request *r,
               struct sink *s);

#endif
