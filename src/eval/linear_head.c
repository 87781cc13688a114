/* linear_head.c - see linear_head.h. */
#include "eval/linear_head.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/mem.h"

#define BATCH 32u
#define RATE 0.01
#define DECAY 1e-4 /* L2 */
#define BETA1 0.9
#define BETA2 0.999
#define ENOUGH_ERRORS 20u
#define KEPT 0.95 /* share of right answers kept, without rows of no class */

static void logits(const struct linear_head *h, const float *x, double *out)
{
    for (uint32_t k = 0; k < h->n_classes; k++) {
        const float *w = h->weight + (size_t)k * h->dim;
        float sum = 0;
        for (uint32_t i = 0; i < h->dim; i++)
            sum += w[i] * x[i];
        out[k] = ((double)sum + (double)h->bias[k]) / h->temperature;
    }
}

/* Logits to probabilities, in place. */
static void softmax(double *v, uint32_t n)
{
    double most = v[0], sum = 0;
    for (uint32_t i = 1; i < n; i++)
        most = v[i] > most ? v[i] : most;
    for (uint32_t i = 0; i < n; i++)
        sum += v[i] = exp(v[i] - most);
    for (uint32_t i = 0; i < n; i++)
        v[i] /= sum;
}

/* ---- fitting ---- */

struct fitting {
    size_t n_params; /* weights, then biases */
    float *params, *grad, *m, *v;
    double *p, *class_weight;
    uint32_t *order;
};

static void fitting_fini(struct fitting *f)
{
    mem_free(f->grad);
    mem_free(f->m);
    mem_free(f->v);
    mem_free(f->p);
    mem_free(f->class_weight);
    mem_free(f->order);
}

static int fitting_init(struct fitting *f, const struct linear_head *h,
                        const struct linear_head_rows *rows, struct err *e)
{
    *f = (struct fitting){.n_params = (size_t)h->n_classes * (h->dim + 1u), .params = h->weight};
    f->grad = mem_zalloc_n(f->n_params, sizeof(float));
    f->m = mem_zalloc_n(f->n_params, sizeof(float));
    f->v = mem_zalloc_n(f->n_params, sizeof(float));
    f->p = mem_zalloc_n(h->n_classes, sizeof(double));
    f->class_weight = mem_zalloc_n(h->n_classes, sizeof(double));
    f->order = mem_zalloc_n(rows->n, sizeof(*f->order));
    if (!f->grad || !f->m || !f->v || !f->p || !f->class_weight || !f->order)
        return err_set(e, SHOAL_ENOMEM, "out of memory for %zu rows", rows->n);
    for (size_t i = 0; i < rows->n; i++) {
        f->class_weight[rows->y[i]]++;
        f->order[i] = (uint32_t)i;
    }
    for (uint32_t k = 0; k < h->n_classes; k++) {
        if (f->class_weight[k] <= 0)
            return err_set(e, SHOAL_EINVAL, "a class has no rows to learn from");
        f->class_weight[k] = (double)rows->n / (h->n_classes * f->class_weight[k]);
    }
    return 0;
}

static void add_row(struct fitting *f, const struct linear_head *h, const float *x, uint32_t y)
{
    logits(h, x, f->p);
    softmax(f->p, h->n_classes);
    for (uint32_t k = 0; k < h->n_classes; k++) {
        float g = (float)((f->p[k] - (k == y)) * f->class_weight[y]);
        float *to = f->grad + (size_t)k * h->dim;
        for (uint32_t i = 0; i < h->dim; i++)
            to[i] += g * x[i];
        f->grad[(size_t)h->n_classes * h->dim + k] += g;
    }
}

static void step(struct fitting *f, uint32_t t, size_t n)
{
    double c1 = 1 - pow(BETA1, t), c2 = 1 - pow(BETA2, t);
    for (size_t i = 0; i < f->n_params; i++) {
        double g = (double)f->grad[i] / (double)n + DECAY * (double)f->params[i];
        double m = BETA1 * (double)f->m[i] + (1 - BETA1) * g;
        double v = BETA2 * (double)f->v[i] + (1 - BETA2) * g * g;
        f->m[i] = (float)m;
        f->v[i] = (float)v;
        f->params[i] -= (float)(RATE * (m / c1) / (sqrt(v / c2) + 1e-8));
    }
    memset(f->grad, 0, f->n_params * sizeof(*f->grad));
}

static void shuffle(uint32_t *order, size_t n, uint32_t epoch)
{
    for (size_t i = n; i > 1; i--) {
        size_t j = hash_mix((uint64_t)epoch << 32 | i) % i;
        uint32_t was = order[i - 1];
        order[i - 1] = order[j];
        order[j] = was;
    }
}

