/* cmd_profile.c - shoal profile: where a decoder spends its time on this machine. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/file/file_replace.h"
#include "base/mem.h"
#include "cmd/cmd.h"
#include "cmd/local/bare_model.h"
#include "cmd/local/model_opts.h"
#include "cmd/machine.h"
#include "cmd/measure/profile_report.h"
#include "kernels/tiles.h"

cmd_fn cmd_profile;

#define MAX_OUTPUT_BYTES ((size_t)256 << 20)
#define MIB ((size_t)1 << 20)
#define EVENTS_EACH 32u /* of a member in a phase, on average */
#define N_SHAPES 2u

static const struct opts_def defs[] = {
    {"prompt", 'p', OPTS_UINT, "N", "128", 0, 65536, "tokens of the prompt; 0: none"},
    {"decode", 'n', OPTS_UINT, "N", "32", 0, 4096, "tokens to decode; 0: none"},
    {"svg", 0, OPTS_TEXT, "FILE", NULL, 0, 0, "write a flame graph"},
    {"trace", 0, OPTS_TEXT, "FILE", NULL, 0, 0,
     "write what each thread did, for chrome://tracing or ui.perfetto.dev"},
    {"no-roofline", 0, OPTS_FLAG, NULL, NULL, 0, 0, "do not measure the machine's limit"},
    {"json", 0, OPTS_FLAG, NULL, NULL, 0, 0, "print one JSON object"},
};

static const struct opts_page page = {
    .command = "profile",
    .arguments = "[MODEL]",
    .max_args = 1,
    .summary =
        "Shows where a decoder spends its time: each kernel and layer, bytes, threads' waits.",
    .details =
        "MS is the time that passed, SHARE its part of the whole; between: choosing, planning, "
        "starting\nand ending of passes.  OF LIMIT: the time that reading these bytes, or these "
        "products, take at\nleast on this machine, as a part of MS.  WAITS: the part of all "
        "threads' time that was spent\nwaiting.  What one thread does at the end of a kernel has "
        "rows of its own.",
    .groups = {OPTS_GROUP("Profile", defs), &model_opts_group_reply},
    .examples = "  shoal profile\n"
                "  shoal profile model.gguf -p 512 -n 64 --svg flame.svg --trace trace.json\n"
                "  shoal profile reply --json | jq '.shapes[1].kernels'\n",
};

struct profiling {
    const struct opts *o;
    struct bare_model m;
    int32_t *ids;
    struct decoder_profile *f[N_SHAPES];
    struct profile_shape shapes[N_SHAPES];
    uint32_t n_shapes;
    uint32_t n_prompt, n_decode, at; /* at: tokens that were decoded */
    struct decoder_run run;
};

static void run_prompt(struct profiling *p)
{
    const uint32_t batch = decoder_max_batch(p->m.d);
    for (uint32_t at = 0, k; at < p->n_prompt; at += k) {
        k = p->n_prompt - at < batch ? p->n_prompt - at : batch;
        const struct decoder_run run = {.tokens = p->ids + at,
                                        .n = k,
                                        .pos0 = at,
                                        .pages = bare_model_pages(&p->m, 0),
                                        .n_logits_last = at + k == p->n_prompt};
        decoder_forward(p->m.d, &run, 1);
    }
}

static uint32_t next_token(void *ctx, const struct decoder_run **runs)
{
    struct profiling *p = ctx;
    const uint32_t pos = p->n_prompt + p->at;
    p->run = (struct decoder_run){.tokens = p->ids + pos,
                                  .n = 1,
                                  .pos0 = pos,
                                  .pages = bare_model_pages(&p->m, 0),
                                  .n_logits_last = 1};
    *runs = &p->run;
    return p->at++ < p->n_decode;
}

static void run_decode(struct profiling *p)
{
    p->at = 0;
    decoder_passes(p->m.d, next_token, p);
}

static int record(struct profiling *p, const char *name, uint32_t n_tokens, uint32_t n_passes,
                  void (*work)(struct profiling *p))
{
    const uint32_t phases = n_passes * decoder_profile_phases(p->m.d);
    struct profile_shape *s = &p->shapes[p->n_shapes];
    struct err e = {0};
    if (n_tokens == 0)
        return CMD_OK;
    if (decoder_profile_create(&p->f[p->n_shapes], decoder_n_threads(p->m.d), phases,
                               phases * EVENTS_EACH, &e) < 0)
        return cmd_fail(p->o->page, "%s", e.msg);
    *s = (struct profile_shape){.name = name,
                                .f = p->f[p->n_shapes++],
                                .n_tokens = n_tokens,
                                .n_layers = decoder_config(p->m.d)->n_layers};
    decoder_profile_set(p->m.d, p->f[p->n_shapes - 1]);
    s->from_ns = clock_ns();
    work(p);
    s->whole_ns = clock_ns() - s->from_ns;
    return CMD_OK;
}

