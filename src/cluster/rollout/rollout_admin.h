/* rollout_admin.h - operator commands for rollouts: start, pause, promote, undo. The controller
 * (rollout.h) does the rest.
 *
 * Thread:    no state; changes a desired state that belongs to the caller.
 * Failure:   SHOAL_EINVAL and SHOAL_ENOTFOUND with a text for people; SHOAL_ENOMEM. */
#ifndef SHOAL_CLUSTER_ROLLOUT_ROLLOUT_ADMIN_H
#define SHOAL_CLUSTER_ROLLOUT_ROLLOUT_ADMIN_H

#include "cluster/control/desired.h"

struct rollout_start {
    const char *model;
    enum desired_rollout_kind kind;
    uint8_t to[SHA256_BYTES];
    const char *source;         /* source of the new version; NULL or "": nodes already have it */
    uint64_t memory_bytes;      /* 0: as much as the old one */
    uint32_t share;             /* share of a canary, in thousandths; 0: 100 */
    struct desired_judge judge; /* zero fields get defaults: 50 requests, 10, 150, 20 */
    bool any_p95;               /* the latency is not judged */
    const char *by;             /* who started it, for the history */
};

/* *out: the new rollout, until the next change of the state. */
SHOAL_MUST_CHECK int rollout_admin_start(struct desired *d, const struct rollout_start *o,
                                         uint64_t now_ms, const struct desired_rollout **out,
                                         struct err *e);

enum rollout_action { ROLLOUT_PAUSE, ROLLOUT_PROMOTE, ROLLOUT_UNDO };

/* The rollout with this id; or, for the name of a model, its active rollout, else its last one. */
SHOAL_MUST_CHECK struct desired_rollout *rollout_admin_find(const struct desired *d,
                                                            const char *name);
/* PAUSE: no changes until PROMOTE. PROMOTE: continues; a canary is no longer judged. UNDO: back to
 * the old version; for a finished rollout it starts another one and returns that in *out. */
SHOAL_MUST_CHECK int rollout_admin_act(struct desired *d, const char *name,
                                       enum rollout_action action, const char *by, uint64_t now_ms,
                                       const struct desired_rollout **out, struct err *e);
/* Scores of a labelled set: right answers of 1000.  The judge waits for them. */
SHOAL_MUST_CHECK int rollout_admin_score(struct desired *d, const char *name, uint32_t from,
                                         uint32_t to, uint64_t now_ms, struct err *e);

#endif
