/* replica.h - interface of anything that answers requests: the models of this process, a worker
 * process, another node. Its user does not know which.
 *
 * Thread:    the owner's: a replica belongs to one owner thread.
 * Ownership: a replica lives as long as its source. */
#ifndef SHOAL_CLUSTER_REPLICA_H
#define SHOAL_CLUSTER_REPLICA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct flow_owner;
struct prefix_chain;
struct replica;
struct request;
struct sink;

/* Failure reason: the replica is lost or unreachable, which does not count against the request. */
#define REPLICA_LOST "node_lost"
/* Its process or its connection ended while it worked on the request, which may be the cause. */
#define REPLICA_ENDED "node_ended"
/* There is none at the moment; treated like REPLICA_LOST. */
#define REPLICA_ABSENT "no_replica"

struct replica_ops {
    /* Runs a request: its events come to the sink as those of flow_run, `closed` at the end.  r
     * belongs to the caller and stays until then.  A replica that is lost fails the request with
     * FAILURE_UNAVAILABLE and the reason REPLICA_LOST or REPLICA_ENDED. */
    void (*run)(struct replica *p, struct flow_owner *o, const struct request *r, struct sink *s);
    /* The answer was wrong or too slow, which the replica cannot know itself: it gets fewer
     * requests. May be NULL. */
    void (*blame)(struct replica *p, const struct request *r);
    /* SHA-256 of the model that runs the request there, while it runs or fails; NULL: not known
     * yet.  May be NULL. */
    const uint8_t *(*version)(const struct replica *p, const struct request *r);
};

struct replica {
    const struct replica_ops *ops;
    const char *name;    /* name of the node, for people */
    const char *address; /* where other nodes reach it; NULL: nowhere */
    /* While a request fails with REPLICA_ENDED: how many requests it interrupted; 0: unknown. */
    uint32_t n_ended;
};

enum replica_found {
    REPLICA_FOUND,
    REPLICA_LATER,   /* one is known, but none can answer now: wait for it */
    REPLICA_NONE,    /* no node has such a model */
    REPLICA_UNHEARD, /* none that is heard, but others that are known are not heard */
};

struct replica_query {
    const struct request *request;
    const uint8_t *version;       /* SHA-256 of the model that must answer; NULL: any */
    struct replica *const *avoid; /* [n_avoid]: tried already */
    size_t n_avoid;
    bool usual;       /* no canary, if there is a choice */
    bool loaded;      /* only one that has the model loaded */
    uint32_t n_given; /* tokens of the answer that expect_ns counts beside the prompt */
    const struct prefix_chain *prefix; /* beginnings of its prompt; NULL: none */
    /* Set by find if it chose one of several versions: [SHA256_BYTES], valid until the next event
     * of the loop. */
    const uint8_t **chosen;
    /* Set by find: the expected time to the next piece of the answer; unchanged if
     * unknown. May be NULL. */
    uint64_t *expect_ns;
    uint64_t *token_ns; /* the same, once the first piece has come; NULL: not wanted */
    /* Set by find: another replica should write the answer once this one has computed the prompt
     * (affinity/split_way.h).  NULL: it must not be so. */
    bool *splits;
    bool *loads; /* set by find: the chosen one has to load the model first; may be NULL */
    /* Set by find: another replica that has read more of the prompt than the chosen one; unchanged
     * if there is none. May be NULL. */
    const struct replica **holder;
    double *holder_part; /* with holder: of the prompt, 0 to 1 */
};

/* Knows the replicas. */
struct replica_source;

struct replica_source_ops {
    /* The best replica for the request at this moment. */
    enum replica_found (*find)(struct replica_source *s, const struct replica_query *q,
                               struct replica **out);
};

/* Counters of the relays, for Prometheus and tests; shared by all loops of a process. */
struct replica_counts {
    _Atomic uint64_t n_requests; /* sent to a replica */
    _Atomic uint64_t n_moved;    /* streams that continued on another replica */
    _Atomic uint64_t n_retried;  /* requests that were retried on another replica */
    _Atomic uint64_t n_split;    /* streams whose prompt one replica computed for another */
    _Atomic uint64_t n_lost;     /* streams that failed after they had begun */
    _Atomic uint64_t
        n_hedged; /* requests that were also sent to a second replica because of a deadline */
    _Atomic uint64_t n_stalled; /* requests that were also sent to a second replica because the
                                   first was silent */
    _Atomic uint64_t n_won;     /* requests of both kinds that the second replica answered first */
    _Atomic uint64_t n_opened;  /* circuit breakers that opened */
    _Atomic uint32_t n_running, n_doubled; /* current requests, and those on two replicas */
};

struct replica_source {
    const struct replica_source_ops *ops;
    const struct replica *here; /* the models of this process; NULL: none */
    uint64_t epoch;             /* epoch of new requests; 0: unknown */
    struct replica_counts *counts;
};

#endif
