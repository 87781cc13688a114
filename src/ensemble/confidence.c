/* confidence.c - see confidence.h. */
#include "ensemble/confidence.h"

#include <float.h>
#include <math.h>

#define STEPS 60u /* bisection steps: beyond the precision of a double */

double confidence_bound(uint32_t i)
{
    static const double bounds[CONFIDENCE_BINS] = {0.1, 0.2, 0.3, 0.4,  0.5,  0.6,
                                                   0.7, 0.8, 0.9, 0.95, 0.99, 1.0};
    return bounds[i < CONFIDENCE_BINS ? i : CONFIDENCE_BINS - 1];
}

uint32_t confidence_bin(double confidence)
{
    uint32_t i = 0;
    while (i + 1 < CONFIDENCE_BINS && confidence > confidence_bound(i))
        i++;
    return i;
}

/* A probability that was rounded to 0 counts as the smallest one. */
static double log_of(float p)
{
    return log((double)(p > FLT_TRUE_MIN ? p : FLT_TRUE_MIN));
}

static double largest_log(const float *p, uint32_t n)
{
    float most = 0;
    for (uint32_t i = 0; i < n; i++)
        most = p[i] > most ? p[i] : most;
    return log_of(most);
}

void confidence_scale(float *p, uint32_t n, double temperature)
{
    const double beta = 1 / temperature, top = largest_log(p, n);
    double sum = 0;
    for (uint32_t i = 0; i < n; i++)
        sum += exp(beta * (log_of(p[i]) - top));
    for (uint32_t i = 0; i < n; i++)
        p[i] = (float)(exp(beta * (log_of(p[i]) - top)) / sum);
}

/* The loss of one row at 1/temperature, and its slope. */
static double row_loss(const struct confidence_row *r, double beta, double *slope)
{
    const double top = largest_log(r->p, r->n), right = log_of(r->p[r->right]) - top;
    double sum = 0, mean = 0;
    for (uint32_t i = 0; i < r->n; i++) {
        const double l = log_of(r->p[i]) - top, w = exp(beta * l);
        sum += w;
        mean += w * l;
    }
    *slope += mean / sum - right;
    return log(fmax(sum, 1.0)) - beta * right; /* the largest alone makes it 1 */
}

static double total_loss(const struct confidence_row *rows, size_t n, double beta, double *slope)
{
    double loss = 0;
    *slope = 0;
    for (size_t i = 0; i < n; i++)
        loss += row_loss(&rows[i], beta, slope);
    return loss;
}

double confidence_loss(const struct confidence_row *rows, size_t n, double temperature)
{
    double slope;
    return n > 0 ? total_loss(rows, n, 1 / temperature, &slope) / (double)n : 0;
}

/* The loss is convex in 1/temperature: its slope changes its sign once. */
double confidence_fit(const struct confidence_row *rows, size_t n)
{
    double low = 1 / CONFIDENCE_MAX_TEMPERATURE, high = 1 / CONFIDENCE_MIN_TEMPERATURE, slope;
    if (n == 0)
        return 1;
    for (uint32_t i = 0; i < STEPS; i++) {
        const double middle = sqrt(low * high);
        (void)total_loss(rows, n, middle, &slope);
        if (slope > 0)
            high = middle;
        else
            low = middle;
    }
    return 1 / sqrt(low * high);
}
