/* channel.c - see channel.h. */
#include "things/channel.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define LEARN 256u
#define MIN_LEARN 32u
#define SHORT 32.0    /* steps of the short mean */
#define LONG 256.0    /* of the long one */
#define SPREAD 16.0   /* of the spread */
#define SLACK 0.5     /* of the cumulative sums, in deviations */
#define CLIP 6.0      /* a single value counts at most so much in sums and means */
#define JUMP_CLIP 6.0 /* ... and a jump in the spread */
#define FOLLOW 2048.0 /* steps in which the usual level follows the channel */
#define DAY_MS 86400000.0
#define MIN_DAYS 2 /* that a daily course is learned from */
#define ENOUGH 4   /* windows of a statistic that it is learned from */
#define NORMAL_MAD 1.4826

/* ---- numbers ---- */

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Sorts v. */
static double quantile(double *v, size_t n, double q)
{
    qsort(v, n, sizeof(*v), ascending);
    double at = q * (double)(n - 1);
    size_t i = (size_t)at;
    return i + 1 < n ? v[i] + (at - (double)i) * (v[i + 1] - v[i]) : v[n - 1];
}

/* Deviation by the median of absolute distances; the plain one if more than half are equal. */
static double robust_spread(const double *v, size_t n, double centre, double *scratch)
{
    double squares = 0;
    for (size_t i = 0; i < n; i++) {
        scratch[i] = fabs(v[i] - centre);
        squares += scratch[i] * scratch[i];
    }
    double plain = sqrt(squares / (double)n), mad = NORMAL_MAD * quantile(scratch, n, 0.5);
    return mad > 0.1 * plain ? mad : 0.5 * plain;
}

static double bin_of(int64_t time_ms)
{
    return fmod((double)time_ms, DAY_MS) / DAY_MS * CHANNEL_DAY_BINS;
}

/* Between the middles of two hours. */
static double day_at(const float day[CHANNEL_DAY_BINS], int64_t time_ms)
{
    double at = bin_of(time_ms) - 0.5;
    if (at < 0)
        at += CHANNEL_DAY_BINS;
    uint32_t i = (uint32_t)at % CHANNEL_DAY_BINS, k = (i + 1) % CHANNEL_DAY_BINS;
    double part = at - floor(at);
    return (1 - part) * (double)day[i] + part * (double)day[k];
}

double channel_usual(const struct profile *p, int64_t time_ms)
{
    return p->daily && time_ms >= 0 ? day_at(p->day, time_ms) : p->mean;
}

/* ---- statistics ---- */

static void moving(double *mean, double *weight, double x, double steps)
{
    double k = 1 - 1 / steps;
    *mean = k * *mean + x;
    *weight = k * *weight + 1;
}

/* Logarithms of the six statistics after one more value. */
static void step_stats(const struct profile *p, struct channel_motion *m, double value,
                       double usual, double out[CHANNEL_N_STATS], double *z_out)
{
    double z = (value - usual) / p->spread, c = fmax(-CLIP, fmin(CLIP, z));
    double d = m->started ? (value - m->last) / p->step : 0;
    double limited = fmax(-JUMP_CLIP, fmin(JUMP_CLIP, d));
    m->started = true;
    m->last = value;
    m->up = fmin(fmax(0, m->up + c - SLACK), 1000);
    m->down = fmin(fmax(0, m->down - c - SLACK), 1000);
    moving(&m->mean, &m->mean_weight, c, SHORT);
    moving(&m->long_mean, &m->long_weight, c, LONG);
    moving(&m->spread, &m->spread_weight, limited * limited, SPREAD);
    out[CHANNEL_OUT] = log1p(fabs(z));
    out[CHANNEL_JUMP] = log1p(fabs(d));
    out[CHANNEL_CUSUM] = log1p(fmax(m->up, m->down));
    out[CHANNEL_MEAN] = log1p(fabs(m->mean) / sqrt(m->mean_weight));
    out[CHANNEL_LONG] = log1p(fabs(m->long_mean) / sqrt(m->long_weight));
    out[CHANNEL_SPREAD] = log1p(m->spread_weight < SPREAD / 2 ? 0 : m->spread / m->spread_weight);
    *z_out = z;
}

/* ---- learning ---- */

static void learn_day(struct profile *p, const double *v, const int64_t *times, size_t n,
                      double *rest, double *scratch)
{
    double plain = robust_spread(v, n, p->mean, scratch);
    p->daily = false;
    if (!times || (double)(times[n - 1] - times[0]) < MIN_DAYS * DAY_MS)
        return;
    for (uint32_t b = 0; b < CHANNEL_DAY_BINS; b++) {
        size_t k = 0;
        for (size_t i = 0; i < n; i++)
            if ((uint32_t)bin_of(times[i]) == b)
                scratch[k++] = v[i];
        p->day[b] = (float)(k > 0 ? quantile(scratch, k, 0.5) : p->mean);
    }
    for (size_t i = 0; i < n; i++)
        rest[i] = v[i] - day_at(p->day, times[i]);
    p->daily = robust_spread(rest, n, 0, scratch) < 0.7 * plain;
}

static uint32_t longest_run(const double *v, size_t n)
{
    uint32_t run = 1, best = 1;
    for (size_t i = 1; i < n; i++) {
        run = v[i] == v[i - 1] ? run + 1 : 1;
        best = run > best ? run : best;
    }
    return best;
}

