/* cmd_bench.c - shoal bench: the speed of a model on this machine, and the machine's limit. */
#include <stdio.h>
#include <stdlib.h>

#include "base/bytes_text.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/order.h"
#include "cmd/measure/bench_protocol.h"
#include "cmd/cli/term.h"
#include "cmd/cmd.h"
#include "cmd/local/bare_model.h"
#include "cmd/local/model_opts.h"
#include "cmd/machine.h"
#include "kernels/tiles.h"
#include "wire/json_out.h"

cmd_fn cmd_bench;

#define MAX_OUTPUT_BYTES ((size_t)16 << 20)
#define MAX_LIST 16u
#define MAX_ROWS (MAX_LIST * MAX_LIST)
#define MIB ((size_t)1 << 20)

static const struct opts_def defs[] = {
    {"prompt", 'p', OPTS_TEXT, "LIST", "32,128,512", 0, 0, "prompt lengths for prefill; 0: none"},
    {"decode", 'n', OPTS_TEXT, "LIST", "64", 0, 0, "numbers of tokens to decode; 0: none"},
    {"seqs", 0, OPTS_TEXT, "LIST", "1", 0, 0, "numbers of sequences to decode at once"},
    {"threads-list", 0, OPTS_TEXT, "LIST", NULL, 0, 0,
     "thread counts; default: 1 and all cores, or --threads"},
    {"reps", 'r', OPTS_UINT, "N", "5", 1, 1000, "number of rounds; the table shows medians"},
    {"no-roofline", 0, OPTS_FLAG, NULL, NULL, 0, 0, "do not measure the machine's limit"},
    {"peer-protocol", 0, OPTS_FLAG, NULL, NULL, 0, 0,
     "answer JSON lines on stdin for a benchmark driver (bench/PROTOCOL.md)"},
    {"json", 0, OPTS_FLAG, NULL, NULL, 0, 0, "print one JSON object"},
};

static const struct opts_page page = {
    .command = "bench",
    .arguments = "",
    .summary = "Measures prefill and decode speed of a model on this machine.",
    .details =
        "pp128 is the prefill of 128 prompt tokens, tg64 the decode of 64 tokens, tg64x16 the same "
        "for\n16 sequences at once.  The limit is the larger of two times: reading the weights at "
        "the\nmeasured memory bandwidth, or computing the products at the 8-bit peak.",
    .groups = {OPTS_GROUP("Benchmark", defs), &model_opts_group_reply},
    .examples = "  shoal bench\n"
                "  shoal bench -m model.gguf -p 512 -n 128 --threads-list 1,2,4 --json\n"
                "  shoal bench -m model.gguf -p 0 --seqs 1,4,16\n",
};

struct row {
    char test[32];
    uint32_t n, seqs, threads; /* seqs 0: prefill */
    double median, min, max;   /* tokens per second */
    double limit;              /* tokens per second; 0: unknown */
    bool memory_bound;
};

struct bench_run {
    const struct opts *o;
    struct bare_model m;
    int interrupt_fd;
    uint32_t prompt[MAX_LIST], decode[MAX_LIST], seqs[MAX_LIST], threads[MAX_LIST];
    size_t n_prompt, n_decode, n_seqs, n_threads;
    struct row rows[MAX_ROWS];
    size_t n_rows;
    uint64_t touched_bytes, n_weights, n_output; /* n_output: those used only for logits */
    bool integer_weights;
    struct machine machine;
    int32_t *ids;
    struct decoder_run *runs;
};

/* Parses whole numbers separated by commas; skips zeros. */
static int read_list(const struct opts *o, const char *name, uint32_t max, uint32_t *out, size_t *n)
{
    const char *text = opts_text(o, name);
    *n = 0;
    for (const char *p = text; p && *p;) {
        char *end;
        unsigned long v = strtoul(p, &end, 10);
        if (end == p || (*end && *end != ',') || *p == '-' || v > max || *n == MAX_LIST)
            return opts_usage(o->page, "--%s is %s, expected up to %u numbers up to %u: 1,2", name,
                              text, MAX_LIST, max);
        if (v > 0)
            out[(*n)++] = (uint32_t)v;
        p = *end ? end + 1 : end;
    }
    return CMD_OK;
}

