/* cmd_score.c - shoal score: scores rows of numbers. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file/file_read.h"
#include "base/file/lines.h"
#include "base/mem.h"
#include "base/plural.h"
#include "cmd/cli/term.h"
#include "cmd/cmd.h"
#include "cmd/local/local_pipe.h"
#include "cmd/local/model_opts.h"
#include "eval/columns.h"
#include "eval/table.h"
#include "wire/json_out.h"

cmd_fn cmd_score;

static const struct opts_def defs[] = {
    {"file", 'f', OPTS_TEXT, "FILE", NULL, 0, 0, "read rows from FILE; - means stdin"},
    {"columns", 'c', OPTS_TEXT, "A,B,...", NULL, 0, 0,
     "columns for the model's inputs, in its order; default: by name, or all columns of numbers"},
    {"raw", 0, OPTS_FLAG, NULL, NULL, 0, 0,
     "trees: print the raw score, before the objective's transformation"},
    {"level", 0, OPTS_REAL, "X", NULL, -1e6, 1e6,
     "anomaly model: alarm while value is at least X; default: the model's own level"},
    {"json", 0, OPTS_FLAG, NULL, NULL, 0, 0, "print one JSON object per score"},
};

static const struct opts_page page = {
    .command = "score",
    .arguments = "[ROW...]",
    .max_args = UINT32_MAX,
    .summary = "Scores rows of numbers with trees, a small network or the anomaly model.",
    .details =
        "Rows are arguments (\"1.5,2,nan\"), or lines of -f FILE or stdin: CSV with or without "
        "names in\nthe first line, or JSON arrays or objects.  Columns of times or text are "
        "ignored, with a note.\nModels with a window print one score per window.  The anomaly "
        "model accepts any number of\nchannels, in order of time, and prints score (0 to 1), "
        "alarm (0 or 1) and value for each row; it\nalso ignores columns named label, anomaly or "
        "changepoint.\nOn a pipe every row is scored as soon as it arrives.",
    .groups = {OPTS_GROUP("Options", defs), &model_opts_score_group},
    .examples = "  shoal score -m model.txt \"0.5,1,3\"\n"
                "  shoal score -m model.txt -f rows.csv --json\n"
                "  shoal score -c temperature,pressure -f sensors.csv\n"
                "  tail -n +1 -f sensors.csv | shoal score -m anomaly --level 2\n",
};

#define MAX_ROWS_AT_ONCE 4096u /* rows read from a pipe before they are scored */

struct work {
    const struct opts *o;
    struct shoal_engine *engine;
    struct local local;
    struct local_pipe pipe;
    struct columns columns;
    int interrupt_fd;
    uint32_t n_outputs;
    bool has_level; /* --level, for a model with the outputs score, alarm and value */
    double level;
    uint64_t n_scores;
    int exit_code;
};

/* ---- output --------------------------------------------------------------------------------- */

static void put_score(struct work *w, struct buf *b, const double *v)
{
    struct json_out j = json_out_make(b);
    if (!opts_flag(w->o, "json")) {
        for (uint32_t k = 0; k < w->n_outputs; k++)
            buf_printf(b, "%s%.10g", k ? " " : "", v[k]);
    } else {
        json_out_object(&j);
        for (uint32_t k = 0; k < w->n_outputs; k++)
            json_out_member_num(&j, shoal_label(w->engine, SHOAL_KIND_SCORE, NULL, k), v[k]);
        json_out_object_end(&j);
    }
    buf_putc(b, '\n');
}

/* Prints the scores. */
static int take(void *ctx, void *row, const struct shoal_result *r, struct err *e)
{
    struct work *w = ctx;
    struct buf b;
    buf_init(&b, (size_t)1 << 30);
    (void)row;
    (void)e;
    for (uint32_t i = 0; i + w->n_outputs <= r->n_values; i += w->n_outputs) {
        double v = r->values[i + w->n_outputs - 1];
        const double own[] = {1 / (1 + exp(w->level - v)), v >= w->level, v};
        put_score(w, &b, w->has_level ? own : r->values + i);
        w->n_scores++;
    }
    w->exit_code = cmd_print(w->o->page, &b);
    buf_fini(&b);
    return w->exit_code == CMD_OK ? 0 : SHOAL_EIO;
}

/* ---- requests ------------------------------------------------------------------------------- */

