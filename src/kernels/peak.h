/* peak.h - peak rate of the 8-bit multiply-add instruction that a kernel set's products use.
 *
 * A set without a loop of its own here (scalar) is measured with its own product on a matrix that
 * fits into the L1 cache.
 *
 * Thread:    pure; keeps the calling thread busy for a moment.  Run it on several threads at once
 *            to measure the whole machine. */
#ifndef SHOAL_KERNELS_PEAK_H
#define SHOAL_KERNELS_PEAK_H

#include <stdint.h>

#include "kernels/kern.h"

/* Runs a fixed amount of work once and returns the number of operations (a multiplication and an
 * addition count as two).  k must be usable on this machine. */
uint64_t peak_int8_run(const struct kern_ops *k);

#endif
