/* eval_cascade.c - accuracy and cost of a cascade of two classifiers on labelled rows. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "ensemble/cascade_curve.h"
#include "ensemble/confidence.h"
#include "eval/eval.h"
#include "eval/quality.h"

static const char *const text_keys[] = {"text", "sentence", NULL};
static const char *const label_keys[] = {"label", "intent", NULL};

struct cascade_rows {
    struct eval *ev;
    struct cascade_curve_row *rows; /* [rows] */
    double *times;                  /* [rows] */
    bool large;
};

static int make(void *ctx, size_t i, struct shoal_infer_opts *o, struct err *e)
{
    const struct cascade_rows *x = ctx;
    int rc = eval_rows_text(&x->ev->rows->rows[i], text_keys, &o->text, e);
    o->kind = SHOAL_KIND_CLASSIFY;
    if (rc == 0)
        o->text_bytes = strlen(o->text);
    return rc;
}

/* The confidence of a result, calibrated as a server does it.  Below 0: out of memory. */
static double sureness_of(const struct eval *ev, const struct shoal_result *r)
{
    if (ev->temperature <= 0 || r->n_labels == 0)
        return (double)r->confidence;
    float *p = mem_zalloc_n(r->n_labels, sizeof(*p));
    if (!p)
        return -1;
    for (uint32_t i = 0; i < r->n_labels; i++)
        p[i] = r->labels[i].score;
    confidence_scale(p, r->n_labels, ev->temperature);
    const float x = confidence_of_answer(p[0], strcmp(r->label, r->labels[0].name) == 0);
    mem_free(p);
    return (double)x;
}

static int take(void *ctx, size_t i, const struct shoal_result *r, struct err *e)
{
    struct cascade_rows *x = ctx;
    struct cascade_curve_row *row = &x->rows[i];
    const char *want;
    int rc = eval_rows_text(&x->ev->rows->rows[i], label_keys, &want, e);
    if (rc < 0)
        return rc;
    const bool right = strcmp(want, r->label) == 0;
    const double sureness = sureness_of(x->ev, r);
    if (sureness < 0)
        return err_set(e, SHOAL_ENOMEM, "out of memory for the rows");
    x->times[i] = (double)r->run_ns;
    if (x->large) {
        row->large_right = right;
        row->large_sureness = sureness;
    } else {
        row->small_right = right;
        row->sureness = sureness;
    }
    return 0;
}

static void put_point(struct json_out *j, struct buf *text, const struct cascade_curve_point *p)
{
    json_out_object(j);
    json_out_member_num(j, "threshold", p->threshold);
    json_out_member_num(j, "asked", p->asked);
    json_out_member_num(j, "accuracy", p->accuracy);
    json_out_member_num(j, "gain", p->gain);
    json_out_member_num(j, "compute", p->cost);
    json_out_object_end(j);
    char gain[16] = "-"; /* the large model gains nothing */
    if (!isnan(p->gain))
        snprintf(gain, sizeof(gain), "%.1f %%", 100 * p->gain);
    buf_printf(text, "  %9.4f  %6.1f %%  %8.4f  %8s  %6.1f %%\n", p->threshold, 100 * p->asked,
               p->accuracy, gain, 100 * p->cost);
}

