/* cmd_score.c - shoal score: scores rows of numbers. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file/file_read.h"
#include "base/mem.h"
#include "cmd/cli/term.h"
#include "cmd/cmd.h"
#include "cmd/local/local_pipe.h"
#include "cmd/local/model_opts.h"
#include "eval/columns.h"
#include "eval/table.h"
#include "wire/json_out.h"

static const struct opts_def defs[] = {
    {"file", 'f', OPTS_TEXT, "FILE", NULL, 0, 0, "read rows from FILE; - means stdin"},
    {"columns", 'c', OPTS_TEXT, "A,B,...", NULL, 0, 0,
     "columns for the model's inputs, in its order; default: by name, or all columns of numbers"},
    {"raw", 0, OPTS_FLAG, NULL, NULL, 0, 0,
     "trees: print the raw score, before the objective's transformation"},
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
        "changepoint.",
    .groups = {OPTS_GROUP("Options", defs)},
    .examples = "  shoal score -m model.txt \"0.5,1,3\"\n"
                "  shoal score -m model.txt -f rows.csv --json\n"
                "  shoal score -m anomaly -c temperature,pressure -f sensors.csv\n",
};

struct work {
    const struct opts *o;
    struct shoal_engine *engine;
    int exit_code;
};

/* Prints the scores. */
static int take(void *ctx, void *row, const struct shoal_result *r, struct err *e)
{
    struct work *w = ctx;
    struct buf b;
    uint32_t n_outputs = 0;
    buf_init(&b, (size_t)1 << 30);
    (void)row;
    (void)e;
    while (shoal_label(w->engine, SHOAL_KIND_SCORE, NULL, n_outputs))
        n_outputs++;
    n_outputs = n_outputs ? n_outputs : 1;
    for (uint32_t i = 0; i + n_outputs <= r->n_values; i += n_outputs) {
        const double *v = r->values + i;
        struct json_out j = json_out_make(&b);
        if (!opts_flag(w->o, "json")) {
            for (uint32_t k = 0; k < n_outputs; k++)
                buf_printf(&b, "%s%.10g", k ? " " : "", v[k]);
        } else {
            json_out_object(&j);
            for (uint32_t k = 0; k < n_outputs; k++) {
                json_out_key(&j, shoal_label(w->engine, SHOAL_KIND_SCORE, NULL, k));
                json_out_num(&j, v[k]);
            }
            json_out_object_end(&j);
        }
        buf_putc(&b, '\n');
    }
    w->exit_code = cmd_print(w->o->page, &b);
    buf_fini(&b);
    return w->exit_code == CMD_OK ? 0 : SHOAL_EIO;
}

/* The values belong to the command, which outlives the request. */
static int submit(const struct opts *o, struct local *l, struct local_pipe *pipe,
                  const double *values, uint32_t n_values, uint32_t n_columns, struct err *e)
{
    struct request *r = flow_take_request(&l->owner);
    struct request_input *input = r ? arena_zalloc(&r->arena, sizeof(*input)) : NULL;
    if (!input) {
        if (r)
            flow_give_request(&l->owner, r);
        return err_set(e, SHOAL_ENOMEM, "out of memory");
    }
    *input = (struct request_input){.values = values, .n_values = n_values};
    r->kind = REQUEST_INFER;
    r->model = opts_text(o, "model");
    r->received_ns = clock_ns();
    r->infer = (struct request_infer){.kind = SHOAL_KIND_SCORE,
                                      .inputs = input,
                                      .n_inputs = 1,
                                      .n_columns = n_columns,
                                      .raw = opts_flag(o, "raw")};
    return local_pipe_put(pipe, r, NULL, e);
}