static uint32_t most(const uint32_t *v, size_t n)
{
    uint32_t m = 0;
    for (size_t i = 0; i < n; i++)
        m = v[i] > m ? v[i] : m;
    return m;
}

static int read_lists(struct bench_run *b)
{
    int rc = read_list(b->o, "prompt", 65536, b->prompt, &b->n_prompt);
    if (rc == CMD_OK)
        rc = read_list(b->o, "decode", 65536, b->decode, &b->n_decode);
    if (rc == CMD_OK)
        rc = read_list(b->o, "seqs", 1024, b->seqs, &b->n_seqs);
    if (rc == CMD_OK)
        rc = read_list(b->o, "threads-list", 256, b->threads, &b->n_threads);
    if (rc == CMD_OK && b->n_prompt == 0 && b->n_decode * b->n_seqs == 0)
        rc = opts_usage(b->o->page, "nothing to measure: both --prompt and --decode are 0");
    if (b->n_threads == 0 && opts_u32(b->o, "threads"))
        b->threads[b->n_threads++] = opts_u32(b->o, "threads");
    if (b->n_threads == 0) {
        b->threads[b->n_threads++] = 1;
        if (b->machine.n_usable > 1)
            b->threads[b->n_threads++] = b->machine.n_usable;
    }
    return rc;
}

/* Runs one round; returns tokens per second. */
static double run_prompt(struct bench_run *b, uint32_t n)
{
    uint32_t batch = decoder_max_batch(b->m.d);
    uint64_t t0 = clock_ns();
    for (uint32_t at = 0; at < n;) {
        uint32_t k = n - at < batch ? n - at : batch;
        struct decoder_run run = {.tokens = b->ids + at,
                                  .n = k,
                                  .pos0 = at,
                                  .pages = bare_model_pages(&b->m, 0),
                                  .n_logits_last = at + k == n ? 1 : 0};
        decoder_forward(b->m.d, &run, 1);
        at += k;
    }
    return n * 1e9 / (double)(clock_ns() - t0);
}

struct decoding {
    struct bench_run *b;
    uint32_t n, seqs, at;
};

static uint32_t next_step(void *ctx, const struct decoder_run **runs)
{
    struct decoding *g = ctx;
    struct bench_run *b = g->b;
    const uint32_t i = g->at++;
    for (uint32_t s = 0; i < g->n && s < g->seqs; s++)
        b->runs[s] = (struct decoder_run){.tokens = b->ids + i,
                                          .n = 1,
                                          .pos0 = i,
                                          .pages = bare_model_pages(&b->m, s),
                                          .n_logits_last = 1,
                                          .state = s,
                                          .state_from = s};
    *runs = b->runs;
    return i < g->n ? g->seqs : 0;
}

static double run_decode(struct bench_run *b, uint32_t n, uint32_t seqs)
{
    struct decoding g = {.b = b, .n = n, .seqs = seqs};
    uint64_t t0 = clock_ns();
    decoder_passes(b->m.d, next_step, &g);
    return (double)n * seqs * 1e9 / (double)(clock_ns() - t0);
}

static void plan_rows(struct bench_run *b)
{
    for (size_t t = 0; t < b->n_threads; t++) {
        for (size_t i = 0; i < b->n_prompt && b->n_rows < MAX_ROWS; i++) {
            struct row *r = &b->rows[b->n_rows++];
            *r = (struct row){.n = b->prompt[i], .threads = b->threads[t]};
            snprintf(r->test, sizeof(r->test), "pp%u", r->n);
        }
        for (size_t i = 0; i < b->n_decode; i++)
            for (size_t s = 0; s < b->n_seqs && b->n_rows < MAX_ROWS; s++) {
                struct row *r = &b->rows[b->n_rows++];
                *r = (struct row){.n = b->decode[i], .seqs = b->seqs[s], .threads = b->threads[t]};
                snprintf(r->test, sizeof(r->test), r->seqs > 1 ? "tg%ux%u" : "tg%u", r->n, r->seqs);
            }
    }
}

