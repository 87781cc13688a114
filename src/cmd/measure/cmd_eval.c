/* cmd_eval.c - shoal eval with its tasks: quality and speed of a model on a data set. */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/plural.h"
#include "cmd/cli/term.h"
#include "cmd/cmd.h"
#include "cmd/local/eval_watch.h"
#include "cmd/local/model_opts.h"
#include "eval/eval.h"
#include "eval/quality.h"

cmd_fn cmd_eval_classify, cmd_eval_tag, cmd_eval_embed, cmd_eval_rerank, cmd_eval_summarize,
    cmd_eval_score;

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

static const struct task {
    const char *name;
    int (*run)(struct eval *ev, struct json_out *j, struct buf *text, struct err *e);
    bool tables; /* reads its files itself: they are not JSON rows */
    const char *command, *summary, *details, *examples;
} tasks[] = {
    {"classify", eval_classify, false, "eval classify", "Measures a classifier on labelled texts.",
     "Rows {\"text\",\"label\"}: accuracy, macro F1, calibration error; if some labels are "
     "\"oos\",\nalso in-scope accuracy and out-of-scope recall.",
     "  shoal eval classify -m intent --labels snips snips-test.jsonl\n"
     "  shoal eval classify -m intent --labels clinc150 in.jsonl oos.jsonl\n"},
    {"tag", eval_tag, false, "eval tag", "Measures a tagger on texts with tagged words.",
     "Rows {\"text\",\"tokens\",\"tags\"} in BIO or BIOES: F1 of whole spans, counted like "
     "seqeval.",
     "  shoal eval tag -m entities --labels atis --json atis-test.jsonl\n"},
    {"embed", eval_embed, false, "eval embed", "Measures embeddings: neighbours or retrieval.",
     "Rows {\"text\",\"label\"}: whether a row with the same label is among the k nearest;\n"
     "with --docs: recall@k, hit@k and MRR of queries.",
     "  shoal eval embed -m embed --docs docs.jsonl queries.jsonl\n"},
    {"rerank", eval_rerank, false, "eval rerank", "Measures retrieval with every pair scored.",
     "As 'shoal eval embed' with --docs, but a reranker scores every pair.",
     "  shoal eval rerank -m embed --docs docs.jsonl queries.jsonl\n"},
    {"summarize", eval_summarize, false, "eval summarize", "Measures summaries of texts.",
     "Rows {\"text\",\"summary\"}: ROUGE-1, -2 and -L.",
     "  shoal eval summarize -m summary --json news.jsonl\n"},
    {"score", eval_score, true, "eval score", "Measures a scorer on tables of numbers.",
     "Tables as for 'shoal score', with a column of labels.  Anomaly model: F1 of events and\n"
     "points, false alarms and delay, compared with a plain threshold and a moving z-score;\n"
     "other models: accuracy, F1 and AUC, or RMSE.",
     "  shoal eval score -m anomaly --label anomaly --tune pump1.csv pump2.csv pump3.csv\n"},
};

static void put_latency(struct eval *ev, struct json_out *j, struct buf *text)
{
    size_t n = ev->n_latencies;
    double p50 = quality_quantile(ev->latency_ms, n, 0.5);
    double p95 = quality_quantile(ev->latency_ms, n, 0.95);
    double p99 = quality_quantile(ev->latency_ms, n, 0.99);
    if (n == 0)
        return;
    json_out_member_object(j, "latency_ms");
    json_out_member_num(j, "p50", p50);
    json_out_member_num(j, "p95", p95);
    json_out_member_num(j, "p99", p99);
    json_out_object_end(j);
    int digits = p50 < 0.1 ? 4 : 2;
    buf_printf(text, "  %-20s p50 %.*f  p95 %.*f  p99 %.*f\n", "latency_ms", digits, p50, digits,
               p95, digits, p99);
}

