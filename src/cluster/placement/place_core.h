/* place_core.h - the planner's working state: the input by number, the replicas so far, and the
 * cost of adding and removing one.
 *
 * Nodes and models are numbered in the order of their names.  Changes are made one after another,
 * as they would be carried out: each of place_core_load, _unload and _move is safe when it is
 * called.
 *
 * Thread:    belongs to one call of placement_plan.
 * Ownership: place_index_build fills it, place_core_fini frees everything.
 * Failure:   memory runs out: `failed` is set, and later calls do nothing. */
#ifndef SHOAL_CLUSTER_PLACE_CORE_H
#define SHOAL_CLUSTER_PLACE_CORE_H

#include "base/arena.h"
#include "cluster/placement/placement.h"

/* Why a node cannot have a model, regardless of its other models. Stored in `slow` as a negative
 * number.
 */
enum place_bar {
    PLACE_BAR_NONE,
    PLACE_BAR_DRAINED,
    PLACE_BAR_BATTERY,
    PLACE_BAR_ZONE,
    PLACE_BAR_LABEL,
    PLACE_BAR_NOT_LABEL,
    PLACE_BAR_SMALL, /* its whole memory is too small */
    PLACE_BAR_FAILED,
    PLACE_BAR_N,
};

/* Why a replica is added or removed. */
enum place_cause {
    PLACE_CAUSE_NONE,
    PLACE_CAUSE_NEW,     /* the model had none */
    PLACE_CAUSE_COUNT,   /* too few or too many */
    PLACE_CAUSE_TOKENS,  /* too slow together, or too fast */
    PLACE_CAUSE_LOST,    /* its node left */
    PLACE_CAUSE_PIN,     /* a pin */
    PLACE_CAUSE_STANDBY, /* hot standby */
    PLACE_CAUSE_BAR,     /* the node may no longer have it; see `bar` */
    PLACE_CAUSE_ZONE_FULL,
    PLACE_CAUSE_APART,
    PLACE_CAUSE_MEMORY,  /* the node's memory shrank */
    PLACE_CAUSE_ROOM,    /* makes room for `other` */
    PLACE_CAUSE_VERSION, /* an older version */
    PLACE_CAUSE_UNWANTED,
    PLACE_CAUSE_BETTER, /* moved for speed, zones or cost */
};

struct place_why {
    enum place_cause cause;
    enum place_bar bar;
    uint32_t other;   /* the model that needs the room */
    const char *name; /* the node that left */
    double have, want;
    bool zone_first; /* the first in its zone, for a model that spreads */
};

struct place_replica {
    uint32_t model, node; /* node PLACEMENT_NONE: it was removed */
    uint32_t home;        /* the node at the start; PLACEMENT_NONE: a new replica */
    uint32_t input;       /* index in the input's current, of the one at home */
    uint32_t next_on_node, next_of_model, prev_of_model;
    uint64_t bytes;
    bool ready, home_ready;
    bool pinned;
    bool settled; /* loading, or within the cool-down: not moved for speed */
    bool leaves;  /* must leave its node */
    bool stale; /* another version: it answers until it is replaced, but counts for nothing else */
    struct place_why why;
};

struct place_lost {
    const char *node;
    uint32_t next;
};

struct place_model {
    const struct placement_model *in;
    uint32_t input;
    uint32_t first, last; /* its replicas, stale ones included */
    uint32_t n, n_ready;  /* n without stale ones; n_ready with them */
    uint32_t floor;       /* n_ready never falls below it */
    uint32_t low, high;   /* the target range of counts */
    uint32_t n_start;     /* replicas in the input, lost ones included */
    uint32_t lost;        /* lost replicas not yet replaced by new ones */
    uint32_t apart;       /* group, or PLACEMENT_NONE */
    uint32_t *pins;       /* [in->pins.n]: nodes; PLACEMENT_NONE: absent */
    double mean;          /* tokens per second on a mean node */
    double beta;          /* how busy a replica keeps a mean node */
    double rate;          /* tokens per second of all replicas */
    bool zoned;           /* zones matter */
    float *slow;          /* [n_nodes]: mean rate / rate there, or -(enum place_bar) */
    uint32_t *in_zone;    /* [n_zones]: replicas there; NULL unless zoned */
};

