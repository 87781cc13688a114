/* histogram.h - distributions of times and of batch sizes.
 *
 * Thread:    any: relaxed atomics; a reader may see a count before its sum.
 * Failure:   none. */
#ifndef SHOAL_HOST_HISTOGRAM_H
#define SHOAL_HOST_HISTOGRAM_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "ensemble/confidence.h"

#define HISTOGRAM_BUCKETS 18u
#define HISTOGRAM_BATCHES 8u /* up to 1, 2, 4, ... 128 */

struct histogram {                                  /* times */
    _Atomic uint64_t bucket[HISTOGRAM_BUCKETS + 1]; /* the last one: above all bounds */
    _Atomic uint64_t sum_ns;
};

/* The last sample of each bucket that belongs to a trace: leads from a figure to a request. */
struct histogram_exemplars {
    struct {
        _Atomic bool busy; /* somebody reads or writes it */
        char trace[33];    /* 32 hex digits; "": none yet */
        uint64_t ns, unix_ms;
    } by[HISTOGRAM_BUCKETS + 1];
};

/* Start of the last one or two time windows in a histogram. Not atomic: one reader at a time. */
struct histogram_recent {
    uint64_t since_ns; /* when base[1] was taken; 0: never */
    uint64_t base[2][HISTOGRAM_BUCKETS + 1];
};

/* Batch sizes, counted once per input of a batch. */
struct batch_histogram {
    _Atomic uint64_t bucket[HISTOGRAM_BATCHES + 1]; /* the last one: above all bounds */
    _Atomic uint64_t sum;
};

void histogram_add(struct histogram *h, uint64_t ns);
/* Notes a sample that was added; left out if another thread does the same at this moment. */
void histogram_exemplar(struct histogram_exemplars *x, uint64_t ns, const char trace[33],
                        uint64_t unix_ms);
/* That of a bucket; false: it has none, or it is being written. */
bool histogram_exemplar_read(struct histogram_exemplars *x, uint32_t bucket, char trace[33],
                             uint64_t *ns, uint64_t *unix_ms);
/* The q-quantile (0 to 1) of all samples, interpolated within a bucket. 0: there are no samples. */
uint64_t histogram_quantile(struct histogram *h, double part);
/* The same over the last one to two time windows, if it is called at least once per window. */
uint64_t histogram_recent_quantile(struct histogram_recent *r, struct histogram *h, double part,
                                   uint64_t now_ns, uint64_t window_ns);
/* The upper bound of a bucket; i < HISTOGRAM_BUCKETS. */
uint32_t histogram_bound_us(uint32_t i);
/* n 0 is not counted: the input was never computed. */
void histogram_add_batch(struct batch_histogram *h, uint32_t n);

/* Of numbers from 0 to 1, in the bins of confidences. */
struct share_histogram {
    _Atomic uint64_t bucket[CONFIDENCE_BINS];
    _Atomic uint64_t sum_ppm; /* millionths */
};

void histogram_add_share(struct share_histogram *h, double v);

#endif
