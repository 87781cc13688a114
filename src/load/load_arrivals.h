/* load_arrivals.h - when requests are due: a stream of times that does not depend on answers.
 *
 * Thread:    belongs to its caller; pure but for its state.
 * Failure:   none. */
#ifndef SHOAL_LOAD_LOAD_ARRIVALS_H
#define SHOAL_LOAD_LOAD_ARRIVALS_H

#include <stdint.h>

enum load_pattern {
    LOAD_POISSON,  /* independent clients: exponential gaps */
    LOAD_CONSTANT, /* equal gaps */
    LOAD_BURST,    /* `burst` at once, then a pause: the same rate on average */
};

struct load_arrivals {
    enum load_pattern pattern;
    double rate;    /* per second, above 0 */
    uint32_t burst; /* at least 1 */
    uint64_t seed;  /* the same seed gives the same times */
    /* private, zero at the beginning */
    uint64_t n;
    double at_s;
};

/* The time of the next request, in ns after the start; never before the last one. */
uint64_t load_arrivals_next(struct load_arrivals *a);

/* The next random number of a stream (splitmix64). */
uint64_t load_random(uint64_t *state);

#endif
