/* metrics.h - counters and histograms, and how Prometheus reads them.
 *
 * Thread:    any: relaxed atomics; a scrape may see a count before its sum.
 * Failure:   none. */
#ifndef SHOAL_GATEWAY_METRICS_H
#define SHOAL_GATEWAY_METRICS_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

struct buf;

#define METRICS_BUCKETS 18u

struct histogram {
    _Atomic uint64_t bucket[METRICS_BUCKETS + 1]; /* the last is what is above all bounds */
    _Atomic uint64_t sum_ns;
};

struct model_metrics {
    struct histogram queue, first_token, per_token, total;
    _Atomic uint64_t requests, prompt_tokens, cached_tokens, generated_tokens, cancelled, errors;
    _Atomic uint64_t cache_hits, cache_misses;
    _Atomic uint32_t in_flight;
    /* Measured cost, for admission: smoothed, in nanoseconds; 0: not known yet. */
    _Atomic uint64_t prompt_token_ns, token_ns;
};

enum refusal {
    REFUSED_AUTH,
    REFUSED_RATE,
    REFUSED_BUSY,
    REFUSED_DEADLINE,
    REFUSED_DRAINING,
    REFUSED_INVALID,
    REFUSED_NOT_LOADED,
    N_REFUSED
};

void histogram_add(struct histogram *h, uint64_t ns);
/* The value that this part (0 to 1) of all is below, between bounds by a straight line; 0: none. */
uint64_t histogram_quantile(struct histogram *h, double part);
/* labels: `model="x"` or "". */
void histogram_put(struct buf *b, const char *name, const char *labels, struct histogram *h);
void metrics_help(struct buf *b, const char *name, const char *type, const char *help);
const char *refusal_name(enum refusal r);
/* Moves a smoothed value an eighth of the way to v. */
void metrics_smooth(_Atomic uint64_t *at, uint64_t v);

static inline void metrics_add(_Atomic uint64_t *at, uint64_t n)
{
    atomic_fetch_add_explicit(at, n, memory_order_relaxed);
}

static inline uint64_t metrics_read(_Atomic uint64_t *at)
{
    return atomic_load_explicit(at, memory_order_relaxed);
}

#endif
