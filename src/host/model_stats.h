/* model_stats.h - what the host counts and measures of one model.
 *
 * How the figures are shown (Prometheus, the admin page) is the gateway's.
 *
 * Thread:    any: relaxed atomics. */
#ifndef SHOAL_HOST_MODEL_STATS_H
#define SHOAL_HOST_MODEL_STATS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "host/counter.h"
#include "host/histogram.h"

struct model_stats {
    struct histogram queue, first_token, per_token, total;
    struct batch_histogram batch;
    _Atomic uint64_t requests, prompt_tokens, cached_tokens, generated_tokens, cancelled, errors;
    _Atomic uint64_t cache_hits, cache_misses;
    _Atomic uint32_t in_flight;
    _Atomic uint32_t more_tasks; /* tasks in flight beyond the first one of each request */
    /* Measured cost, for admission: smoothed, in nanoseconds; 0: not known yet. */
    _Atomic uint64_t prompt_token_ns, token_ns;
};

/* Whether a model works on more than the request that asks. */
static inline bool model_stats_others(struct model_stats *m)
{
    return atomic_load_explicit(&m->in_flight, memory_order_relaxed) > 1;
}

/* Moves a smoothed value an eighth of the way to v.  Two writers at once lose one sample, which
 * does no harm. */
static inline void model_stats_smooth(_Atomic uint64_t *at, uint64_t v)
{
    uint64_t old = counter_read(at);
    atomic_store_explicit(at, old ? old - old / 8 + v / 8 : v, memory_order_relaxed);
}

#endif
