/* deferred_runner.h - runs deferred requests on the first event loop, like calls of their clients.
 *
 * A request that is refused temporarily (429, 502, 503, 504, or 404 while nodes are missing) is
 * retried at growing intervals until it expires; any other answer is final. A request interrupted
 * by the end of the process is run again after the next start.
 *
 * Thread:    create, destroy: the owner's; end: the loop's, or the owner's after its end.
 * Ownership: create gives, destroy takes back (NULL is fine).  gw->deferred outlives it. */
#ifndef SHOAL_GATEWAY_DEFERRED_DEFERRED_RUNNER_H
#define SHOAL_GATEWAY_DEFERRED_DEFERRED_RUNNER_H

#include "base/err.h"

struct deferred_runner;
struct gw;
struct gw_loop;

/* *out is NULL without gw->deferred. */
SHOAL_MUST_CHECK int deferred_runner_create(struct deferred_runner **out, struct gw *gw,
                                            struct err *e);
/* Cancels the runs of this loop; their requests stay in the file. */
void deferred_runner_end(struct deferred_runner *x, const struct gw_loop *gl);
void deferred_runner_destroy(struct deferred_runner *x);

#endif
