/* eval_score.c - shoal eval score: compares alarms of the anomaly model with those of two simple
 * methods, and the results of other scorers with a column of true values. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/plural.h"
#include "eval/eval_series.h"
#include "eval/quality.h"
#include "eval/quality_series.h"

#define ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))

/* Alarm levels of the simple methods for one channel and for several.  Tuned like those of our
 * anomaly model, on the same series: NAB and C-MAPSS without the held-out ones. */
#define THRESHOLD_ONE 10.5
#define THRESHOLD_SEVERAL 8.5
#define Z_SCORE_ONE 21.5
#define Z_SCORE_SEVERAL 4.0
#define Z_SCORE_WINDOW 1024u

enum { SCORE, ALARM, VALUE }; /* outputs of the anomaly model */

struct method {
    const char *key, *name;
    double level; /* tuned; NAN: its own for each series */
    uint32_t window;
    struct quality_alarms alarms;
};

/* A set with the scores of one method, [series][row]. */
struct scored {
    const struct eval_set *set;
    double **scores;
};

static void free_scored(struct scored *s)
{
    for (size_t i = 0; s->scores && i < s->set->n; i++)
        mem_free(s->scores[i]);
    mem_free(s->scores);
    s->scores = NULL;
}

static int make_scored(struct scored *s, const struct eval_set *set, struct err *e)
{
    *s = (struct scored){set, mem_zalloc_n(set->n, sizeof(*s->scores))};
    for (size_t i = 0; s->scores && i < set->n; i++)
        if (!(s->scores[i] = mem_zalloc_n(set->series[i].n, sizeof(double))))
            free_scored(s);
    return s->scores ? 0 : err_set(e, SHOAL_ENOMEM, "out of memory for %zu series", set->n);
}

static struct quality_alarms judge(const struct scored *s, double level)
{
    struct quality_alarms q = {0};
    for (size_t i = 0; i < s->set->n; i++) {
        const struct eval_series *x = &s->set->series[i];
        quality_alarms_add(&q, s->scores[i], x->labels, x->n, level, x->step);
    }
    return q;
}

/* The level with the best F1 of events; among equals, the highest. */
static double best_level(const struct scored *s, const double *levels, size_t n, double *f1)
{
    double best = levels[0];
    *f1 = -1;
    for (size_t i = 0; i < n; i++) {
        struct quality_alarms q = judge(s, levels[i]);
        double f = quality_alarms_f1(&q);
        if (f > *f1 || (f >= *f1 && levels[i] > best)) {
            *f1 = f;
            best = levels[i];
        }
    }
    return best;
}

/* n evenly spaced values. */
static void spread(double *out, size_t n, double from, double to)
{
    for (size_t i = 0; i < n; i++)
        out[i] = from + (to - from) * (double)i / (double)(n - 1);
}

/* ---- methods -------------------------------------------------------------------------------- */

static void fill_model(struct scored *s, bool own_level)
{
    for (size_t i = 0; i < s->set->n; i++) {
        const struct eval_series *x = &s->set->series[i];
        for (size_t k = 0; k < x->n; k++)
            s->scores[i][k] = x->scores[k * s->set->n_outputs + (own_level ? SCORE : VALUE)];
    }
}

static void fill_threshold(struct scored *s)
{
    for (size_t i = 0; i < s->set->n; i++) {
        const struct eval_series *x = &s->set->series[i];
        quality_threshold(x->values, x->n, x->n_channels, s->scores[i]);
    }
}

static void fill_z_score(struct scored *s, uint32_t window)
{
    for (size_t i = 0; i < s->set->n; i++) {
        const struct eval_series *x = &s->set->series[i];
        quality_z_score(x->values, x->n, x->n_channels, window, s->scores[i]);
    }
}

/* Divides scores by the level for the series' number of channels: 1 and above is an alarm. */
static void scale(struct scored *s, double one, double several)
{
    for (size_t i = 0; i < s->set->n; i++)
        for (size_t k = 0; k < s->set->series[i].n; k++)
            s->scores[i][k] /= s->set->series[i].n_channels == 1 ? one : several;
}