static int run(const struct opts *o, struct shoal_engine *engine, const double *values,
               size_t n_rows, uint32_t n_columns)
{
    struct work w = {.o = o, .engine = engine, .exit_code = CMD_OK};
    struct local l = {.opened = false};
    struct local_pipe pipe;
    struct err e = {0};
    if (n_rows > UINT32_MAX / n_columns)
        return cmd_fail(o->page, "%zu rows are too many", n_rows);
    local_pipe_init(&pipe, &l, -1, take, &w);
    int rc = local_open(&l, &e);
    if (rc == 0)
        rc = local_lend(&l, opts_text(o, "model"), NULL, engine, &e);
    if (rc == 0)
        rc = submit(o, &l, &pipe, values, (uint32_t)(n_rows * n_columns), n_columns, &e);
    if (rc == 0)
        rc = local_pipe_drain(&pipe, &e);
    local_pipe_fini(&pipe);
    local_close(&l);
    return rc < 0 && w.exit_code == CMD_OK ? cmd_fail(o->page, "%s", e.msg) : w.exit_code;
}

static int score(const struct opts *o, struct shoal_engine *engine, const struct table *t)
{
    struct shoal_engine_info info = {.size = sizeof(info)};
    struct columns c;
    struct err e = {0};
    shoal_engine_info(engine, &info);
    if (!(info.kinds & SHOAL_KIND_SCORE))
        return cmd_fail(o->page, "this model does not score numbers");
    int rc = columns_choose(&c, t, engine, opts_text(o, "columns"), NULL, &e);
    if (rc < 0)
        return rc == SHOAL_EINVAL ? opts_usage(o->page, "%s", e.msg)
                                  : cmd_fail(o->page, "%s", e.msg);
    if (*c.left_out)
        fprintf(stderr, "shoal score: ignored columns: %s; choose columns with --columns A,B,...\n",
                c.left_out);
    double *values = columns_gather(&c, t);
    rc = values ? run(o, engine, values, t->n_rows, c.n) : cmd_fail(o->page, "out of memory");
    mem_free(values);
    columns_fini(&c);
    return rc;
}

static int read_rows(const struct opts *o, struct table *t)
{
    struct buf text;
    struct err e = {0};
    const char *file = opts_text(o, "file");
    int rc = CMD_OK;
    buf_init(&text, (size_t)2 << 30);
    if (o->n_args > 0 && file)
        return opts_usage(o->page, "give either rows or a file, not both");
    if (o->n_args == 0 && !file && isatty(STDIN_FILENO))
        return opts_usage(o->page, "no input: pass a row, use -f FILE, or pipe rows to stdin");
    for (size_t i = 0; i < o->n_args; i++) {
        buf_puts(&text, o->args[i]);
        buf_putc(&text, '\n');
    }
    if (o->n_args == 0 && file_read(file ? file : "-", &text, &e) < 0)
        rc = cmd_fail(o->page, "%s", e.msg);
    buf_putc(&text, '\n');
    if (rc == CMD_OK && (text.rc < 0 || table_parse(t, text.data, &e) < 0))
        rc = cmd_fail(o->page, "%s%s%s", file ? file : "", file ? ": " : "",
                      text.rc < 0 ? "too large" : e.msg);
    buf_fini(&text);
    return rc;
}

int cmd_score(int argc, const char *const *argv)
{
    struct opts_page p = page;
    struct opts o;
    struct table t = {0};
    struct shoal_engine *engine = NULL;
    struct model_name name = {0};
    int rc;
    p.groups[1] = specialist_opts_group;
    if (!cmd_begin(&o, &p, argc, argv, &rc))
        return rc;
    rc =
        opts_text(&o, "model") ? read_rows(&o, &t) : opts_usage(&p, "no model given: use -m MODEL");
    if (rc == CMD_OK)
        rc = specialist_opts_open(&o, -1, &engine, &name);
    if (rc == CMD_OK)
        rc = score(&o, engine, &t);
    table_fini(&t);
    shoal_engine_close(engine);
    model_name_fini(&name);
    opts_fini(&o);
    return rc;
}