/* The values must stay valid until the answer arrives. stream: they continue earlier ones. */
static int submit(struct work *w, const double *values, size_t n_rows, bool stream, struct err *e)
{
    uint32_t n_columns = w->columns.n;
    if (n_rows > UINT32_MAX / n_columns)
        return err_set(e, SHOAL_ELIMIT, "%zu rows are too many", n_rows);
    struct request *r = flow_take_request(&w->local.owner);
    struct request_input *input = r ? arena_zalloc(&r->arena, sizeof(*input)) : NULL;
    if (!input) {
        if (r)
            flow_give_request(&w->local.owner, r);
        return err_set(e, SHOAL_ENOMEM, "out of memory");
    }
    *input = (struct request_input){.values = values, .n_values = (uint32_t)(n_rows * n_columns)};
    r->kind = REQUEST_INFER;
    r->model = opts_text(w->o, "model");
    r->received_ns = clock_ns();
    r->infer = (struct request_infer){.kind = SHOAL_KIND_SCORE,
                                      .inputs = input,
                                      .n_inputs = 1,
                                      .n_columns = n_columns,
                                      .stream = stream ? "rows" : NULL,
                                      .raw = opts_flag(w->o, "raw")};
    int rc = local_pipe_put(&w->pipe, r, NULL, e);
    return rc < 0 ? rc : local_pipe_drain(&w->pipe, e);
}

static int score_rows(struct work *w, const struct table *t, bool stream, struct err *e)
{
    double *values = columns_gather(&w->columns, t);
    if (!values)
        return err_set(e, SHOAL_ENOMEM, "out of memory");
    int rc = submit(w, values, t->n_rows, stream, e);
    mem_free(values);
    return rc;
}

static int choose_columns(struct work *w, const struct table *t, struct err *e)
{
    int rc = columns_choose(&w->columns, t, w->engine, opts_text(w->o, "columns"), NULL, e);
    if (rc == SHOAL_EINVAL)
        w->exit_code = opts_usage(w->o->page, "%s", e->msg);
    if (rc == 0 && *w->columns.left_out)
        fprintf(stderr, "shoal score: ignored columns: %s; choose columns with --columns A,B,...\n",
                w->columns.left_out);
    return rc;
}

/* ---- input ---------------------------------------------------------------------------------- */

/* Scores the rows of a pipe as they arrive, all available ones at a time. */
static int score_lines(struct work *w, int fd, struct err *e)
{
    struct shoal_engine_info info = {.size = sizeof(info)};
    struct table t = {0};
    struct lines lines;
    uint64_t n_rows = 0;
    char *line;
    size_t n;
    int rc = 0, got;
    lines_init(&lines, fd);
    lines.name = opts_text(w->o, "file");
    while (rc == 0 && (got = lines_next(&lines, w->interrupt_fd, &line, &n, e)) != LINES_END) {
        if (got < 0)
            rc = got;
        else if (got == LINES_INTERRUPT)
            rc = SHOAL_ECANCELLED;
        else
            rc = table_line(&t, line, e);
        if (rc == 0 && t.n_rows == 1 && n_rows == 0 && w->columns.n == 0)
            rc = choose_columns(w, &t, e);
        if (rc == 0 && t.n_rows > 0 && (t.n_rows >= MAX_ROWS_AT_ONCE || !lines_ready(&lines))) {
            rc = score_rows(w, &t, true, e);
            n_rows += t.n_rows;
            t.n_rows = 0;
        }
    }
    if (rc == 0 && t.n_rows > 0) {
        rc = score_rows(w, &t, true, e);
        n_rows += t.n_rows;
    }
    shoal_engine_info(w->engine, &info);
    if (rc == 0 && n_rows == 0)
        rc = err_set(e, SHOAL_EFORMAT,
                     t.names ? "no row of numbers after the names in the first line" : "no rows");
    else if (rc == 0 && w->n_scores == 0)
        rc = err_set(e, SHOAL_EINVAL, "got %llu row%s, but the model needs %u at a time",
                     (unsigned long long)n_rows, plural(n_rows), info.n_ctx);
    lines_fini(&lines);
    table_fini(&t);
    return rc;
}

