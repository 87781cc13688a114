/* cmd_eval_cascade.c - shoal eval cascade: measures a cascade of two classifiers. */
#include <stdio.h>

#include "base/plural.h"
#include "cmd/cli/term.h"
#include "cmd/cmd.h"
#include "cmd/local/eval_watch.h"
#include "cmd/local/model_opts.h"
#include "ensemble/confidence_file.h"
#include "eval/eval.h"

cmd_fn cmd_eval_cascade;

static const struct opts_def defs[] = {
    {"large", 0, OPTS_TEXT, "MODEL", NULL, 0, 0, "the model to use when -m is not confident"},
    {"labels", 'l', OPTS_TEXT, "SET", NULL, 0, 0,
     "label set of both models; default: each model's default"},
    {"large-labels", 0, OPTS_TEXT, "SET", NULL, 0, 0, "label set of the large model alone"},
    {"calibration", 0, OPTS_TEXT, "FILE", NULL, 0, 0, "of -m, as shoal calibrate wrote it"},
    {"large-calibration", 0, OPTS_TEXT, "FILE", NULL, 0, 0, "of the large model"},
    {"gain", 0, OPTS_UINT, "PERCENT", "95", 1, 100,
     "the share of the large model's gain to reach with the threshold"},
    {"limit", 0, OPTS_UINT, "N", "0", 0, 1000000000, "use only the first N rows; 0: all"},
    {"json", 0, OPTS_FLAG, NULL, NULL, 0, 0, "print one JSON object"},
};

static const struct opts_page page = {
    .command = "eval cascade",
    .arguments = "DATASET...",
    .min_args = 1,
    .max_args = UINT32_MAX,
    .summary = "Measures the accuracy and the cost of a cascade of two classifiers.",
    .details =
        "Both models classify the rows {\"text\",\"label\"} of DATASET, one at a time.  For each "
        "threshold:\nthe share of rows escalated to the large model, accuracy, computing time "
        "(median per row)\nrelative to the large model alone, and the share of its gain in "
        "accuracy.\nChoose the threshold of a route's cascade (docs/ENSEMBLES.md) on other rows "
        "than those that\nmeasure it: the last lines choose it on every other row and "
        "measure the rest, with the\ncalibration error (15 bins) of its answers.",
    .groups = {OPTS_GROUP("Options", defs), &model_opts_specialist_group},
    .examples = "  shoal eval cascade -m intent --large ./big-bert --labels clinc150 val.jsonl\n"
                "  shoal router fit --layers 0 -o quick train.jsonl\n"
                "  shoal eval cascade -m quick --large intent --large-labels clinc150 val.jsonl\n",
};

static int measure(const struct opts *o, struct eval *small, struct eval *large,
                   struct eval_watch *w)
{
    struct buf json, text;
    struct err e = {0};
    buf_init(&json, (size_t)1 << 16);
    buf_init(&text, (size_t)1 << 16);
    struct json_out j = json_out_make(&json);
    json_out_object(&j);
    json_out_member_str(&j, "small", small->model);
    json_out_member_str(&j, "large", large->model);
    json_out_member_uint(&j, "rows", small->rows->n);
    buf_printf(&text, "%s, then %s: %zu row%s\n", small->model, large->model, small->rows->n,
               plural(small->rows->n));
    term_progress_init(&w->bar, "eval");
    int rc = eval_cascade(small, large, (double)opts_uint(o, "gain") / 100, &j, &text, &e);
    term_progress_end(&w->bar);
    json_out_object_end(&j);
    buf_putc(&json, '\n');
    rc = rc == SHOAL_ECANCELLED ? CMD_INTERRUPTED
         : rc < 0               ? cmd_fail(o->page, "%s", e.msg)
                                : cmd_print(o->page, opts_flag(o, "json") ? &json : &text);
    buf_fini(&json);
    buf_fini(&text);
    return rc;
}

static int run(const struct opts *o)
{
    struct eval_rows rows = {0};
    struct eval_watch watch = {.interrupt_fd = -1};
    struct eval evals[2];
    struct model_name names[2] = {{0}, {0}};
    const char *const models[2] = {opts_text(o, "model"), opts_text(o, "large")};
    for (int i = 0; i < 2; i++)
        evals[i] = (struct eval){.rows = &rows,
                                 .model = models[i],
                                 .in_flight = 1,
                                 .progress = eval_watch_show,
                                 .progress_ctx = &watch};
    struct confidence_calibration calibration[2];
    int rc = !models[0]   ? opts_usage(o->page, "no model given: use -m MODEL")
             : !models[1] ? opts_usage(o->page, "no larger model given: use --large MODEL")
                          : eval_watch_read(o, 0, &rows);
    for (int i = 0; i < 2 && rc == CMD_OK; i++) {
        const char *file = opts_text(o, i == 0 ? "calibration" : "large-calibration");
        struct err e = {0};
        if (file && confidence_file_read(&calibration[i], file, &e) < 0)
            rc = cmd_fail(o->page, "%s", e.msg);
        else if (file)
            evals[i].temperature = calibration[i].temperature;
    }
    watch.interrupt_fd = term_catch_interrupt();
    for (int i = 0; i < 2 && rc == CMD_OK; i++) {
        rc = model_opts_specialist_open_as(o, models[i], watch.interrupt_fd, &evals[i].engine,
                                           &names[i]);
        const char *set = i == 1 ? opts_text(o, "large-labels") : NULL;
        set = set ? set : opts_text(o, "labels");
        evals[i].labels = set ? set : names[i].labels;
    }
    if (rc == CMD_OK)
        rc = measure(o, &evals[0], &evals[1], &watch);
    for (int i = 0; i < 2; i++) {
        shoal_engine_close(evals[i].engine);
        model_name_fini(&names[i]);
    }
    eval_rows_fini(&rows);
    term_release_interrupt(watch.interrupt_fd);
    return rc;
}

int cmd_eval_cascade(int argc, const char *const *argv)
{
    return cmd_page(&page, argc, argv, run);
}
