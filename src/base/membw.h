/* membw.h - measures how fast this machine reads memory.
 *
 * Thread:    starts threads of its own for the time of the call.
 * Failure:   0 GB/s when a thread cannot be started. */
#ifndef SHOAL_BASE_MEMBW_H
#define SHOAL_BASE_MEMBW_H

#include <stddef.h>
#include <stdint.h>

#define MEMBW_MAX_THREADS 256u

/* Reads n bytes at p, a slice per thread, again and again for about budget_ms (at least three
 * passes, unless they take four times that long); returns the best pass in 10^9 bytes per second.
 * p: 64-byte aligned, already touched. */
double membw_read(const void *p, size_t n, uint32_t n_threads, uint32_t budget_ms);

#endif
