/* quantile.h - quantiles of samples, by linear interpolation as numpy and R (type 7) have them.
 *
 * Thread:    pure function. */
#ifndef SHOAL_BASE_QUANTILE_H
#define SHOAL_BASE_QUANTILE_H

#include <math.h>
#include <stddef.h>

/* q: 0 to 1; values are in ascending order.  NAN: there are none. */
static inline double quantile_sorted(const double *values, size_t n, double q)
{
    if (n == 0)
        return (double)NAN;
    double at = q * (double)(n - 1);
    size_t i = (size_t)at;
    return i + 1 < n ? values[i] + (at - (double)i) * (values[i + 1] - values[i]) : values[n - 1];
}

#endif
