/* node_link.h - another node as one event loop sees it: a connection, its state, its requests.
 *
 * The link watches the node: the node sends its state several times a second over the connection
 * that requests use too. A node that is silent for silent_ms counts as lost: its requests fail and
 * go elsewhere, and the link reconnects. It is back when it is heard again. A model whose requests
 * fail there gets none for a while (breaker.h).
 *
 * Thread:    the loop's.
 * Ownership: destroy ends its requests: each sink gets fail and closed.
 * Failure:   none after create: an unreachable node is retried without end. */
#ifndef SHOAL_CLUSTER_NODE_LINK_H
#define SHOAL_CLUSTER_NODE_LINK_H

#include "cluster/breaker.h"
#include "cluster/messages/node_state.h"
#include "cluster/probe.h"
#include "cluster/replica.h"
#include "net/loop.h"

struct node_link;
struct tls_client;

struct node_link_opts {
    const char *address;    /* HOST:PORT or unix:PATH; copied */
    struct tls_client *tls; /* borrowed; NULL: plain; unix:PATH without a name always is */
    const char *name;       /* name that its certificate must have; copied; NULL: any node's */
    uint32_t heartbeat_ms;  /* requested interval of the node's state messages */
    uint32_t silent_ms;     /* a node silent for this long is lost */
    struct replica_counts *counts; /* borrowed */
};

SHOAL_MUST_CHECK int node_link_create(struct node_link **out, struct loop *l,
                                      const struct node_link_opts *o, struct err *e);
void node_link_destroy(struct node_link *k); /* NULL is fine */

/* The replica to send requests to. */
struct replica *node_link_replica(struct node_link *k);
const char *node_link_name(const struct node_link *k); /* its address until the name is known */
const char *node_link_address(const struct node_link *k);
/* The node's last state; NULL: never heard. */
const struct node_state *node_link_state(const struct node_link *k);
/* It was heard recently and accepts requests. */
bool node_link_ready(const struct node_link *k, uint64_t now);
/* Whether the circuit breaker of a model there lets a request pass; model NULL: the default one. */
bool node_link_passes(const struct node_link *k, const char *model, uint64_t now);
/* Whether it has read a prompt with this beginning lately; see prefix_chain.h. */
bool node_link_has_prefix(const struct node_link *k, uint64_t hash);
/* How many times slower than reported the node was recently; 0: unknown. Above NODE_LINK_INCREDIBLE
 * its own figures are not trusted. */
#define NODE_LINK_INCREDIBLE 50.0
double node_link_slowness(const struct node_link *k);
/* When it gets a request although it looks slow. */
struct probe *node_link_probe(struct node_link *k);
/* The worst state of its circuit breakers. */
enum breaker_state node_link_breaker(const struct node_link *k, uint64_t now);
/* It is heard at present: its state is the current one. */
bool node_link_heard(const struct node_link *k);
/* It answered, or failed to, at least once. */
bool node_link_settled(const struct node_link *k);
/* Number of this loop's requests that it works on. */
uint32_t node_link_calls(const struct node_link *k);
/* The same when its last state came. */
uint32_t node_link_told_calls(const struct node_link *k);
/* Why it cannot be used; "" while it can. */
const char *node_link_error(const struct node_link *k);
/* How far its clock is ahead of ours, in ms; false: not known yet. */
bool node_link_clock(const struct node_link *k, int64_t *ms);
uint64_t node_link_rtt_ns(const struct node_link *k); /* 0: not known */

#endif