/* Candidate levels: quantiles of the scores. */
static int model_levels(const struct scored *s, double *levels, size_t n, struct err *e)
{
    size_t n_all = 0;
    double *all = mem_zalloc_n(s->set->n_rows, sizeof(*all));
    if (!all)
        return err_set(e, SHOAL_ENOMEM, "out of memory for %zu rows", s->set->n_rows);
    for (size_t i = 0; i < s->set->n; i++) {
        memcpy(all + n_all, s->scores[i], s->set->series[i].n * sizeof(*all));
        n_all += s->set->series[i].n;
    }
    spread(levels, 27, 0.3, 0.95);
    spread(levels + 27, n - 27, 0.955, 0.9995);
    for (size_t i = 0; i < n; i++)
        levels[i] = quality_quantile(all, n_all, levels[i]);
    mem_free(all);
    return 0;
}

/* Chooses the levels, and the z-score's window, on other series. */
static int tune(struct method m[3], const struct eval_set *set, struct err *e)
{
    static const uint32_t windows[] = {16, 32, 64, 128, 256, 512, 1024};
    double levels[119], f1, best = -1;
    struct scored s;
    int rc = make_scored(&s, set, e);
    if (rc < 0)
        return rc;
    fill_model(&s, false);
    rc = model_levels(&s, levels, 87, e);
    if (rc == 0) {
        m[0].level = best_level(&s, levels, 87, &f1);
        fill_threshold(&s);
        spread(levels, 119, 1, 60);
        m[1].level = best_level(&s, levels, 119, &f1);
        spread(levels, 59, 1, 30);
    }
    for (size_t i = 0; i < ARRAY_LEN(windows) && rc == 0; i++) {
        fill_z_score(&s, windows[i]);
        double level = best_level(&s, levels, 59, &f1);
        if (f1 >= best) {
            best = f1;
            m[2].level = level;
            m[2].window = windows[i];
        }
    }
    free_scored(&s);
    return rc;
}

static int measure(struct method m[3], const struct eval_set *set, struct err *e)
{
    struct scored s;
    int rc = make_scored(&s, set, e);
    if (rc < 0)
        return rc;
    bool own = isnan(m[0].level);
    fill_model(&s, own);
    m[0].alarms = judge(&s, own ? 0.5 : m[0].level);
    fill_threshold(&s);
    if (own)
        scale(&s, THRESHOLD_ONE, THRESHOLD_SEVERAL);
    m[1].alarms = judge(&s, own ? 1 : m[1].level);
    fill_z_score(&s, m[2].window);
    if (own)
        scale(&s, Z_SCORE_ONE, Z_SCORE_SEVERAL);
    m[2].alarms = judge(&s, own ? 1 : m[2].level);
    free_scored(&s);
    return 0;
}

/* ---- figures -------------------------------------------------------------------------------- */

static void put_method(const struct method *m, bool times, struct json_out *j, struct buf *text)
{
    const struct quality_alarms *q = &m->alarms;
    struct quality_f1 points = quality_f1(q->hit, q->said, q->true_);
    double found = (double)q->n_found, delay = q->n_found ? q->delay_points / found : (double)NAN;
    double rate = times ? (double)q->n_false / (q->normal_seconds / 3600)
                        : (double)q->n_false / ((double)q->n_normal / 1000);
    char name[48], shown[24], late[24], level[32] = "";
    json_out_member_num(j, "event_f1", quality_alarms_f1(q));
    json_out_member_num(j, "point_f1", points.f1);
    json_out_member_uint(j, "windows", q->n_windows);
    json_out_member_uint(j, "found", q->n_found);
    json_out_member_uint(j, "false_alarms", q->n_false);
    json_out_member_num(j, times ? "false_alarms_per_hour" : "false_alarms_per_1000_points", rate);
    json_out_member_num(j, "mean_delay_points", delay);
    if (times)
        json_out_member_num(j, "mean_delay_seconds",
                            q->n_found ? q->delay_seconds / found : (double)NAN);
    if (isfinite(m->level))
        json_out_member_num(j, "level", m->level);
    if (m->window)
        json_out_member_uint(j, "window", m->window);
    snprintf(name, sizeof(name), m->window ? "%s of %u points" : "%s", m->name, m->window);
    snprintf(shown, sizeof(shown), "%llu of %llu", (unsigned long long)q->n_found,
             (unsigned long long)q->n_windows);
    snprintf(late, sizeof(late), isnan(delay) ? "-" : "%.1f", delay);
    if (isfinite(m->level))
        snprintf(level, sizeof(level), "  %7.3f", m->level);
    buf_printf(text, "  %-24s %6.3f  %10s  %6llu  %8.4f  %7s  %6.3f%s\n", name,
               quality_alarms_f1(q), shown, (unsigned long long)q->n_false, rate, late, points.f1,
               level);
}

