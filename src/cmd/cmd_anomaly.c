/* cmd_anomaly.c - shoal anomaly: learns what is normal for a machine, and monitors it. */
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file/file_read.h"
#include "base/file/file_replace.h"
#include "base/file/lines.h"
#include "base/mem.h"
#include "base/order.h"
#include "base/plural.h"
#include "cmd/cli/term.h"
#include "cmd/cmd.h"
#include "eval/columns.h"
#include "eval/table.h"
#include "things/machine_file.h"
#include "things/things.h"
#include "wire/json_out.h"

cmd_fn cmd_anomaly_fit, cmd_anomaly_run;

#define MAX_FILE_BYTES ((size_t)2 << 30)
#define MACHINE "machine"

static const struct opts_def fit_defs[] = {
    {"output", 'o', OPTS_TEXT, "FILE", NULL, 0, 0, "file to write (required)"},
    {"columns", 'c', OPTS_TEXT, "A,B,...", NULL, 0, 0,
     "channels; default: all columns of numbers except times and labels"},
    {"rows", 'n', OPTS_UINT, "N", "0", 0, 1000000000, "learn from the first N rows; 0: all"},
    {"interval", 0, OPTS_REAL, "S", "0", 0, 1e6,
     "seconds between rows; 0: from the column of times, or 1"},
    {"json", 0, OPTS_FLAG, NULL, NULL, 0, 0, "print what was learned as JSON"},
};
static const struct opts_page fit_page = {
    .command = "anomaly fit",
    .arguments = "DATA.csv",
    .min_args = 1,
    .max_args = 1,
    .summary = "Learns what is normal for a machine from a recording of its sensors.",
    .details =
        "The recording should be of normal operation: minutes are enough to start, two days also "
        "teach\nthe daily pattern.  It learns each channel alone, and how the channels relate.",
    .groups = {OPTS_GROUP("Options", fit_defs)},
    .examples = "  shoal anomaly fit pump.csv -o pump.json\n"
                "  shoal anomaly fit -c temperature,vibration --rows 5000 pump.csv -o pump.json\n",
};

static const struct opts_def run_defs[] = {
    {"learned", 'l', OPTS_TEXT, "FILE", NULL, 0, 0,
     "file of `shoal anomaly fit`; default: the first rows define what is normal"},
    {"columns", 'c', OPTS_TEXT, "A,B,...", NULL, 0, 0,
     "channels, without a learned machine; default: all columns of numbers"},
    {"learn", 0, OPTS_UINT, "N", "512", 32, 1024, "without a learned machine: rows to learn from"},
    {"false-alarms", 0, OPTS_REAL, "N", "0.02", 1e-300, 86400, "target for false alarms per day"},
    {"no-cascade", 0, OPTS_FLAG, NULL, NULL, 0, 0,
     "run the precise detector on every row, not only on doubtful ones"},
    {"interval", 0, OPTS_REAL, "S", "0", 0, 1e6,
     "seconds between rows without times; 0: 1, or as learned"},
    {"name", 0, OPTS_TEXT, "NAME", "", 0, 0, "name of the machine, for the messages"},
    {"scores", 0, OPTS_FLAG, NULL, NULL, 0, 0,
     "print for each row: score (0 to 1), alarm (0 or 1), and how many times a day such a row is "
     "expected"},
    {"json", 0, OPTS_FLAG, NULL, NULL, 0, 0, "print one JSON object per line"},
};
static const struct opts_page run_page = {
    .command = "anomaly run",
    .arguments = "[DATA.csv]",
    .max_args = 1,
    .summary = "Monitors a machine: prints alarms as they are raised, change and clear.",
    .details =
        "Rows come from the file, or from stdin as they arrive: CSV with or without names, or "
        "JSON\nlines.  A column of times gives the time of a row.",
    .groups = {OPTS_GROUP("Options", run_defs)},
    .examples = "  shoal anomaly run -l pump.json today.csv\n"
                "  tail -n +1 -f pump.csv | shoal anomaly run -l pump.json --name \"pump 2\"\n"
                "  shoal anomaly run --scores --json today.csv\n",
};

