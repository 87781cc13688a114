/* metrics.c - see metrics.h. */
#include "host/metrics.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "base/buf.h"

/* Bounds in microseconds: from a cache hit to a long answer. */
static const uint32_t bounds_us[METRICS_BUCKETS] = {
    50,    100,    250,    500,    1000,    2500,    5000,    10000,    25000,
    50000, 100000, 250000, 500000, 1000000, 2500000, 5000000, 10000000, 30000000};

void histogram_add(struct histogram *h, uint64_t ns)
{
    uint32_t i = 0;
    while (i < METRICS_BUCKETS && ns > (uint64_t)bounds_us[i] * 1000u)
        i++;
    metrics_add(&h->bucket[i], 1);
    metrics_add(&h->sum_ns, ns);
}

void metrics_help(struct buf *b, const char *name, const char *type, const char *help)
{
    buf_printf(b, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

uint64_t histogram_quantile(struct histogram *h, double part)
{
    uint64_t count[METRICS_BUCKETS + 1], n = 0;
    for (size_t i = 0; i <= METRICS_BUCKETS; i++)
        n += count[i] = metrics_read(&h->bucket[i]);
    double rank = part * (double)n, below = 0;
    for (size_t i = 0; n > 0 && i < METRICS_BUCKETS; i++) {
        double from = i > 0 ? bounds_us[i - 1] : 0.0, in = (double)count[i];
        if (in > 0 && below + in >= rank)
            return (uint64_t)((from + (bounds_us[i] - from) * (rank - below) / in) * 1e3);
        below += in;
    }
    return n > 0 ? (uint64_t)(bounds_us[METRICS_BUCKETS - 1] * 1e3) : 0;
}

void batch_histogram_add(struct batch_histogram *h, uint32_t n)
{
    uint32_t i = 0;
    if (n == 0)
        return;
    while (i < METRICS_BATCHES && n > 1u << i)
        i++;
    metrics_add(&h->bucket[i], 1);
    metrics_add(&h->sum, n);
}

/* One bucket; returns how many there are up to here. */
static uint64_t put_bucket(struct buf *b, const char *name, const char *labels, double bound,
                           uint64_t n)
{
    char le[32] = "+Inf";
    if (!isinf(bound))
        snprintf(le, sizeof(le), "%g", bound);
    buf_printf(b, "%s_bucket{%s%sle=\"%s\"} %" PRIu64 "\n", name, labels, labels[0] ? "," : "", le,
               n);
    return n;
}

static void put_totals(struct buf *b, const char *name, const char *labels, double sum, uint64_t n)
{
    const char *open = labels[0] ? "{" : "", *close = labels[0] ? "}" : "";
    buf_printf(b, "%s_sum%s%s%s %.9f\n", name, open, labels, close, sum);
    buf_printf(b, "%s_count%s%s%s %" PRIu64 "\n", name, open, labels, close, n);
}

void histogram_put(struct buf *b, const char *name, const char *labels, struct histogram *h)
{
    uint64_t n = 0;
    for (uint32_t i = 0; i <= METRICS_BUCKETS; i++)
        n = put_bucket(b, name, labels,
                       i < METRICS_BUCKETS ? (double)bounds_us[i] / 1e6 : (double)INFINITY,
                       n + metrics_read(&h->bucket[i]));
    put_totals(b, name, labels, (double)metrics_read(&h->sum_ns) / 1e9, n);
}

void batch_histogram_put(struct buf *b, const char *name, const char *labels,
                         struct batch_histogram *h)
{
    uint64_t n = 0;
    for (uint32_t i = 0; i <= METRICS_BATCHES; i++)
        n = put_bucket(b, name, labels, i < METRICS_BATCHES ? (double)(1u << i) : (double)INFINITY,
                       n + metrics_read(&h->bucket[i]));
    put_totals(b, name, labels, (double)metrics_read(&h->sum), n);
}

const char *metrics_model(char out[METRICS_LABEL_BYTES], const char *name)
{
    size_t n = (size_t)snprintf(out, METRICS_LABEL_BYTES, "model=\"");
    for (; *name && n < METRICS_LABEL_BYTES - 4; name++) {
        if (*name == '"' || *name == '\\' || *name == '\n')
            out[n++] = '\\';
        out[n++] = *name;
        if (*name == '\n')
            out[n - 1] = 'n';
    }
    out[n++] = '"';
    out[n] = '\0';
    return out;
}

const char *refusal_name(enum refusal r)
{
    static const char *const names[N_REFUSED] = {"auth",     "rate",    "busy",      "deadline",
                                                 "draining", "invalid", "not_loaded"};
    return names[r];
}

void metrics_smooth(_Atomic uint64_t *at, uint64_t v)
{
    uint64_t old = metrics_read(at);
    /* two writers at once lose one sample: no harm */
    atomic_store_explicit(at, old ? old - old / 8 + v / 8 : v, memory_order_relaxed);
}
