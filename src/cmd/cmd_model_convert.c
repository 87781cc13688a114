/* cmd_model_convert.c - shoal model convert: other checkpoints to GGUF. */
#include <string.h>

#include "cmd/quantize_report.h"
#include "model/convert_llama2c.h"

static const struct opts_def defs[] = {
    {"tokenizer", 0, OPTS_TEXT, "FILE", NULL, 0, 0, "tokenizer.bin of the model (required)"},
    {"type", 0, OPTS_TEXT, "TYPE", "f32", 0, 0,
     "encoding of the matrices: f32, f16, q8_0, ... (see 'shoal model quantize --help')"},
    {"name", 0, OPTS_TEXT, "NAME", NULL, 0, 0, "name inside the file; default: the file's own"},
    {"threads", 't', OPTS_UINT, "N", "0", 0, 256, "0: one per CPU"},
    {"tensors", 0, OPTS_FLAG, NULL, NULL, 0, 0, "list every tensor"},
    {"json", 0, OPTS_FLAG, NULL, NULL, 0, 0, "one JSON object"},
};

static const struct opts_page page = {
    .command = "model convert",
    .arguments = "IN OUT",
    .min_args = 2,
    .max_args = 2,
    .summary = "Makes a GGUF file of a llama2.c checkpoint (.bin, all three versions).",
    .groups = {OPTS_GROUP("Options", defs)},
    .examples = "  shoal model convert stories15M.bin stories15M.gguf --tokenizer tokenizer.bin\n"
                "  shoal model convert stories260K.bin s.gguf --tokenizer tok512.bin --type q8_0\n",
};

static int print_result(const struct opts *o, const struct quantize_result *r)
{
    struct buf b;
    buf_init(&b, (size_t)64 << 20);
    if (opts_flag(o, "json")) {
        struct json_out j = json_out_make(&b);
        json_out_object(&j);
        json_out_key(&j, "file");
        json_out_str(&j, o->args[1]);
        quantize_report_json(&j, r);
        json_out_object_end(&j);
        buf_putc(&b, '\n');
    } else {
        quantize_report_text(&b, r, opts_flag(o, "tensors"));
    }
    int rc = cmd_print(o->page, &b);
    buf_fini(&b);
    return rc;
}

int cmd_model_convert(int argc, const char *const *argv)
{
    struct opts o;
    struct err e = {0};
    struct quantize_result r = {0};
    struct quantize_opts qo = {0};
    int rc;
    if (!cmd_begin(&o, &page, argc, argv, &rc))
        return rc;
    rc = quantize_report_kind(&o, &qo.kind);
    if (rc == CMD_OK && !opts_text(&o, "tokenizer"))
        rc = opts_usage(&page, "no tokenizer: give --tokenizer FILE");
    if (rc == CMD_OK) {
        struct quantize_report_watch w = {.interrupt_fd = term_catch_interrupt()};
        term_progress_init(&w.bar, "converting");
        qo.n_threads = opts_u32(&o, "threads");
        qo.progress = quantize_report_progress;
        qo.progress_ctx = &w;
        int failed = convert_llama2c(o.args[0], opts_text(&o, "tokenizer"), o.args[1],
                                     opts_text(&o, "name"), &qo, &r, &e);
        term_progress_end(&w.bar);
        term_release_interrupt(w.interrupt_fd);
        rc = failed == SHOAL_ECANCELLED ? CMD_INTERRUPTED
             : failed < 0               ? cmd_fail(&page, "%s", e.msg)
                                        : print_result(&o, &r);
    }
    quantize_result_fini(&r);
    opts_fini(&o);
    return rc;
}
