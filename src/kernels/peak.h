/* peak.h - the 8-bit multiply-add rate of the instruction that a kernel set's products rest on.
 *
 * Thread:    pure: burns the calling thread for a moment; run it on several for the machine's peak.
 * A set that has no loop of its own here (scalar) is measured with its own product on a matrix that
 * lies in the first cache. */
#ifndef SHOAL_KERNELS_PEAK_H
#define SHOAL_KERNELS_PEAK_H

#include <stdint.h>

#include "kernels/kern.h"

/* Runs a fixed piece of work once and returns how many operations it was (a multiplication and an
 * addition are two).  k must be usable here. */
uint64_t peak_int8_run(const struct kern_ops *k);

#endif
