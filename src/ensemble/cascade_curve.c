/* cascade_curve.c - see cascade_curve.h. */
#include "ensemble/cascade_curve.h"

#include <math.h>
#include <stdlib.h>

static int by_sureness(const void *a, const void *b)
{
    const struct cascade_curve_row *x = a, *y = b;
    return x->sureness < y->sureness ? -1 : x->sureness > y->sureness ? 1 : 0;
}

void cascade_curve_sort(struct cascade_curve_row *rows, size_t n)
{
    if (n > 0)
        qsort(rows, n, sizeof(*rows), by_sureness);
}

/* Between the last escalated row and the first that is not. */
static double threshold_at(const struct cascade_curve_row *rows, size_t n, size_t k)
{
    if (k == 0)
        return 0;
    return k == n ? 1 : (rows[k - 1].sureness + rows[k].sureness) / 2;
}

static struct cascade_curve_point point_of(const struct cascade_curve_row *rows, size_t n,
                                           double threshold)
{
    double small = 0, large = 0, right = 0, cost = 0, all = 0, asked = 0;
    for (size_t i = 0; i < n; i++) {
        const bool goes = rows[i].sureness < threshold;
        small += rows[i].small_right;
        large += rows[i].large_right;
        asked += goes;
        right += goes ? rows[i].large_right : rows[i].small_right;
        cost += rows[i].small_cost + (goes ? rows[i].large_cost : 0);
        all += rows[i].large_cost;
    }
    return (struct cascade_curve_point){.threshold = threshold,
                                        .asked = n > 0 ? asked / (double)n : 0,
                                        .accuracy = n > 0 ? right / (double)n : 0,
                                        .gain = large > small ? (right - small) / (large - small)
                                                              : (double)NAN,
                                        .cost = all > 0 ? cost / all : 0};
}

struct cascade_curve_point cascade_curve_at(const struct cascade_curve_row *rows, size_t n,
                                            size_t k)
{
    while (k > 0 && k < n && rows[k].sureness <= rows[k - 1].sureness)
        k++;
    const double threshold = threshold_at(rows, n, k);
    /* all rows: even those where the small model is certain */
    struct cascade_curve_point p = point_of(rows, n, k == n ? (double)INFINITY : threshold);
    p.threshold = threshold;
    return p;
}

struct cascade_curve_point cascade_curve_below(const struct cascade_curve_row *rows, size_t n,
                                               double threshold)
{
    return point_of(rows, n, threshold);
}

struct cascade_curve_point cascade_curve_reach(const struct cascade_curve_row *rows, size_t n,
                                               double gain)
{
    double small = 0, large = 0, right;
    size_t k = 0;
    for (size_t i = 0; i < n; i++) {
        small += rows[i].small_right;
        large += rows[i].large_right;
    }
    right = small;
    while (k < n && (right - small < gain * (large - small) ||
                     (k > 0 && rows[k].sureness <= rows[k - 1].sureness))) {
        right += (double)rows[k].large_right - (double)rows[k].small_right;
        k++;
    }
    return cascade_curve_at(rows, n, k);
}
