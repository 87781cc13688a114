/* drift.c - see drift.h. */
#include "ensemble/drift.h"

#include <math.h>
#include <string.h>

#define DEVIATIONS 6.0
#define FLOOR 1e-3 /* an empty bin counts as this share: the index stays finite */

void drift_init(struct drift *d, const struct confidence_calibration *reference)
{
    memset(d, 0, sizeof(*d));
    d->known = reference && reference->rows > 0;
    if (d->known)
        memcpy(d->reference, reference->shares, sizeof(d->reference));
    d->rows = d->known ? (double)reference->rows : 0.0;
}

void drift_restore(struct drift *d, const double shares[CONFIDENCE_BINS])
{
    memcpy(d->reference, shares, sizeof(d->reference));
    d->rows = DRIFT_WINDOW;
    d->known = true;
}

static uint64_t sum_of(const uint64_t counts[CONFIDENCE_BINS])
{
    uint64_t n = 0;
    for (uint32_t i = 0; i < CONFIDENCE_BINS; i++)
        n += counts[i];
    return n;
}

double drift_index(const double reference[CONFIDENCE_BINS], const uint64_t counts[CONFIDENCE_BINS])
{
    const uint64_t n = sum_of(counts);
    double index = 0;
    for (uint32_t i = 0; i < CONFIDENCE_BINS && n > 0; i++) {
        const double then = fmax(reference[i], FLOOR);
        const double now = fmax((double)counts[i] / (double)n, FLOOR);
        index += (now - then) * log(now / then);
    }
    return index;
}

/* The index that n confidences do not reach by chance. Without a change it is the chi-square of the
 * bins, whose mean is their number less one, divided by the counts. */
static double by_chance(double n, double rows)
{
    const double freedom = CONFIDENCE_BINS - 1;
    const double index = (freedom + DEVIATIONS * sqrt(2 * freedom)) * (1 / n + 1 / rows);
    return index > DRIFT_OVER ? index : DRIFT_OVER;
}

/* Whether this window and the one before are different together; there may be none before. */
static bool differs(const struct drift *d, const uint64_t window[CONFIDENCE_BINS])
{
    uint64_t both[CONFIDENCE_BINS];
    for (uint32_t i = 0; i < CONFIDENCE_BINS; i++)
        both[i] = d->last[i] + window[i];
    return sum_of(d->last) > 0 &&
           drift_index(d->reference, both) > by_chance((double)sum_of(both), d->rows);
}

enum drift_event drift_look(struct drift *d, const uint64_t counts[CONFIDENCE_BINS])
{
    uint64_t window[CONFIDENCE_BINS];
    const bool was = d->alarm;
    for (uint32_t i = 0; i < CONFIDENCE_BINS; i++)
        window[i] = counts[i] - d->base[i];
    const uint64_t n = sum_of(window);
    if (n < DRIFT_WINDOW)
        return DRIFT_NOTHING;
    memcpy(d->base, counts, sizeof(d->base));
    if (!d->known) {
        for (uint32_t i = 0; i < CONFIDENCE_BINS; i++)
            d->reference[i] = (double)window[i] / (double)n;
        d->rows = (double)n;
        d->known = true;
        return DRIFT_NOTHING;
    }
    d->index = drift_index(d->reference, window);
    d->n_windows++;
    d->alarm = was ? d->index > DRIFT_OVER : d->index > DRIFT_ALARM || differs(d, window);
    memcpy(d->last, window, sizeof(d->last));
    return d->alarm == was ? DRIFT_NOTHING : d->alarm ? DRIFT_BEGAN : DRIFT_ENDED;
}
