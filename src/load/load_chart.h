/* load_chart.h - a line chart as SVG: axes with round numbers, a legend, one line per series.
 *
 * Thread:    pure functions.
 * Failure:   sticky in the buffer. */
#ifndef SHOAL_LOAD_LOAD_CHART_H
#define SHOAL_LOAD_LOAD_CHART_H

#include <stddef.h>

#include "base/buf.h"

struct load_series {
    const char *name;
    const double *x, *y; /* [n]; a point with y NAN is left out */
    size_t n;
};

struct load_chart {
    const char *title, *x_label, *y_label;
    const struct load_series *series;
    size_t n_series; /* up to 4 */
};

void load_chart_svg(struct buf *b, const struct load_chart *c);
/* The distance of at most n_ticks round steps (1, 2 or 5 times a power of ten) that cover `most`.
 */
double load_chart_step(double most, unsigned n_ticks);

#endif
