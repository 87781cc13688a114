/* eval_calibrate.c - the temperature of a classifier, from labelled rows. */
#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "ensemble/confidence.h"
#include "eval/eval.h"
#include "eval/quality.h"

#define MIN_ROWS 20u /* minimum rows for a meaningful result */
#define UNKNOWN UINT32_MAX
#define SUM_ERROR 0.01 /* tolerance for rounded probabilities */

static const char *const text_keys[] = {"text", "sentence", NULL};
static const char *const label_keys[] = {"label", "intent", NULL};

struct answer {
    struct confidence_row row; /* its p is owned; right is UNKNOWN if the model has no such label */
    bool right;                /* the model's answer */
    bool is_best;              /* the answer is the likeliest label */
    float confidence;
};

struct fitting {
    struct eval *ev;
    struct answer *answers; /* [rows] */
    size_t n_unknown;       /* rows with a label that the model does not have: always wrong */
};

static int make(void *ctx, size_t i, struct shoal_infer_opts *o, struct err *e)
{
    const struct fitting *f = ctx;
    int rc = eval_rows_text(&f->ev->rows->rows[i], text_keys, &o->text, e);
    o->kind = SHOAL_KIND_CLASSIFY;
    if (rc == 0)
        o->text_bytes = strlen(o->text);
    return rc;
}

static int take(void *ctx, size_t i, const struct shoal_result *r, struct err *e)
{
    struct fitting *f = ctx;
    const struct eval_row *row = &f->ev->rows->rows[i];
    struct answer *a = &f->answers[i];
    const char *want;
    double sum = 0;
    int rc = eval_rows_text(row, label_keys, &want, e);
    float *p = rc == 0 ? mem_zalloc_n(r->n_labels, sizeof(*p)) : NULL;
    if (!p)
        return rc < 0 ? rc : err_set(e, SHOAL_ENOMEM, "out of memory for the rows");
    *a = (struct answer){.row = {.p = p, .n = r->n_labels, .right = UNKNOWN},
                         .right = strcmp(want, r->label) == 0,
                         .is_best = strcmp(r->label, r->labels[0].name) == 0,
                         .confidence = r->confidence};
    for (uint32_t k = 0; k < r->n_labels; k++) {
        p[k] = r->labels[k].score;
        sum += (double)p[k];
        if (strcmp(want, r->labels[k].name) == 0)
            a->row.right = k;
    }
    f->n_unknown += a->row.right == UNKNOWN;
    if (fabs(sum - 1) > SUM_ERROR)
        return err_set(e, SHOAL_EINVAL,
                       "the labels of this model are not mutually exclusive: a temperature applies "
                       "only to exclusive ones");
    return 0;
}

/* Every other row: files are often sorted by label. */
static bool is_fitted(size_t i)
{
    return i % 2 == 0;
}

static int fit(const struct fitting *f, double *temperature, struct err *e)
{
    size_t n = 0;
    struct confidence_row *rows = mem_zalloc_n(f->ev->rows->n, sizeof(*rows));
    if (!rows)
        return err_set(e, SHOAL_ENOMEM, "out of memory for the rows");
    for (size_t i = 0; i < f->ev->rows->n; i++)
        if (is_fitted(i) && f->answers[i].row.right != UNKNOWN)
            rows[n++] = f->answers[i].row;
    *temperature = confidence_fit(rows, n);
    mem_free(rows);
    return 0;
}

/* The rows that were not fitted, at one temperature. */
struct held_out {
    uint64_t n, right;
    double loss, ece, ece_before; /* ece_before: with the model's own confidences */
    double shares[CONFIDENCE_BINS];
};

