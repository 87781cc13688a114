/* node_measure.h - measurements of a node's machine: memory bandwidth, tokens per second of a tiny
 * model, GPU.
 *
 * A thread measures some seconds after the start, while no request runs: memory for a tenth of a
 * second, the probe for less than a second.  The probe is the smallest decoder of the models that
 * come with Shoal, the same on every node; a node without them has no figure.
 *
 * It measures again, a minute later, then ever less often up to once an hour: a machine that is
 * busy with its boot reaches a tenth of its speed.  The best of the last measurements counts
 * (speed_history.h).  They are kept in the cache folder, for this machine and version of Shoal.
 *
 * Thread:    open and close: the owner's; fill: any.
 * Ownership: open gives, close takes back (NULL is fine).
 * Failure:   SHOAL_ENOMEM (no thread). Failed measurements stay 0. */
#ifndef SHOAL_CLUSTER_MACHINE_NODE_MEASURE_H
#define SHOAL_CLUSTER_MACHINE_NODE_MEASURE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

struct node_measure;
struct node_state;

struct node_measure_opts {
    const char *cache_dir; /* where results are kept; NULL: nowhere */
    uint32_t delay_ms;     /* before the first measurement; 0: 3000 */
    uint32_t again_ms;     /* until the second; doubles up to an hour; 0: a minute */
    /* In place of the real ones: bytes and tokens per second; 0: it failed. Called on the thread
     * with ctx.  NULL: those of this machine. */
    double (*bandwidth)(void *ctx);
    double (*probe)(void *ctx);
    /* Whether requests run now; called on the thread. */
    bool (*busy)(void *ctx);
    void *ctx;
};

SHOAL_MUST_CHECK int node_measure_open(struct node_measure **out, const struct node_measure_opts *o,
                                       struct err *e);
void node_measure_close(struct node_measure *m);
/* bandwidth, probe_tokens, gpu: as far as known now. s borrows the name until close. */
void node_measure_fill(struct node_measure *m, struct node_state *s);

#endif