static void measure_limits(struct profiling *p)
{
    struct machine machine;
    struct machine_region region;
    uint64_t n_weights, n_output,
        touched = bare_model_touched_bytes(p->m.file, &n_weights, &n_output);
    const uint32_t threads = decoder_n_threads(p->m.d);
    bool integers = false;
    size_t s = 0;
    machine_read(&machine);
    for (size_t i = 0; i < p->m.file->n_tensors; i++)
        integers |= !kern_fmt_is_float(tiles_fmt_of(p->m.file->tensors[i].type));
    while (s + 1 < MACHINE_N_SIZES && machine_sizes[s] * MIB < touched)
        s++;
    if (!machine_region_open(&region, &machine, machine_sizes[s] * MIB))
        return;
    for (uint32_t i = 0; i < p->n_shapes; i++) {
        p->shapes[i].gb_s = i ? p->shapes[0].gb_s : machine_bandwidth(&region, region.n, threads);
        p->shapes[i].gops = !integers ? 0
                            : i       ? p->shapes[0].gops
                                      : machine_int8_peak(decoder_kernels(p->m.d), threads);
    }
    machine_region_close(&region);
}

static int open_model(struct profiling *p)
{
    struct bare_model_opts mo = bare_model_opts_read(p->o, -1);
    const uint32_t n = p->n_prompt + p->n_decode;
    if (p->o->n_args) {
        mo.path = p->o->args[0];
        mo.included = false;
    }
    mo.no_tokenizer = true;
    mo.n_ctx = mo.n_ctx ? mo.n_ctx : n + 1;
    if (n == 0)
        return opts_usage(p->o->page, "nothing to profile: both --prompt and --decode are 0");
    if (mo.n_ctx < n)
        return opts_usage(p->o->page, "--ctx is less than the %u tokens of --prompt and --decode",
                          n);
    const int rc = bare_model_open(&p->m, p->o->page, &mo);
    if (rc != CMD_OK)
        return rc;
    p->ids = mem_zalloc_n(n + 1, sizeof(*p->ids));
    if (!p->ids)
        return cmd_fail(p->o->page, "out of memory");
    for (uint32_t i = 0; i <= n; i++)
        p->ids[i] = (int32_t)(((uint64_t)i * 7919 + 1) % decoder_config(p->m.d)->n_vocab);
    return CMD_OK;
}

static int write_file(const struct opts *o, const char *option, const struct buf *b)
{
    const char *path = opts_text(o, option);
    struct err e = {0};
    if (b->rc < 0)
        return cmd_fail(o->page, "out of memory for %s", path);
    if (file_replace(path, buf_str(b), b->len, &e) < 0)
        return cmd_fail(o->page, "%s", e.msg);
    return CMD_OK;
}

static int report(struct profiling *p)
{
    struct buf b;
    int rc = CMD_OK;
    buf_init(&b, MAX_OUTPUT_BYTES);
    for (uint32_t i = 0; i < p->n_shapes; i++)
        profile_sum(&p->shapes[i]);
    if (opts_text(p->o, "svg")) {
        profile_put_svg(&b, p->shapes, p->n_shapes,
                        p->o->n_args ? p->o->args[0] : opts_text(p->o, "model"));
        rc = write_file(p->o, "svg", &b);
    }
    buf_clear(&b);
    if (rc == CMD_OK && opts_text(p->o, "trace")) {
        profile_put_chrome(&b, p->shapes, p->n_shapes);
        rc = write_file(p->o, "trace", &b);
    }
    buf_clear(&b);
    if (opts_flag(p->o, "json"))
        profile_put_json(&b, p->shapes, p->n_shapes);
    else
        for (uint32_t i = 0; i < p->n_shapes; i++)
            profile_put_table(&b, &p->shapes[i]);
    if (rc == CMD_OK)
        rc = cmd_print(p->o->page, &b);
    buf_fini(&b);
    return rc;
}

/* The first round warms up and is not recorded. */
static int profile(struct profiling *p)
{
    const uint32_t batch = decoder_max_batch(p->m.d);
    run_prompt(p);
    run_decode(p);
    int rc = record(p, "prompt", p->n_prompt, (p->n_prompt + batch - 1) / batch, run_prompt);
    if (rc == CMD_OK)
        rc = record(p, "decode", p->n_decode, p->n_decode, run_decode);
    if (rc == CMD_OK && !opts_flag(p->o, "no-roofline"))
        measure_limits(p);
    return rc == CMD_OK ? report(p) : rc;
}

int cmd_profile(int argc, const char *const *argv)
{
    struct opts o;
    struct profiling p = {.o = &o};
    int rc;
    if (!cmd_begin(&o, &page, argc, argv, &rc))
        return rc;
    p.n_prompt = opts_u32(&o, "prompt");
    p.n_decode = opts_u32(&o, "decode");
    rc = open_model(&p);
    if (rc == CMD_OK)
        rc = profile(&p);
    bare_model_close(&p.m);
    for (uint32_t i = 0; i < N_SHAPES; i++)
        decoder_profile_destroy(p.f[i]);
    mem_free(p.ids);
    opts_fini(&o);
    return rc;
}