static void put_head(const char *task, const struct eval *ev, struct json_out *j, struct buf *text)
{
    struct shoal_engine_info info = {.size = sizeof(info)};
    shoal_engine_info(ev->engine, &info);
    json_out_member_str(j, "task", task);
    json_out_member_str(j, "model", ev->model);
    if (ev->labels)
        json_out_member_str(j, "labels", ev->labels);
    json_out_member_str(j, "engine", info.engine);
    json_out_member_str(j, "kernels", info.kernels);
    json_out_member_uint(j, "threads", info.n_threads);
    json_out_member_bool(j, "int8", ev->int8);
    buf_printf(text, "%s with %s%s%s", task, ev->model, ev->labels ? " " : "",
               ev->labels ? ev->labels : "");
    if (ev->rows->n > 0) {
        json_out_member_uint(j, "rows", ev->rows->n);
        buf_printf(text, ": %zu row%s", ev->rows->n, plural(ev->rows->n));
    }
    buf_putc(text, '\n');
}

static int measure(const struct opts *o, const struct task *task, struct eval *ev,
                   struct eval_watch *w)
{
    struct buf json, text;
    struct err e = {0};
    uint64_t t0 = clock_ns();
    buf_init(&json, (size_t)1 << 24);
    buf_init(&text, (size_t)1 << 20);
    struct json_out j = json_out_make(&json);
    json_out_object(&j);
    put_head(task->name, ev, &j, &text);
    int rc = task->run(ev, &j, &text, &e);
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

static int read_rows(const struct opts *o, const struct task *task, struct eval_rows *rows,
                     struct eval_rows *docs)
{
    struct err e = {0};
    if (opts_text(o, "docs") && eval_rows_read(docs, opts_text(o, "docs"), &e) < 0)
        return cmd_fail(o->page, "%s", e.msg);
    return task->tables ? CMD_OK : eval_watch_read(o, 0, rows);
}

/* Opens, measures and closes one model. */
static int run_model(const struct opts *o, const struct task *task, struct eval *ev,
                     struct eval_watch *w, const char *model)
{
    struct model_name name = {0};
    int rc = model_opts_specialist_open_as(o, model, w->interrupt_fd, &ev->engine, &name);
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

static int run(const struct opts *o, const struct task *task)
{
    struct eval_rows rows = {0}, docs = {0};
    struct eval_watch watch = {.interrupt_fd = -1};
    struct eval ev = {.rows = &rows,
                      .docs = &docs,
                      .in_flight = opts_u32(o, "jobs"),
                      .dimensions = opts_u32(o, "dimensions"),
                      .sentences = opts_u32(o, "sentences"),
                      .beams = opts_u32(o, "beams"),
                      .files = o->args,
                      .n_files = o->n_args,
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

static int run_task(const char *name, int argc, const char *const *argv)
{
    struct opts o;
    const struct task *task = tasks;
    int rc;
    while (strcmp(task->name, name) != 0)
        task++;
    const struct opts_page page = {
        .command = task->command,
        .arguments = "DATASET...",
        .min_args = 1,
        .max_args = UINT32_MAX,
        .summary = task->summary,
        .details = task->details,
        .groups = {OPTS_GROUP("Options", defs), &model_opts_specialist_group},
        .examples = task->examples,
    };
    if (!cmd_begin(&o, &page, argc, argv, &rc))
        return rc;
    rc = run(&o, task);
    opts_fini(&o);
    return rc;
}

int cmd_eval_classify(int argc, const char *const *argv)
{
    return run_task("classify", argc, argv);
}

int cmd_eval_tag(int argc, const char *const *argv)
{
    return run_task("tag", argc, argv);
}

int cmd_eval_embed(int argc, const char *const *argv)
{
    return run_task("embed", argc, argv);
}

int cmd_eval_rerank(int argc, const char *const *argv)
{
    return run_task("rerank", argc, argv);
}

int cmd_eval_summarize(int argc, const char *const *argv)
{
    return run_task("summarize", argc, argv);
}

int cmd_eval_score(int argc, const char *const *argv)
{
    return run_task("score", argc, argv);
}