/* Scores arguments or a file as one series. */
static int score_whole(struct work *w, struct err *e)
{
    struct buf text;
    struct table t = {0};
    const char *file = opts_text(w->o, "file");
    int rc = 0;
    buf_init(&text, (size_t)2 << 30);
    for (size_t i = 0; i < w->o->n_args; i++) {
        buf_puts(&text, w->o->args[i]);
        buf_putc(&text, '\n');
    }
    if (w->o->n_args == 0)
        rc = file_read(file ? file : "-", &text, e);
    buf_putc(&text, '\n');
    if (rc == 0 && text.rc < 0)
        rc = err_set(e, text.rc, "%s%sthe rows are too large", file ? file : "", file ? ": " : "");
    if (rc == 0 && (rc = table_parse(&t, text.data, e)) < 0 && file)
        err_wrap(e, "%s", file);
    buf_fini(&text);
    if (rc == 0)
        rc = choose_columns(w, &t, e);
    if (rc == 0)
        rc = score_rows(w, &t, false, e);
    table_fini(&t);
    return rc;
}

static bool is_regular(int fd)
{
    struct stat st;
    return fstat(fd, &st) == 0 && S_ISREG(st.st_mode);
}

static int score_input(struct work *w, struct err *e)
{
    const char *file = opts_text(w->o, "file");
    if (w->o->n_args > 0)
        return score_whole(w, e);
    bool in = !file || strcmp(file, "-") == 0;
    int fd = in ? STDIN_FILENO : open(file, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return err_set(e, SHOAL_EIO, "cannot open %s: %m", file);
    int rc = is_regular(fd) ? score_whole(w, e) : score_lines(w, fd, e);
    if (!in)
        close(fd);
    return rc;
}

/* ---- the command ---------------------------------------------------------------------------- */

static bool has_outputs(struct shoal_engine *engine, const char *a, const char *b, const char *c)
{
    const char *const names[] = {a, b, c};
    for (uint32_t i = 0; i < 3; i++) {
        const char *name = shoal_label(engine, SHOAL_KIND_SCORE, NULL, i);
        if (!name || strcmp(name, names[i]) != 0)
            return false;
    }
    return true;
}

static int prepare(struct work *w)
{
    struct shoal_engine_info info = {.size = sizeof(info)};
    shoal_engine_info(w->engine, &info);
    if (!(info.kinds & SHOAL_KIND_SCORE))
        return cmd_fail(w->o->page, "this model does not score numbers");
    while (shoal_label(w->engine, SHOAL_KIND_SCORE, NULL, w->n_outputs))
        w->n_outputs++;
    w->n_outputs = w->n_outputs ? w->n_outputs : 1;
    w->has_level = opts_given(w->o, "level");
    w->level = w->has_level ? opts_real(w->o, "level") : 0;
    if (w->has_level && (w->n_outputs != 3 || !has_outputs(w->engine, "score", "alarm", "value")))
        return opts_usage(w->o->page, "--level is for anomaly models; this model raises no alarms");
    return CMD_OK;
}

static int score(struct work *w)
{
    struct err e = {0};
    int rc = prepare(w);
    if (rc != CMD_OK)
        return rc;
    local_pipe_init(&w->pipe, &w->local, w->interrupt_fd, take, w);
    rc = local_open(&w->local, &e);
    if (rc == 0)
        rc = local_lend(&w->local, opts_text(w->o, "model"), NULL, w->engine, &e);
    if (rc == 0)
        rc = score_input(w, &e);
    local_pipe_fini(&w->pipe);
    local_close(&w->local);
    columns_fini(&w->columns);
    if (rc == SHOAL_ECANCELLED)
        return CMD_INTERRUPTED;
    return rc < 0 && w->exit_code == CMD_OK ? cmd_fail(w->o->page, "%s", e.msg) : w->exit_code;
}

static int check_input(const struct opts *o)
{
    if (o->n_args > 0 && opts_text(o, "file"))
        return opts_usage(o->page, "give either rows or a file, not both");
    if (o->n_args == 0 && !opts_text(o, "file") && isatty(STDIN_FILENO))
        return opts_usage(o->page, "no input: pass a row, use -f FILE, or pipe rows to stdin");
    return CMD_OK;
}

int cmd_score(int argc, const char *const *argv)
{
    struct opts o;
    struct model_name name = {0};
    struct work w = {.o = &o, .interrupt_fd = -1, .exit_code = CMD_OK};
    int rc;
    if (!cmd_begin(&o, &page, argc, argv, &rc))
        return rc;
    rc = check_input(&o);
    if (rc == CMD_OK) {
        w.interrupt_fd = term_catch_interrupt();
        rc = model_opts_specialist_open(&o, w.interrupt_fd, &w.engine, &name);
    }
    if (rc == CMD_OK)
        rc = score(&w);
    shoal_engine_close(w.engine);
    term_release_interrupt(w.interrupt_fd);
    model_name_fini(&name);
    opts_fini(&o);
    return rc;
}
