/* anomaly_features.h - the state of one channel of the anomaly model: 25 dimensionless features of
 * its past, updated with each value (models/anomaly.md defines them).
 *
 * A fixed-size struct per channel and constant work per value.  Any finite values are accepted;
 * they are clamped to +-1e100, and the features to +-20.
 *
 * Thread:    a channel belongs to its caller.
 * Failure:   none. */
#ifndef SHOAL_SCORE_ANOMALY_FEATURES_H
#define SHOAL_SCORE_ANOMALY_FEATURES_H

#include <stdint.h>

enum { ANOMALY_N_FEATURES = 25, ANOMALY_N_SCALES = 5, ANOMALY_PEAKS = 16 };

/* Time constants, in points, of the exponentially weighted means. */
extern const uint32_t anomaly_scales[ANOMALY_N_SCALES];

enum anomaly_feature {
    ANOMALY_Z_LONG,
    ANOMALY_Z_256,
    ANOMALY_Z_64,
    ANOMALY_Z_16,
    ANOMALY_SHIFT_4,
    ANOMALY_SHIFT_16,
    ANOMALY_SHIFT_64,
    ANOMALY_SHIFT_16_256,
    ANOMALY_SPREAD_4,
    ANOMALY_SPREAD_16,
    ANOMALY_SPREAD_64,
    ANOMALY_SPREAD_16_256,
    ANOMALY_STEP,
    ANOMALY_ROUGH_16,
    ANOMALY_ROUGH_64,
    ANOMALY_CUSUM_UP,
    ANOMALY_CUSUM_DOWN,
    ANOMALY_FLAT,
    ANOMALY_PEAK_16,
    ANOMALY_OUT_16,
    ANOMALY_FIRST_16,
    ANOMALY_FIRST_64,
    ANOMALY_FIRST_SPREAD_16,
    ANOMALY_FIRST_SPREAD_64,
    ANOMALY_FIRST_ROUGH_16,
};

/* Feature names as used in model files. */
extern const char *const anomaly_feature_names[ANOMALY_N_FEATURES];

struct anomaly_channel { /* all zero: no value yet */
    uint64_t n;          /* values so far */
    double first, x;     /* the first value; the last value minus the first */
    double largest;      /* largest |x| */
    /* Weighted sums of x, x * x, differences (for 16, 64 and the longest scale) and of outliers
     * (16), and their weights. */
    double weight[ANOMALY_N_SCALES], sum_x[ANOMALY_N_SCALES], sum_xx[ANOMALY_N_SCALES];
    double sum_d[ANOMALY_N_SCALES], sum_out;
    double mean[ANOMALY_N_SCALES], dev[ANOMALY_N_SCALES], rough; /* after the last value */
    double first_x, first_xx, first_d; /* plain sums over the first values */
    double up, down;
    uint64_t n_flat;
    double peaks[ANOMALY_PEAKS]; /* ring buffer */
};

/* Adds the next value, which must be finite.  n_first: number of values that define what is normal.
 * Returns the direction of the step: -1, 0 or 1. */
int anomaly_channel_push(struct anomaly_channel *c, double value, uint32_t n_first,
                         float out[ANOMALY_N_FEATURES]);

#endif
