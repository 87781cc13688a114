/* measured.h - the measurement of this machine's speed (cluster/machine/node_measure.h).
 *
 * A node measures from its start. Any other server begins with the first question about its
 * machine: most are never asked.
 *
 * Thread:    any.
 * Ownership: the gateway closes it. */
#ifndef SHOAL_GATEWAY_MEASURED_H
#define SHOAL_GATEWAY_MEASURED_H

#include <stdint.h>

#include "base/err.h"

struct gw;
struct node_measure;

/* delay_ms: before the first measurement; 0: the usual delay. */
SHOAL_MUST_CHECK int measured_open(struct gw *gw, uint32_t delay_ms, struct err *e);
/* Begins to measure if nothing does. NULL: it cannot. */
struct node_measure *measured_get(struct gw *gw);

#endif
