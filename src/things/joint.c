/* joint.c - see joint.h. */
#include "things/joint.h"

#include <math.h>
#include <string.h>

#include "base/mem.h"

#define CLIP 8.0   /* one channel counts at most this many deviations */
#define SHRINK 0.1 /* share of independence in the correlations, and more for few rows */
#define SHORT 16.0
#define MIN_LONG 4.0
#define MAX_LONG 256.0
#define LONG_SHARE 0.4 /* window of the long mean, as a share of the rows learned from */
#define BEYOND 4.0     /* an unusual distance (squared) is this many times the recent ones */
#define RISE 64.0      /* ... of which each one counts with this part */
#define FEW 10.0       /* rows of each channel after which correlations are trusted by half */
#define SLOWLY 4096.0  /* steps that a tail counts as seen: a machine that wears stays unusual */
#define ENOUGH 4       /* windows of the short mean that it is learned from */

struct joint {
    uint32_t n;
    bool ready;
    bool calm; /* the short mean is usual */
    double weight, long_weight;
    struct joint_facts facts;
    double *inverse;          /* [n][n] */
    double *mean, *long_mean; /* moving sums of rows */
    double *row, *work;       /* [n] each */
};

int joint_create(struct joint **out, uint32_t n_channels, struct err *e)
{
    struct joint *j = *out = NULL;
    size_t n = n_channels;
    if (n == 0 || n > JOINT_MAX_CHANNELS)
        return err_set(e, SHOAL_ELIMIT, "a machine must have 1 to %u channels, not %u",
                       JOINT_MAX_CHANNELS, n_channels);
    j = mem_zalloc(sizeof(*j) + (n * n + 4 * n) * sizeof(double));
    if (!j)
        return err_set(e, SHOAL_ENOMEM, "out of memory for %zu channels", n);
    j->n = n_channels;
    j->inverse = (double *)(void *)(j + 1);
    j->mean = j->inverse + n * n;
    j->long_mean = j->mean + n;
    j->row = j->long_mean + n;
    j->work = j->row + n;
    *out = j;
    return 0;
}

void joint_destroy(struct joint *j)
{
    mem_free(j);
}

uint32_t joint_channels(const struct joint *j)
{
    return j->n;
}

bool joint_ready(const struct joint *j)
{
    return j->ready;
}

static void forget_means(struct joint *j)
{
    memset(j->mean, 0, 2 * (size_t)j->n * sizeof(double));
    j->weight = SHORT; /* as if they had seen only usual rows */
    j->long_weight = j->facts.window;
}

int joint_copy(struct joint **out, const struct joint *j, struct err *e)
{
    int rc = joint_create(out, j->n, e);
    if (rc == 0 && j->ready)
        joint_set(*out, j->inverse, &j->facts);
    return rc;
}

const double *joint_inverse(const struct joint *j)
{
    return j->inverse;
}

const struct joint_facts *joint_facts(const struct joint *j)
{
    return &j->facts;
}

void joint_set(struct joint *j, const double *inverse, const struct joint_facts *f)
{
    memcpy(j->inverse, inverse, (size_t)j->n * j->n * sizeof(double));
    j->facts = *f;
    j->ready = true;
    forget_means(j);
}

/* ---- distances ---- */

/* x' inverse x; *worst: the largest term of a channel. */
static double distance(const struct joint *j, const double *x, uint32_t *worst)
{
    double sum = 0, most = -INFINITY;
    for (uint32_t i = 0; i < j->n; i++) {
        double dot = 0;
        for (uint32_t k = 0; k < j->n; k++)
            dot += j->inverse[i * j->n + k] * x[k];
        if (x[i] * dot > most) {
            most = x[i] * dot;
            *worst = i;
        }
        sum += x[i] * dot;
    }
    return fmax(sum, 0) / j->n;
}

static void moving(double *sum, const double *row, uint32_t n, double *weight, double steps)
{
    double k = 1 - 1 / steps;
    for (uint32_t i = 0; i < n; i++)
        sum[i] = k * sum[i] + row[i];
    *weight = k * *weight + 1;
}

/* Mean over the channels of their distance over a longer time. */
static double long_distance(const struct joint *j, uint32_t *worst)
{
    double sum = 0, most = -1;
    for (uint32_t i = 0; i < j->n; i++) {
        double d = fabs(j->long_mean[i]) / j->long_weight;
        if (d > most) {
            most = d;
            *worst = i;
        }
        sum += d;
    }
    return sum / j->n;
}

/* Logarithms of the three distances after one more row. */
static void step_stats(struct joint *j, const double *row, double out[JOINT_N_STATS],
                       uint32_t worst[JOINT_N_STATS])
{
    for (uint32_t i = 0; i < j->n; i++)
        j->row[i] = isfinite(row[i]) ? fmax(-CLIP, fmin(CLIP, row[i])) : 0;
    moving(j->mean, j->row, j->n, &j->weight, SHORT);
    moving(j->long_mean, j->row, j->n, &j->long_weight, j->facts.window);
    out[JOINT_ROW] = log1p(
        tail_record(&j->facts.most_row, distance(j, j->row, &worst[JOINT_ROW]), BEYOND, RISE));
    /* A mean of w independent rows has a w-th of their square. */
    double d = distance(j, j->mean, &worst[JOINT_MEAN]) / j->weight;
    const struct tail *t = &j->facts.tails[JOINT_MEAN];
    j->calm = t->n > 0 && log1p(d) <= t->from;
    out[JOINT_MEAN] = log1p(tail_record(&j->facts.most_mean, d, BEYOND, RISE));
    out[JOINT_LONG] = log1p(long_distance(j, &worst[JOINT_LONG]));
}

