/* cmd_model_quantize.c - shoal model quantize: fewer bits per weight. */
#include <stdio.h>

#include "base/file/file_read.h"
#include "cmd/local/bare_model.h"
#include "cmd/model/quantize_report.h"
#include "eval/calibration.h"
#include "eval/perplexity.h"
#include "format/model_open.h"

cmd_fn cmd_model_quantize;

#define MAX_TEXT_BYTES ((size_t)1 << 30)

static const struct opts_def defs[] = {
    {"type", 0, OPTS_TEXT, "TYPE", NULL, 0, 0,
     "f32, f16, bf16, q8_0, q6_k, q5_k, q4_k, q4_0, iq4_nl or mixed (required)"},
    {"attention", 0, OPTS_CHOICE, "f16|q8_0", "q8_0", 0, 0, "mixed: encoding of the attention"},
    {"ffn", 0, OPTS_CHOICE, "q4_0|q4_k|iq4_nl", "q4_0", 0, 0,
     "mixed: encoding of the feed-forward"},
    {"pure", 0, OPTS_FLAG, NULL, NULL, 0, 0,
     "use one encoding for all matrices without exceptions"},
    {"requantize", 0, OPTS_FLAG, NULL, NULL, 0, 0,
     "accept a model that is already quantized; losses accumulate"},
    {"calibrate", 0, OPTS_TEXT, "TEXT", NULL, 0, 0,
     "text file for calibration: important columns get smaller errors"},
    {"perplexity", 0, OPTS_TEXT, "TEXT", NULL, 0, 0,
     "text file to measure the model on before and after"},
    {"chunks", 0, OPTS_UINT, "N", "0", 0, 1000000000,
     "use only the first N chunks of the texts; 0: all"},
    {"ctx", 'c', OPTS_UINT, "N", "512", 8, 1048576, "tokens per chunk of the texts"},
    {"threads", 't', OPTS_UINT, "N", "0", 0, 256, "number of threads; 0: one per CPU"},
    {"tensors", 0, OPTS_FLAG, NULL, NULL, 0, 0, "list every tensor with its error"},
    {"json", 0, OPTS_FLAG, NULL, NULL, 0, 0, "print one JSON object"},
};

static const struct opts_page page = {
    .command = "model quantize",
    .arguments = "IN OUT",
    .min_args = 2,
    .max_args = 2,
    .summary = "Quantizes a model to fewer bits per weight.",
    .details = "mixed stores the attention in F16 or Q8_0 and the feed-forward in 4 bits.\n"
               "Use different texts for calibration and for measuring.",
    .groups = {OPTS_GROUP("Options", defs)},
    .examples = "  shoal model quantize model.gguf model-q8.gguf --type q8_0\n"
                "  shoal model quantize model.gguf small.gguf --type mixed --attention f16 \\\n"
                "      --calibrate train.txt --perplexity test.txt\n",
};

struct quantize_job {
    const struct opts *o;
    int interrupt_fd;
    struct term_progress bar;
    struct buf calibrate, perplexity;
    struct calibration *calibration;
    struct quantize_result result;
    struct perplexity_result before, after;
};

static int read_texts(struct quantize_job *job)
{
    struct err e = {0};
    const struct {
        const char *path;
        struct buf *b;
    } texts[] = {{opts_text(job->o, "calibrate"), &job->calibrate},
                 {opts_text(job->o, "perplexity"), &job->perplexity}};
    for (size_t i = 0; i < 2; i++)
        if (texts[i].path && file_read(texts[i].path, texts[i].b, &e) < 0)
            return cmd_fail(job->o->page, "%s", e.msg);
    return CMD_OK;
}

static bool calibration_progress(void *ctx, double part)
{
    struct quantize_job *job = ctx;
    term_progress_show(&job->bar, part, NULL);
    return term_interrupted(job->interrupt_fd);
}

static bool perplexity_progress(void *ctx, const struct perplexity_result *so_far,
                                uint32_t n_chunks)
{
    struct quantize_job *job = ctx;
    char note[64];
    snprintf(note, sizeof(note), "perplexity %.4f", so_far->ppl);
    term_progress_show(&job->bar, (double)so_far->n_chunks / n_chunks, note);
    return term_interrupted(job->interrupt_fd);
}

static int calibrate(struct quantize_job *job, struct bare_model *m)
{
    struct err e = {0};
    struct calibration_opts co = {.ctx = opts_u32(job->o, "ctx"),
                                  .chunks = opts_u32(job->o, "chunks"),
                                  .progress = calibration_progress,
                                  .progress_ctx = job};
    term_progress_init(&job->bar, "calibrating");
    int rc = calibration_run(&job->calibration, m->d, m->file, m->t, buf_str(&job->calibrate),
                             job->calibrate.len, &co, &e);
    term_progress_end(&job->bar);
    return rc == SHOAL_ECANCELLED ? CMD_INTERRUPTED
           : rc < 0 ? cmd_fail(job->o->page, "%s: %s", opts_text(job->o, "calibrate"), e.msg)
                    : CMD_OK;
}

static int measure(struct quantize_job *job, struct bare_model *m, const char *what,
                   struct perplexity_result *r)
{
    struct err e = {0};
    struct perplexity_opts po = {.ctx = m->n_ctx,
                                 .chunks = opts_u32(job->o, "chunks"),
                                 .progress = perplexity_progress,
                                 .progress_ctx = job};
    term_progress_init(&job->bar, what);
    int rc =
        perplexity_text(r, m->d, m->t, buf_str(&job->perplexity), job->perplexity.len, &po, &e);
    term_progress_end(&job->bar);
    return rc == SHOAL_ECANCELLED ? CMD_INTERRUPTED
           : rc < 0 ? cmd_fail(job->o->page, "%s: %s", opts_text(job->o, "perplexity"), e.msg)
                    : CMD_OK;
}

