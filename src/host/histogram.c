/* histogram.c - see histogram.h. */
#include "host/histogram.h"

#include <stdbool.h>
#include <string.h>

#include "host/counter.h"

/* From a cache hit to a long answer. */
static const uint32_t bounds_us[HISTOGRAM_BUCKETS] = {
    50,    100,    250,    500,    1000,    2500,    5000,    10000,    25000,
    50000, 100000, 250000, 500000, 1000000, 2500000, 5000000, 10000000, 30000000};

uint32_t histogram_bound_us(uint32_t i)
{
    return bounds_us[i];
}

static uint32_t bucket_of(uint64_t ns)
{
    uint32_t i = 0;
    while (i < HISTOGRAM_BUCKETS && ns > (uint64_t)bounds_us[i] * 1000u)
        i++;
    return i;
}

void histogram_add(struct histogram *h, uint64_t ns)
{
    counter_add(&h->bucket[bucket_of(ns)], 1);
    counter_add(&h->sum_ns, ns);
}

void histogram_exemplar(struct histogram_exemplars *x, uint64_t ns, const char trace[33],
                        uint64_t unix_ms)
{
    const uint32_t i = bucket_of(ns);
    if (atomic_exchange_explicit(&x->by[i].busy, true, memory_order_acquire))
        return;
    memcpy(x->by[i].trace, trace, 32);
    x->by[i].ns = ns;
    x->by[i].unix_ms = unix_ms;
    atomic_store_explicit(&x->by[i].busy, false, memory_order_release);
}

bool histogram_exemplar_read(struct histogram_exemplars *x, uint32_t bucket, char trace[33],
                             uint64_t *ns, uint64_t *unix_ms)
{
    if (atomic_exchange_explicit(&x->by[bucket].busy, true, memory_order_acquire))
        return false;
    memcpy(trace, x->by[bucket].trace, 33);
    *ns = x->by[bucket].ns;
    *unix_ms = x->by[bucket].unix_ms;
    atomic_store_explicit(&x->by[bucket].busy, false, memory_order_release);
    return trace[0] != '\0';
}

static uint64_t quantile(const uint64_t count[HISTOGRAM_BUCKETS + 1], double part)
{
    uint64_t n = 0;
    for (uint32_t i = 0; i <= HISTOGRAM_BUCKETS; i++)
        n += count[i];
    double rank = part * (double)n, below = 0;
    for (uint32_t i = 0; n > 0 && i < HISTOGRAM_BUCKETS; i++) {
        double from = i > 0 ? bounds_us[i - 1] : 0.0, in = (double)count[i];
        if (in > 0 && below + in >= rank)
            return (uint64_t)((from + (bounds_us[i] - from) * (rank - below) / in) * 1e3);
        below += in;
    }
    return n > 0 ? (uint64_t)(bounds_us[HISTOGRAM_BUCKETS - 1] * 1e3) : 0;
}

uint64_t histogram_quantile(struct histogram *h, double part)
{
    uint64_t count[HISTOGRAM_BUCKETS + 1];
    for (uint32_t i = 0; i <= HISTOGRAM_BUCKETS; i++)
        count[i] = counter_read(&h->bucket[i]);
    return quantile(count, part);
}

uint64_t histogram_recent_quantile(struct histogram_recent *r, struct histogram *h, double part,
                                   uint64_t now_ns, uint64_t window_ns)
{
    uint64_t count[HISTOGRAM_BUCKETS + 1];
    for (uint32_t i = 0; i <= HISTOGRAM_BUCKETS; i++)
        count[i] = counter_read(&h->bucket[i]);
    if (r->since_ns == 0 || now_ns - r->since_ns >= window_ns) {
        bool old = r->since_ns == 0 || now_ns - r->since_ns >= 2 * window_ns;
        memcpy(r->base[0], old ? count : r->base[1], sizeof(count));
        memcpy(r->base[1], count, sizeof(count));
        r->since_ns = now_ns;
    }
    for (uint32_t i = 0; i <= HISTOGRAM_BUCKETS; i++)
        count[i] -= r->base[0][i];
    return quantile(count, part);
}

void histogram_add_batch(struct batch_histogram *h, uint32_t n)
{
    uint32_t i = 0;
    if (n == 0)
        return;
    while (i < HISTOGRAM_BATCHES && n > 1u << i)
        i++;
    counter_add(&h->bucket[i], 1);
    counter_add(&h->sum, n);
}

void histogram_add_share(struct share_histogram *h, double v)
{
    v = v > 0 ? v < 1 ? v : 1 : 0; /* NaN is 0 */
    counter_add(&h->bucket[confidence_bin(v)], 1);
    counter_add(&h->sum_ppm, (uint64_t)(v * 1e6));
}
