/* cascade_curve.h - accuracy and cost of a cascade of two models at each threshold, from their
 * answers to the same rows.
 *
 * Thread: pure functions. */
#ifndef SHOAL_ENSEMBLE_CASCADE_CURVE_H
#define SHOAL_ENSEMBLE_CASCADE_CURVE_H

#include <stdbool.h>
#include <stddef.h>

struct cascade_curve_row {
    double sureness;               /* of the small model */
    bool small_right, large_right; /* whether their answers are */
    double small_cost, large_cost; /* in any unit */
    double large_sureness;
};

struct cascade_curve_point {
    double threshold; /* rows below it go to the large model */
    double asked;     /* the share of those rows */
    double accuracy;
    double gain; /* share of the large model's gain in accuracy; NaN: it has none */
    double cost; /* relative to the cost of the large model alone */
};

/* Sorts rows by confidence; equally confident rows stay together. */
void cascade_curve_sort(struct cascade_curve_row *rows, size_t n);
/* Of sorted rows: the large model handles the first k, and those with the same confidence as the
 * last. */
struct cascade_curve_point cascade_curve_at(const struct cascade_curve_row *rows, size_t n,
                                            size_t k);
/* Of rows in any order: those below the threshold are escalated. */
struct cascade_curve_point cascade_curve_below(const struct cascade_curve_row *rows, size_t n,
                                               double threshold);
/* The cheapest point with at least this share of the gain; all rows if there is none. */
struct cascade_curve_point cascade_curve_reach(const struct cascade_curve_row *rows, size_t n,
                                               double gain);

#endif
