/* metrics.h - counters and histograms, and how Prometheus reads them.
 *
 * Thread:    any: relaxed atomics; a scrape may see a count before its sum.
 * Failure:   none. */
#ifndef SHOAL_HOST_METRICS_H
#define SHOAL_HOST_METRICS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf;

#define METRICS_BUCKETS 18u
#define METRICS_LABEL_BYTES 272
#define METRICS_BATCHES 8u /* of up to 1, 2, 4, ... 128 */

struct histogram {
    _Atomic uint64_t bucket[METRICS_BUCKETS + 1]; /* the last is what is above all bounds */
    _Atomic uint64_t sum_ns;
};

/* How many inputs were computed together, seen from each of them. */
struct batch_histogram {
    _Atomic uint64_t bucket[METRICS_BATCHES + 1];
    _Atomic uint64_t sum;
};

struct model_metrics {
    struct histogram queue, first_token, per_token, total;
    struct batch_histogram batch;
    _Atomic uint64_t requests, prompt_tokens, cached_tokens, generated_tokens, cancelled, errors;
    _Atomic uint64_t cache_hits, cache_misses;
    _Atomic uint32_t in_flight;
    _Atomic uint32_t more_tasks; /* of those in flight that are more than one task */
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
/* n: 0 is not counted: the input was never computed. */
void batch_histogram_add(struct batch_histogram *h, uint32_t n);
/* labels: `model="x"` or "". */
void histogram_put(struct buf *b, const char *name, const char *labels, struct histogram *h);
void batch_histogram_put(struct buf *b, const char *name, const char *labels,
                         struct batch_histogram *h);
/* `model="NAME"` into out, which is returned: quotes in the name escaped, a long one cut. */
const char *metrics_model(char out[METRICS_LABEL_BYTES], const char *name);
void metrics_help(struct buf *b, const char *name, const char *type, const char *help);
const char *refusal_name(enum refusal r);
/* Moves a smoothed value an eighth of the way to v. */
void metrics_smooth(_Atomic uint64_t *at, uint64_t v);

static inline void metrics_add(_Atomic uint64_t *at, uint64_t n)
{
    atomic_fetch_add_explicit(at, n, memory_order_relaxed);
}

/* Whether a model works on more than the request that asks. */
static inline bool metrics_others(struct model_metrics *m)
{
    return atomic_load_explicit(&m->in_flight, memory_order_relaxed) > 1;
}

static inline uint64_t metrics_read(_Atomic uint64_t *at)
{
    return atomic_load_explicit(at, memory_order_relaxed);
}

#endif