static void put_curve(struct json_out *j, struct buf *text, struct cascade_curve_row *rows,
                      size_t n, double gain)
{
    cascade_curve_sort(rows, n);
    const struct cascade_curve_point small = cascade_curve_at(rows, n, 0);
    const struct cascade_curve_point large = cascade_curve_at(rows, n, n);
    const struct cascade_curve_point best = cascade_curve_reach(rows, n, gain);
    eval_figure(j, text, "small_accuracy", small.accuracy, "%.4f");
    eval_figure(j, text, "large_accuracy", large.accuracy, "%.4f");
    eval_figure(j, text, "small_compute", small.cost, "%.4f");
    buf_printf(text, "  threshold     asked  accuracy      gain   compute\n");
    json_out_member_array(j, "curve");
    for (size_t k = 0; k <= 10; k++) {
        const struct cascade_curve_point p = cascade_curve_at(rows, n, n * k / 20);
        put_point(j, text, &p);
    }
    json_out_array_end(j);
    json_out_key(j, "reach");
    if (isnan(best.gain)) {
        json_out_null(j);
        buf_puts(text, "the large model is no better on these rows\n");
        return;
    }
    buf_printf(text, "the cheapest threshold with %.0f %% of the gain:\n", 100 * gain);
    put_point(j, text, &best);
}

/* Chooses the threshold on every other row and measures it on the rest, with the calibration error
 * of the answers. */
static void put_held_out(struct json_out *j, struct buf *text, const struct cascade_curve_row *rows,
                         size_t n, double gain, struct cascade_curve_row *half)
{
    struct quality_ece ece = {0}, small = {0};
    size_t n_half = 0;
    for (size_t i = 0; i < n; i += 2)
        half[n_half++] = rows[i];
    cascade_curve_sort(half, n_half);
    const struct cascade_curve_point chosen = cascade_curve_reach(half, n_half, gain);
    json_out_key(j, "held_out");
    if (isnan(chosen.gain)) {
        json_out_null(j);
        return;
    }
    n_half = 0;
    for (size_t i = 1; i < n; i += 2) {
        const struct cascade_curve_row *r = &rows[i];
        const bool goes = r->sureness < chosen.threshold;
        half[n_half++] = *r;
        quality_ece_add(&ece, goes ? r->large_sureness : r->sureness,
                        goes ? r->large_right : r->small_right);
        quality_ece_add(&small, r->sureness, r->small_right);
    }
    buf_puts(text, "that threshold chosen on every other row, measured on the rest:\n");
    const struct cascade_curve_point p = cascade_curve_below(half, n_half, chosen.threshold);
    put_point(j, text, &p);
    eval_figure(j, text, "held_out_ece", quality_ece(&ece), "%.4f");
    eval_figure(j, text, "small_ece", quality_ece(&small), "%.4f");
}

/* One model over all rows.  *cost: the median time of a row, which other work on the machine
 * disturbs least. */
static int read_all(struct cascade_rows *x, double *cost, struct err *e)
{
    const size_t n = x->ev->rows->n;
    int rc = eval_run(x->ev, make, take, x, n, e);
    if (rc == 0)
        *cost = quality_quantile(x->times, n, 0.5);
    return rc;
}

int eval_cascade(struct eval *small, struct eval *large, double gain, struct json_out *j,
                 struct buf *text, struct err *e)
{
    const size_t n = small->rows->n;
    /* second part: a copy in the original order, then the rows of put_held_out's halves */
    struct cascade_curve_row *rows = mem_zalloc_n(2 * n + 1, sizeof(*rows));
    double *times = mem_zalloc_n(n + 1, sizeof(*times)), small_cost = 0, large_cost = 0;
    struct cascade_rows a = {small, rows, times, false}, b = {large, rows, times, true};
    int rc = rows && times ? read_all(&a, &small_cost, e)
                           : err_set(e, SHOAL_ENOMEM, "out of memory for the rows");
    if (rc == 0)
        rc = read_all(&b, &large_cost, e);
    for (size_t i = 0; rc == 0 && i < n; i++) {
        rows[i].small_cost = small_cost;
        rows[i].large_cost = large_cost;
    }
    if (rc == 0) {
        memcpy(rows + n, rows, n * sizeof(*rows));
        put_curve(j, text, rows, n, gain);
        memcpy(rows, rows + n, n * sizeof(*rows)); /* restores their order */
        put_held_out(j, text, rows, n, gain, rows + n);
    }
    mem_free(rows);
    mem_free(times);
    return rc;
}
