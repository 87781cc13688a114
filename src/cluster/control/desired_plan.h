/* desired_plan.h - connects the desired state and the planner (placement.h): the models to place,
 * and the plan as assignments.
 *
 * Nodes and the replicas they have now come from heartbeats, not from here.
 *
 * Thread:    no state.
 * Ownership: models borrow the strings of the state; the rest is in the caller's arena.
 * Failure:   SHOAL_ENOMEM, SHOAL_ELIMIT. */
#ifndef SHOAL_CLUSTER_CONTROL_DESIRED_PLAN_H
#define SHOAL_CLUSTER_CONTROL_DESIRED_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct arena;
struct desired;
struct placement_input;
struct placement_model;
struct placement_plan;

/* The models in the planner's form, in the order of the state. */
SHOAL_MUST_CHECK int desired_plan_models(struct placement_model **out, const struct desired *d,
                                         struct arena *a, struct err *e);
/* Carries out the first wave of the plan: replicas to load are assigned to serve, replicas to
 * unload are assigned to leave. The later waves follow with the next plan, once nodes report this
 * one as done. Everything else stays unchanged. */
SHOAL_MUST_CHECK int desired_plan_apply(struct desired *d, const struct placement_input *in,
                                        const struct placement_plan *plan, uint64_t now_ms,
                                        struct err *e);
/* The model is being changed from one version to another: its other versions belong to the
 * rollout. */
bool desired_plan_in_rollout(const struct desired *d, const char *model);

#endif