static void put_alarms(struct method m[3], const struct eval_set *set, struct json_out *j,
                       struct buf *text)
{
    bool times = true;
    for (size_t i = 0; i < set->n; i++)
        times = times && set->series[i].step > 0;
    buf_printf(text, "  %-24s %6s  %10s  %6s  %8s  %7s  %6s%s\n", "", "F1", "found", "false",
               times ? "per hour" : "per 1000", "delay", "points",
               isfinite(m[0].level) ? "    level" : "");
    put_method(&m[0], times, j, text);
    json_out_member_object(j, "baselines");
    for (int i = 1; i < 3; i++) {
        json_out_member_object(j, m[i].key);
        put_method(&m[i], times, j, text);
        json_out_object_end(j);
    }
    json_out_object_end(j);
    buf_puts(text,
             "  F1 and delay (in points) are of events, the column points is the F1 of points\n");
    if (isfinite(m[0].level))
        buf_printf(
            text,
            "  The model's level was chosen on the series of --tune; use it with: shoal score "
            "--level %.4g\n",
            m[0].level);
}

/* ---- other scorers -------------------------------------------------------------------------- */

/* Scores and true values of all series, concatenated. */
struct pairs {
    double *scores, *targets; /* [n][n_outputs], [n] */
    bool *labels;
    size_t n;
};

static void free_pairs(struct pairs *p)
{
    mem_free(p->scores);
    mem_free(p->targets);
    mem_free(p->labels);
}

/* A score is compared with the label of the last row it was computed from. */
static int make_pairs(struct pairs *p, const struct eval_set *set, struct err *e)
{
    size_t n = 0;
    for (size_t i = 0; i < set->n; i++)
        n += set->series[i].n_scores;
    *p = (struct pairs){mem_zalloc_n(n + 1, set->n_outputs * sizeof(double)),
                        mem_zalloc_n(n + 1, sizeof(double)), mem_zalloc_n(n + 1, sizeof(bool)), 0};
    if (n == 0)
        return err_set(e, SHOAL_EFORMAT, "the series are too short: the model gives no score");
    if (n > UINT32_MAX || !p->scores || !p->targets || !p->labels)
        return err_set(e, SHOAL_ENOMEM, "out of memory for %zu scores", n);
    for (size_t i = 0; i < set->n; i++) {
        const struct eval_series *x = &set->series[i];
        for (size_t k = 0; k < x->n_scores; k++, p->n++) {
            size_t row = k * set->hop + set->span - 1;
            memcpy(p->scores + p->n * set->n_outputs, x->scores + k * set->n_outputs,
                   set->n_outputs * sizeof(double));
            p->targets[p->n] = x->targets[row];
            p->labels[p->n] = x->labels[row];
        }
    }
    return 0;
}

static int put_classes(const struct pairs *p, uint32_t n_outputs, struct json_out *j,
                       struct buf *text, struct err *e)
{
    struct quality_counts counts = {0};
    char(*names)[16] = mem_zalloc_n(n_outputs, sizeof(*names));
    uint64_t right = 0;
    int rc = names ? 0 : err_set(e, SHOAL_ENOMEM, "out of memory for %u classes", n_outputs);
    for (uint32_t i = 0; i < n_outputs && rc == 0; i++)
        snprintf(names[i], sizeof(names[i]), "%u", i);
    for (size_t i = 0; i < p->n && rc == 0; i++) {
        uint32_t best = 0;
        for (uint32_t k = 1; k < n_outputs; k++)
            if (p->scores[i * n_outputs + k] > p->scores[i * n_outputs + best])
                best = k;
        if (!(p->targets[i] >= 0 && p->targets[i] < n_outputs)) {
            rc = err_set(e, SHOAL_EFORMAT, "label %g is not one of %u classes", p->targets[i],
                         n_outputs);
            break;
        }
        uint32_t want = (uint32_t)p->targets[i];
        right += best == want;
        rc = quality_add(&counts, names[want], best == want, best == want, 1, e);
        if (rc == 0 && best != want)
            rc = quality_add(&counts, names[best], 0, 1, 0, e);
    }
    if (rc == 0) {
        eval_figure(j, text, "accuracy", (double)right / (double)p->n, "%.4f");
        eval_figure(j, text, "macro_f1", quality_macro_f1(&counts), "%.4f");
    }
    quality_counts_fini(&counts);
    mem_free(names);
    return rc;
}