/* ---- rows ----------------------------------------------------------------------------------- */

/* Median time between rows in milliseconds; 0: there are no times. */
static double interval_of(const struct table *t)
{
    uint32_t at = table_time_column(t);
    size_t n = 0;
    double *v = at == UINT32_MAX ? NULL : mem_zalloc_n(t->n_rows, sizeof(*v));
    for (size_t i = 1; v && i < t->n_rows; i++) {
        double d = t->values[i * t->n_cols + at] - t->values[(i - 1) * t->n_cols + at];
        if (isfinite(d) && d > 0)
            v[n++] = d * 1000;
    }
    if (n > 0)
        qsort(v, n, sizeof(*v), order_double);
    double median = n > 0 ? v[n / 2] : 0;
    mem_free(v);
    return median;
}

static int read_table(struct table *t, const char *file, struct err *e)
{
    struct buf text;
    buf_init(&text, MAX_FILE_BYTES);
    int rc = file_read(file, &text, e);
    buf_putc(&text, '\n');
    if (rc == 0 && text.rc < 0)
        rc = err_set(e, text.rc, "%s is too large", file);
    if (rc == 0 && (rc = table_parse(t, text.data, e)) < 0)
        err_wrap(e, "%s", file);
    buf_fini(&text);
    return rc;
}

static void name_column(const struct table *t, uint32_t column, char *out, size_t n)
{
    if (t->names && t->names[column])
        snprintf(out, n, "%s", t->names[column]);
    else
        snprintf(out, n, "channel %u", column + 1);
}

/* ---- fit ------------------------------------------------------------------------------------ */

struct names {
    char (*text)[128];
    const char **list;
};

static int make_names(struct names *n, const struct table *t, const struct columns *c)
{
    n->text = mem_zalloc_n(c->n, sizeof(*n->text));
    n->list = mem_zalloc_n(c->n, sizeof(*n->list));
    for (uint32_t i = 0; n->text && n->list && i < c->n; i++) {
        name_column(t, c->at[i], n->text[i], sizeof(n->text[i]));
        n->list[i] = n->text[i];
    }
    return n->text && n->list ? 0 : SHOAL_ENOMEM;
}

static int64_t *times_of(const struct table *t)
{
    uint32_t at = table_time_column(t);
    int64_t *v = at == UINT32_MAX ? NULL : mem_zalloc_n(t->n_rows, sizeof(*v));
    for (size_t i = 0; v && i < t->n_rows; i++) {
        double s = t->values[i * t->n_cols + at];
        v[i] = isfinite(s) ? (int64_t)(s * 1000) : i ? v[i - 1] : 0;
    }
    return v;
}

static int fit(const struct opts *o, const struct table *t, struct machine_file **out,
               struct err *e)
{
    struct columns c;
    struct names names = {0};
    *out = NULL;
    int rc = columns_channels(&c, t, opts_text(o, "columns"), e);
    if (rc < 0)
        return rc;
    double *values = columns_gather(&c, t), interval = opts_real(o, "interval") * 1000;
    int64_t *times = times_of(t);
    if (interval <= 0)
        interval = interval_of(t);
    if (!values || make_names(&names, t, &c) < 0)
        rc = err_set(e, SHOAL_ENOMEM, "out of memory for %zu rows", t->n_rows);
    const struct machine_file_rows rows = {.names = names.list,
                                           .n = c.n,
                                           .values = values,
                                           .times = times,
                                           .n_rows = t->n_rows,
                                           .interval_ms = interval > 0 ? interval : 1000};
    if (rc == 0)
        rc = machine_file_fit(out, &rows, e);
    mem_free(values);
    mem_free(times);
    mem_free(names.text);
    mem_free(names.list);
    columns_fini(&c);
    return rc;
}