/* The tiled weights of such a run are not worth caching. */
static int open_model(struct quantize_job *job, const char *path, struct bare_model *m)
{
    const struct bare_model_opts mo = {.path = path,
                                       .no_cache = true,
                                       .n_threads = opts_u32(job->o, "threads"),
                                       .n_ctx = opts_u32(job->o, "ctx"),
                                       .max_batch = 128,
                                       .max_logits = 64,
                                       .interrupt_fd = job->interrupt_fd};
    return bare_model_open(m, job->o->page, &mo);
}

static int look_before(struct quantize_job *job)
{
    struct bare_model m;
    if (!opts_text(job->o, "calibrate") && !opts_text(job->o, "perplexity"))
        return CMD_OK;
    int rc = open_model(job, job->o->args[0], &m);
    if (rc == CMD_OK && opts_text(job->o, "calibrate"))
        rc = calibrate(job, &m);
    if (rc == CMD_OK && opts_text(job->o, "perplexity"))
        rc = measure(job, &m, "before", &job->before);
    bare_model_close(&m);
    return rc;
}

static int look_after(struct quantize_job *job)
{
    struct bare_model m;
    if (!opts_text(job->o, "perplexity"))
        return CMD_OK;
    int rc = open_model(job, job->o->args[1], &m);
    if (rc == CMD_OK)
        rc = measure(job, &m, "after", &job->after);
    bare_model_close(&m);
    return rc;
}

static int quantize(struct quantize_job *job, enum quantize_kind kind)
{
    struct quantize_report_watch w = {.interrupt_fd = job->interrupt_fd};
    struct quantize_opts qo = {.kind = kind,
                               .pure = opts_flag(job->o, "pure"),
                               .allow_requantize = opts_flag(job->o, "requantize"),
                               .n_threads = opts_u32(job->o, "threads"),
                               .progress = quantize_report_progress,
                               .progress_ctx = &w};
    struct err e = {0};
    struct model_file *file = NULL;
    (void)quant_from_name(opts_text(job->o, "attention"), &qo.attn_type);
    (void)quant_from_name(opts_text(job->o, "ffn"), &qo.ffn_type);
    if (job->calibration) {
        qo.importance = calibration_importance;
        qo.importance_ctx = job->calibration;
    }
    term_progress_init(&w.bar, "quantizing");
    int rc = model_open(&file, job->o->args[0], &e);
    if (rc == 0)
        rc = quantize_run(file, job->o->args[1], &qo, &job->result, &e);
    model_file_close(file);
    term_progress_end(&w.bar);
    return rc == SHOAL_ECANCELLED ? CMD_INTERRUPTED
           : rc < 0
               ? cmd_fail(job->o->page, "%s%s", e.msg,
                          rc == SHOAL_EUNSUPPORTED && !qo.allow_requantize ? " [--requantize]" : "")
               : CMD_OK;
}

static void json_perplexity(struct json_out *j, const struct quantize_job *job)
{
    json_out_member_object(j, "perplexity");
    json_out_member_num(j, "before", job->before.ppl);
    json_out_member_num(j, "after", job->after.ppl);
    json_out_member_num(j, "change", job->after.ppl / job->before.ppl - 1);
    json_out_member_uint(j, "n", job->after.n_scored);
    json_out_object_end(j);
}

static int print_result(const struct quantize_job *job)
{
    const struct opts *o = job->o;
    struct buf b;
    buf_init(&b, (size_t)64 << 20);
    if (opts_flag(o, "json")) {
        struct json_out j = json_out_make(&b);
        json_out_object(&j);
        json_out_member_str(&j, "file", o->args[1]);
        quantize_report_json(&j, &job->result);
        if (job->calibration)
            json_out_member_uint(&j, "calibration_tokens", calibration_n_tokens(job->calibration));
        if (opts_text(o, "perplexity"))
            json_perplexity(&j, job);
        json_out_object_end(&j);
        buf_putc(&b, '\n');
    } else {
        quantize_report_text(&b, &job->result, opts_flag(o, "tensors"));
        if (job->calibration)
            buf_printf(&b, "calibrated with %llu tokens\n",
                       (unsigned long long)calibration_n_tokens(job->calibration));
        if (opts_text(o, "perplexity"))
            buf_printf(&b, "perplexity %.4f -> %.4f (%+.2f %%)\n", job->before.ppl, job->after.ppl,
                       100 * (job->after.ppl / job->before.ppl - 1));
    }
    return cmd_print_end(o->page, &b);
}

int cmd_model_quantize(int argc, const char *const *argv)
{
    struct opts o;
    enum quantize_kind kind = QUANTIZE_F32;
    int rc;
    if (!cmd_begin(&o, &page, argc, argv, &rc))
        return rc;
    struct quantize_job job = {.o = &o, .interrupt_fd = -1};
    buf_init(&job.calibrate, MAX_TEXT_BYTES);
    buf_init(&job.perplexity, MAX_TEXT_BYTES);
    rc = quantize_report_kind(&o, &kind);
    if (rc == CMD_OK)
        rc = read_texts(&job);
    if (rc == CMD_OK) {
        job.interrupt_fd = term_catch_interrupt();
        rc = look_before(&job);
    }
    if (rc == CMD_OK)
        rc = quantize(&job, kind);
    if (rc == CMD_OK)
        rc = look_after(&job);
    if (rc == CMD_OK)
        rc = print_result(&job);
    quantize_result_fini(&job.result);
    calibration_destroy(job.calibration);
    term_release_interrupt(job.interrupt_fd);
    buf_fini(&job.calibrate);
    buf_fini(&job.perplexity);
    opts_fini(&o);
    return rc;
}
