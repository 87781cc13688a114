/* quality_series.c - see quality_series.h. */
#include "eval/quality_series.h"

#include <math.h>

/* ---- alarms --------------------------------------------------------------------------------- */

/* The next point at or behind `from` where an alarm begins; n: none.  *last is the last point that
 * was above the level, -1: none. */
static size_t next_begin(const double *scores, size_t n, double level, size_t from, int64_t *last)
{
    for (size_t i = from; i < n; i++) {
        if (i < QUALITY_WARM_UP || !(scores[i] >= level))
            continue;
        bool begins = *last < 0 || (int64_t)i - *last > QUALITY_PAUSE + 1;
        *last = (int64_t)i;
        if (begins)
            return i;
    }
    return n;
}

/* The run of labels that begins at or after `at`, as [*from, *to); false: none. */
static bool next_window(const bool *labels, size_t n, size_t at, size_t *from, size_t *to)
{
    for (*from = at; *from < n && !labels[*from]; ++*from)
        ;
    for (*to = *from; *to < n && labels[*to]; ++*to)
        ;
    return *from < n;
}

static void add_points(struct quality_alarms *q, const double *scores, const bool *labels, size_t n,
                       double level, double step)
{
    for (size_t i = 0; i < n; i++) {
        bool on = i >= QUALITY_WARM_UP && scores[i] >= level;
        q->hit += on && labels[i];
        q->said += on;
        q->true_ += labels[i];
        q->n_normal += !labels[i];
        q->normal_seconds += labels[i] ? 0 : step;
    }
}

/* Is point i in a window, or just before one? */
static bool is_expected(const bool *labels, size_t n, size_t i)
{
    for (size_t k = i; k < n && k <= i + QUALITY_PAUSE; k++)
        if (labels[k])
            return true;
    return false;
}

void quality_alarms_add(struct quality_alarms *q, const double *scores, const bool *labels,
                        size_t n, double level, double step)
{
    size_t from = 0, to = 0;
    int64_t last = -1;
    add_points(q, scores, labels, n, level, step);
    for (size_t i = next_begin(scores, n, level, 0, &last); i < n;
         i = next_begin(scores, n, level, i + 1, &last))
        q->n_false += !is_expected(labels, n, i);
    while (next_window(labels, n, to, &from, &to)) {
        size_t early = from > QUALITY_PAUSE ? from - QUALITY_PAUSE : 0;
        last = -1;
        size_t begin = next_begin(scores, n, level, 0, &last);
        while (begin < early) /* alarms that began before do not find the window */
            begin = next_begin(scores, n, level, begin + 1, &last);
        q->n_windows++;
        if (begin >= to)
            continue;
        double delay = begin > from ? (double)(begin - from) : 0;
        q->n_found++;
        q->delay_points += delay;
        q->delay_seconds += delay * step;
    }
}

double quality_alarms_f1(const struct quality_alarms *q)
{
    uint64_t missed = q->n_windows - q->n_found, all = 2 * q->n_found + q->n_false + missed;
    return all ? 2.0 * (double)q->n_found / (double)all : 0;
}

/* ---- plain methods -------------------------------------------------------------------------- */

static void keep_larger(double *out, double v)
{
    if (v > *out)
        *out = v;
}

void quality_threshold(const double *values, size_t n, uint32_t n_channels, double *out)
{
    size_t first = n * 15 / 100 < 400 ? n * 15 / 100 : 400;
    first = first > QUALITY_WARM_UP ? first : QUALITY_WARM_UP;
    first = first < n ? first : n;
    for (size_t i = 0; i < n; i++)
        out[i] = 0;
    for (uint32_t c = 0; c < n_channels; c++) {
        double count = 0, sum = 0, squares = 0;
        for (size_t i = 0; i < first; i++)
            if (isfinite(values[i * n_channels + c])) {
                count++;
                sum += values[i * n_channels + c];
            }
        const double mean = count > 0 ? sum / count : 0;
        for (size_t i = 0; i < first; i++) {
            double d = values[i * n_channels + c] - mean;
            squares += isfinite(d) ? d * d : 0;
        }
        const double dev = sqrt(count > 0 ? squares / count : 0) + 1e-9;
        for (size_t i = 0; i < n; i++)
            keep_larger(&out[i], fabs(values[i * n_channels + c] - mean) / dev);
    }
}

void quality_z_score(const double *values, size_t n, uint32_t n_channels, size_t window,
                     double *out)
{
    for (size_t i = 0; i < n; i++)
        out[i] = 0;
    for (uint32_t c = 0; c < n_channels; c++) {
        double base = NAN, largest = 0, count = 0, sum = 0, squares = 0;
        for (size_t i = 0; i < n; i++) {
            double v = values[i * n_channels + c];
            base = isnan(base) && isfinite(v) ? v : base;
            largest = isfinite(v) ? fmax(largest, fabs(v)) : largest;
        }
        for (size_t i = 0; i < n; i++) {
            const double x = values[i * n_channels + c] - base;
            const double mean = count > 0 ? sum / count : 0;
            const double var = count > 0 ? squares / count - mean * mean : 0;
            if (i > 8)
                keep_larger(&out[i],
                            fabs(x - mean) / (sqrt(fmax(var, 0)) + 1e-6 * (largest + 1e-9)));
            const double gone = i >= window ? values[(i - window) * n_channels + c] - base : NAN;
            count += (isfinite(x) ? 1 : 0) - (isfinite(gone) ? 1 : 0);
            sum += (isfinite(x) ? x : 0) - (isfinite(gone) ? gone : 0);
            squares += (isfinite(x) ? x * x : 0) - (isfinite(gone) ? gone * gone : 0);
        }
    }
}
