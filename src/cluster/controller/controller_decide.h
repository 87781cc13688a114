/* controller_decide.h - one decision of the controller about the desired state: pure, so that
 * tests, `shoal cluster plan` and the running controller share it.
 *
 * One decision: advance the rollouts, remove obsolete entries (replicas that have left, nodes that
 * do not return, failed loads), take over measurements from nodes, scale, plan, and carry out the
 * first wave of the plan. The next decision sees its effect.
 *
 * Thread:    any that owns the state and the memory.
 * Ownership: the outcome's texts are in its arena; init/fini over the caller's storage.
 * Failure:   as placement_plan; the state may then be partly changed and must not be written. */
#ifndef SHOAL_CLUSTER_CONTROLLER_DECIDE_H
#define SHOAL_CLUSTER_CONTROLLER_DECIDE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"
#include "cluster/control/event_log.h"

struct controller_memory;
struct controller_snapshot;
struct desired;

#define CONTROLLER_MAX_NOTES 256u /* notes of one decision; the rest is counted */

/* An event for the log. */
struct controller_note {
    enum event_log_kind kind;
    const char *node, *model, *text; /* "" if none */
};

struct controller_outcome {
    struct controller_note *notes;
    uint32_t n_notes;         /* the first ones */
    bool changed;             /* the state must be written */
    uint32_t n_steps, n_gaps; /* of the whole plan */
    char gap[256];            /* the first gap; "": everything fits */
    struct arena arena;
};

void controller_outcome_init(struct controller_outcome *o);
void controller_outcome_fini(struct controller_outcome *o);

SHOAL_MUST_CHECK int controller_decide(struct desired *d, const struct controller_snapshot *s,
                                       struct controller_memory *m, struct controller_outcome *out,
                                       struct err *e);

#endif
