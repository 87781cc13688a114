/* sim_shoal.h - a whole shoal in simulated time: the real code of lease, desired store, controller,
 * rollout, agent, join and relay, with simulated clocks, network, NATS, disks and models.
 *
 * A seed decides everything: when messages arrive, get lost or arrive twice; which members pause,
 * crash and come back; when NATS is away, answers from the past, or loses its data; what
 * administrators and clients do. So a failed schedule can be repeated as often as needed.
 *
 * Checked while it runs:
 *   - at most one member holds the lease, and fences grow;
 *   - the desired state never goes back on a member, and no acknowledged change is lost while NATS
 *     keeps its data;
 *   - a client gets every token of one version once, in order;
 *   - an epoch is answered by one version;
 *   - after an update is done, only a node that says that it is isolated answers with the old one;
 *   - after NATS lost its data, a change that a member knew, who was there all the time, is in what
 *     is written back, however few knew it;
 *   - gateways together take no more of a quota than there is, once for each loss of NATS's data.
 * In the end, when the faults are over, all of it works again.
 *
 * Thread:    one at a time in a process.
 * Failure:   SHOAL_EINTERNAL: a rule is broken; the text says which, when, and with which seed. */
#ifndef SHOAL_CLUSTER_SIM_SHOAL_H
#define SHOAL_CLUSTER_SIM_SHOAL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

#define SIM_PAUSE_MS 20u /* a step of the distribution of pauses */
#define SIM_PAUSES 1000u

/* What happened in all schedules so far: that they were no idle ones. */
struct sim_shoal_counts {
    uint64_t n_schedules, n_events;
    uint64_t n_terms;             /* of controllers */
    uint64_t n_crashes, n_pauses; /* of members */
    uint64_t n_lost, n_stale;     /* data of NATS; answers from the past */
    uint64_t n_changes;           /* of the desired state, acknowledged */
    uint64_t n_rollouts;          /* done */
    uint64_t n_restored;          /* states written back after NATS had lost its data, and those */
    uint64_t n_minority;          /* of them whose newest copy less than half of the members had */
    uint64_t n_streams, n_moved, n_doubled, n_failed;
    uint64_t n_tokens;
    /* The longest pause of each stream, as its client saw it, while another node could have
     * answered; the last step has all longer ones, too. */
    uint64_t pauses[SIM_PAUSES];
    double seconds; /* simulated */
};

/* The pause in milliseconds that a share of the streams did not exceed, as 0.99; 0: no streams. */
uint32_t sim_shoal_pause_ms(const struct sim_shoal_counts *c, double share);

/* streams: clients and nodes only, without a control plane; far faster. */
SHOAL_MUST_CHECK int sim_shoal_run(uint64_t seed, bool streams, struct sim_shoal_counts *counts,
                                   struct err *e);

#endif
