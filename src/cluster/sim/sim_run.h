/* sim_run.h - runs a scenario in virtual time.
 *
 * The same scenario and seed give the same result on every machine, except for the planner's time.
 *
 * Thread:    belongs to its caller.
 * Ownership: sim_run fills the caller's result; sim_result_fini frees it.
 * Failure:   SHOAL_ENOMEM, SHOAL_ECANCELLED if the progress function says so, SHOAL_EINTERNAL if a
 *            plan breaks a rule. */
#ifndef SHOAL_CLUSTER_SIM_RUN_H
#define SHOAL_CLUSTER_SIM_RUN_H

#include "cluster/sim/sim_scenario.h"

struct sim_row { /* of one model */
    char name[56];
    uint64_t n_requests, n_available, n_on_time, n_open; /* open at the end, still in time */
    uint64_t n_moved;
    double p50_ms, p95_ms, p99_ms;
    double below_min_s;
    uint32_t n_up, n_down, n_ready;
};

struct sim_result {
    uint32_t n_nodes_start, n_nodes_end;
    double seconds;     /* simulated */
    struct sim_row all; /* totals of all models */
    struct sim_row *models;
    uint32_t n_models;
    uint64_t n_churn[SIM_N_ACTIONS]; /* by action; a node that comes back counts as joined */
    uint64_t n_events;               /* after the warm-up, spikes apart */
    uint64_t n_plans, n_plans_with_gaps;
    uint64_t n_loads, n_unloads, n_moves; /* after the warm-up */
    uint64_t n_replaced;                  /* loads not caused by the autoscaler */
    double replaced_per_event;
    double memory_mean, memory_max;
    uint64_t n_up, n_down, n_to_zero, n_from_zero;
    double plan_mean_ms, plan_max_ms; /* CPU time */
    char last_gap[320];               /* the last replica that did not fit, or "" */
};

struct sim_opts {
    uint32_t seed;
    /* Called periodically; part: 0 to 1. Returning true stops the run. NULL is fine. */
    bool (*progress)(void *ctx, double part, uint32_t n_nodes, uint64_t n_plans);
    void *progress_ctx;
    /* Called with every plan; NULL is fine. */
    void (*on_plan)(void *ctx, uint64_t at_ms, const struct placement_plan *plan);
    void *on_plan_ctx;
};

SHOAL_MUST_CHECK int sim_run(struct sim_result *out, const struct sim_scenario *s,
                             const struct sim_opts *o, struct err *e);
void sim_result_fini(struct sim_result *r);

#endif
