/* counter.h - counters that many threads add to.
 *
 * Thread:    any. Relaxed order is enough: a counter orders nothing else, and readers may see
 *            updates of several counters out of order. */
#ifndef SHOAL_HOST_COUNTER_H
#define SHOAL_HOST_COUNTER_H

#include <stdatomic.h>
#include <stdint.h>

static inline void counter_add(_Atomic uint64_t *at, uint64_t n)
{
    atomic_fetch_add_explicit(at, n, memory_order_relaxed);
}

static inline uint64_t counter_read(_Atomic uint64_t *at)
{
    return atomic_load_explicit(at, memory_order_relaxed);
}

#endif
