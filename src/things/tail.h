/* tail.h - how often a statistic reaches a value by chance, from its behaviour in normal operation.
 *
 * Above a high quantile the logarithm of a statistic is taken to fall off exponentially (a Pareto
 * tail of the statistic itself), which is careful with the heavy tails of real machines. So the
 * level for a target number of false alarms per day can be computed although no recording is long
 * enough to count them.
 *
 * A recording is never long enough to have seen everything that is normal, so the tail keeps
 * learning from new values (like DSPOT; Siffer et al. 2017): a recurring event stops being unusual.
 *
 * Thread:    its owner's; plain data.
 * Failure:   cannot fail; a tail without data is never reached. */
#ifndef SHOAL_THINGS_TAIL_H
#define SHOAL_THINGS_TAIL_H

#include <stddef.h>
#include <stdint.h>

struct tail {
    double from;    /* begins at this value */
    double scale;   /* mean excess above it */
    double share;   /* share of all steps at which a run above `from` begins */
    double gap;     /* from the median to `from` */
    double n;       /* number of steps seen, with forgetting; 0: no data */
    double least;   /* a statistic (not its logarithm) up to this one is not above `from`; a lower
                       bound, initially 0 */
    uint32_t below; /* steps since the last one above `from` */
    uint32_t above; /* steps of the current run above it */
};

/* v: [n] logarithms of the statistic in normal operation, in order of time. scratch: [n]. */
void tail_learn(struct tail *t, const double *v, size_t n, double *scratch);
/* Expected number of runs above v in n_steps steps; at most n_steps.  trust: 0 to 1; below 1 the
 * tail is taken to fall off more slowly. */
double tail_expected(const struct tail *t, double v, double n_steps, double trust);
/* One more value, after it was evaluated. */
void tail_follow(struct tail *t, double v);

/* The same for one that is not above `from`, which is quick. */
void tail_follow_below(struct tail *t);
/* Makes `least` exact. */
void tail_gauge(struct tail *t);

/* Gate for single values: size, if it is `beyond` times larger than recent ones; 0 otherwise. *most
 * tracks the recent maximum: it rises by a fraction of 1 / rise, and decays over thousands of
 * steps. */
double tail_record(double *most, double size, double beyond, double rise);

#endif