static int show_fit(const struct opts *o, const struct machine_file *m, const struct buf *file)
{
    struct buf b;
    buf_init(&b, MAX_FILE_BYTES);
    if (opts_flag(o, "json")) {
        buf_put(&b, file->data, file->len);
    } else {
        buf_printf(&b, "%-24s %10s %10s %10s  %s\n", "channel", "usual", "low", "high",
                   "daily pattern");
        for (uint32_t i = 0; i < m->n; i++) {
            const struct profile *p = &m->profiles[i];
            buf_printf(&b, "%-24s %10.5g %10.5g %10.5g  %s\n", m->names[i], p->mean, p->low,
                       p->high, p->daily ? "yes" : "no");
        }
        buf_printf(&b, "learned from %u row%s, one every %.4g s; %s\n", m->profiles[0].n,
                   plural(m->profiles[0].n), m->profiles[0].interval_ms / 1000,
                   m->joint ? "the channels are also monitored together"
                            : "each channel is monitored alone");
    }
    return cmd_print_end(o->page, &b);
}

int cmd_anomaly_fit(int argc, const char *const *argv)
{
    struct opts o;
    struct table t = {0};
    struct machine_file *m = NULL;
    struct buf b;
    struct err e = {0};
    int rc;
    if (!cmd_begin(&o, &fit_page, argc, argv, &rc))
        return rc;
    buf_init(&b, MAX_FILE_BYTES);
    if (!opts_text(&o, "output")) {
        rc = opts_usage(o.page, "no file to write: use -o FILE");
        goto out;
    }
    rc = read_table(&t, o.args[0], &e);
    if (rc == 0) {
        size_t most = opts_uint(&o, "rows");
        t.n_rows = most && most < t.n_rows ? most : t.n_rows;
        rc = fit(&o, &t, &m, &e);
    }
    if (rc == 0) {
        machine_file_write(m, &b);
        rc = b.rc < 0 ? err_set(&e, b.rc, "out of memory")
                      : file_replace(opts_text(&o, "output"), b.data, b.len, &e);
    }
    rc = rc == SHOAL_EINVAL && opts_text(&o, "columns") ? opts_usage(o.page, "%s", e.msg)
         : rc < 0                                       ? cmd_fail(o.page, "%s", e.msg)
                                                        : show_fit(&o, m, &b);
out:
    machine_file_destroy(m);
    table_fini(&t);
    buf_fini(&b);
    opts_fini(&o);
    return rc;
}

/* ---- run ------------------------------------------------------------------------------------ */

struct watch {
    const struct opts *o;
    struct things *things;
    struct machine_file *learned; /* or NULL */
    struct columns columns;
    uint32_t time_at; /* column of times; UINT32_MAX: none */
    double interval_ms;
    uint64_t n_rows;
    int64_t now_ms;
    uint32_t n_open;
    struct buf out;
};

static void put_event(struct watch *w, const struct alarm_event *e)
{
    struct json_out j = json_out_make(&w->out);
    if (opts_flag(w->o, "json")) {
        json_out_object(&j);
        json_out_member_uint(&j, "row", w->n_rows);
        alarm_json(&j, e);
        json_out_object_end(&j);
        buf_putc(&w->out, '\n');
        return;
    }
    buf_printf(&w->out, "row %llu  alarm %llu %s  %s %s  %s\n", (unsigned long long)w->n_rows,
               (unsigned long long)e->id, alarm_change_name(e->change),
               alarm_severity_name(e->severity), alarm_kind_name(e->kind), e->text);
}

static void on_alarm(void *ctx, const struct alarm_event *e)
{
    struct watch *w = ctx;
    w->n_open += e->change == ALARM_RAISED;
    w->n_open -= e->change == ALARM_CLEARED;
    if (!opts_flag(w->o, "scores"))
        put_event(w, e);
}