struct place_node {
    const struct placement_node *in;
    uint32_t input, zone;
    uint32_t first; /* its replicas */
    double idle;    /* 1 - load, not below 0.05 */
};

struct place_op {
    enum placement_action action;
    uint32_t replica, node;
    bool was_ready, was_leaving; /* state before a move's load, to undo it */
};

struct place_core {
    const struct placement_input *in;
    struct arena arena;
    struct place_node *nodes;
    struct place_model *models;
    uint32_t n_nodes, n_models, n_zones;
    const char **zone_names;
    /* Scanned in one pass over all nodes, so kept apart from struct place_node. */
    int64_t *free_bytes;     /* [n_nodes]; negative: overcommitted */
    double *slow_sum, *busy; /* [n_nodes]: sums over the models there */
    double *fixed;           /* [n_nodes]: price of a replica there */
    double *inv_memory;      /* [n_nodes]: 1 / memory */
    bool *closed; /* [n_nodes]: its battery is low: it keeps its models but gets no new ones */
    struct place_replica *replicas;
    size_t n_replicas, cap_replicas;
    struct place_lost *lost;
    size_t n_lost;
    struct place_op *ops; /* in the order of execution */
    size_t n_ops, cap_ops;
    uint32_t *mark, stamp; /* [n_nodes]: see place_core_mark */
    bool failed;
};

void place_core_fini(struct place_core *c);

/* Cost of one more replica on the node, without the zone; the node can have it. */
double place_core_add_cost(const struct place_core *c, uint32_t model, uint32_t node);
/* Current cost of the replica, without the zone. */
double place_core_relief(const struct place_core *c, const struct place_replica *r);
double place_core_zone_cost(const struct place_core *c, uint32_t model, uint32_t zone);
/* Tokens per second of a model on a node it can be on, beside other work. */
double place_core_rate(const struct place_core *c, uint32_t model, uint32_t node);
/* Tokens per second of n replicas with total `rate`, without the standby ones. */
double place_core_served(const struct place_model *m, double rate, uint32_t n);
/* All costs together. */
double place_core_total(const struct place_core *c);

/* Whether the model may be on the node, apart from memory and from zones. */
bool place_core_allowed(const struct place_core *c, uint32_t model, uint32_t node);
/* For a pass over all nodes: place_core_open equals place_core_allowed for a node with slow > 0,
 * without scanning the node's models, until the model's replicas change. */
void place_core_mark(struct place_core *c, uint32_t model);
static inline bool place_core_open(const struct place_core *c, uint32_t model, uint32_t node)
{
    return c->mark[node] != c->stamp && !c->closed[node] &&
           (c->models[model].apart == PLACEMENT_NONE || place_core_allowed(c, model, node));
}
bool place_core_zone_full(const struct place_core *c, uint32_t model, uint32_t zone);
/* The model's replica on the node, or PLACEMENT_NONE. */
uint32_t place_core_on(const struct place_core *c, uint32_t model, uint32_t node);
bool place_core_may_unload(const struct place_core *c, uint32_t replica);

/* A replica of the input.  PLACEMENT_NONE: no memory. */
uint32_t place_core_register(struct place_core *c, const struct place_replica *r);
/* Each call records its operation in `ops`. Load returns the replica, or PLACEMENT_NONE. */
uint32_t place_core_load(struct place_core *c, uint32_t model, uint32_t node, struct place_why why);
void place_core_unload(struct place_core *c, uint32_t replica, struct place_why why);
void place_core_move(struct place_core *c, uint32_t replica, uint32_t node);
/* Undoes the newest moves until n_ops are left; only moves may be among them. */
void place_core_undo_moves(struct place_core *c, size_t n_ops);

#endif
