/* rollout_view.h - one rollout node by node: assignments and actual state.
 *
 * Thread:    no state.
 * Ownership: places are in the caller's arena and borrow from the desired state and the nodes; they
 *            stay valid while assignments change through rollout_view_set.
 * Failure:   SHOAL_ENOMEM. */
#ifndef SHOAL_CLUSTER_ROLLOUT_ROLLOUT_VIEW_H
#define SHOAL_CLUSTER_ROLLOUT_ROLLOUT_VIEW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "host/sha256.h"

struct arena;
struct desired;
struct desired_rollout;
struct node_model;
struct node_state;

/* One version on one node. */
struct rollout_side {
    uint8_t sha256[SHA256_BYTES];
    uint32_t duty;                 /* assigned: enum desired_duty; 0: not assigned */
    uint64_t epoch, until;         /* assigned */
    uint64_t since_ms;             /* when */
    const struct node_model *held; /* the node's report; NULL: it has none, or is absent */
};

struct rollout_place {
    const char *node;
    const struct node_state *alive; /* NULL: offline */
    struct rollout_side from, to;
};

struct rollout_view {
    struct desired *d;
    const char *model;
    struct rollout_place *places; /* [n]: nodes that have one of both versions, or should */
    uint32_t n;
    uint64_t now_ms;
    bool changed; /* the desired state must be written */
    int rc;       /* the first failure of rollout_view_set; sticky */
};

SHOAL_MUST_CHECK int rollout_view_make(struct rollout_view *v, struct desired *d,
                                       const struct desired_rollout *r,
                                       const struct node_state *nodes, uint32_t n_nodes,
                                       uint64_t now_ms, struct arena *a);
/* Sets the assignment; duty 0: removes it. */
void rollout_view_set(struct rollout_view *v, struct rollout_place *p, struct rollout_side *s,
                      uint32_t duty, uint64_t epoch, uint64_t until);

/* It is loaded and its bytes were verified. */
bool rollout_view_ready(const struct rollout_side *s);
/* The node answers requests with it, in the assigned range. */
bool rollout_view_serves(const struct rollout_side *s);
/* Why the node cannot load it; NULL: nothing is wrong. */
const char *rollout_view_error(const struct rollout_side *s);
/* Requests that the node answers with it now. */
uint32_t rollout_view_busy(const struct rollout_side *s);
/* Nodes that answer requests with either version. */
uint32_t rollout_view_serving(const struct rollout_view *v);

#endif
