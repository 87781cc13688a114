/* anomaly_features.c - see anomaly_features.h; the names are those of models/anomaly.md. */
#include "score/anomaly_features.h"

#include <math.h>

#define LARGEST_VALUE 1e100 /* so that squares and their sums stay finite */
#define LIMIT 20.0

enum { N4, N16, N64, N256, N2048 };

const uint32_t anomaly_scales[ANOMALY_N_SCALES] = {4, 16, 64, 256, 2048};

const char *const anomaly_feature_names[ANOMALY_N_FEATURES] = {
    "z_long",         "z_256",        "z_64",     "z_16",      "shift_4",         "shift_16",
    "shift_64",       "shift_16_256", "spread_4", "spread_16", "spread_64",       "spread_16_256",
    "step",           "rough_16",     "rough_64", "cusum_up",  "cusum_down",      "flat",
    "peak_16",        "out_16",       "first_16", "first_64",  "first_spread_16", "first_spread_64",
    "first_rough_16",
};

/* The reference for a new value: the channel before that value. */
struct scale {
    double floor, mean, dev, rough; /* F, M, S, D */
    double first_mean, first_dev, first_rough;
};

static double limited(double v, double limit)
{
    return v > limit ? limit : v < -limit ? -limit : v;
}

/* Adds x to the means; before[] gets their previous values (at the first value: the new ones). */
static void push_means(struct anomaly_channel *c, double x, double d,
                       double mean_before[ANOMALY_N_SCALES], double dev_before[ANOMALY_N_SCALES],
                       double *rough_before)
{
    for (int i = 0; i < ANOMALY_N_SCALES; i++) {
        const double k = 1.0 - 1.0 / anomaly_scales[i];
        c->weight[i] = k * c->weight[i] + 1;
        c->sum_x[i] = k * c->sum_x[i] + x;
        c->sum_xx[i] = k * c->sum_xx[i] + x * x;
        c->sum_d[i] = k * c->sum_d[i] + d;
        const double mean = c->sum_x[i] / c->weight[i];
        const double dev = sqrt(fmax(c->sum_xx[i] / c->weight[i] - mean * mean, 0));
        mean_before[i] = c->n == 0 ? mean : c->mean[i];
        dev_before[i] = c->n == 0 ? dev : c->dev[i];
        c->mean[i] = mean;
        c->dev[i] = dev;
    }
    const double rough = c->sum_d[N2048] / c->weight[N2048];
    *rough_before = c->n == 0 ? rough : c->rough;
    c->rough = rough;
}

/* Updates the statistics of the first values, which define what is normal. */
static void push_first(struct anomaly_channel *c, double x, double d, uint32_t n_first,
                       struct scale *s)
{
    if (c->n < n_first) {
        c->first_x += x;
        c->first_xx += x * x;
        c->first_d += d;
    }
    const double n = (double)(c->n < n_first ? c->n + 1 : n_first);
    s->first_mean = c->first_x / n;
    s->first_dev = fmax(sqrt(fmax(c->first_xx / n - s->first_mean * s->first_mean, 0)), s->floor);
    s->first_rough = fmax(c->first_d / n, s->floor / 10);
}

/* Updates running sums and counts; returns the largest of the last peaks. */
static double push_runs(struct anomaly_channel *c, double far, double d, double peak,
                        const struct scale *s)
{
    double largest = 0;
    const double out = 1.0 - 1.0 / anomaly_scales[N16];
    c->up = fmin(fmax(0, c->up + far - 0.5), 100);
    c->down = fmin(fmax(0, c->down - far - 0.5), 100);
    c->n_flat = d <= 0.001 * s->dev ? c->n_flat + 1 : 0;
    c->sum_out = out * c->sum_out + (fabs(far) > 3 ? 1 : 0);
    c->peaks[c->n % ANOMALY_PEAKS] = peak;
    for (int i = 0; i < ANOMALY_PEAKS; i++)
        largest = fmax(largest, c->peaks[i]);
    return largest;
}

/* ln of a ratio; both sides are at least a hundredth of unit. */
static double ratio(double a, double b, double unit)
{
    return log((a + 0.01 * unit) / (b + 0.01 * unit));
}

int anomaly_channel_push(struct anomaly_channel *c, double value, uint32_t n_first,
                         float out[ANOMALY_N_FEATURES])
{
    double m[ANOMALY_N_SCALES], s[ANOMALY_N_SCALES], rough, f[ANOMALY_N_FEATURES];
    struct scale u;
    value = limited(value, LARGEST_VALUE);
    if (c->n == 0)
        c->first = value;
    const double x = value - c->first, d = fabs(x - c->x);
    const int direction = (x > c->x) - (x < c->x);
    c->x = x;
    c->largest = fmax(c->largest, fabs(x));
    push_means(c, x, d, m, s, &rough);
    u.floor = 0.001 * fmax(c->largest, 1e-9);
    u.mean = m[N2048];
    u.dev = fmax(s[N2048], u.floor);
    u.rough = fmax(rough, u.floor / 10);
    push_first(c, x, d, n_first, &u);

    const double least = 0.02 * u.dev;
    f[ANOMALY_Z_LONG] = asinh((x - u.mean) / u.dev);
    for (int i = N16; i <= N256; i++) /* z_16 is the last of the three */
        f[ANOMALY_Z_16 + N16 - i] = asinh((x - m[i]) / fmax(s[i], least));
    for (int i = N4; i <= N64; i++) {
        f[ANOMALY_SHIFT_4 + i] = asinh((c->mean[i] - u.mean) / u.dev);
        f[ANOMALY_SPREAD_4 + i] = ratio(c->dev[i], u.dev, u.dev);
    }
    f[ANOMALY_SHIFT_16_256] = asinh((c->mean[N16] - c->mean[N256]) / fmax(c->dev[N256], least));
    f[ANOMALY_SPREAD_16_256] = ratio(c->dev[N16], c->dev[N256], u.dev);
    f[ANOMALY_STEP] = log1p(d / u.rough);
    for (int i = N16; i <= N64; i++) {
        f[ANOMALY_ROUGH_16 + i - N16] = ratio(c->sum_d[i] / c->weight[i], u.rough, u.rough);
        f[ANOMALY_FIRST_16 + i - N16] = asinh((c->mean[i] - u.first_mean) / u.first_dev);
        f[ANOMALY_FIRST_SPREAD_16 + i - N16] = ratio(c->dev[i], u.first_dev, u.first_dev);
    }
    f[ANOMALY_FIRST_ROUGH_16] = ratio(c->sum_d[N16] / c->weight[N16], u.first_rough, u.first_rough);
    f[ANOMALY_PEAK_16] =
        push_runs(c, limited((x - u.mean) / u.dev, LIMIT), d, fabs(f[ANOMALY_Z_256]), &u);
    f[ANOMALY_CUSUM_UP] = log1p(c->up);
    f[ANOMALY_CUSUM_DOWN] = log1p(c->down);
    f[ANOMALY_FLAT] = log1p((double)c->n_flat);
    f[ANOMALY_OUT_16] = c->sum_out / c->weight[N16];
    for (int i = 0; i < ANOMALY_N_FEATURES; i++)
        out[i] = (float)limited(f[i], LIMIT);
    c->n++;
    return direction;
}
