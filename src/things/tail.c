/* tail.c - see tail.h. */
#include "base/order.h"
#include "things/tail.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

#define QUANTILE 0.9
#define NEVER 1e9      /* the logarithm of no statistic */
#define MIN_SCALE 0.06 /* few steps must not promise a short tail */
#define USUAL 0.2      /* prior of channels in general: counts like this many exceedances */
#define N_USUAL 50.0
#define RUN_GAP 8u       /* steps below `from` that end a run */
#define MEMORY 8192.0    /* steps that a tail remembers */
#define MOST_EXCESS 4.0  /* one value counts at most this many scales */
#define MOST_OF_RUN 256u /* steps of a run that it learns from */
#define MIN_GAP 1e-3
#define RECENT 4096.0 /* steps in which a large value is forgotten */

void tail_learn(struct tail *t, const double *v, size_t n, double *scratch)
{
    double sum = 0;
    size_t above = 0, runs = 0, below = RUN_GAP;
    *t = (struct tail){.from = NEVER, .scale = MIN_SCALE, .gap = MIN_GAP};
    if (n == 0)
        return;
    for (size_t i = 0; i < n; i++)
        scratch[i] = v[i];
    qsort(scratch, n, sizeof(*scratch), order_double);
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
    t->share = ((double)runs + 1) / (double)n;
    t->gap = fmax(t->from - scratch[(n - 1) / 2], MIN_GAP);
    t->n = (double)n;
    t->below = (uint32_t)(below < RUN_GAP ? below : RUN_GAP);
}

double tail_expected(const struct tail *t, double v, double n_steps, double trust)
{
    if (!(v > t->from))
        return n_steps;
    return fmin(n_steps, n_steps * exp(trust * (log(t->share) + (t->from - v) / t->scale)));
}

void tail_follow(struct tail *t, double v)
{
    if (!(t->n > 0) || !isfinite(v))
        return;
    bool above = v > t->from, begins = above && t->below >= RUN_GAP;
    t->above = begins ? 1 : above ? t->above + 1 : t->above;
    t->below = above ? 0 : t->below < RUN_GAP ? t->below + 1 : RUN_GAP;
    if (above && t->above > MOST_OF_RUN)
        return;
    t->n = t->n < MEMORY ? t->n + 1 : t->n; /* more, if the owner wants slower changes */
    if (above) {
        double excess = fmin(v - t->from, MOST_EXCESS * t->scale);
        t->scale += (excess - t->scale) / ((1 - QUANTILE) * t->n + N_USUAL);
        t->scale = fmax(t->scale, MIN_SCALE);
    }
    t->share += ((begins ? 1 : 0) - t->share) / t->n;
    t->from += 3 * t->gap / fmax(t->n, 100) * (above ? QUANTILE : QUANTILE - 1);
}

void tail_follow_below(struct tail *t)
{
    if (!(t->n > 0))
        return;
    t->below = t->below < RUN_GAP ? t->below + 1 : RUN_GAP;
    t->n = t->n < MEMORY ? t->n + 1 : t->n;
    t->share -= t->share / t->n;
    double fall = 3 * t->gap / fmax(t->n, 100) * (QUANTILE - 1);
    t->from += fall;
    /* exp() is convex: its tangent is below it, so this stays a lower bound. */
    t->least += (t->least + 1) * fall;
}

void tail_gauge(struct tail *t)
{
    t->least = t->n > 0 ? expm1(t->from) : INFINITY;
}

double tail_record(double *most, double size, double beyond, double rise)
{
    double out = size > beyond * *most ? size : 0;
    *most += size > *most ? (size - *most) / rise : -*most / RECENT;
    return out;
}
