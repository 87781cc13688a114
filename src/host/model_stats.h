/* model_stats.h - counters and measurements of one model.
 *
 * The engine learns the cost of work (engine/cost.h). The gateway presents the figures (Prometheus,
 * the admin page).
 *
 * Thread:    any: relaxed atomics. */
#ifndef SHOAL_HOST_MODEL_STATS_H
#define SHOAL_HOST_MODEL_STATS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "host/confidence_watch.h"
#include "host/counter.h"
#include "host/histogram.h"

enum model_stats_refused { /* why a request was refused once its model was known */
                           MODEL_STATS_BUSY,
                           MODEL_STATS_DEADLINE,
                           MODEL_STATS_INVALID,
                           MODEL_STATS_N_REFUSED
};

struct model_stats {
    struct histogram queue, first_token, per_token, total;
    struct histogram_recent recent; /* recent part of total; under the registry's lock */
    struct batch_histogram batch;
    struct confidence_watch confidence; /* of classes */
    _Atomic uint64_t prefix_hits;       /* prompts with a cached prefix */
    _Atomic uint64_t refused[MODEL_STATS_N_REFUSED];
    _Atomic uint64_t requests, prompt_tokens, cached_tokens, generated_tokens, cancelled, errors;
    _Atomic uint64_t cache_hits, cache_misses;
    _Atomic uint64_t microjoules; /* of its requests, if energy is counted */
    _Atomic uint32_t in_flight;
};

/* Whether the model works on requests other than the caller's. */
static inline bool model_stats_others(struct model_stats *m)
{
    return atomic_load_explicit(&m->in_flight, memory_order_relaxed) > 1;
}

#endif
