/* cmd_calibrate.c - shoal calibrate: calibrates the confidences of a classifier. */
#include <stdio.h>

#include "base/file/file_replace.h"
#include "base/plural.h"
#include "cmd/cli/term.h"
#include "cmd/cmd.h"
#include "cmd/local/eval_watch.h"
#include "cmd/local/model_opts.h"
#include "ensemble/confidence_file.h"
#include "eval/eval.h"
#include "wire/json_out.h"

cmd_fn cmd_calibrate;

static const struct opts_def defs[] = {
    {"labels", 'l', OPTS_TEXT, "SET", NULL, 0, 0, "label set; default: the model's default"},
    {"out", 'o', OPTS_TEXT, "FILE", NULL, 0, 0,
     "write the calibration here, for models[].calibration of shoal.yaml"},
    {"limit", 0, OPTS_UINT, "N", "0", 0, 1000000000, "use only the first N rows; 0: all"},
    {"jobs", 'j', OPTS_UINT, "N", "16", 1, 256, "rows in flight at once"},
    {"json", 0, OPTS_FLAG, NULL, NULL, 0, 0, "print one JSON object"},
};

static const struct opts_page page = {
    .command = "calibrate",
    .arguments = "DATASET...",
    .min_args = 1,
    .max_args = UINT32_MAX,
    .summary = "Fits the temperature of a classifier on labelled texts.",
    .details =
        "A calibrated confidence of 0.9 is right in 90 of 100 cases.  The temperature divides "
        "the\nlogits: it changes confidences, never answers.  Rows of DATASET are JSON objects "
        "{\"text\",\n\"label\"}, one per line (- means stdin).  Every other row is used to fit; "
        "accuracy and\ncalibration error (15 bins) are those of the rest, and a temperature that "
        "increases that error\nis rejected.  Routes that cascade by confidence need calibrated "
        "models.  The file also has the\ndistribution of confidences: the server reports when it "
        "changes (metric\nshoal_confidence_drift).",
    .groups = {OPTS_GROUP("Options", defs), &model_opts_specialist_group},
    .examples = "  shoal calibrate -m intent --labels clinc150 val.jsonl\n"
                "  shoal calibrate -m ./my-bert -o my-bert.calibration.json labelled.jsonl\n",
};

static int write_file(const struct opts *o, const struct buf *json)
{
    const char *path = opts_text(o, "out");
    struct err e = {0};
    if (path && file_replace(path, buf_str(json), json->len, &e) < 0)
        return cmd_fail(o->page, "%s", e.msg);
    return CMD_OK;
}

static int fit(const struct opts *o, struct eval *ev, struct eval_watch *w)
{
    struct confidence_calibration c;
    struct buf json, text;
    struct err e = {0};
    buf_init(&json, (size_t)1 << 16);
    buf_init(&text, (size_t)1 << 16);
    buf_printf(&text, "%s%s%s: %zu row%s\n", ev->model, ev->labels ? " " : "",
               ev->labels ? ev->labels : "", ev->rows->n, plural(ev->rows->n));
    struct json_out j = json_out_make(&json);
    json_out_object(&j);
    json_out_member_str(&j, "model", ev->model);
    if (ev->labels)
        json_out_member_str(&j, "labels", ev->labels);
    json_out_member_object(&j, "figures");
    int rc = eval_calibrate(ev, &c, &j, &text, &e);
    json_out_object_end(&j);
    term_progress_end(&w->bar);
    confidence_file_put(&j, &c);
    json_out_object_end(&j);
    buf_putc(&json, '\n');
    buf_printf(&text, "  %-20s %.4f\n", "temperature", c.temperature);
    if (opts_text(o, "out"))
        buf_printf(&text, "written; add to the model's entry in shoal.yaml:\n  calibration: %s\n",
                   opts_text(o, "out"));
    int code = rc == SHOAL_ECANCELLED ? CMD_INTERRUPTED
               : rc < 0               ? cmd_fail(o->page, "%s", e.msg)
                                      : write_file(o, &json);
    if (code == CMD_OK)
        code = cmd_print(o->page, opts_flag(o, "json") ? &json : &text);
    buf_fini(&json);
    buf_fini(&text);
    return code;
}

static int run(const struct opts *o)
{
    struct eval_rows rows = {0};
    struct model_name name = {0};
    struct eval_watch watch = {.interrupt_fd = -1};
    struct eval ev = {.rows = &rows,
                      .model = opts_text(o, "model"),
                      .in_flight = opts_u32(o, "jobs"),
                      .progress = eval_watch_show,
                      .progress_ctx = &watch};
    int rc = ev.model ? eval_watch_read(o, 0, &rows)
                      : opts_usage(o->page, "no model given: use -m MODEL");
    watch.interrupt_fd = term_catch_interrupt();
    if (rc == CMD_OK)
        rc = model_opts_specialist_open(o, watch.interrupt_fd, &ev.engine, &name);
    if (rc == CMD_OK) {
        ev.labels = opts_text(o, "labels") ? opts_text(o, "labels") : name.labels;
        term_progress_init(&watch.bar, "calibrate");
        rc = fit(o, &ev, &watch);
    }
    shoal_engine_close(ev.engine);
    model_name_fini(&name);
    eval_rows_fini(&rows);
    term_release_interrupt(watch.interrupt_fd);
    return rc;
}

int cmd_calibrate(int argc, const char *const *argv)
{
    return cmd_page(&page, argc, argv, run);
}
