/* eval_series.c - see eval_series.h. */
#include "eval/eval_series.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/file/file_read.h"
#include "base/mem.h"
#include "eval/columns.h"
#include "eval/quality.h"
#include "score/scorer.h"

enum { MAX_FILE_BYTES = 1 << 30 };

void eval_set_fini(struct eval_set *s)
{
    for (size_t i = 0; i < s->n; i++) {
        mem_free(s->series[i].values);
        mem_free(s->series[i].targets);
        mem_free(s->series[i].labels);
        mem_free(s->series[i].scores);
    }
    mem_free(s->series);
    *s = (struct eval_set){0};
}

/* ---- reading -------------------------------------------------------------------------------- */

static int read_table(struct table *t, const char *file, struct err *e)
{
    struct buf text;
    buf_init(&text, MAX_FILE_BYTES);
    int rc = file_read(file, &text, e);
    if (rc == 0)
        buf_putc(&text, '\n');
    if (rc == 0 && text.rc < 0)
        rc = err_set(e, text.rc, "%s is too large", file);
    if (rc == 0 && (rc = table_parse(t, text.data, e)) < 0)
        err_wrap(e, "%s", file);
    buf_fini(&text);
    return rc;
}

/* Median time step in seconds; 0: the table has no times. */
static double step_of(const struct table *t, double *scratch)
{
    uint32_t at = table_time_column(t);
    size_t n = 0;
    for (size_t i = 1; at != UINT32_MAX && i < t->n_rows; i++) {
        double d = t->values[i * t->n_cols + at] - t->values[(i - 1) * t->n_cols + at];
        if (isfinite(d) && d >= 0)
            scratch[n++] = d;
    }
    return n ? quality_quantile(scratch, n, 0.5) : 0;
}

/* Does the path end with this name, as a whole file or folder name? */
static bool ends_with(const char *path, const char *name)
{
    size_t n = strlen(path), m = strlen(name);
    return m > 0 && m <= n && strcmp(path + n - m, name) == 0 && (m == n || path[n - m - 1] == '/');
}

/* Labels from a list of windows {"folder/file.csv": [["from", "to"], ...]}, as NAB has them. */
static int label_windows(struct eval_series *s, const struct table *t, const cJSON *windows,
                         struct err *e)
{
    const cJSON *list = windows ? windows->child : NULL, *w;
    uint32_t at = table_time_column(t);
    while (list && !ends_with(s->file, list->string))
        list = list->next;
    if (!cJSON_IsArray(list) || at == UINT32_MAX)
        return err_set(e, SHOAL_EFORMAT, "%s: %s", s->file,
                       at == UINT32_MAX ? "no column of times for the windows"
                                        : "not in the list of windows");
    cJSON_ArrayForEach(w, list)
    {
        const char *a = cJSON_GetStringValue(cJSON_GetArrayItem(w, 0));
        const char *b = cJSON_GetStringValue(cJSON_GetArrayItem(w, 1));
        double from, to;
        if (!a || !b || !table_time(a, &from) || !table_time(b, &to))
            return err_set(e, SHOAL_EFORMAT, "a window of %s is not a pair of times", list->string);
        for (size_t i = 0; i < s->n; i++) {
            double v = t->values[i * t->n_cols + at];
            if (v >= from && v <= to)
                s->targets[i] = 1;
        }
    }
    return 0;
}

static int read_labels(struct eval_series *s, const struct table *t, uint32_t at,
                       const cJSON *windows, struct err *e)
{
    int rc = 0;
    if (windows)
        rc = label_windows(s, t, windows, e);
    for (size_t i = 0; i < s->n && rc == 0; i++) {
        if (!windows)
            s->targets[i] = t->values[i * t->n_cols + at];
        if (isnan(s->targets[i]))
            rc = err_set(e, SHOAL_EFORMAT, "%s: row %zu has no label", s->file, i + 1);
        s->labels[i] = s->targets[i] > 0;
    }
    return rc;
}

static int read_one(struct eval_series *s, const struct eval *ev, const cJSON *windows,
                    struct err *e)
{
    struct table t = {0};
    struct columns c = {0};
    const char *wanted = ev->label_column;
    int rc = read_table(&t, s->file, e);
    if (rc < 0)
        return rc;
    uint32_t label = columns_label(&t, wanted);
    if (label == UINT32_MAX && !windows)
        rc = err_set(e, SHOAL_EFORMAT, "%s: no column %s", s->file,
                     wanted ? wanted : "label or anomaly; name it with --label");
    if (rc == 0 && (rc = columns_choose(&c, &t, ev->engine, ev->columns,
                                        label == UINT32_MAX ? NULL : t.names[label], e)) < 0)
        err_wrap(e, "%s", s->file);
    if (rc == 0) {
        size_t limit = ev->limit;
        s->n = limit && limit < t.n_rows ? limit : t.n_rows;
        s->n_channels = c.n;
        s->values = columns_gather(&c, &t);
        s->targets = mem_zalloc_n(t.n_rows, sizeof(*s->targets));
        s->labels = mem_zalloc_n(s->n, sizeof(*s->labels));
        if (!s->values || !s->targets || !s->labels)
            rc = err_set(e, SHOAL_ENOMEM, "%s: %zu rows", s->file, s->n);
    }
    if (rc == 0) {
        s->step = step_of(&t, s->targets);
        memset(s->targets, 0, s->n * sizeof(*s->targets));
        rc = read_labels(s, &t, label, windows, e);
    }
    columns_fini(&c);
    table_fini(&t);
    return rc;
}

