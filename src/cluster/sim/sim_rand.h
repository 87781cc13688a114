/* sim_rand.h - random numbers of the simulator: the same on every machine for the same seed, since
 * they use integers, comparisons and exact operations only (no logarithm of the C library).
 *
 * Thread:    a stream belongs to its caller. */
#ifndef SHOAL_CLUSTER_SIM_RAND_H
#define SHOAL_CLUSTER_SIM_RAND_H

#include <stdint.h>

#include "base/hash.h"

struct sim_rand {
    uint64_t state;
};

/* Streams for different purposes do not disturb each other. */
static inline struct sim_rand sim_rand_make(uint64_t seed, uint64_t purpose, uint64_t number)
{
    return (struct sim_rand){hash_mix(hash_mix(seed + 0x632be59bd9b4e019u) ^
                                      hash_mix(purpose * 0x9e3779b97f4a7c15u + number))};
}

static inline uint64_t sim_rand_next(struct sim_rand *r)
{
    r->state += 0x9e3779b97f4a7c15u;
    return hash_mix(r->state);
}

static inline double sim_rand_unit(struct sim_rand *r) /* [0, 1) */
{
    return (double)(sim_rand_next(r) >> 11) * 0x1p-53;
}

static inline uint32_t sim_rand_below(struct sim_rand *r, uint32_t n)
{
    return n ? (uint32_t)((sim_rand_next(r) >> 32) * n >> 32) : 0;
}

/* Exponentially distributed with mean 1, by von Neumann's comparisons. */
static inline double sim_rand_exp(struct sim_rand *r)
{
    for (double whole = 0;; whole++) {
        double first = sim_rand_unit(r), last = first, next;
        unsigned n = 1;
        while ((next = sim_rand_unit(r)) < last) {
            last = next;
            n++;
        }
        if (n % 2)
            return whole + first;
    }
}

#endif