double joint_step(struct joint *j, const double *row, double n_steps, uint32_t *worst)
{
    double stats[JOINT_N_STATS], best = INFINITY;
    /* Correlations need many rows. */
    double known = j->facts.rows / (j->facts.rows + FEW * j->n);
    uint32_t who[JOINT_N_STATS] = {0};
    *worst = 0;
    if (!j->ready)
        return INFINITY;
    step_stats(j, row, stats, who);
    for (uint32_t s = 0; s < JOINT_N_STATS; s++) {
        double n =
            tail_expected(&j->facts.tails[s], stats[s], n_steps, s == JOINT_LONG ? 1 : known);
        if (s == JOINT_LONG) {
            tail_follow(&j->facts.tails[s], stats[s]);
            n = j->calm ? n_steps : n; /* a long deviation has ended */
        }
        if (n < best) {
            best = n;
            *worst = who[s];
        }
    }
    return best;
}

/* ---- learning ---- */

/* In place, by Gauss and Jordan; the matrix is positive definite. */
static void invert(double *a, double *out, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t k = 0; k < n; k++)
            out[i * n + k] = i == k;
    for (uint32_t c = 0; c < n; c++) {
        double pivot = a[c * n + c];
        for (uint32_t k = 0; k < n; k++) {
            a[c * n + k] /= pivot;
            out[c * n + k] /= pivot;
        }
        for (uint32_t r = 0; r < n; r++) {
            double by = a[r * n + c];
            if (r == c || by == 0)
                continue;
            for (uint32_t k = 0; k < n; k++) {
                a[r * n + k] -= by * a[c * n + k];
                out[r * n + k] -= by * out[c * n + k];
            }
        }
    }
}

static void learn_inverse(struct joint *j, const double *rows, size_t n_rows, double *square)
{
    uint32_t n = j->n;
    double shrink = fmin(0.9, SHRINK + (double)n / (double)(n_rows + n));
    memset(square, 0, (size_t)n * n * sizeof(double));
    for (size_t r = 0; r < n_rows; r++)
        for (uint32_t i = 0; i < n; i++) {
            double x = rows[r * n + i];
            x = isfinite(x) ? fmax(-CLIP, fmin(CLIP, x)) : 0;
            for (uint32_t k = 0; k <= i; k++) {
                double y = rows[r * n + k];
                square[i * n + k] += x * (isfinite(y) ? fmax(-CLIP, fmin(CLIP, y)) : 0);
            }
        }
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t k = 0; k <= i; k++) {
            double v = square[i * n + k] / (double)n_rows;
            /* a channel's deviation is at least half of the usual one, also if it is constant */
            v = i == k ? fmax(v, 0.25) : v * (1 - shrink);
            square[i * n + k] = square[k * n + i] = v;
        }
    invert(square, j->inverse, n);
}

int joint_learn(struct joint *j, const double *rows, size_t n_rows, struct err *e)
{
    size_t n = j->n, bytes;
    double *square = mem_zalloc(n * n * sizeof(double)), *stats = NULL;
    if (mem_mul(&bytes, n_rows, (JOINT_N_STATS + 1) * sizeof(double)))
        stats = mem_alloc(bytes + sizeof(double));
    if (!square || !stats) {
        mem_free(square);
        mem_free(stats);
        return err_set(e, SHOAL_ENOMEM, "out of memory for %zu rows", n_rows);
    }
    learn_inverse(j, rows, n_rows, square);
    j->facts.rows = (double)n_rows;
    j->facts.window = fmax(MIN_LONG, fmin(MAX_LONG, LONG_SHARE * (double)n_rows));
    forget_means(j);
    j->weight = j->long_weight = 0; /* means of few rows are mostly noise */
    for (size_t r = 0; r < n_rows; r++) {
        double out[JOINT_N_STATS];
        uint32_t worst[JOINT_N_STATS];
        double most_row = j->facts.most_row, most_mean = j->facts.most_mean;
        j->facts.most_row = j->facts.most_mean = 0; /* every distance is a record here */
        step_stats(j, rows + r * n, out, worst);
        j->facts.most_row = fmax(most_row, expm1(out[JOINT_ROW]));
        j->facts.most_mean = fmax(most_mean, expm1(out[JOINT_MEAN]));
        for (uint32_t s = 0; s < JOINT_N_STATS; s++)
            stats[s * n_rows + r] = out[s];
    }
    for (uint32_t s = 0; s < JOINT_N_STATS; s++) {
        /* A short mean seen for less than a few of its windows is not meaningful yet. */
        bool enough = s != JOINT_MEAN || (double)n_rows >= ENOUGH * SHORT;
        tail_learn(&j->facts.tails[s], stats + s * n_rows, enough ? n_rows : 0,
                   stats + JOINT_N_STATS * n_rows);
        if (j->facts.tails[s].n > 0)
            j->facts.tails[s].n = fmax(j->facts.tails[s].n, SLOWLY);
    }
    j->ready = n_rows > 0;
    forget_means(j);
    mem_free(square);
    mem_free(stats);
    return 0;
}