static int read_windows(const char *file, cJSON **out, struct err *e)
{
    struct buf text;
    buf_init(&text, MAX_FILE_BYTES);
    int rc = file_read(file, &text, e);
    if (rc == 0) {
        *out = cJSON_ParseWithLength(text.data, text.len);
        if (!cJSON_IsObject(*out))
            rc = err_set(e, SHOAL_EFORMAT, "%s is not a JSON object of windows by file", file);
    }
    buf_fini(&text);
    return rc;
}

int eval_set_read(struct eval_set *s, const struct eval *ev, const char *const *files,
                  size_t n_files, struct err *e)
{
    cJSON *windows = NULL;
    const char *list = ev->windows_file;
    *s = (struct eval_set){0};
    int rc = list ? read_windows(list, &windows, e) : 0;
    if (rc == 0 && !(s->series = mem_zalloc_n(n_files, sizeof(*s->series))))
        rc = err_set(e, SHOAL_ENOMEM, "out of memory for %zu files", n_files);
    for (size_t i = 0; i < n_files && rc == 0; i++) {
        s->series[i].file = files[i];
        s->n = i + 1;
        rc = read_one(&s->series[i], ev, windows, e);
        s->n_rows += s->series[i].n;
    }
    cJSON_Delete(windows);
    if (rc < 0)
        eval_set_fini(s);
    return rc;
}

/* ---- scoring -------------------------------------------------------------------------------- */

struct memory { /* state and scratch of a scorer */
    void *state, *scratch;
};

static int make_memory(struct memory *m, const struct scorer *s, uint32_t n_channels, struct err *e)
{
    m->state = mem_aligned(scorer_state_bytes(s, n_channels) + 1);
    m->scratch = mem_aligned(scorer_scratch_bytes(s) + 1);
    return m->state && m->scratch
               ? 0
               : err_set(e, SHOAL_ENOMEM, "out of memory for %u channels", n_channels);
}

/* Times a stream score by score; a model of independent windows is timed as a whole. */
static void score_one(const struct scorer *s, struct eval_series *x, const struct memory *m,
                      double *latency_ms)
{
    struct scorer_info info = scorer_info(s);
    const double *rows = x->values;
    double *out = x->scores;
    if (!info.stateful && info.kind == SCORER_LAYERS) {
        uint64_t t0 = clock_ns();
        scorer_run(s, rows, x->n, x->n_channels, out, m->state, m->scratch);
        double each = (double)(clock_ns() - t0) / 1e6 / (double)x->n_scores;
        for (size_t i = 0; latency_ms && i < x->n_scores; i++)
            latency_ms[i] = each;
        return;
    }
    scorer_reset(s, m->state, x->n_channels);
    for (size_t i = 0; i < x->n_scores; i++) {
        uint64_t t0 = clock_ns();
        scorer_step(s, m->state, rows, out, m->scratch);
        if (latency_ms)
            latency_ms[i] = (double)(clock_ns() - t0) / 1e6;
        rows += (size_t)info.hop * x->n_channels;
        out += info.n_outputs;
    }
}

static int score_all(struct eval_set *set, struct eval *ev, const struct scorer *s, bool latency,
                     struct err *e)
{
    int rc = 0;
    for (size_t i = 0; i < set->n && rc == 0; i++) {
        struct eval_series *x = &set->series[i];
        struct memory m = {0};
        double *grown = NULL;
        x->n_scores = scorer_n_scores(s, x->n);
        x->scores = mem_zalloc_n(x->n_scores + 1, set->n_outputs * sizeof(double));
        rc = x->scores ? make_memory(&m, s, x->n_channels, e)
                       : err_set(e, SHOAL_ENOMEM, "out of memory for %zu scores", x->n_scores);
        if (rc == 0 && latency) {
            grown =
                mem_realloc(ev->latency_ms, (ev->n_latencies + x->n_scores + 1) * sizeof(*grown));
            ev->latency_ms = grown ? grown : ev->latency_ms;
            rc = grown ? 0 : err_set(e, SHOAL_ENOMEM, "out of memory for %zu scores", x->n_scores);
        }
        if (rc == 0)
            score_one(s, x, &m, latency ? ev->latency_ms + ev->n_latencies : NULL);
        if (rc == 0 && latency)
            ev->n_latencies += x->n_scores;
        mem_free(m.state);
        mem_free(m.scratch);
        if (rc == 0)
            rc = eval_progress(ev, (double)(i + 1) / (double)set->n, e);
    }
    return rc;
}

int eval_set_score(struct eval_set *set, struct eval *ev, bool latency, struct err *e)
{
    struct scorer *s;
    struct scorer_opts o = {.int8 = ev->int8};
    int rc = scorer_open(&s, ev->path, &o, e);
    if (rc < 0)
        return rc;
    struct scorer_info info = scorer_info(s);
    set->n_outputs = info.n_outputs;
    set->hop = info.hop;
    set->span = info.stateful ? info.hop : info.window;
    rc = score_all(set, ev, s, latency, e);
    scorer_close(s);
    return rc;
}
