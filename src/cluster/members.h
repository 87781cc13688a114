/* members.h - the nodes of a shoal as one event loop knows them: it sends every request to the
 * replica with the lowest expected latency, which may be this process.
 *
 * Thread:    the loop's, except create and destroy while the loop does not run.
 * Ownership: requests that are sent on must have ended before members_destroy. */
#ifndef SHOAL_CLUSTER_MEMBERS_H
#define SHOAL_CLUSTER_MEMBERS_H

#include "cluster/affinity/split_way.h"
#include "cluster/node_link.h"
#include "flow/dispatch.h"

#define MEMBERS_MAX_NODES 1024u

struct deployed;
struct members;
struct prefix_chain;
struct prefix_sent;
struct prefix_table;
struct registry;

struct members_opts {
    const char *const *nodes; /* addresses; copied */
    uint32_t n_nodes;
    struct tls_client *tls;        /* borrowed; NULL: plain */
    struct registry *registry;     /* the models of this process */
    struct deployed *deployed;     /* borrowed; models that may get a replica; NULL: none */
    struct replica_counts *counts; /* borrowed; may be shared by loops */
    const char *ask_model;         /* model that commands need here; borrowed; NULL: no commands */
    uint32_t wait_ms, total_ms;    /* see patience.h */
    uint32_t heartbeat_ms, silent_ms; /* as in node_link.h */
    uint32_t hedge_ms;                /* as in relay.h */
    const char *const *hedge_models;  /* names of models that are hedged; borrowed; none: all */
    uint32_t n_hedge_models;
    /* borrowed, shared by loops: prompts that this process has read, and that it has sent; sent
     * NULL: requests are not sent where their beginning was read */
    struct prefix_table *prefixes;
    struct prefix_sent *sent;
    enum split_mode split; /* as in affinity/split_way.h; SPLIT_NEVER without sent */
};

SHOAL_MUST_CHECK int members_create(struct members **out, struct loop *l,
                                    const struct members_opts *o, struct err *e);
void members_destroy(struct members *m); /* NULL is fine */
/* A node found at run time; no effect if it is known. name: as in node_link.h. */
void members_add(struct members *m, const char *address, const char *name);
/* Forgets it, unless it is in use. */
void members_remove(struct members *m, const char *address);
/* For flow_owner.dispatch. */
struct dispatch *members_dispatch(struct members *m);
/* All nodes were heard or found unreachable; with NATS, there was time to find them all. */
bool members_settled(const struct members *m);
/* At least one node accepts requests. */
bool members_ready(const struct members *m);
/* The share of a request's prompt, 0 to 1, that a node has read before; k NULL: this process. */
double members_held(const struct members *m, const struct prefix_chain *c,
                    const struct node_link *k, uint64_t now_ns);
void members_each(const struct members *m, void (*fn)(void *ctx, const struct node_link *k),
                  void *ctx);
/* Every model of other nodes, and every deployed one that no node holds at the moment, since a
 * request brings it back; each name once. */
void members_each_model(const struct members *m,
                        void (*fn)(void *ctx, const struct node_model *model), void *ctx);

#endif
