/* membw.h - measures how fast this machine reads memory.
 *
 * Thread:    starts its own threads and joins them before it returns.
 * Failure:   0 GB/s when a thread cannot be started. */
#ifndef SHOAL_BASE_MEMBW_H
#define SHOAL_BASE_MEMBW_H

#include <stddef.h>
#include <stdint.h>

#define MEMBW_MAX_THREADS 256u

/* Reads n bytes at p repeatedly for about budget_ms, one slice per thread, and returns the fastest
 * pass in 10^9 bytes per second.  Does at least three passes unless they exceed four times the
 * budget.  p: 64-byte aligned, pages already touched. */
double membw_read(const void *p, size_t n, uint32_t n_threads, uint32_t budget_ms);

#endif
