/* drift.c - see drift.h. */
#include "ensemble/drift.h"

#include <math.h>
#include <string.h>

#define FLOOR 1e-3 /* an empty bin counts as this share: the index stays finite */

void drift_init(struct drift *d, const struct confidence_calibration *reference)
{
    memset(d, 0, sizeof(*d));
    d->known = reference && reference->rows > 0;
    if (d->known)
        memcpy(d->reference, reference->shares, sizeof(d->reference));
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
        d->known = true;
        return DRIFT_NOTHING;
    }
    d->index = drift_index(d->reference, window);
    d->n_windows++;
    d->alarm = d->index > (was ? DRIFT_OVER : DRIFT_ALARM);
    return d->alarm == was ? DRIFT_NOTHING : d->alarm ? DRIFT_BEGAN : DRIFT_ENDED;
}
