/* placement.h - which node runs which model: a pure function from the current and the desired
 * placement to a list of steps.
 *
 * The planner keeps what is well placed.  It replaces replicas that were lost or must leave, adds
 * and removes replicas until the counts are right, and moves one only if the gain is worth it.
 * Every prefix of the steps is safe: no node holds more than its memory, and no model has fewer
 * ready replicas than its minimum (or than at the start, if it had fewer then).
 *
 * The cost of a placement is a sum over the nodes: the slowness of the models there times how busy
 * the node is, plus its price, plus crowded zones, minus memory that is packed well.  A move must
 * lower the cost, so planning again after a plan was carried out moves nothing.
 *
 * Thread:    no state, no clock, no I/O.  The same input gives the same plan on every machine; the
 *            order of the arrays in the input does not matter.
 * Ownership: the input is borrowed during the call; names in the plan point into the input, which
 *            must outlive it.  placement_destroy frees the plan with its texts (NULL is fine).
 * Failure:   SHOAL_EINVAL names the invalid node or model; SHOAL_ELIMIT, SHOAL_ENOMEM. A replica
 *            that does not fit is not an error: the plan lists it. */
#ifndef SHOAL_CLUSTER_PLACEMENT_H
#define SHOAL_CLUSTER_PLACEMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

#define PLACEMENT_NONE UINT32_MAX
#define PLACEMENT_MAX_NODES 65536u
#define PLACEMENT_MAX_MODELS 4096u
#define PLACEMENT_MAX_REPLICAS ((size_t)1 << 20)
#define PLACEMENT_MAX_NODE_BYTES ((uint64_t)1 << 50)
#define PLACEMENT_MAX_MODEL_BYTES ((uint64_t)1 << 42)
#define PLACEMENT_MAX_CELLS ((size_t)1 << 26) /* nodes times models */
#define PLACEMENT_MAX_LABELS 4096u            /* different ones */

/* What limits a model's speed differs by kind, so nodes are measured by kind. */
enum placement_kind { PLACEMENT_DECODER, PLACEMENT_ENCODER, PLACEMENT_SCORER, PLACEMENT_N_KINDS };

/* A model of B bytes makes min(bytes_per_s / B, tokens_per_s) tokens per second. */
struct placement_speed {
    double bytes_per_s;  /* tokens per second times the model's bytes; 0: not measured */
    double tokens_per_s; /* rate of the probe, a tiny model: limited by overhead; 0: not measured */
};

struct placement_strs {
    const char *const *v;
    uint32_t n;
};

struct placement_node {
    const char *name;             /* unique */
    const char *zone;             /* NULL or "": none */
    struct placement_strs labels; /* "gpu", "site=hall-3" */
    uint64_t memory_bytes;        /* for models */
    struct placement_speed
        speed[PLACEMENT_N_KINDS]; /* unmeasured: like the slowest measured node */
    double load;                  /* share of its cores used by other work, 0 to 1 */
    double cost;                  /* price or power of its work; 1: usual, 0: free */
    bool on_battery;              /* then `battery` counts */
    double battery;               /* charge, 0 to 1 */
    bool drained;                 /* must become empty */
};

/* A replica runs on one node, and a node has at most one of a model. */
struct placement_model {
    const char *name;   /* unique */
    const char *sha256; /* the version; NULL: any */
    enum placement_kind kind;
    uint64_t bytes;        /* weights that a token reads; 0: memory_bytes */
    uint64_t memory_bytes; /* while loaded on a node */
    uint32_t min_replicas;
    uint32_t max_replicas;      /* 0: the larger of min_replicas and want_replicas */
    uint32_t want_replicas;     /* from the autoscaler; clamped to min and max */
    uint32_t standby;           /* hot standby: additional replicas for immediate failover */
    double want_tokens_per_s;   /* total of all except standby replicas; 0: the counts decide */
    struct placement_strs pins; /* nodes that must have a replica; they count as replicas */
    struct placement_strs labels, not_labels; /* labels that a node must have, and must not have */
    struct placement_strs zones;              /* only these; empty: any */
    uint32_t max_per_zone;                    /* 0: no limit */
    bool spread;                              /* prefers zones with few replicas of it */
    const char *apart;                        /* models with the same word never share a node */
    int32_t priority;                         /* higher ones are placed first */
};

enum placement_state {
    PLACEMENT_READY,
    PLACEMENT_LOADING, /* holds its memory, does not answer yet */
    PLACEMENT_FAILED,  /* could not be loaded: holds no memory; the node is not retried while this
                          entry is in the input */
};

struct placement_replica {
    const char *node, *model; /* a node that is not in the input has left the shoal */
    const char *sha256;       /* NULL: the model's */
    enum placement_state state;
    uint64_t since_ms;     /* when it was assigned, for the cool-down */
    uint64_t memory_bytes; /* 0: the model's */
};

struct placement_policy {
    double zone_weight; /* penalty of a second replica in a zone, where the slowness of a mean node
                           is 1 */
    double cost_weight; /* weight of a node's `cost` */
    double battery_weight; /* weight of an empty battery */
    double pack_weight; /* bonus of a full node: packs small models together, keeps room for large
                           ones */
    double min_gain;    /* a move must lower the cost of its replica by this share */
    double battery_min; /* replicas leave a node below this charge; it gets new ones above
                         * battery_min + battery_margin */
    double battery_margin;
    uint32_t cooldown_ms; /* a replica assigned less than this ago is not moved for speed */
    uint32_t max_moves;   /* moves for speed in one plan; forced moves do not count */
};

/* The defaults. */
struct placement_policy placement_policy_default(void);

struct placement_input {
    const struct placement_node *nodes;
    size_t n_nodes;
    const struct placement_model *models;
    size_t n_models;
    const struct placement_replica *current;
    size_t n_current;
    struct placement_policy policy;
    uint64_t now_ms;
};

enum placement_action { PLACEMENT_LOAD, PLACEMENT_UNLOAD };

struct placement_step {
    enum placement_action action;
    uint32_t node, model; /* in the input; model PLACEMENT_NONE: no longer deployed */
    uint32_t replica;     /* for an unload: index in the input's current */
    uint32_t pair;        /* the other step of a move, or PLACEMENT_NONE */
    uint32_t wave;        /* steps of one wave may run together, after all of the earlier waves */
    const char *node_name, *model_name;
    const char *reason;
};

/* Desired replicas that found no node, or replicas that must leave one and cannot. */
struct placement_gap {
    uint32_t model, n_missing;
    const char *reason;
};

struct placement_place {
    uint32_t node, model;
};

struct placement_plan {
    struct placement_step *steps;
    size_t n_steps;
    struct placement_gap *gaps;
    size_t n_gaps;
    struct placement_place *places; /* all replicas after the last step */
    size_t n_places;
    uint32_t n_loads, n_unloads, n_moves; /* a move is a load and an unload */
    double cost;                          /* of the placement after the last step */
};

SHOAL_MUST_CHECK int placement_plan(struct placement_plan **out, const struct placement_input *in,
                                    struct err *e);
void placement_destroy(struct placement_plan *plan);

/* Whether placement_plan accepts the node. Validate a member's state when it arrives: one invalid
 * node would fail every plan. */
SHOAL_MUST_CHECK int placement_valid_node(const struct placement_node *node, struct err *e);
/* The memory that a replica claims, clamped to the maximum of a model. */
uint64_t placement_replica_bytes(const struct placement_replica *r);
/* Tokens per second of a model on an otherwise idle node; 0: not measured. */
double placement_rate(const struct placement_node *node, const struct placement_model *model);

#endif
