/* choose.h - the choice of a replica for a request: the one with the lowest expected latency, by
 * what nodes say about themselves.
 *
 * What a node says may be out of date or wrong, and a node that looks slow gets no request that
 * would show otherwise.  So an idle one that looks far slower than the best gets a request now and
 * then (probe.h): one without a deadline, with the patience that the best replica would need, so
 * that the relay starts a second one soon if the node is as slow as it looks.
 *
 * A prompt goes to the node that has read most of it before, unless that would make a hot spot: by
 * the nodes' figures the answer may take up to four times as long there as at the node that would
 * be chosen otherwise, with what need not be computed again already taken off; and the node may be
 * four times as busy, or as busy as it can be without a queue.  The less of the prompt it has, the
 * closer are the limits; a short prompt goes anywhere.  They are wide because figures are noisy,
 * the load of a moment passes, and a conversation that has moved has to be read again.
 *
 * Thread: plain data; the owner's.  Time is what the caller says. */
#ifndef SHOAL_CLUSTER_CHOOSE_H
#define SHOAL_CLUSTER_CHOOSE_H

#include "cluster/affinity/split_way.h"
#include "cluster/messages/node_state.h"
#include "cluster/probe.h"
#include "cluster/replica.h"

struct deployed;
struct request;

/* A node while it is being considered. */
struct choose_view {
    const struct node_state *state;
    struct replica *replica;
    const char *name; /* "": this process */
    bool ready;
    uint32_t calls;      /* our requests that it is working on */
    uint32_t told_calls; /* the same when it told its state */
    double slowness;     /* times its own figures */
    double held;         /* share of the prompt that it has read before, 0 to 1; see affinity/ */
    struct probe *probe; /* NULL: it is never probed */
};

/* The order in which replicas are used: one only if none of those before it can answer. */
enum choose_rank {
    CHOOSE_FIRST,
    CHOOSE_STANDBY,
    CHOOSE_LOADING, /* it would keep the request waiting, for nobody knows how long */
    CHOOSE_BEHIND,  /* it does not have the present version */
};

struct choose_one {
    struct replica *replica; /* NULL: none */
    double price;
    double held;           /* as in choose_view */
    double load, total_ns; /* requests that share the machine; expected time of the answer */
    double parallel;       /* requests that it runs at the same time; 0: not known */
    enum choose_rank rank;
    bool loads; /* the model is not loaded */
    struct split_node speed;
    double link, token_bytes, answer; /* as in split_case */
    uint64_t expect_ns, token_ns;
    const uint8_t *sum;
    struct probe *probe;
};

/* The best replicas so far, and whether others may appear. */
struct choose {
    uint64_t now_ns;
    struct deployed *deployed;   /* what should be served; NULL: not known */
    struct choose_one best[2];   /* with the stable version, and with the canary */
    struct choose_one holder[2]; /* the one that has read most of the prompt */
    struct choose_one pages[2];  /* the same, also if it cannot answer now */
    struct choose_one idle[2];   /* the most expensive one whose probe is due */
    struct choose_one strong[2]; /* the one that computes the prompt soonest, for others, too */
    uint32_t n_readers[2];       /* replicas that could */
    enum split_mode split;
    uint32_t share; /* share of the canary; 0: none */
    bool known;     /* somebody has the model */
};

/* Bits of enum shoal_kind that the request needs; 0: any. */
unsigned choose_kind(const struct request *r);
/* The node's models for this request, after `after`; NULL: none (left). */
const struct node_model *choose_model(const struct node_state *s, const struct request *r,
                                      const struct node_model *after);
/* Considers all models of a node for the request. */
void choose_look(struct choose *c, const struct replica_query *q, const struct choose_view *v);
/* After all nodes: the replica, or NULL; sets what the query asks for. */
struct replica *choose_end(struct choose *c, const struct replica_query *q);

#endif
