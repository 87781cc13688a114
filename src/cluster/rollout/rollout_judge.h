/* rollout_judge.h - whether a canary is good enough: error rate, latency and score of the new
 * version against those of the old one.
 *
 * Thread:    no state. */
#ifndef SHOAL_CLUSTER_ROLLOUT_ROLLOUT_JUDGE_H
#define SHOAL_CLUSTER_ROLLOUT_ROLLOUT_JUDGE_H

#include <stddef.h>
#include <stdint.h>

#include "cluster/control/desired.h"

struct rollout_view;

/* Counters of one version, summed over the nodes. */
struct rollout_figures {
    uint64_t requests, errors;
    uint64_t p95_us; /* mean over nodes, weighted by their requests; 0: not known */
};

enum rollout_verdict { ROLLOUT_WAIT, ROLLOUT_GOOD, ROLLOUT_BAD };

void rollout_judge_count(struct rollout_figures *from, struct rollout_figures *to,
                         const struct rollout_view *v);
/* text: what the verdict waits for, or its reason. */
enum rollout_verdict rollout_judge(const struct desired_judge *j,
                                   const struct rollout_figures *from,
                                   const struct rollout_figures *to, char *text, size_t cap);

#endif
