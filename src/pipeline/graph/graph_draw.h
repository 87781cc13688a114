/* graph_draw.h - draws a flow as SVG, from left to right, one column per group of parallel steps.
 *
 * Thread:  pure functions.
 * Failure: sticky in the buffer. */
#ifndef SHOAL_PIPELINE_GRAPH_GRAPH_DRAW_H
#define SHOAL_PIPELINE_GRAPH_GRAPH_DRAW_H

#include "base/buf.h"
#include "pipeline/graph/graph.h"

/* Appends a whole SVG document.  g: checked. */
void graph_draw_svg(struct buf *b, const struct graph *g);

#endif
