/* tail.h - how often a statistic reaches a value by chance, from what it did in normal times.
 *
 * Above a high quantile the logarithm of a statistic is taken to fall off exponentially (a Pareto
 * tail of the statistic itself), which is careful with the heavy tails of real machines.  So the
 * level for a wanted number of false alarms a day can be computed although no recording is long
 * enough to count them.
 *
 * Thread:    any; plain data.
 * Failure:   cannot fail; a tail without data is never reached. */
#ifndef SHOAL_THINGS_TAIL_H
#define SHOAL_THINGS_TAIL_H

#include <stddef.h>

struct tail {
    double from;  /* begins at this value */
    double scale; /* mean excess above it */
    double share; /* of all steps, runs above `from` begin at so many */
};

/* v: [n] logarithms of the statistic in normal times, in order of time.  scratch: [n]. */
void tail_learn(struct tail *t, const double *v, size_t n, double *scratch);
/* Expected number of runs above v in n_steps steps; at most n_steps. */
double tail_expected(const struct tail *t, double v, double n_steps);

#endif
