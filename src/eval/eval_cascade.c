/* eval_cascade.c - what a cascade of two classifiers reaches on labelled rows, and at what cost. */
#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "ensemble/cascade_curve.h"
#include "eval/eval.h"
#include "eval/quality.h"

#define GAIN 0.95 /* the part of the large model's gain that is looked for */

static const char *const text_keys[] = {"text", "sentence", NULL};
static const char *const label_keys[] = {"label", "intent", NULL};

struct reading {
    struct eval *ev;
    struct cascade_curve_row *rows; /* [rows] */
    double *times;                  /* [rows] */
    bool large;
};

static int make(void *ctx, size_t i, struct shoal_infer_opts *o, struct err *e)
{
    const struct reading *x = ctx;
    int rc = eval_rows_text(&x->ev->rows->rows[i], text_keys, &o->text, e);
    o->kind = SHOAL_KIND_CLASSIFY;
    if (rc == 0)
        o->text_bytes = strlen(o->text);
    return rc;
}

static int take(void *ctx, size_t i, const struct shoal_result *r, struct err *e)
{
    struct reading *x = ctx;
    struct cascade_curve_row *row = &x->rows[i];
    const char *want;
    int rc = eval_rows_text(&x->ev->rows->rows[i], label_keys, &want, e);
    if (rc < 0)
        return rc;
    const bool right = strcmp(want, r->label) == 0;
    x->times[i] = (double)r->run_ns;
    if (x->large) {
        row->large_right = right;
    } else {
        row->small_right = right;
        row->sureness = (double)r->confidence;
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
    buf_printf(text, "  %9.4f  %6.1f %%  %8.4f  %6.1f %%  %6.1f %%\n", p->threshold, 100 * p->asked,
               p->accuracy, 100 * p->gain, 100 * p->cost);
}

static void put_curve(struct json_out *j, struct buf *text, struct cascade_curve_row *rows,
                      size_t n)
{
    cascade_curve_sort(rows, n);
    const struct cascade_curve_point small = cascade_curve_at(rows, n, 0);
    const struct cascade_curve_point large = cascade_curve_at(rows, n, n);
    const struct cascade_curve_point best = cascade_curve_reach(rows, n, GAIN);
    eval_figure(j, text, "small_accuracy", small.accuracy, "%.4f");
    eval_figure(j, text, "large_accuracy", large.accuracy, "%.4f");
    eval_figure(j, text, "small_compute", small.cost, "%.4f");
    buf_printf(text, "  threshold     asked  accuracy   compute      gain\n");
    json_out_key(j, "curve");
    json_out_array(j);
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
    buf_puts(text, "the cheapest with 95 % of the gain:\n");
    put_point(j, text, &best);
}

/* One model over all rows.  *cost: the median time of a row, which other work on the machine
 * disturbs least. */
static int read_all(struct reading *x, double *cost, struct err *e)
{
    const size_t n = x->ev->rows->n;
    int rc = eval_run(x->ev, make, take, x, n, e);
    if (rc == 0)
        *cost = quality_quantile(x->times, n, 0.5);
    return rc;
}

int eval_cascade(struct eval *small, struct eval *large, struct json_out *j, struct buf *text,
                 struct err *e)
{
    const size_t n = small->rows->n;
    struct cascade_curve_row *rows = mem_zalloc_n(n + 1, sizeof(*rows));
    double *times = mem_zalloc_n(n + 1, sizeof(*times)), small_cost = 0, large_cost = 0;
    struct reading a = {small, rows, times, false}, b = {large, rows, times, true};
    int rc = rows && times ? read_all(&a, &small_cost, e)
                           : err_set(e, SHOAL_ENOMEM, "out of memory for the rows");
    if (rc == 0)
        rc = read_all(&b, &large_cost, e);
    for (size_t i = 0; rc == 0 && i < n; i++) {
        rows[i].small_cost = small_cost;
        rows[i].large_cost = large_cost;
    }
    if (rc == 0)
        put_curve(j, text, rows, n);
    mem_free(rows);
    mem_free(times);
    return rc;
}
