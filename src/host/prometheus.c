/* prometheus.c - see prometheus.h. */
#include "host/prometheus.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "host/counter.h"

void prometheus_help(struct buf *b, const char *name, const char *type, const char *help)
{
    buf_printf(b, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

/* Written by hand: a page has hundreds of buckets, and rendering it takes the loop's
 * time. */
static void put_u64(struct buf *b, uint64_t n)
{
    char digits[20];
    size_t at = sizeof(digits);
    do
        digits[--at] = (char)('0' + n % 10);
    while ((n /= 10) > 0);
    buf_put(b, digits + at, sizeof(digits) - at);
}

/* One bucket; returns the cumulative count. */
static uint64_t put_bucket(struct buf *b, const char *name, const char *labels, double bound,
                           uint64_t n)
{
    char le[32] = "+Inf";
    if (!isinf(bound))
        snprintf(le, sizeof(le), "%g", bound);
    buf_puts(b, name);
    buf_puts(b, "_bucket{");
    buf_puts(b, labels);
    buf_puts(b, labels[0] ? ",le=\"" : "le=\"");
    buf_puts(b, le);
    buf_puts(b, "\"} ");
    put_u64(b, n);
    buf_putc(b, '\n');
    return n;
}

static void put_totals(struct buf *b, const char *name, const char *labels, double sum, uint64_t n)
{
    const char *open = labels[0] ? "{" : "", *close = labels[0] ? "}" : "";
    buf_printf(b, "%s_sum%s%s%s %.9f\n", name, open, labels, close, sum);
    buf_printf(b, "%s_count%s%s%s %" PRIu64 "\n", name, open, labels, close, n);
}

/* Behind the line of a bucket that was just written. */
static void put_exemplar(struct buf *b, struct histogram_exemplars *x, uint32_t bucket)
{
    char trace[33];
    uint64_t ns, unix_ms;
    if (!histogram_exemplar_read(x, bucket, trace, &ns, &unix_ms) || b->rc < 0)
        return;
    b->len--; /* its newline */
    buf_printf(b, " # {trace_id=\"%s\"} %.9f %.3f\n", trace, (double)ns / 1e9,
               (double)unix_ms / 1e3);
}

void prometheus_histogram(struct buf *b, const char *name, const char *labels, struct histogram *h,
                          struct histogram_exemplars *x)
{
    uint64_t n = 0;
    bool empty = counter_read(&h->sum_ns) == 0; /* as for most: one bucket is enough */
    for (uint32_t i = empty ? HISTOGRAM_BUCKETS : 0; i <= HISTOGRAM_BUCKETS; i++) {
        n = put_bucket(b, name, labels,
                       i < HISTOGRAM_BUCKETS ? (double)histogram_bound_us(i) / 1e6
                                             : (double)INFINITY,
                       n + counter_read(&h->bucket[i]));
        if (x)
            put_exemplar(b, x, i);
    }
    put_totals(b, name, labels, (double)counter_read(&h->sum_ns) / 1e9, n);
}

void prometheus_batches(struct buf *b, const char *name, const char *labels,
                        struct batch_histogram *h)
{
    uint64_t n = 0;
    for (uint32_t i = 0; i <= HISTOGRAM_BATCHES; i++)
        n = put_bucket(b, name, labels,
                       i < HISTOGRAM_BATCHES ? (double)(1u << i) : (double)INFINITY,
                       n + counter_read(&h->bucket[i]));
    put_totals(b, name, labels, (double)counter_read(&h->sum), n);
}

void prometheus_shares(struct buf *b, const char *name, const char *labels,
                       struct share_histogram *h)
{
    uint64_t n = 0;
    for (uint32_t i = 0; i < CONFIDENCE_BINS; i++)
        n = put_bucket(b, name, labels, confidence_bound(i), n + counter_read(&h->bucket[i]));
    n = put_bucket(b, name, labels, (double)INFINITY, n);
    put_totals(b, name, labels, (double)counter_read(&h->sum_ppm) / 1e6, n);
}

const char *prometheus_label(char out[PROMETHEUS_LABEL_BYTES], const char *label, const char *value)
{
    size_t n = (size_t)snprintf(out, PROMETHEUS_LABEL_BYTES, "%.32s=\"", label);
    for (; *value && n < PROMETHEUS_LABEL_BYTES - 4; value++) {
        if (*value == '"' || *value == '\\' || *value == '\n')
            out[n++] = '\\';
        out[n++] = *value;
        if (*value == '\n')
            out[n - 1] = 'n';
    }
    out[n++] = '"';
    out[n] = '\0';
    return out;
}

const char *prometheus_model(char out[PROMETHEUS_LABEL_BYTES], const char *name)
{
    return prometheus_label(out, "model", name);
}

void prometheus_open(struct buf *out, const char *page, size_t n)
{
    for (const char *end = page + n; page < end;) {
        const char *stop = memchr(page, '\n', (size_t)(end - page));
        const size_t len = (size_t)((stop ? stop : end) - page);
        const char *name = len > 7 && memcmp(page, "# ", 2) == 0 ? page + 7 : NULL; /* HELP, TYPE */
        const char *space = name ? memchr(name, ' ', len - 7) : NULL;
        if (space && space - name > 6 && memcmp(space - 6, "_total", 6) == 0) {
            buf_put(out, page, (size_t)(space - 6 - page));
            buf_put(out, space, len - (size_t)(space - page));
        } else {
            buf_put(out, page, len);
        }
        buf_putc(out, '\n');
        page += len + 1;
    }
    buf_puts(out, "# EOF\n");
}
