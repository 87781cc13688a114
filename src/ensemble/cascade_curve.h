/* cascade_curve.h - what a cascade of two models would reach at each threshold, from their answers
 * to the same rows.
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
    double asked;     /* the part of rows that do */
    double accuracy;
    double gain; /* the part of the large model's gain in accuracy; NaN: it has none */
    double cost; /* as a part of what the large model alone costs */
};

/* Sorts rows by sureness; rows that are equally sure stay together. */
void cascade_curve_sort(struct cascade_curve_row *rows, size_t n);
/* Of sorted rows: the large model is asked about the first k, and those as sure as the last. */
struct cascade_curve_point cascade_curve_at(const struct cascade_curve_row *rows, size_t n,
                                            size_t k);
/* Of rows in any order: those below the threshold go on. */
struct cascade_curve_point cascade_curve_below(const struct cascade_curve_row *rows, size_t n,
                                               double threshold);
/* The cheapest point with at least this part of the gain; all rows if there is none. */
struct cascade_curve_point cascade_curve_reach(const struct cascade_curve_row *rows, size_t n,
                                               double gain);

#endif
