/* cmd_eval.c - shoal eval: quality and speed of a model on a data set. */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/nearest.h"
#include "base/plural.h"
#include "cmd/cli/term.h"
#include "cmd/cmd.h"
#include "cmd/local/eval_watch.h"
#include "cmd/local/model_opts.h"
#include "eval/eval.h"
#include "eval/quality.h"

static const struct opts_def defs[] = {
    {"labels", 'l', OPTS_TEXT, "SET", NULL, 0, 0, "label set; default: the model's default"},
    {"docs", 0, OPTS_TEXT, "FILE", NULL, 0, 0,
     "documents for retrieval: rows {\"id\",\"text\"}; DATASET has {\"query\",\"relevant\"}"},
    {"dimensions", 'd', OPTS_UINT, "N", "0", 0, 65536, "embed: use the first N dimensions; 0: all"},
    {"sentences", 'n', OPTS_UINT, "N", "0", 0, 1000,
     "summarize: at most N sentences; 0: the default"},
    {"beams", 0, OPTS_UINT, "N", "0", 0, 64, "summarize with a generative model: number of beams"},
    {"columns", 'c', OPTS_TEXT, "A,B,...", NULL, 0, 0,
     "score: columns for the model's inputs, as in 'shoal score'"},
    {"label", 0, OPTS_TEXT, "NAME", NULL, 0, 0,
     "score: column of labels; default: label or anomaly"},
    {"windows", 0, OPTS_TEXT, "FILE", NULL, 0, 0,
     "score: labels as {\"file.csv\": [[\"from\", \"to\"], ...]} instead of a column"},
    {"tune", 0, OPTS_LIST, "FILE", NULL, 0, 0,
     "score: choose the alarm levels on this series; may be repeated"},
    {"limit", 0, OPTS_UINT, "N", "0", 0, 1000000000, "use only the first N rows; 0: all"},
    {"beside", 0, OPTS_TEXT, "MODEL", NULL, 0, 0, "another model to measure in the same run"},
    {"jobs", 'j', OPTS_UINT, "N", "1", 1, 256,
     "rows in flight at once; with more than 1, latency includes waiting"},
    {"json", 0, OPTS_FLAG, NULL, NULL, 0, 0, "print one JSON object per model"},
};

static const struct {
    const char *name;
    int (*run)(struct eval *ev, struct json_out *j, struct buf *text, struct err *e);
    bool tables; /* reads its files itself: they are not JSON rows */
} tasks[] = {
    {"classify", eval_classify, false},   {"tag", eval_tag, false},
    {"embed", eval_embed, false},         {"rerank", eval_rerank, false},
    {"summarize", eval_summarize, false}, {"score", eval_score, true},
};
#define N_TASKS (sizeof(tasks) / sizeof(tasks[0]))

static const struct opts_page page = {
    .command = "eval",
    .arguments = "TASK DATASET...",
    .min_args = 2,
    .max_args = UINT32_MAX,
    .summary = "Measures quality and speed of a model on a data set.",
    .details =
        "TASK and the rows of DATASET (one JSON object per line; - means stdin):\n"
        "  classify    {\"text\",\"label\"}: accuracy, macro F1, calibration error; if some labels "
        "are\n"
        "              \"oos\", also in-scope accuracy and out-of-scope recall\n"
        "  tag         {\"text\",\"tokens\",\"tags\"} in BIO or BIOES: F1 of whole spans, counted "
        "like\n"
        "              seqeval\n"
        "  embed       {\"text\",\"label\"}: whether a row with the same label is among the k "
        "nearest;\n"
        "              with --docs: recall@k, hit@k and MRR of queries\n"
        "  rerank      like embed with --docs, but every pair is scored\n"
        "  summarize   {\"text\",\"summary\"}: ROUGE-1, -2 and -L\n"
        "  score       tables as for 'shoal score', with a column of labels.  Anomaly model: F1 "
        "of\n"
        "              events and points, false alarms and delay, compared with a plain threshold\n"
        "              and a moving z-score; other models: accuracy, F1 and AUC, or RMSE\n"
        "  perplexity  a text file; see 'shoal perplexity'\n"
        "  cascade     two classifiers, the larger one for what the other is not sure of; see\n"
        "              'shoal eval cascade --help'\n"
        "  ask         texts with the actions they must cause; see 'shoal eval ask --help'\n"
        "  pii         texts with personal data; see 'shoal eval pii --help'\n"
        "Latency is measured from submitting a row to its result; for score, per row of a stream.",
    .groups = {OPTS_GROUP("Options", defs)},
    .examples =
        "  shoal eval classify -m intent --labels snips snips-test.jsonl\n"
        "  shoal eval tag -m entities --labels atis --json atis-test.jsonl\n"
        "  shoal eval embed -m embed --docs docs.jsonl queries.jsonl\n"
        "  shoal eval classify -m intent --labels clinc150 in.jsonl oos.jsonl\n"
        "  shoal eval score -m anomaly --label anomaly --tune pump1.csv pump2.csv pump3.csv\n",
};

