/* confidence_watch.h - records a model's confidences, and raises an alarm when they drift
 * (ensemble/drift.h).
 *
 * Thread:    add: any; readers use the atomics.  init: before it is shared. */
#ifndef SHOAL_HOST_CONFIDENCE_WATCH_H
#define SHOAL_HOST_CONFIDENCE_WATCH_H

#include <stdatomic.h>
#include <stdint.h>

#include "ensemble/drift.h"
#include "host/histogram.h"

#define CONFIDENCE_WATCH_LIMIT DRIFT_ALARM /* above it is an alarm */

struct confidence_watch {
    struct share_histogram shares;
    _Atomic uint64_t n_windows; /* windows compared */
    _Atomic uint64_t index_ppm; /* of the last window, in millionths */
    _Atomic uint64_t alarm;     /* 1: confidences are distributed differently */
    /* private */
    _Atomic uint64_t n;
    _Atomic uint32_t learned; /* 1: the reference of `drift` is its first window, and stays */
    _Atomic uint32_t busy;    /* one thread compares: it owns `drift` */
    struct drift drift;
};

/* reference: rows 0 means that the first window is the reference. */
void confidence_watch_init(struct confidence_watch *w,
                           const struct confidence_calibration *reference);
/* Before it is shared: what an earlier process learned. */
void confidence_watch_restore(struct confidence_watch *w, const double shares[CONFIDENCE_BINS]);
/* What was learned by this process; false: nothing yet, or there was a reference. */
bool confidence_watch_learned(struct confidence_watch *w, double shares[CONFIDENCE_BINS]);
/* name: of the model, for the log. */
void confidence_watch_add(struct confidence_watch *w, const char *name, double confidence);

#endif
