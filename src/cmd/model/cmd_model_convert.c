/* cmd_model_convert.c - shoal model convert: folders and other checkpoints to GGUF. */
#include <sys/stat.h>

#include "cmd/model/quantize_report.h"
#include "format/convert/convert_llama2c.h"
#include "format/model_open.h"

cmd_fn cmd_model_convert;

static const struct opts_def defs[] = {
    {"type", 0, OPTS_TEXT, "TYPE", NULL, 0, 0,
     "encoding of the matrices: f32, f16, q8_0, ... (see 'shoal model quantize --help'); "
     "default: unchanged"},
    {"tokenizer", 0, OPTS_TEXT, "FILE", NULL, 0, 0,
     "tokenizer.bin; required for a llama2.c checkpoint"},
    {"name", 0, OPTS_TEXT, "NAME", NULL, 0, 0,
     "model name to store in the file; default: the source's"},
    {"threads", 't', OPTS_UINT, "N", "0", 0, 256, "number of threads; 0: one per CPU"},
    {"tensors", 0, OPTS_FLAG, NULL, NULL, 0, 0, "list every tensor"},
    {"json", 0, OPTS_FLAG, NULL, NULL, 0, 0, "print one JSON object"},
};

static const struct opts_page page = {
    .command = "model convert",
    .arguments = "IN OUT",
    .min_args = 2,
    .max_args = 2,
    .summary =
        "Converts a Hugging Face folder, a file of whisper.cpp or a llama2.c checkpoint to one "
        "GGUF file.",
    .details =
        "A folder contains config.json, safetensors (one file or shards) and the tokenizer's "
        "files.\nLabels, pooling and tokenizer are stored in the GGUF file.  llama2.c "
        "checkpoints are .bin\nfiles of version 0, 1 or 2.",
    .groups = {OPTS_GROUP("Options", defs)},
    .examples = "  shoal model convert ./all-MiniLM-L6-v2 minilm.gguf --type q8_0\n"
                "  shoal model convert stories15M.bin stories15M.gguf --tokenizer tokenizer.bin\n",
};

static int print_result(const struct opts *o, const struct quantize_result *r)
{
    struct buf b;
    buf_init(&b, (size_t)64 << 20);
    if (opts_flag(o, "json")) {
        struct json_out j = json_out_make(&b);
        json_out_object(&j);
        json_out_member_str(&j, "file", o->args[1]);
        quantize_report_json(&j, r);
        json_out_object_end(&j);
        buf_putc(&b, '\n');
    } else {
        quantize_report_text(&b, r, opts_flag(o, "tensors"));
    }
    return cmd_print_end(o->page, &b);
}

/* The encoding of the embedding: nothing is lost and nothing grows. */
static enum quantize_kind own_kind(const struct model_file *file)
{
    const struct model_file_tensor *t = model_file_find_tensor(file, "token_embd.weight");
    return t && t->type == QUANT_F16    ? QUANTIZE_F16
           : t && t->type == QUANT_BF16 ? QUANTIZE_BF16
                                        : QUANTIZE_F32;
}

static int convert_folder(const struct opts *o, struct quantize_opts *qo, struct quantize_result *r,
                          struct err *e)
{
    struct model_file *file = NULL;
    int rc = model_open(&file, o->args[0], e);
    if (rc == 0) {
        if (!opts_text(o, "type"))
            qo->kind = own_kind(file);
        rc = quantize_run(file, o->args[1], qo, r, e);
    }
    model_file_close(file);
    return rc;
}

static int convert(const struct opts *o, bool folder, struct quantize_result *r)
{
    struct err e = {0};
    struct quantize_report_watch w = {.interrupt_fd = -1};
    struct quantize_opts qo = {.kind = QUANTIZE_F32,
                               .name = opts_text(o, "name"),
                               .n_threads = opts_u32(o, "threads"),
                               .progress = quantize_report_progress,
                               .progress_ctx = &w};
    int rc = opts_text(o, "type") ? quantize_report_kind(o, &qo.kind) : CMD_OK;
    if (rc != CMD_OK)
        return rc;
    w.interrupt_fd = term_catch_interrupt();
    term_progress_init(&w.bar, "converting");
    int failed = folder ? convert_folder(o, &qo, r, &e)
                        : convert_llama2c(o->args[0], opts_text(o, "tokenizer"), o->args[1],
                                          qo.name, &qo, r, &e);
    term_progress_end(&w.bar);
    term_release_interrupt(w.interrupt_fd);
    return failed == SHOAL_ECANCELLED ? CMD_INTERRUPTED
           : failed < 0               ? cmd_fail(&page, "%s", e.msg)
                                      : print_result(o, r);
}

int cmd_model_convert(int argc, const char *const *argv)
{
    struct opts o;
    struct stat st;
    struct quantize_result r = {0};
    int rc;
    if (!cmd_begin(&o, &page, argc, argv, &rc))
        return rc;
    const bool folder =
        (stat(o.args[0], &st) == 0 && S_ISDIR(st.st_mode)) || model_open_is_whisper(o.args[0]);
    if (folder && opts_text(&o, "tokenizer"))
        rc = opts_usage(&page, "%s contains its tokenizer: omit --tokenizer", o.args[0]);
    else if (!folder && !opts_text(&o, "tokenizer"))
        rc = opts_usage(&page,
                        "%s is not a folder, and a llama2.c checkpoint needs --tokenizer FILE",
                        o.args[0]);
    else
        rc = convert(&o, folder, &r);
    quantize_result_fini(&r);
    opts_fini(&o);
    return rc;
}