/* Each round runs all rows, so that a busy moment does not distort a single row. */
static int measure(struct bench_run *b)
{
    uint32_t reps = opts_u32(b->o, "reps");
    struct err e = {0};
    struct term_progress bar;
    double *speed = mem_zalloc_n(b->n_rows * reps, sizeof(*speed));
    int rc = speed ? CMD_OK : cmd_fail(b->o->page, "out of memory");
    term_progress_init(&bar, "measuring");
    for (uint32_t k = 0; rc == CMD_OK && k <= reps; k++) /* the first round warms up */
        for (size_t i = 0; rc == CMD_OK && i < b->n_rows; i++) {
            const struct row *r = &b->rows[i];
            char note[64];
            snprintf(note, sizeof(note), "%s, %u threads", r->test, r->threads);
            term_progress_show(&bar, (double)(k * b->n_rows + i) / (double)((reps + 1) * b->n_rows),
                               note);
            if (decoder_set_threads(b->m.d, r->threads, &e) < 0)
                rc = cmd_fail(b->o->page, "%s", e.msg);
            else if (term_interrupted(b->interrupt_fd))
                rc = CMD_INTERRUPTED;
            if (rc != CMD_OK)
                break;
            double v = r->seqs ? run_decode(b, k ? r->n : 1, r->seqs) : run_prompt(b, r->n);
            if (k > 0)
                speed[i * reps + k - 1] = v;
        }
    term_progress_end(&bar);
    for (size_t i = 0; rc == CMD_OK && i < b->n_rows; i++) {
        qsort(speed + i * reps, reps, sizeof(*speed), order_double);
        b->rows[i].min = speed[i * reps];
        b->rows[i].median = speed[i * reps + reps / 2];
        b->rows[i].max = speed[i * reps + reps - 1];
    }
    mem_free(speed);
    return rc;
}

/* Sets the limit of every row: the longer of reading the weights and multiplying with them. */
static void add_limits(struct bench_run *b)
{
    struct machine_region region;
    size_t s = 0;
    while (s + 1 < MACHINE_N_SIZES && machine_sizes[s] * MIB < b->touched_bytes)
        s++;
    if (!machine_region_open(&region, &b->machine, machine_sizes[s] * MIB))
        return;
    for (size_t t = 0; t < b->n_threads; t++) {
        double gb_s = machine_bandwidth(&region, region.n, b->threads[t]);
        double gops =
            b->integer_weights ? machine_int8_peak(decoder_kernels(b->m.d), b->threads[t]) : 0;
        double read_s = gb_s > 0 ? (double)b->touched_bytes / (gb_s * 1e9) : 0;
        double weight_s = gops > 0 ? 2 / (gops * 1e9) : 0;
        for (size_t i = 0; i < b->n_rows; i++) {
            struct row *r = &b->rows[i];
            uint32_t together = r->seqs ? r->seqs : r->n, batch = decoder_max_batch(b->m.d);
            double passes = r->seqs ? 1 : (double)((r->n + batch - 1) / batch);
            /* prefill computes logits only for the last token */
            double products = (double)(b->n_weights - b->n_output) * together +
                              (double)b->n_output * (r->seqs ? together : 1);
            double memory = read_s * passes, compute = weight_s * products;
            if (r->threads != b->threads[t] || memory <= 0 || (together > 1 && compute <= 0))
                continue;
            r->memory_bound = memory >= compute;
            r->limit = together / (r->memory_bound ? memory : compute);
        }
    }
    machine_region_close(&region);
}

static void put_json(struct buf *b, const struct bench_run *r)
{
    struct json_out json = json_out_make(b), *j = &json;
    json_out_object(j);
    json_out_member_str(j, "model", opts_text(r->o, "model"));
    json_out_member_str(j, "kernels", decoder_kernels(r->m.d)->name);
    json_out_member_uint(j, "touched_bytes", r->touched_bytes);
    json_out_member_array(j, "results");
    for (size_t i = 0; i < r->n_rows; i++) {
        const struct row *row = &r->rows[i];
        json_out_object(j);
        json_out_member_str(j, "test", row->test);
        json_out_member_uint(j, "threads", row->threads);
        json_out_member_num(j, "tok_s", row->median);
        json_out_member_num(j, "tok_s_min", row->min);
        json_out_member_num(j, "tok_s_max", row->max);
        if (row->limit > 0) {
            json_out_member_num(j, "limit_tok_s", row->limit);
            json_out_member_num(j, "roofline", row->median / row->limit);
            json_out_member_str(j, "bound", row->memory_bound ? "memory" : "compute");
        }
        json_out_object_end(j);
    }
    json_out_array_end(j);
    json_out_object_end(j);
    buf_putc(b, '\n');
}

