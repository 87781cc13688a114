/* quality_series.h - quality of alarms over a series, and the two baseline methods that an anomaly
 * model is compared with.
 *
 * A window is a run of labelled points. It is found when an alarm begins in it, or up to
 * QUALITY_PAUSE points before it; every other beginning of an alarm is false. An alarm continues
 * through gaps of up to QUALITY_PAUSE points; there are no alarms in the first QUALITY_WARM_UP
 * points.
 *
 * Thread:    pure functions, or the caller's struct.
 * Failure:   none. */
#ifndef SHOAL_EVAL_QUALITY_SERIES_H
#define SHOAL_EVAL_QUALITY_SERIES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { QUALITY_WARM_UP = 64, QUALITY_PAUSE = 24 };

struct quality_alarms { /* of any number of series; all zero: none yet */
    uint64_t n_windows, n_found, n_false;
    double delay_points;                  /* sum over the found windows, from each window's start */
    double delay_seconds, normal_seconds; /* the latter: outside the windows */
    uint64_t hit, said, true_, n_normal;  /* points */
};

/* scores: [n], an alarm from the level on.  step: seconds from point to point, 0: not known. */
void quality_alarms_add(struct quality_alarms *q, const double *scores, const bool *labels,
                        size_t n, double level, double step);
/* F1 of windows found against alarms. */
double quality_alarms_f1(const struct quality_alarms *q);

/* Distance of a point from the first part of its series, in deviations, for the worst channel.
 * values: [n][n_channels], NaN where one is missing. */
void quality_threshold(const double *values, size_t n, uint32_t n_channels, double *out);
/* The same against the last `window` points before it. */
void quality_z_score(const double *values, size_t n, uint32_t n_channels, size_t window,
                     double *out);

#endif
