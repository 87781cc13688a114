/* drift.h - drift detection: raises an alarm when confidences are no longer distributed as in the
 * calibration, which means that the incoming texts have changed.
 *
 * The measure is the population stability index over the bins of confidence.h: the sum of (now -
 * then) * ln(now / then). Below 0.1 nothing has changed, above 0.25 much has: one such window is an
 * alarm. Texts of which only a fifth are new stay below that, so the last two windows are also
 * compared together, with what chance alone could make of their number (six deviations of
 * chi-square). The reference ("then") is the calibration, or without one the first window of
 * confidences.
 *
 * Thread:    the caller's struct. */
#ifndef SHOAL_ENSEMBLE_DRIFT_H
#define SHOAL_ENSEMBLE_DRIFT_H

#include <stdbool.h>
#include <stdint.h>

#include "ensemble/confidence.h"

#define DRIFT_WINDOW 500u /* confidences that are compared at a time */
#define DRIFT_ALARM 0.25
#define DRIFT_OVER 0.1 /* an alarm clears below it */

struct drift {                         /* all zero: no data yet */
    bool known;                        /* there is a reference */
    double reference[CONFIDENCE_BINS]; /* shares */
    double rows;                       /* that the reference was counted from */
    uint64_t base[CONFIDENCE_BINS];    /* counts when the window began */
    uint64_t last[CONFIDENCE_BINS];    /* the window before, while there is no alarm */
    double index;                      /* index of the last complete window */
    uint64_t n_windows;
    bool alarm;
};

enum drift_event { DRIFT_NOTHING, DRIFT_BEGAN, DRIFT_ENDED };

/* Shares that sum to 1. */
void drift_init(struct drift *d, const struct confidence_calibration *reference);
/* counts: all confidences so far, by bin.  Compares when a window is complete. */
enum drift_event drift_look(struct drift *d, const uint64_t counts[CONFIDENCE_BINS]);
/* As if shares had been its first window. */
void drift_restore(struct drift *d, const double shares[CONFIDENCE_BINS]);
/* The index of counts against shares. */
double drift_index(const double reference[CONFIDENCE_BINS], const uint64_t counts[CONFIDENCE_BINS]);

#endif
