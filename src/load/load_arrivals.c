/* load_arrivals.c - see load_arrivals.h. */
#include "load/load_arrivals.h"

#include <math.h>

#include "base/hash.h"

uint64_t load_random(uint64_t *state)
{
    *state += 0x9e3779b97f4a7c15u;
    return hash_mix(*state);
}

/* From 0 up to but not including 1. */
static double random_unit(uint64_t *state)
{
    return (double)(load_random(state) >> 11) * 0x1p-53;
}

uint64_t load_arrivals_next(struct load_arrivals *a)
{
    const uint64_t i = a->n++;
    if (a->pattern == LOAD_POISSON)
        a->at_s -= log1p(-random_unit(&a->seed)) / a->rate;
    else if (a->pattern == LOAD_BURST) /* from the number: rounding must not add up */
        a->at_s = (double)(i - i % a->burst) / a->rate;
    else
        a->at_s = (double)i / a->rate;
    return (uint64_t)(a->at_s * 1e9);
}