static void put_latency(struct eval *ev, struct json_out *j, struct buf *text)
{
    size_t n = ev->n_latencies;
    double p50 = quality_quantile(ev->latency_ms, n, 0.5);
    double p95 = quality_quantile(ev->latency_ms, n, 0.95);
    double p99 = quality_quantile(ev->latency_ms, n, 0.99);
    if (n == 0)
        return;
    json_out_key(j, "latency_ms");
    json_out_object(j);
    json_out_key(j, "p50");
    json_out_num(j, p50);
    json_out_key(j, "p95");
    json_out_num(j, p95);
    json_out_key(j, "p99");
    json_out_num(j, p99);
    json_out_object_end(j);
    int digits = p50 < 0.1 ? 4 : 2;
    buf_printf(text, "  %-20s p50 %.*f  p95 %.*f  p99 %.*f\n", "latency_ms", digits, p50, digits,
               p95, digits, p99);
}

static void put_head(const struct opts *o, const struct eval *ev, struct json_out *j,
                     struct buf *text)
{
    struct shoal_engine_info info = {.size = sizeof(info)};
    shoal_engine_info(ev->engine, &info);
    json_out_key(j, "task");
    json_out_str(j, o->args[0]);
    json_out_key(j, "model");
    json_out_str(j, ev->model);
    if (ev->labels) {
        json_out_key(j, "labels");
        json_out_str(j, ev->labels);
    }
    json_out_key(j, "engine");
    json_out_str(j, info.engine);
    json_out_key(j, "kernels");
    json_out_str(j, info.kernels);
    json_out_key(j, "threads");
    json_out_uint(j, info.n_threads);
    json_out_key(j, "int8");
    json_out_bool(j, ev->int8);
    buf_printf(text, "%s with %s%s%s", o->args[0], ev->model, ev->labels ? " " : "",
               ev->labels ? ev->labels : "");
    if (ev->rows->n > 0) {
        json_out_key(j, "rows");
        json_out_uint(j, ev->rows->n);
        buf_printf(text, ": %zu row%s", ev->rows->n, plural(ev->rows->n));
    }
    buf_putc(text, '\n');
}

static int measure(const struct opts *o, size_t task, struct eval *ev, struct eval_watch *w)
{
    struct buf json, text;
    struct err e = {0};
    uint64_t t0 = clock_ns();
    buf_init(&json, (size_t)1 << 24);
    buf_init(&text, (size_t)1 << 20);
    struct json_out j = json_out_make(&json);
    json_out_object(&j);
    put_head(o, ev, &j, &text);
    int rc = tasks[task].run(ev, &j, &text, &e);
    term_progress_end(&w->bar);
    double seconds = (double)(clock_ns() - t0) / 1e9;
    put_latency(ev, &j, &text);
    eval_figure(&j, &text, "peak_rss_mib", cmd_peak_mib(), "%.1f");
    eval_figure(&j, &text, "seconds", seconds, "%.2f");
    json_out_object_end(&j);
    buf_putc(&json, '\n');
    rc = rc == SHOAL_ECANCELLED ? CMD_INTERRUPTED
         : rc < 0               ? cmd_fail(o->page, "%s", e.msg)
                                : cmd_print(o->page, opts_flag(o, "json") ? &json : &text);
    buf_fini(&json);
    buf_fini(&text);
    return rc;
}

static int read_rows(const struct opts *o, size_t task, struct eval_rows *rows,
                     struct eval_rows *docs)
{
    struct err e = {0};
    if (opts_text(o, "docs") && eval_rows_read(docs, opts_text(o, "docs"), &e) < 0)
        return cmd_fail(o->page, "%s", e.msg);
    return tasks[task].tables ? CMD_OK : eval_watch_read(o, 1, rows);
}

