/* cmd_perplexity.c - shoal perplexity: how well a model predicts a text. */
#include <stdio.h>

#include "base/clock.h"
#include "base/file/file_read.h"
#include "base/mem.h"
#include "base/plural.h"
#include "cmd/cli/term.h"
#include "cmd/cmd.h"
#include "cmd/local/bare_model.h"
#include "cmd/local/model_opts.h"
#include "eval/perplexity.h"
#include "eval/quality.h"
#include "wire/json_out.h"

cmd_fn cmd_perplexity, cmd_eval_perplexity;

static const struct opts_def defs[] = {
    {"chunks", 0, OPTS_UINT, "N", "0", 0, 1000000000, "use only the first N chunks; 0: all"},
    {"json", 0, OPTS_FLAG, NULL, NULL, 0, 0, "print one JSON object"},
};

static const struct opts_page page = {
    .command = "perplexity",
    .arguments = "FILE",
    .min_args = 1,
    .max_args = 1,
    .summary = "Measures how well a model predicts a text; lower is better.",
    .details =
        "The text is split into chunks of --ctx tokens (default 512); the second half of each "
        "is\nscored.  FILE may be - for stdin.",
    .groups = {OPTS_GROUP("Options", defs), &model_opts_group},
    .examples = "  shoal perplexity -m model.gguf wiki.txt\n"
                "  shoal perplexity -m model.gguf --ctx 256 --chunks 20 --json wiki.txt\n",
};

#define MAX_TIMES 65536u /* chunks whose time is recorded */

struct watch {
    struct term_progress bar;
    int interrupt_fd;
    uint64_t last_ns;
    double *chunk_ms;
    size_t n_times;
};

static bool progress(void *ctx, const struct perplexity_result *so_far, uint32_t n_chunks)
{
    struct watch *w = ctx;
    char note[64];
    uint64_t now = clock_ns();
    if (w->n_times < MAX_TIMES)
        w->chunk_ms[w->n_times++] = (double)(now - w->last_ns) / 1e6;
    w->last_ns = now;
    snprintf(note, sizeof(note), "perplexity %.4f", so_far->ppl);
    term_progress_show(&w->bar, (double)so_far->n_chunks / n_chunks, note);
    return term_interrupted(w->interrupt_fd);
}

static int print_result(const struct opts *o, const struct bare_model *m, struct watch *w,
                        const struct perplexity_result *r, uint32_t ctx)
{
    struct buf b;
    double p50 = quality_quantile(w->chunk_ms, w->n_times, 0.5);
    double p95 = quality_quantile(w->chunk_ms, w->n_times, 0.95);
    double p99 = quality_quantile(w->chunk_ms, w->n_times, 0.99);
    buf_init(&b, (size_t)1 << 20);
    if (opts_flag(o, "json")) {
        struct json_out j = json_out_make(&b);
        json_out_object(&j);
        json_out_member_num(&j, "ppl", r->ppl);
        json_out_member_num(&j, "nll", r->nll);
        json_out_member_uint(&j, "n", r->n_scored);
        json_out_member_uint(&j, "n_chunks", r->n_chunks);
        json_out_member_uint(&j, "n_tokens", r->n_tokens);
        json_out_member_uint(&j, "ctx", ctx);
        json_out_member_str(&j, "kernels", decoder_kernels(m->d)->name);
        json_out_member_num(&j, "ms", r->ms);
        json_out_member_object(&j, "chunk_ms");
        json_out_member_num(&j, "p50", p50);
        json_out_member_num(&j, "p95", p95);
        json_out_member_num(&j, "p99", p99);
        json_out_object_end(&j);
        json_out_member_num(&j, "peak_rss_mib", cmd_peak_mib());
        json_out_object_end(&j);
        buf_putc(&b, '\n');
    } else {
        buf_printf(&b,
                   "perplexity %.4f  (%llu token%s scored in %u chunk%s of %u, %.1f tokens/s)\n",
                   r->ppl, (unsigned long long)r->n_scored, plural(r->n_scored), r->n_chunks,
                   plural(r->n_chunks), ctx, (double)r->n_chunks * ctx * 1e3 / r->ms);
        buf_printf(&b, "per chunk: p50 %.2f  p95 %.2f  p99 %.2f ms; peak memory %.1f MiB\n", p50,
                   p95, p99, cmd_peak_mib());
    }
    return cmd_print_end(o->page, &b);
}

static int run(const struct opts *o, const struct buf *text)
{
    struct watch w = {.interrupt_fd = term_catch_interrupt()};
    struct bare_model_opts mo = bare_model_opts_read(o, w.interrupt_fd);
    struct bare_model m = {0};
    struct perplexity_result r;
    struct err e = {0};
    mo.n_ctx = mo.n_ctx ? mo.n_ctx : 512;
    mo.max_batch = mo.max_batch ? mo.max_batch : 128;
    mo.max_logits = mo.max_batch < 64 ? mo.max_batch : 64; /* rows of a large vocabulary need
                                                            * much memory */
    w.chunk_ms = mem_zalloc_n(MAX_TIMES, sizeof(*w.chunk_ms));
    int rc = w.chunk_ms ? bare_model_open(&m, o->page, &mo) : cmd_fail(o->page, "out of memory");
    w.last_ns = clock_ns();
    if (rc == CMD_OK) {
        struct perplexity_opts po = {.ctx = m.n_ctx,
                                     .chunks = opts_u32(o, "chunks"),
                                     .progress = progress,
                                     .progress_ctx = &w};
        term_progress_init(&w.bar, "perplexity");
        int failed = perplexity_text(&r, m.d, m.t, buf_str(text), text->len, &po, &e);
        term_progress_end(&w.bar);
        rc = failed == SHOAL_ECANCELLED ? CMD_INTERRUPTED
             : failed < 0               ? cmd_fail(o->page, "%s: %s", o->args[0], e.msg)
                                        : print_result(o, &m, &w, &r, po.ctx);
    }
    bare_model_close(&m);
    mem_free(w.chunk_ms);
    term_release_interrupt(w.interrupt_fd);
    return rc;
}

static int run_as(const char *command, int argc, const char *const *argv)
{
    struct opts_page p = page;
    struct opts o;
    struct buf text;
    struct err e = {0};
    int rc;
    p.command = command;
    if (!cmd_begin(&o, &p, argc, argv, &rc))
        return rc;
    buf_init(&text, (size_t)1 << 30);
    if (!opts_text(&o, "model"))
        rc = opts_usage(&p, "no model given: use -m MODEL");
    else if (file_read(o.args[0], &text, &e) < 0)
        rc = cmd_fail(&p, "%s", e.msg);
    else
        rc = run(&o, &text);
    buf_fini(&text);
    opts_fini(&o);
    return rc;
}

int cmd_perplexity(int argc, const char *const *argv)
{
    return run_as("perplexity", argc, argv);
}

/* The same among the other measurements. */
int cmd_eval_perplexity(int argc, const char *const *argv)
{
    return run_as("eval perplexity", argc, argv);
}