static int add_sensors(struct watch *w, const struct table *t, struct err *e)
{
    const char *title = opts_text(w->o, "name");
    struct things_machine_opts m = {.name = MACHINE,
                                    .title = title,
                                    .policy.false_alarms = opts_real(w->o, "false-alarms"),
                                    .joint = w->learned ? w->learned->joint : NULL};
    int rc = things_add_machine(w->things, &m, e);
    for (uint32_t i = 0; rc == 0 && i < w->columns.n; i++) {
        char name[128];
        struct things_sensor_opts s = things_sensor_defaults();
        name_column(t, w->columns.at[i], name, sizeof(name));
        s.name = name;
        s.machine = MACHINE;
        s.learn = opts_u32(w->o, "learn");
        s.lost_ms = UINT32_MAX;
        s.interval_ms = w->time_at == UINT32_MAX ? (uint32_t)fmax(1, w->interval_ms) : 0;
        s.policy.false_alarms = opts_real(w->o, "false-alarms") / w->columns.n;
        s.policy.hold_off_ms = 1;
        s.policy.no_cascade = opts_flag(w->o, "no-cascade");
        if (w->learned)
            s.profile = &w->learned->profiles[i];
        rc = things_add_sensor(w->things, &s, e);
    }
    return rc;
}

/* The learned channels by their names. */
static int choose_learned(struct watch *w, const struct table *t, struct err *e)
{
    w->columns.at = mem_zalloc_n(w->learned->n, sizeof(*w->columns.at));
    if (!w->columns.at)
        return err_set(e, SHOAL_ENOMEM, "out of memory");
    w->columns.n = w->learned->n;
    for (uint32_t i = 0; i < w->learned->n; i++) {
        char name[128];
        uint32_t at = UINT32_MAX;
        for (uint32_t k = 0; k < t->n_cols && at == UINT32_MAX; k++) {
            name_column(t, k, name, sizeof(name));
            if (strcmp(name, w->learned->names[i]) == 0)
                at = k;
        }
        if (at == UINT32_MAX)
            return err_set(e, SHOAL_EFORMAT, "there is no column %s, which the machine has",
                           w->learned->names[i]);
        w->columns.at[i] = at;
    }
    return 0;
}

static int begin(struct watch *w, const struct table *t, struct err *e)
{
    int rc = w->learned ? choose_learned(w, t, e)
                        : columns_channels(&w->columns, t, opts_text(w->o, "columns"), e);
    w->time_at = table_time_column(t);
    w->interval_ms = opts_real(w->o, "interval") * 1000;
    if (w->interval_ms <= 0)
        w->interval_ms = w->learned ? w->learned->profiles[0].interval_ms : 1000;
    return rc < 0 ? rc : add_sensors(w, t, e);
}

static void put_scores(struct watch *w)
{
    struct json_out j = json_out_make(&w->out);
    double n = things_machine_expected(w->things, MACHINE);
    double score = things_machine_score(w->things, MACHINE);
    if (!opts_flag(w->o, "json")) {
        buf_printf(&w->out, "%.6g %d %.6g\n", score, w->n_open > 0, n);
        return;
    }
    json_out_object(&j);
    json_out_member_num(&j, "score", score);
    json_out_member_bool(&j, "alarm", w->n_open > 0);
    json_out_key(&j, "expected_per_day");
    if (isfinite(n))
        json_out_num(&j, n);
    else
        json_out_null(&j);
    json_out_object_end(&j);
    buf_putc(&w->out, '\n');
}

/* All rows of the table become readings. */
static int feed(struct watch *w, struct table *t, struct err *e)
{
    for (size_t r = 0; r < t->n_rows; r++) {
        const double *row = t->values + r * t->n_cols;
        double s = w->time_at == UINT32_MAX ? (double)NAN : row[w->time_at];
        int64_t next = isfinite(s) ? (int64_t)(s * 1000) : w->now_ms + (int64_t)w->interval_ms;
        w->now_ms = next > w->now_ms ? next : w->now_ms;
        w->n_rows++;
        for (uint32_t i = 0; i < w->columns.n; i++) {
            const struct reading x = {.sensor = i, .time_ms = next, .value = row[w->columns.at[i]]};
            things_reading(w->things, &x, w->now_ms);
        }
        if (opts_flag(w->o, "scores"))
            put_scores(w);
    }
    t->n_rows = 0;
    if (w->out.rc < 0)
        return err_set(e, w->out.rc, "too much output");
    if (cmd_print(w->o->page, &w->out) != CMD_OK)
        return err_set(e, SHOAL_EIO, "cannot write");
    buf_clear(&w->out);
    return 0;
}

