/* prometheus.h - counters and histograms as Prometheus text, and as OpenMetrics.
 *
 * Thread:    any.
 * Failure:   sticky in the buffer. */
#ifndef SHOAL_HOST_PROMETHEUS_H
#define SHOAL_HOST_PROMETHEUS_H

#include <stddef.h>

#include "host/histogram.h"

struct buf;

#define PROMETHEUS_LABEL_BYTES 272

void prometheus_help(struct buf *b, const char *name, const char *type, const char *help);
/* Writes `LABEL="VALUE"` into out and returns it: quotes in the value are escaped, a long value is
 * cut. */
const char *prometheus_label(char out[PROMETHEUS_LABEL_BYTES], const char *label,
                             const char *value);
const char *prometheus_model(char out[PROMETHEUS_LABEL_BYTES], const char *name); /* model="NAME" */
/* labels: `model="x"` or "".  x: exemplars, for OpenMetrics only; or NULL. */
void prometheus_histogram(struct buf *b, const char *name, const char *labels, struct histogram *h,
                          struct histogram_exemplars *x);
void prometheus_batches(struct buf *b, const char *name, const char *labels,
                        struct batch_histogram *h);

void prometheus_shares(struct buf *b, const char *name, const char *labels,
                       struct share_histogram *h);
/* Appends a whole page as OpenMetrics has it: families of counters without _total, an end. */
void prometheus_open(struct buf *out, const char *page, size_t n);

#endif
