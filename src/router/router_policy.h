/* router_policy.h - the steps of a policy, from text.
 *
 * Each step keeps the best of the remaining candidates; earlier steps count most. "sla" and
 * "cheapest" stand for several steps.
 *
 * Thread:    any; no state.
 * Failure:   SHOAL_EINVAL: the message lists the known words. */
#ifndef SHOAL_ROUTER_ROUTER_POLICY_H
#define SHOAL_ROUTER_ROUTER_POLICY_H

#include <stdint.h>

#include "base/err.h"

#define ROUTER_MAX_STEPS 8u

enum router_step {
    ROUTER_FIT,     /* those that meet the deadline; if none does: the fastest, degraded */
    ROUTER_QUALITY, /* the best */
    ROUTER_COST,    /* the cheapest */
    ROUTER_ENERGY,  /* the least energy */
    ROUTER_SPARE,   /* nodes on mains power, or with the fullest battery */
    ROUTER_LATENCY, /* the fastest */
    ROUTER_LEAST_LOADED,
    ROUTER_ROUND_ROBIN,
    ROUTER_HASH,
    ROUTER_N_STEPS
};

struct router_policy {
    enum router_step steps[ROUTER_MAX_STEPS];
    uint32_t n;
};

/* Appends the steps of a word: "fit", "quality", "cost", "energy", "battery", "latency",
 * "least_loaded", "round_robin", "hash"; "sla": fit, quality, latency; "cheapest": fit, cost,
 * latency. */
SHOAL_MUST_CHECK int router_policy_add(struct router_policy *p, const char *word, struct err *e);
const char *router_step_name(enum router_step s);

#endif
