/* prometheus.h - counters and histograms as Prometheus text.
 *
 * Thread:    any.
 * Failure:   sticky in the buffer. */
#ifndef SHOAL_HOST_PROMETHEUS_H
#define SHOAL_HOST_PROMETHEUS_H

#include "host/histogram.h"

struct buf;

#define PROMETHEUS_LABEL_BYTES 272

void prometheus_help(struct buf *b, const char *name, const char *type, const char *help);
/* Writes `LABEL="VALUE"` into out and returns it: quotes in the value are escaped, a long value is
 * cut. */
const char *prometheus_label(char out[PROMETHEUS_LABEL_BYTES], const char *label,
                             const char *value);
const char *prometheus_model(char out[PROMETHEUS_LABEL_BYTES], const char *name); /* model="NAME" */
/* labels: `model="x"` or "". */
void prometheus_histogram(struct buf *b, const char *name, const char *labels, struct histogram *h);
void prometheus_batches(struct buf *b, const char *name, const char *labels,
                        struct batch_histogram *h);

void prometheus_shares(struct buf *b, const char *name, const char *labels,
                       struct share_histogram *h);

#endif
