/* prom_in.h - reads samples from a page of metrics (Prometheus' text format, or OpenMetrics).
 *
 * Thread:    pure functions.
 * Ownership: a sample borrows the page.
 * Failure:   lines that are no samples are skipped. */
#ifndef SHOAL_WIRE_PROM_IN_H
#define SHOAL_WIRE_PROM_IN_H

#include <stdbool.h>
#include <stddef.h>

struct prom_sample {
    const char *name, *labels; /* labels: between the braces */
    size_t n_name, n_labels;
    double value;
};

/* The next sample from *p on, which moves behind it.  false: there are no more. */
bool prom_in_next(const char **p, const char *end, struct prom_sample *out);
bool prom_in_is(const struct prom_sample *s, const char *name);
/* The value of a label, cut at cap; false: it has none of this name. */
bool prom_in_label(const struct prom_sample *s, const char *key, char *out, size_t cap);

#endif
