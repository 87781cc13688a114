/* sim_control.h - the controller of a simulated cluster: it plans with placement.h, carries the
 * waves of a plan out, and scales with autoscale.h. All decisions are made by the code of the real
 * controller.
 *
 * Thread:    belongs to one run.
 * Ownership: sim_control_fini frees.
 * Failure:   a planner's error, or SHOAL_EINTERNAL when placement_check refuses a plan. */
#ifndef SHOAL_CLUSTER_SIM_CONTROL_H
#define SHOAL_CLUSTER_SIM_CONTROL_H

#include "cluster/sim/sim_world.h"

struct sim_step {
    enum placement_action action;
    uint32_t node, model, wave;
    uint32_t replica, stamp; /* of an unload; SIM_NONE: whichever is there then */
    bool move;
};

struct sim_control {
    struct sim_world *w;
    bool due;               /* something changed since the last plan */
    struct sim_step *steps; /* steps of the plan being carried out */
    size_t n_steps, next_step, cap_steps;
    uint32_t n_loading; /* loads of the running wave */
    uint32_t plan;      /* number of the plan */
    /* Input of a plan, reused for the next one. */
    struct placement_node *nodes;
    struct placement_model *models;
    struct placement_replica *current;
    uint32_t *node_ids, *replica_ids; /* in the world */
    size_t cap_current;
    void (*on_plan)(void *ctx, uint64_t at_ms, const struct placement_plan *plan); /* or NULL */
    void *on_plan_ctx;
    /* Figures. */
    uint64_t n_plans, n_gaps;
    uint64_t n_loads, n_unloads, n_moves; /* after the warm-up */
    uint64_t n_grown;                     /* replicas that the autoscaler added */
    double plan_ms, max_plan_ms;          /* the planner's processor time */
    uint64_t n_up, n_down, n_to_zero, n_from_zero;
    double memory_sum, memory_max;
    uint64_t n_samples;
    char last_gap[320];
};

SHOAL_MUST_CHECK int sim_control_init(struct sim_control *k, struct sim_world *w, struct err *e);
void sim_control_fini(struct sim_control *k);
SHOAL_MUST_CHECK int sim_control_plan(struct sim_control *k, struct err *e);
/* A replica was loaded: the next wave may begin. */
void sim_control_progress(struct sim_control *k, uint32_t replica);
void sim_control_scale(struct sim_control *k);
/* A request arrived for a model that may have no replica. */
void sim_control_wake(struct sim_control *k, uint32_t model);

#endif