static int watch_lines(struct watch *w, int fd, int interrupt_fd, struct err *e)
{
    struct table t = {0};
    struct lines lines;
    bool begun = false;
    char *line;
    size_t n;
    int rc = 0, got;
    lines_init(&lines, fd);
    lines.name = w->o->n_args ? w->o->args[0] : NULL;
    while (rc == 0 && (got = lines_next(&lines, interrupt_fd, &line, &n, e)) != LINES_END) {
        rc = got < 0 ? got : got == LINES_INTERRUPT ? SHOAL_ECANCELLED : table_line(&t, line, e);
        if (rc == 0 && t.n_rows > 0 && !begun) {
            rc = begin(w, &t, e);
            begun = true;
        }
        if (rc == 0 && t.n_rows > 0 && (t.n_rows >= 4096 || !lines_ready(&lines)))
            rc = feed(w, &t, e);
    }
    if (rc == 0 && t.n_rows > 0)
        rc = feed(w, &t, e);
    if (rc == 0 && w->n_rows == 0)
        rc = err_set(e, SHOAL_EFORMAT, "no rows");
    lines_fini(&lines);
    table_fini(&t);
    return rc;
}

/* Whoever reads no alarm should know how much that says. */
static void tell_learning(const struct watch *w)
{
    uint32_t learned = UINT32_MAX, learn = 0;
    for (uint32_t i = 0; i < things_count(w->things); i++) {
        struct things_view v;
        things_view(w->things, i, &v);
        if (!v.learning || v.learned >= learned)
            continue;
        learned = v.learned;
        learn = v.learn;
    }
    if (learn > 0)
        fprintf(stderr, "shoal: still learning: %u of %u rows are known%s\n", learned, learn,
                learned == 0 ? "; there is no verdict before 32" : "");
}

static int watch(struct watch *w, int interrupt_fd, struct err *e)
{
    const struct things_opts to = {.alarm = on_alarm, .ctx = w, .max_skew_ms = UINT32_MAX};
    const char *learned = opts_text(w->o, "learned"), *file = w->o->n_args ? w->o->args[0] : "-";
    int rc = learned ? machine_file_open(&w->learned, learned, e) : 0;
    if (rc == 0)
        rc = things_create(&w->things, &to, e);
    if (rc < 0)
        return rc;
    bool in = strcmp(file, "-") == 0;
    int fd = in ? STDIN_FILENO : open(file, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return err_set(e, SHOAL_EIO, "cannot open %s: %m", file);
    rc = watch_lines(w, fd, interrupt_fd, e);
    if (rc == 0)
        tell_learning(w);
    if (!in)
        close(fd);
    return rc;
}

int cmd_anomaly_run(int argc, const char *const *argv)
{
    struct opts o;
    struct watch w = {.o = &o, .now_ms = 1};
    struct err e = {0};
    int rc;
    if (!cmd_begin(&o, &run_page, argc, argv, &rc))
        return rc;
    if (o.n_args == 0 && isatty(STDIN_FILENO)) {
        rc = opts_usage(o.page, "no input: give a file, or pipe rows to stdin");
    } else {
        int interrupt_fd = term_catch_interrupt();
        buf_init(&w.out, MAX_FILE_BYTES);
        rc = watch(&w, interrupt_fd, &e);
        rc = rc == SHOAL_ECANCELLED ? CMD_INTERRUPTED
             : rc < 0               ? cmd_fail(o.page, "%s", e.msg)
                                    : CMD_OK;
        term_release_interrupt(interrupt_fd);
        buf_fini(&w.out);
        columns_fini(&w.columns);
        things_destroy(w.things);
        machine_file_destroy(w.learned);
    }
    opts_fini(&o);
    return rc;
}