static int put_binary(const struct pairs *p, double threshold, struct json_out *j, struct buf *text,
                      struct err *e)
{
    uint64_t hit = 0, said = 0, true_ = 0, right = 0;
    uint32_t *order = mem_zalloc_n(p->n, sizeof(*order));
    if (!order)
        return err_set(e, SHOAL_ENOMEM, "out of memory for %zu scores", p->n);
    for (size_t i = 0; i < p->n; i++) {
        bool on = p->scores[i] >= threshold;
        hit += on && p->labels[i];
        said += on;
        true_ += p->labels[i];
        right += on == p->labels[i];
    }
    double auc = quality_auc(p->scores, p->labels, p->n, order);
    eval_figure(j, text, "accuracy", (double)right / (double)p->n, "%.4f");
    eval_figure(j, text, "f1", quality_f1(hit, said, true_).f1, "%.4f");
    if (isfinite(auc))
        eval_figure(j, text, "auc", auc, "%.4f");
    mem_free(order);
    return 0;
}

static void put_regression(const struct pairs *p, struct json_out *j, struct buf *text)
{
    double squares = 0, absolute = 0, sum = 0, spread2 = 0;
    for (size_t i = 0; i < p->n; i++) {
        double d = p->scores[i] - p->targets[i];
        squares += d * d;
        absolute += fabs(d);
        sum += p->targets[i];
    }
    double n = (double)p->n, mean = sum / n;
    for (size_t i = 0; i < p->n; i++)
        spread2 += (p->targets[i] - mean) * (p->targets[i] - mean);
    eval_figure(j, text, "rmse", sqrt(squares / n), "%.6g");
    eval_figure(j, text, "mae", absolute / n, "%.6g");
    if (spread2 > 0)
        eval_figure(j, text, "r2", 1 - squares / spread2, "%.4f");
}

/* Outputs and labels decide: classes, yes or no, or a quantity. */
static int put_pairs(const struct eval_set *set, struct json_out *j, struct buf *text,
                     struct err *e)
{
    struct pairs p;
    bool binary = set->n_outputs == 1;
    int rc = make_pairs(&p, set, e);
    for (size_t i = 0; rc == 0 && binary && i < p.n; i++)
        binary = (p.targets[i] == 0 || p.targets[i] == 1) && p.scores[i] >= 0 && p.scores[i] <= 1;
    if (rc == 0 && set->n_outputs > 1)
        rc = put_classes(&p, set->n_outputs, j, text, e);
    else if (rc == 0 && binary)
        rc = put_binary(&p, 0.5, j, text, e);
    else if (rc == 0)
        put_regression(&p, j, text);
    free_pairs(&p);
    return rc;
}

/* ---- the task ------------------------------------------------------------------------------- */

static int tune_on(struct eval *ev, struct method m[3], struct err *e)
{
    struct eval_set set;
    if (ev->n_tune_files == 0)
        return 0;
    int rc = eval_set_read(&set, ev, ev->tune_files, ev->n_tune_files, e);
    if (rc < 0)
        return rc;
    rc = eval_set_score(&set, ev, false, e);
    if (rc == 0)
        rc = tune(m, &set, e);
    eval_set_fini(&set);
    return rc;
}

int eval_score(struct eval *ev, struct json_out *j, struct buf *text, struct err *e)
{
    struct method methods[] = {
        {.key = "model", .name = ev->model, .level = NAN},
        {.key = "threshold", .name = "plain threshold", .level = NAN},
        {.key = "z_score", .name = "z-score", .level = NAN, .window = Z_SCORE_WINDOW},
    };
    struct shoal_engine_info info = {.size = sizeof(info)};
    struct eval_set set;
    shoal_engine_info(ev->engine, &info);
    if (!(info.kinds & SHOAL_KIND_SCORE))
        return err_set(e, SHOAL_EUNSUPPORTED, "this model does not score numbers");
    int rc = eval_set_read(&set, ev, ev->files, ev->n_files, e);
    if (rc < 0)
        return rc;
    json_out_member_uint(j, "series", set.n);
    json_out_member_uint(j, "rows", set.n_rows);
    buf_printf(text, "  %zu series, %zu row%s\n", set.n, set.n_rows, plural(set.n_rows));
    bool alarms = strcmp(info.arch, "anomaly") == 0;
    rc = alarms ? tune_on(ev, methods, e) : 0;
    if (rc == 0)
        rc = eval_set_score(&set, ev, true, e);
    if (rc == 0 && alarms) {
        rc = measure(methods, &set, e);
        if (rc == 0)
            put_alarms(methods, &set, j, text);
    } else if (rc == 0) {
        rc = put_pairs(&set, j, text, e);
    }
    eval_set_fini(&set);
    return rc;
}
