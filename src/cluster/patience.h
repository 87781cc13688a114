/* patience.h - the rule for when to give up on a request that no replica has completed.
 *
 * A request that a replica rejects as invalid fails at once; that is not decided here. Any other
 * request continues as long as its client waits, until one of these is true:
 *
 *   late      its own deadline has passed;
 *   refused   nothing of it was answered, and nobody that is heard has its model, or all who have
 *             it refused;
 *   alone     no replica could take it for wait_ms in all since its last piece.  The time that
 *             replicas work on it does not count;
 *   fruitless it brought no piece for total_ms, whatever became of its replicas;
 *   wrong     more than MAX_WRONG replicas failed by a fault of their own, or sent nonsense;
 *   deadly    replicas end while they work on it, so that it may be the cause.  Each one counts
 *             as one divided by the requests that ended with it; MAX_DEATHS of them are too many.
 *
 * A piece of the answer clears everything but the deadline and what was wrong. Moves do not count,
 * however many: a replica that falls silent, is unreachable, loses a race to a second one, loads or
 * unloads its model does not count against the request.
 *
 * Thread: plain data; the owner's.  Time is what the caller says. */
#ifndef SHOAL_CLUSTER_PATIENCE_H
#define SHOAL_CLUSTER_PATIENCE_H

#include <stdbool.h>
#include <stdint.h>

#include "cluster/replica.h"

enum patience_verdict {
    PATIENCE_GO_ON, /* on the replica that was found, or wait for one */
    PATIENCE_LATE,
    PATIENCE_REFUSED,
    PATIENCE_ALONE,
    PATIENCE_FRUITLESS,
    PATIENCE_WRONG,
    PATIENCE_DEADLY,
};

/* The meaning of the last replica's failure. */
enum patience_failure {
    PATIENCE_NO_FAILURE,
    PATIENCE_MOVED,         /* nothing about the request */
    PATIENCE_DIED,          /* its process ended */
    PATIENCE_FAILED_ITSELF, /* a fault of the replica */
    PATIENCE_REFUSED_IT,    /* it is available, but refuses the request */
};

struct patience {
    uint64_t wait_ns, total_ns, deadline_ns; /* deadline_ns 0: none */
    bool begun;                              /* the client has received a piece of the answer */
    uint32_t n_wrong;                        /* replicas */
    bool has_waited;                         /* since the last piece, like all fields below */
    uint64_t piece_ns;          /* arrival of the last piece; initially: of the request */
    uint64_t waits_ns;          /* since when no replica works on it; 0: one does */
    uint64_t waited_ns;         /* before that */
    uint32_t deaths;            /* in units of 1/PATIENCE_DEATH */
    enum patience_failure last; /* failure of the last replica */
};

#define PATIENCE_DEATH 1000u

/* total_ms 0: five minutes.  deadline_ns 0: none. */
void patience_init(struct patience *p, uint32_t wait_ms, uint32_t total_ms, uint64_t deadline_ns,
                   uint64_t now);
/* A replica works on it. */
void patience_asked(struct patience *p, uint64_t now);
/* It delivered a piece of the answer. */
void patience_piece(struct patience *p, uint64_t now);
/* It failed.  n_ended: requests that ended with it, this one too, for PATIENCE_DIED; 0: not known.
 */
void patience_failed(struct patience *p, enum patience_failure how, uint32_t n_ended);
/* No replica can take it: it waits from now on. */
void patience_waits(struct patience *p, uint64_t now);
/* It has waited so long that a version that is perhaps outdated may answer it. */
bool patience_any_version(const struct patience *p, uint64_t now);
/* Whether to continue. found: whether there is a replica that was not just tried. */
enum patience_verdict patience_judge(const struct patience *p, enum replica_found found,
                                     uint64_t now);
/* For logs: "no replica for too long". */
const char *patience_text(enum patience_verdict v);
bool patience_late(const struct patience *p, uint64_t now);

#endif