static void learn_tails(struct profile *p, const double *v, const int64_t *times, size_t n,
                        double *one, double *scratch)
{
    static const double windows[CHANNEL_N_STATS] = {1, 1, SHORT, SHORT, LONG, SPREAD};
    double out[CHANNEL_N_STATS], z;
    for (uint32_t s = 0; s < CHANNEL_N_STATS; s++) {
        struct channel_motion m = {.started = false};
        for (size_t i = 0; i < n; i++) {
            step_stats(p, &m, v[i], channel_usual(p, times ? times[i] : -1), out, &z);
            one[i] = out[s];
        }
        /* What was seen for less than a few of its windows says nothing yet. */
        tail_learn(&p->tails[s], one, (double)n >= ENOUGH * windows[s] ? n : 0, scratch);
    }
}

void channel_learn(struct profile *p, const double *v, const int64_t *times, size_t n,
                   double interval_ms, double *scratch)
{
    double *a = scratch, *b = scratch + n, *c = scratch + 2 * n;
    *p = (struct profile){.interval_ms = interval_ms, .n = (uint32_t)n};
    if (n < 2) {
        p->n = 0;
        return;
    }
    memcpy(a, v, n * sizeof(*a));
    p->mean = quantile(a, n, 0.5);
    p->low = a[(size_t)(0.005 * (double)(n - 1))];
    p->high = a[(size_t)ceil(0.995 * (double)(n - 1))];
    learn_day(p, v, times, n, a, b);
    for (size_t i = 0; i < n; i++)
        a[i] = v[i] - channel_usual(p, times ? times[i] : -1);
    /* A constant channel still has a scale, so that any change is large but finite. */
    double least = fmax(1e-3 * fmax(fabs(p->mean), fmax(fabs(p->low), fabs(p->high))), 1e-9);
    p->spread = fmax(robust_spread(a, n, 0, b), least);
    for (size_t i = 1; i < n; i++)
        a[i - 1] = v[i] - v[i - 1];
    p->step = fmax(robust_spread(a, n - 1, 0, b), 0.1 * least);
    p->longest_run = longest_run(v, n);
    learn_tails(p, v, times, n, b, c);
}

/* From the ring, oldest first. */
static void learn_now(struct channel *c)
{
    double v[CHANNEL_MAX_LEARN], scratch[3 * CHANNEL_MAX_LEARN];
    uint32_t first = c->n_kept == c->learn ? c->next : 0;
    struct profile old = c->usual;
    for (uint32_t i = 0; i < c->n_kept; i++)
        v[i] = (double)c->kept[(first + i) % c->learn];
    channel_learn(&c->usual, v, NULL, c->n_kept, old.interval_ms, scratch);
    c->motion = (struct channel_motion){.started = true, .last = c->last};
    c->n_unusual = 0;
    c->n_since = 0;
}

void channel_init(struct channel *c, const struct profile *p, uint32_t learn, double interval_ms)
{
    *c = (struct channel){.learn = learn == 0                  ? LEARN
                                   : learn < MIN_LEARN         ? MIN_LEARN
                                   : learn > CHANNEL_MAX_LEARN ? CHANNEL_MAX_LEARN
                                                               : learn,
                          .fixed = p && p->n > 0};
    if (c->fixed)
        c->usual = *p;
    c->usual.interval_ms = c->fixed ? p->interval_ms : interval_ms;
}

/* ---- following ---- */

static void keep(struct channel *c, double value)
{
    c->kept[c->next] = (float)value;
    c->next = (c->next + 1) % c->learn;
    c->n_kept += c->n_kept < c->learn;
}

static void follow(struct channel *c, double value, double z)
{
    struct profile *p = &c->usual;
    double part = 1 / fmin(FOLLOW, (double)p->n + c->n_since);
    double size = fmin(fabs(z), 4);
    p->mean += part * copysign(size, z) * p->spread;
    /* The mean absolute distance of a normal channel is 0.8 deviations. */
    p->spread *= 1 + part * (size / 0.8 - 1) * 0.5;
    if (size < 4) {
        p->low = fmin(p->low, value);
        p->high = fmax(p->high, value);
    }
}

static bool is_stuck(const struct channel *c)
{
    uint32_t usual = c->usual.longest_run;
    /* A channel that is often constant (a setpoint, a state) is never stuck. */
    return usual * 4 < c->usual.n && c->run > 16 && c->run > 6 * usual;
}

struct channel_result channel_step(struct channel *c, double value, int64_t time_ms)
{
    struct channel_result r = {.expected = INFINITY};
    double stats[CHANNEL_N_STATS], per_day;
    c->run = c->n_since + c->n_kept > 0 && value == c->last ? c->run + 1 : 1;
    c->last = value;
    keep(c, value);
    c->n_since++;
    if (c->usual.n == 0) {
        if (c->n_kept < c->learn)
            return r;
        learn_now(c);
        return r;
    }
    step_stats(&c->usual, &c->motion, value, channel_usual(&c->usual, time_ms), stats, &r.z);
    per_day = DAY_MS / fmax(c->usual.interval_ms, 1);
    for (uint32_t s = 0; s < CHANNEL_N_STATS; s++) {
        double n = tail_expected(&c->usual.tails[s], stats[s], per_day);
        if (n < r.expected) {
            r.expected = n;
            r.stat = (enum channel_stat)s;
        }
    }
    r.stuck = is_stuck(c);
    r.ready = true;
    c->n_unusual = r.expected < 1 ? c->n_unusual + 1 : 0;
    if (!c->fixed) {
        follow(c, value, r.z);
        if (c->n_unusual > 4 * c->learn)
            learn_now(c);
    }
    return r;
}
