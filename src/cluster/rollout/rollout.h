/* rollout.h - updates of models: the next change of the desired state, as a pure function of the
 * state and the nodes' reports. The controller calls it with every decision.
 *
 *   rolling    one node after the other: the new version is staged beside the old one and takes
 *              over when it is ready
 *   canary     a few nodes serve both; a share of the requests goes to the new version until it was
 *              judged (rollout_judge.h); then as rolling, or back
 *   strong     all nodes stage; then the ranges of epochs are assigned; when every node has them,
 *              the epoch is written.  A request belongs to one epoch, so it never sees two versions
 *   eventual   every node at its own pace; a node that cannot keeps the old version
 *
 * The old version stays loaded until the last node has changed, so that streams can move to it and
 * an undo takes no time. A version that a node cannot load ends the rollout: its changes are
 * undone, and the state becomes FAILED with the node's reason. The rollout does not wait for absent
 * nodes; they are assigned the new version and load it before they serve.
 *
 * Thread:    no state.
 * Failure:   SHOAL_ENOMEM; the desired state is then partly changed and must not be written. */
#ifndef SHOAL_CLUSTER_ROLLOUT_ROLLOUT_H
#define SHOAL_CLUSTER_ROLLOUT_ROLLOUT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

struct desired;
struct desired_rollout;
struct node_state;

struct rollout_input {
    const struct node_state *nodes; /* nodes heard recently */
    uint32_t n_nodes;
    uint64_t oldest_epoch; /* oldest epoch of a request at any member; 0: none */
    uint64_t now_ms;       /* Unix time */
    /* When this controller's term began, on the same clock: times before it, and those that are
     * still to come, were written by a clock that may be wrong.  0: there is one clock. */
    uint64_t term_ms;
};

/* Reports a step for the event log. Texts are borrowed during the call. */
typedef void (*rollout_tell_fn)(void *ctx, const struct desired_rollout *r, const char *text);

/* Sets *changed if the state must be written. tell may be NULL. */
SHOAL_MUST_CHECK int rollout_step(struct desired *d, const struct rollout_input *in, bool *changed,
                                  rollout_tell_fn tell, void *ctx, struct err *e);

/* It has not ended yet. */
bool rollout_active(const struct desired_rollout *r);
/* The active rollout of the model; NULL: none. */
const struct desired_rollout *rollout_of(const struct desired *d, const char *model);
/* The share of requests that this version gets as a canary, in thousandths; 0: not a canary. */
uint32_t rollout_share(const struct desired *d, const char *model, const uint8_t *sha256);
/* Requests of this epoch and later are not served by nodes that know this state.  The first update
 * of the kind `strong` gets the second epoch: what came before is the first (registry.h). */
uint64_t rollout_epoch_end(const struct desired *d);

#endif