int linear_head_fit(struct linear_head *h, const struct linear_head_rows *rows, uint32_t dim,
                    uint32_t n_classes, uint32_t epochs, struct err *e)
{
    struct fitting f = {0};
    *h = (struct linear_head){.n_classes = n_classes, .dim = dim, .temperature = 1};
    if (n_classes < 2 || n_classes > LINEAR_HEAD_MAX_CLASSES || rows->n == 0)
        return err_set(e, SHOAL_EINVAL, "2 to %u classes with rows are needed",
                       LINEAR_HEAD_MAX_CLASSES);
    h->weight = mem_zalloc_n((size_t)n_classes * (dim + 1u), sizeof(float));
    int rc = h->weight ? fitting_init(&f, h, rows, e) : err_set(e, SHOAL_ENOMEM, "weights");
    h->bias = h->weight ? h->weight + (size_t)n_classes * dim : NULL;
    uint32_t t = 0;
    for (uint32_t epoch = 0; epoch < epochs && rc == 0; epoch++) {
        shuffle(f.order, rows->n, epoch);
        for (size_t at = 0; at < rows->n; at += BATCH) {
            size_t n = rows->n - at < BATCH ? rows->n - at : BATCH;
            for (size_t i = 0; i < n; i++)
                add_row(&f, h, rows->x + (size_t)f.order[at + i] * dim, rows->y[f.order[at + i]]);
            step(&f, ++t, n);
        }
    }
    fitting_fini(&f);
    if (rc < 0)
        linear_head_fini(h);
    return rc;
}

void linear_head_fini(struct linear_head *h)
{
    mem_free(h->weight); /* the bias follows it */
    h->weight = h->bias = NULL;
}

/* ---- what it says ---- */

uint32_t linear_head_best(const struct linear_head *h, const float *x, double *p)
{
    double v[LINEAR_HEAD_MAX_CLASSES], sum = 0, most = -1e300;
    uint32_t best = 0, n = h->n_classes;
    logits(h, x, v);
    for (uint32_t i = 0; i < n; i++)
        if (v[i] > most) {
            most = v[i];
            best = i;
        }
    for (uint32_t i = 0; i < n; i++)
        sum += exp(v[i] - most);
    *p = 1 / sum;
    return best;
}

/* How unlikely the right classes are under a temperature; v: [n][n_classes] logits under 1. */
static double loss(const float *v, uint32_t n_classes, const struct linear_head_rows *rows,
                   double temperature)
{
    double sum = 0, p[LINEAR_HEAD_MAX_CLASSES];
    for (size_t i = 0; i < rows->n; i++) {
        for (uint32_t k = 0; k < n_classes; k++)
            p[k] = (double)v[i * n_classes + k] / temperature;
        softmax(p, n_classes);
        sum -= log(p[rows->y[i]] + 1e-12);
    }
    return sum;
}

/* Fills v as above; returns how many rows are answered wrongly. */
static size_t all_logits(const struct linear_head *h, const struct linear_head_rows *rows, float *v)
{
    double one[LINEAR_HEAD_MAX_CLASSES];
    size_t n_wrong = 0;
    for (size_t i = 0; i < rows->n; i++) {
        uint32_t best = 0;
        logits(h, rows->x + i * h->dim, one);
        for (uint32_t k = 0; k < h->n_classes; k++) {
            v[i * h->n_classes + k] = (float)one[k];
            best = one[k] > one[best] ? k : best;
        }
        n_wrong += best != rows->y[i];
    }
    return n_wrong;
}

int linear_head_calibrate(struct linear_head *h, const struct linear_head_rows *rows, struct err *e)
{
    double best = 1, least = 1e300;
    float *v = mem_zalloc_n(rows->n * h->n_classes + 1, sizeof(*v));
    if (!v)
        return err_set(e, SHOAL_ENOMEM, "out of memory for %zu rows", rows->n);
    h->temperature = 1;
    const size_t n_wrong = all_logits(h, rows, v);
    /* Sharper only with enough errors to learn from: a small set that is all right would ask for
     * certainty. */
    for (int i = n_wrong >= ENOUGH_ERRORS ? -25 : 0; i <= 20 && rows->n > 0; i++) {
        const double l = loss(v, h->n_classes, rows, exp(i * 0.1));
        if (l < least) {
            least = l;
            best = exp(i * 0.1);
        }
    }
    h->temperature = best;
    mem_free(v);
    return 0;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

double linear_head_threshold(double *right, size_t n_right, double *none, size_t n_none)
{
    if (n_right == 0)
        return 0.5;
    qsort(right, n_right, sizeof(*right), by_value);
    if (n_none == 0)
        return right[(size_t)((1 - KEPT) * (double)n_right)];
    qsort(none, n_none, sizeof(*none), by_value);
    double best = 0.5, most = -1;
    size_t lost = 0, refused = 0;
    for (int i = 0; i < 1000; i++) {
        double t = i / 1000.0;
        while (lost < n_right && right[lost] < t)
            lost++;
        while (refused < n_none && none[refused] < t)
            refused++;
        double good = (double)(n_right - lost) / (double)n_right + (double)refused / (double)n_none;
        if (good > most) {
            most = good;
            best = t;
        }
    }
    return best;
}