static int measure(const struct fitting *f, double temperature, struct held_out *h, struct err *e)
{
    struct quality_ece before = {{0}, {0}, {0}}, now = {{0}, {0}, {0}};
    uint64_t n_known = 0;
    uint32_t n_labels = 0;
    *h = (struct held_out){0};
    for (size_t i = 0; i < f->ev->rows->n; i++)
        n_labels = f->answers[i].row.n > n_labels ? f->answers[i].row.n : n_labels;
    float *p = mem_zalloc_n(n_labels, sizeof(*p));
    if (!p)
        return err_set(e, SHOAL_ENOMEM, "out of memory for the labels");
    for (size_t i = 0; i < f->ev->rows->n; i++) {
        const struct answer *a = &f->answers[i];
        if (is_fitted(i))
            continue;
        h->n++;
        h->right += a->right;
        if (a->row.right != UNKNOWN) {
            n_known++;
            h->loss += confidence_loss(&a->row, 1, temperature);
        }
        memcpy(p, a->row.p, a->row.n * sizeof(*p));
        if (temperature != 1) /* not even rounded */
            confidence_scale(p, a->row.n, temperature);
        const double confidence = (double)confidence_of_answer(p[0], a->is_best);
        quality_ece_add(&before, (double)a->confidence, a->right);
        quality_ece_add(&now, confidence, a->right);
        h->shares[confidence_bin(confidence)] += 1;
    }
    mem_free(p);
    for (uint32_t i = 0; i < CONFIDENCE_BINS; i++)
        h->shares[i] /= (double)h->n;
    h->loss /= (double)(n_known + !n_known);
    h->ece_before = quality_ece(&before);
    h->ece = quality_ece(&now);
    return 0;
}

static void report(const struct fitting *f, const struct held_out *before,
                   const struct held_out *after, struct json_out *j, struct buf *text)
{
    eval_figure(j, text, "fitted_rows", (double)(f->ev->rows->n - after->n), "%.0f");
    eval_figure(j, text, "held_out_rows", (double)after->n, "%.0f");
    if (f->n_unknown > 0)
        eval_figure(j, text, "unknown_labels", (double)f->n_unknown, "%.0f");
    eval_figure(j, text, "accuracy", (double)after->right / (double)after->n, "%.4f");
    eval_figure(j, text, "loss_before", before->loss, "%.4f");
    eval_figure(j, text, "loss_after", after->loss, "%.4f");
    eval_figure(j, text, "ece_before", before->ece_before, "%.4f");
    eval_figure(j, text, "ece_after", after->ece, "%.4f");
}

/* Accepts the temperature only if it helps on held-out rows. Otherwise it is 1, and the figures
 * record the rejected fit. */
static int choose(const struct fitting *f, double fitted, struct confidence_calibration *out,
                  struct json_out *j, struct buf *text, struct err *e)
{
    struct held_out plain, scaled;
    int rc = measure(f, 1, &plain, e);
    if (rc == 0)
        rc = measure(f, fitted, &scaled, e);
    if (rc < 0)
        return rc;
    const bool helps = scaled.ece <= plain.ece_before;
    const struct held_out *used = helps ? &scaled : &plain;
    report(f, &plain, used, j, text);
    if (!helps) {
        eval_figure(j, text, "fitted_temperature", fitted, "%.4f");
        eval_figure(j, text, "fitted_ece", scaled.ece, "%.4f");
        buf_printf(
            text,
            "the fitted temperature increases the calibration error: confidences stay unchanged\n");
    }
    out->temperature = helps ? fitted : 1;
    out->rows = used->n;
    memcpy(out->shares, used->shares, sizeof(out->shares));
    return 0;
}

int eval_calibrate(struct eval *ev, struct confidence_calibration *out, struct json_out *j,
                   struct buf *text, struct err *e)
{
    struct fitting f = {.ev = ev};
    double fitted = 1;
    *out = (struct confidence_calibration){.temperature = 0};
    if (ev->rows->n < MIN_ROWS)
        return err_set(e, SHOAL_EINVAL, "%zu rows are too few: at least %u are needed", ev->rows->n,
                       MIN_ROWS);
    f.answers = mem_zalloc_n(ev->rows->n, sizeof(*f.answers));
    int rc = f.answers ? eval_run(ev, make, take, &f, ev->rows->n, e)
                       : err_set(e, SHOAL_ENOMEM, "out of memory for the rows");
    if (rc == 0 && f.n_unknown * 2 > ev->rows->n)
        rc = err_set(e, SHOAL_EINVAL,
                     "%zu of %zu rows have a label that the model does not have: choose the label "
                     "set with --labels",
                     f.n_unknown, ev->rows->n);
    if (rc == 0)
        rc = fit(&f, &fitted, e);
    if (rc == 0)
        rc = choose(&f, fitted, out, j, text, e);
    for (size_t i = 0; f.answers && i < ev->rows->n; i++)
        mem_free((void *)(uintptr_t)f.answers[i].row.p);
    mem_free(f.answers);
    return rc;
}
