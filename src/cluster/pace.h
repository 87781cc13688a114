/* pace.h - the usual time between two pieces of an answer, and how long a silence is unusual.
 *
 * What a node says about its speed bounds the wait for the first piece: it includes the prompt, and
 * the load that the node expects. A stream that runs shows its own pace, which is a far better
 * measure: a node that stops in the middle of a stream is noticed within some token times.
 *
 * Pieces may come in bursts, so the longest recent gap counts beside the mean.
 *
 * Thread: plain data; the owner's.  Time is what the caller says. */
#ifndef SHOAL_CLUSTER_PACE_H
#define SHOAL_CLUSTER_PACE_H

#include <stdint.h>

struct pace {
    uint64_t last_ns; /* the last piece, or the begin */
    uint64_t mean_ns, peak_ns;
    uint32_t n; /* gaps so far */
};

/* A replica begins, or continues: it has to compute the prompt first. */
void pace_begin(struct pace *p, uint64_t now);
void pace_piece(struct pace *p, uint64_t now);
/* The shortest silence that is unusual; UINT64_MAX: not known yet. */
uint64_t pace_unusual_ns(const struct pace *p);

#endif
