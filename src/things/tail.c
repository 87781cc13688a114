/* tail.c - see tail.h. */
#include "things/tail.h"

#include <math.h>
#include <stdlib.h>

#define QUANTILE 0.9
#define NEVER 1e9      /* the logarithm of no statistic */
#define MIN_SCALE 0.06 /* few steps must not promise a short tail */
#define USUAL 0.2      /* of channels in general: counts like so many exceedances */
#define N_USUAL 50.0
#define RUN_GAP 8u /* steps below `from` that end a run */

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

void tail_learn(struct tail *t, const double *v, size_t n, double *scratch)
{
    double sum = 0;
    size_t above = 0, runs = 0, below = RUN_GAP;
    *t = (struct tail){NEVER, MIN_SCALE, 0};
    if (n == 0)
        return;
    for (size_t i = 0; i < n; i++)
        scratch[i] = v[i];
    qsort(scratch, n, sizeof(*scratch), ascending);
    t->from = scratch[(size_t)((double)(n - 1) * QUANTILE)];
    for (size_t i = 0; i < n; i++) {
        if (v[i] <= t->from) {
            below++;
            continue;
        }
        runs += below >= RUN_GAP;
        below = 0;
        sum += v[i] - t->from;
        above++;
    }
    t->scale = fmax((sum + N_USUAL * USUAL) / ((double)above + N_USUAL), MIN_SCALE);
    /* The largest value of n steps was seen once: the tail must not call it much rarer. */
    double top = scratch[n - 1] - t->from;
    t->scale = fmax(t->scale, top / log((double)above + 2.0));
    t->share = ((double)runs + 1) / (double)n;
}

double tail_expected(const struct tail *t, double v, double n_steps)
{
    if (!(v > t->from))
        return n_steps;
    return fmin(n_steps, n_steps * t->share * exp((t->from - v) / t->scale));
}
