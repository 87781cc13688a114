/* sim_scenario.h - a scenario file of `shoal sim`: nodes by class, models with their requests,
 * churn, events and policies.  docs/CLUSTER.md describes the keys.
 *
 * Thread:    belongs to its caller; read-only once it is read.
 * Ownership: sim_scenario_fini frees what parsing allocated, whether it succeeded or not.
 * Failure:   SHOAL_EFORMAT with file, line and column; SHOAL_ENOMEM. */
#ifndef SHOAL_CLUSTER_SIM_SCENARIO_H
#define SHOAL_CLUSTER_SIM_SCENARIO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "cluster/placement/autoscale.h"
#include "cluster/placement/placement.h"
#include "wire/yaml_in.h"

#define SIM_MAX_CLASSES 64u
#define SIM_MAX_MODELS 1024u /* entries; with copies at most PLACEMENT_MAX_MODELS */
#define SIM_MAX_EVENTS 1024u

struct sim_churn { /* applies to every node of a class; every_ms 0: never */
    uint32_t every_ms, for_ms;
    double factor; /* for slow: how many times slower */
};

struct sim_class {
    char *name;
    uint32_t count;
    size_t memory_bytes;
    double bandwidth;                  /* bytes per second */
    double tokens;                     /* tokens per second at most; 0: no limit */
    double variation;                  /* relative variation of the speeds, 0 to 1 */
    double load_bytes;                 /* bytes per second while a model is loaded */
    double cost, busy;                 /* price; share that other work takes */
    double battery;                    /* charge; negative: mains */
    struct yaml_in_strs zones, labels; /* nodes take the zones in turn */
    struct sim_churn crash, leave, slow;
};

struct sim_model {
    char *name;
    uint32_t copies;
    enum placement_kind kind;
    size_t memory_bytes, bytes;
    uint32_t min, max, standby, max_per_zone;
    int32_t priority;
    bool spread;
    char *apart;
    struct yaml_in_strs pins, labels, not_labels, zones;
    uint32_t budget_ms;
    double tokens; /* per request, mean */
    double rate;   /* requests per second, of each copy */
    double swing;  /* 0 to 1: amplitude of the rate within a period */
    uint32_t period_ms;
    bool steady; /* evenly spaced instead of random */
    bool autoscale;
    struct autoscale_policy scaling; /* without min and max */
};

enum sim_action {
    SIM_CRASH,     /* a node dies without notice, comes back empty */
    SIM_LEAVE,     /* it leaves with notice, comes back empty */
    SIM_JOIN,      /* new nodes */
    SIM_SLOW,      /* by a factor */
    SIM_PARTITION, /* a zone cannot be reached */
    SIM_DRAIN,
    SIM_SPIKE, /* multiplies a model's requests by a factor */
    SIM_N_ACTIONS,
};

struct sim_event {
    uint32_t at_ms, for_ms; /* for_ms 0: permanent */
    enum sim_action action;
    uint32_t class_id, model_id; /* UINT32_MAX: any, or not needed */
    char *zone;                  /* of a partition */
    uint32_t count;
    double factor;
};

struct sim_scenario {
    char *name;
    uint32_t duration_ms, warmup_ms; /* requests and figures start after the warm-up */
    uint32_t seed;
    uint32_t pause_ms;          /* minimum time between two plans */
    uint32_t plan_ms, scale_ms; /* maximum time between two plans, and between two scalings */
    uint32_t detect_ms;         /* until a silent node counts as lost */
    uint32_t failover_ms,
        stall_ms; /* until a request is retried elsewhere: after a disconnect, after silence */
    struct sim_class *classes;
    uint32_t n_classes;
    struct sim_model *models;
    uint32_t n_models;
    struct sim_event *events;
    uint32_t n_events;
    struct placement_policy policy;
};

/* name: of the file, for messages. */
SHOAL_MUST_CHECK int sim_scenario_parse(struct sim_scenario *s, const char *text, size_t n,
                                        const char *name, struct err *e);
void sim_scenario_fini(struct sim_scenario *s);
/* Changes the counts of nodes, replicas and requests in proportion, so that there are n nodes. */
SHOAL_MUST_CHECK int sim_scenario_resize(struct sim_scenario *s, uint32_t n_nodes, struct err *e);
/* The nodes that the scenario starts with and that join. */
uint64_t sim_scenario_nodes(const struct sim_scenario *s);
const char *sim_scenario_action(enum sim_action action);

#endif
