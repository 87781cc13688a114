/* cmd_model_lora.c - shoal model lora merge: a base model and a LoRA adapter to one GGUF file. */
#include <string.h>

#include "cmd/model/quantize_report.h"
#include "format/convert/lora.h"
#include "format/model_open.h"

cmd_fn cmd_model_lora;

static const struct opts_def defs[] = {
    {"type", 0, OPTS_TEXT, "TYPE", "f16", 0, 0,
     "encoding of the matrices: f32, f16, q8_0, ... (see 'shoal model quantize --help')"},
    {"strength", 0, OPTS_REAL, "X", "1", -100, 100, "factor on what the adapter adds"},
    {"name", 0, OPTS_TEXT, "NAME", NULL, 0, 0,
     "model name to store in the file; default: the base's"},
    {"threads", 't', OPTS_UINT, "N", "0", 0, 256, "number of threads; 0: one per CPU"},
    {"tensors", 0, OPTS_FLAG, NULL, NULL, 0, 0, "list every tensor"},
};

static const struct opts_page page = {
    .command = "model lora",
    .arguments = "merge BASE ADAPTER OUT",
    .min_args = 4,
    .max_args = 4,
    .summary = "Merges a LoRA adapter into its base model and writes one GGUF file.",
    .details =
        "BASE is a GGUF file or a Hugging Face folder, ADAPTER a GGUF file as llama.cpp has it or "
        "a\nfolder as PEFT writes it.  An adapter that does more than add matrices of a low rank "
        "is refused.",
    .groups = {OPTS_GROUP("Options", defs)},
    .examples = "  shoal model lora merge ./Qwen3-0.6B ./my-adapter mine.gguf --type q8_0\n",
};

static int print_result(const struct opts *o, const struct quantize_result *r)
{
    struct buf b;
    buf_init(&b, (size_t)64 << 20);
    quantize_report_text(&b, r, opts_flag(o, "tensors"));
    return cmd_print_end(o->page, &b);
}

static int merge(const struct opts *o, const struct quantize_opts *qo, struct quantize_result *r,
                 struct err *e)
{
    struct model_file *base = NULL, *adapter = NULL, *merged = NULL;
    int rc = model_open(&base, o->args[1], e);
    if (rc == 0)
        rc = lora_open(&adapter, o->args[2], base, e);
    if (rc == 0)
        rc = lora_merge(&merged, base, adapter, (float)opts_real(o, "strength"), e);
    if (rc == 0)
        rc = quantize_run(merged, o->args[3], qo, r, e);
    model_file_close(merged);
    model_file_close(adapter);
    model_file_close(base);
    return rc;
}

static int run(const struct opts *o, enum quantize_kind kind, struct quantize_result *r)
{
    struct err e = {0};
    struct quantize_report_watch w = {.interrupt_fd = term_catch_interrupt()};
    const struct quantize_opts qo = {.kind = kind,
                                     .name = opts_text(o, "name"),
                                     .n_threads = opts_u32(o, "threads"),
                                     .allow_requantize = true,
                                     .progress = quantize_report_progress,
                                     .progress_ctx = &w};
    term_progress_init(&w.bar, "merging");
    int failed = merge(o, &qo, r, &e);
    term_progress_end(&w.bar);
    term_release_interrupt(w.interrupt_fd);
    return failed == SHOAL_ECANCELLED ? CMD_INTERRUPTED
           : failed < 0               ? cmd_fail(&page, "%s", e.msg)
                                      : print_result(o, r);
}

int cmd_model_lora(int argc, const char *const *argv)
{
    struct opts o;
    struct quantize_result r = {0};
    enum quantize_kind kind = QUANTIZE_F16;
    int rc;
    if (!cmd_begin(&o, &page, argc, argv, &rc))
        return rc;
    if (strcmp(o.args[0], "merge") != 0)
        rc = opts_usage(&page, "unknown verb '%s': only merge", o.args[0]);
    else if ((rc = quantize_report_kind(&o, &kind)) == CMD_OK)
        rc = run(&o, kind, &r);
    quantize_result_fini(&r);
    opts_fini(&o);
    return rc;
}