static void put_table(struct buf *b, const struct bench_run *r)
{
    char bytes[32];
    buf_printf(b, "%s, %s, %s kernels, %s of weights read per token\n\n", opts_text(r->o, "model"),
               decoder_config(r->m.d)->arch, decoder_kernels(r->m.d)->name,
               bytes_text(bytes, (double)r->touched_bytes));
    buf_printf(b, "%-12s %8s %12s %22s   %s\n", "test", "threads", "tokens/s", "slowest .. fastest",
               "of limit");
    for (size_t i = 0; i < r->n_rows; i++) {
        const struct row *row = &r->rows[i];
        char range[48];
        snprintf(range, sizeof(range), "%.1f .. %.1f", row->min, row->max);
        buf_printf(b, "%-12s %8u %12.1f %22s   ", row->test, row->threads, row->median, range);
        if (row->limit > 0)
            buf_printf(b, "%3.0f %% (%s)\n", 100 * row->median / row->limit,
                       row->memory_bound ? "memory" : "compute");
        else
            buf_printf(b, "-\n");
    }
}

static int open_model(struct bench_run *b)
{
    uint32_t seqs = b->n_decode ? most(b->seqs, b->n_seqs) : 1;
    uint32_t longest = most(b->prompt, b->n_prompt), decode = most(b->decode, b->n_decode);
    struct bare_model_opts mo = bare_model_opts_read(b->o, b->interrupt_fd);
    longest = decode > longest ? decode : longest;
    mo.n_ctx = mo.n_ctx > longest ? mo.n_ctx : longest;
    mo.n_threads = most(b->threads, b->n_threads);
    mo.n_seqs = seqs;
    mo.max_logits = seqs;
    mo.max_batch = mo.max_batch ? mo.max_batch : 128;
    mo.max_batch = mo.max_batch > seqs ? mo.max_batch : seqs;
    mo.no_tokenizer = true;
    int rc = bare_model_open(&b->m, b->o->page, &mo);
    if (rc != CMD_OK)
        return rc;
    uint32_t n_vocab = decoder_config(b->m.d)->n_vocab;
    b->ids = mem_zalloc_n(longest, sizeof(*b->ids));
    b->runs = mem_zalloc_n(seqs, sizeof(*b->runs));
    if (!b->ids || !b->runs)
        return cmd_fail(b->o->page, "out of memory");
    for (uint32_t i = 0; i < longest; i++)
        b->ids[i] = (int32_t)(((uint64_t)i * 7919 + 1) % n_vocab);
    b->touched_bytes = bare_model_touched_bytes(b->m.file, &b->n_weights, &b->n_output);
    for (size_t i = 0; i < b->m.file->n_tensors; i++)
        b->integer_weights |= !kern_fmt_is_float(tiles_fmt_of(b->m.file->tensors[i].type));
    return CMD_OK;
}

int cmd_bench(int argc, const char *const *argv)
{
    struct opts o;
    struct buf out;
    int rc;
    if (!cmd_begin(&o, &page, argc, argv, &rc))
        return rc;
    if (opts_flag(&o, "peer-protocol")) {
        opts_fini(&o);
        return bench_protocol_run();
    }
    struct bench_run *b = mem_zalloc(sizeof(*b));
    if (!b) {
        opts_fini(&o);
        return cmd_fail(&page, "out of memory");
    }
    buf_init(&out, MAX_OUTPUT_BYTES);
    b->o = &o;
    b->interrupt_fd = -1;
    machine_read(&b->machine);
    rc = read_lists(b);
    if (rc == CMD_OK) {
        b->interrupt_fd = term_catch_interrupt();
        rc = open_model(b);
    }
    if (rc == CMD_OK) {
        plan_rows(b);
        rc = measure(b);
    }
    if (rc == CMD_OK) {
        if (!opts_flag(&o, "no-roofline"))
            add_limits(b);
        if (opts_flag(&o, "json"))
            put_json(&out, b);
        else
            put_table(&out, b);
        rc = cmd_print(&page, &out);
    }
    bare_model_close(&b->m);
    term_release_interrupt(b->interrupt_fd);
    mem_free(b->ids);
    mem_free(b->runs);
    mem_free(b);
    buf_fini(&out);
    opts_fini(&o);
    return rc;
}