/* Opens, measures and closes one model. */
static int run_model(const struct opts *o, size_t task, struct eval *ev, struct eval_watch *w,
                     const char *model)
{
    struct model_name name = {0};
    int rc = specialist_opts_open_as(o, model, w->interrupt_fd, &ev->engine, &name);
    ev->model = model;
    ev->path = name.path;
    ev->int8 = opts_flag(o, "int8") || name.int8;
    ev->labels = opts_text(o, "labels") ? opts_text(o, "labels") : name.labels;
    ev->n_latencies = 0;
    if (rc == CMD_OK) {
        term_progress_init(&w->bar, "eval");
        rc = measure(o, task, ev, w);
    }
    shoal_engine_close(ev->engine);
    ev->engine = NULL;
    model_name_fini(&name);
    return rc;
}

static int run(const struct opts *o, size_t task)
{
    struct eval_rows rows = {0}, docs = {0};
    struct eval_watch watch = {.interrupt_fd = -1};
    struct eval ev = {.rows = &rows,
                      .docs = &docs,
                      .in_flight = opts_u32(o, "jobs"),
                      .dimensions = opts_u32(o, "dimensions"),
                      .sentences = opts_u32(o, "sentences"),
                      .beams = opts_u32(o, "beams"),
                      .files = o->args + 1,
                      .n_files = o->n_args - 1,
                      .columns = opts_text(o, "columns"),
                      .label_column = opts_text(o, "label"),
                      .windows_file = opts_text(o, "windows"),
                      .limit = opts_uint(o, "limit"),
                      .progress = eval_watch_show,
                      .progress_ctx = &watch};
    ev.n_tune_files = opts_list(o, "tune", &ev.tune_files);
    int rc = opts_text(o, "model") ? read_rows(o, task, &rows, &docs)
                                   : opts_usage(o->page, "no model given: use -m MODEL");
    watch.interrupt_fd = term_catch_interrupt();
    ev.latency_ms = mem_zalloc_n(rows.n + 1, sizeof(*ev.latency_ms));
    if (rc == CMD_OK && !ev.latency_ms)
        rc = cmd_fail(o->page, "out of memory");
    if (rc == CMD_OK)
        rc = run_model(o, task, &ev, &watch, opts_text(o, "model"));
    if (rc == CMD_OK && opts_text(o, "beside"))
        rc = run_model(o, task, &ev, &watch, opts_text(o, "beside"));
    mem_free(ev.latency_ms);
    eval_rows_fini(&rows);
    eval_rows_fini(&docs);
    term_release_interrupt(watch.interrupt_fd);
    return rc;
}

static int unknown_task(const char *name)
{
    const char *names[N_TASKS + 5] = {"perplexity", "ask", "cascade", "pii"};
    if (strcmp(name, "perplexity") == 0 || strcmp(name, "ask") == 0 ||
        strcmp(name, "cascade") == 0 || strcmp(name, "pii") == 0) /* their options are others */
        return opts_usage(&page, "write the task before its options: shoal eval %s ...", name);
    for (size_t i = 0; i < N_TASKS; i++)
        names[i + 4] = tasks[i].name;
    const char *near = nearest_word(name, names);
    return near ? opts_usage(&page, "unknown task %s (did you mean %s?)", name, near)
                : opts_usage(&page, "unknown task %s", name);
}

int cmd_eval(int argc, const char *const *argv)
{
    struct opts_page p = page;
    struct opts o;
    int rc;
    if (argc > 0 && strcmp(argv[0], "perplexity") == 0)
        return cmd_perplexity(argc - 1, argv + 1);
    if (argc > 0 && strcmp(argv[0], "ask") == 0)
        return cmd_eval_ask(argc - 1, argv + 1);
    if (argc > 0 && strcmp(argv[0], "pii") == 0)
        return cmd_eval_pii(argc - 1, argv + 1);
    if (argc > 0 && strcmp(argv[0], "cascade") == 0)
        return cmd_eval_cascade(argc - 1, argv + 1);
    p.groups[1] = specialist_opts_group;
    if (!cmd_begin(&o, &p, argc, argv, &rc))
        return rc;
    size_t task = 0;
    while (task < N_TASKS && strcmp(tasks[task].name, o.args[0]) != 0)
        task++;
    rc = task < N_TASKS ? run(&o, task) : unknown_task(o.args[0]);
    opts_fini(&o);
    return rc;
}
