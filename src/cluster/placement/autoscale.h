/* autoscale.h - how many replicas a model should have, from the reports of its replicas.
 *
 * Scaling up follows the strongest signal at once, limited by a factor and a cool-down. Scaling
 * down waits until no sample of the last `down_ms` required more. In between is a tolerance band
 * without changes.
 *
 * Thread:    no state of its own, no clock: the caller keeps struct autoscale_state per model
 *            and calls autoscale_decide with every sample, in the order of time.
 * Failure:   none; signals that are unknown or not finite are ignored. */
#ifndef SHOAL_CLUSTER_AUTOSCALE_H
#define SHOAL_CLUSTER_AUTOSCALE_H

#include <stdbool.h>
#include <stdint.h>

#define AUTOSCALE_SLOTS 16u
#define AUTOSCALE_REASON_BYTES 160u

struct autoscale_policy {
    uint32_t min, max;
    double cpu;        /* target share of the replicas' busy cores; 0: ignored */
    double queue;      /* target for waiting requests per replica; 0: ignored */
    double p95;        /* target p95 latency as a share of the budget; 0: ignored */
    double tolerance;  /* a ratio this close to 1 changes nothing */
    double max_growth; /* maximum growth factor per decision; one more is always allowed */
    uint32_t up_ms;    /* cool-down after growing */
    uint32_t down_ms;  /* how long fewer replicas must be enough before scaling down */
    uint32_t
        idle_ms; /* after this long without a request: no replica. 0: keeps one. Only with min 0 */
};

struct autoscale_policy autoscale_policy_default(void); /* min 1, max 1 */

struct autoscale_signal {
    uint64_t now_ms;
    uint32_t ready;           /* replicas that answer */
    double cpu;               /* mean over them, 0 to 1; negative: unknown */
    double queue;             /* waiting requests of all replicas */
    double p95_ms, budget_ms; /* 0: unknown */
    double arrivals_per_s;    /* requests that came */
    double capacity_per_s;    /* requests that one replica can answer; 0: unknown */
};

struct autoscale_state { /* all zero at the start */
    bool started;
    uint32_t wanted;
    uint64_t start_ms, up_ms, busy_ms; /* start of the state, last growth, last work */
    uint64_t slot[AUTOSCALE_SLOTS];    /* number of the time slot, plus one; 0: empty */
    uint32_t most[AUTOSCALE_SLOTS];    /* the highest demand in it */
};

enum autoscale_change { AUTOSCALE_KEEP, AUTOSCALE_UP, AUTOSCALE_DOWN };

struct autoscale_decision {
    uint32_t replicas;
    enum autoscale_change change;
    char reason[AUTOSCALE_REASON_BYTES];
};

/* A new state starts from `wanted` replicas. */
void autoscale_start(struct autoscale_state *s, uint32_t wanted, uint64_t now_ms);
struct autoscale_decision autoscale_decide(struct autoscale_state *s,
                                           const struct autoscale_policy *p,
                                           const struct autoscale_signal *in);

#endif
