/* cuda_check.c - the CUDA backend on a real GPU: bits against the CPU, and times.
 *
 * usage: cuda_check bits FILE...        every model in several grids, steps, batches and kinds of
 * KV
 *        cuda_check small FILE          one case of that, for compute-sanitizer
 *        cuda_check passes FILE...      one pass of each kind, for a profiler
 *        cuda_check time FILE...        ms a step of decoding, a few batches; prompts
 *
 * Exits with 0 (all as expected), 1 (a difference or an error), 77 (no GPU or no kernels here). */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/mem.h"
#include "engine/cuda/cuda_gpu.h"
#include "engine/cuda/cuda_pass.h"
#include "engine/cuda/step_plan.h"
#include "format/model_open.h"

enum { MAX_BATCH = 512, MAX_ROWS = 64, N_PAGES = 1024 };

static double now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

static void die(const char *what, const struct err *e)
{
    printf("ERROR %s: %s\n", what, e->msg);
    exit(1);
}

/* ---- one model on the CPU and on the GPU ---- */

struct model {
    const char *path;
    struct model_file *file;
    struct decoder *cpu, *rows; /* the best kernels; the layout that the GPU reads */
    uint8_t *cpu_kv;
    size_t cpu_kv_bytes;
};

static void model_load(struct model *m, const char *path, enum kern_kv kv, bool cpu)
{
    struct err e = {0};
    struct decoder_opts o = {
        .max_batch = MAX_BATCH, .max_logits = MAX_ROWS, .kv_kind = kv, .n_ctx = 0};
    *m = (struct model){.path = path};
    if (model_open(&m->file, path, &e) < 0 ||
        (cpu && decoder_create(&m->cpu, m->file, path, &o, &e) < 0))
        die(path, &e);
    o.kernels = &kern_scalar;
    if (decoder_create(&m->rows, m->file, path, &o, &e) < 0)
        die(path, &e);
    if (!cpu)
        return;
    m->cpu_kv_bytes = decoder_kv_page_bytes(m->cpu) * N_PAGES;
    m->cpu_kv = mem_pages(m->cpu_kv_bytes);
    decoder_set_kv(m->cpu, m->cpu_kv);
}

static void model_close(struct model *m)
{
    decoder_destroy(m->cpu);
    decoder_destroy(m->rows);
    if (m->cpu_kv)
        mem_pages_free(m->cpu_kv, m->cpu_kv_bytes);
    model_file_close(m->file);
}

static char refused[sizeof(
    ((struct err *)0)->msg)]; /* why the GPU does not take the model, if it does not */

struct on_gpu {
    struct cuda_gpu *g;
    struct cuda_gpu_grid grid;
    struct step_model m;
    struct one_model one;  /* used for single tokens if it has layers */
    struct many_plan many; /* for several tokens, likewise */
    uint32_t last;
    uint8_t *in_gpu, *in;
    float *logits_gpu, *logits, *work;
    struct step_pass p;
};

/* grid.n_blocks 0: the backend's own choice.  False: this grid is not possible here. */
static bool gpu_open(struct on_gpu *o, const struct decoder *d, struct cuda_gpu_grid grid,
                     uint32_t one, uint32_t tokens, bool many)
{
    struct err e = {0};
    *o = (struct on_gpu){.grid = grid};
    if (cuda_gpu_open(&o->g, &e) < 0)
        die("GPU", &e);
    if (!grid.n_blocks)
        o->grid = cuda_gpu_grid(o->g);
    if (cuda_gpu_one_threads(o->g) == 0)
        one = 0;
    const struct cuda_gpu_info *info = cuda_gpu_info(o->g);
    struct step_place at = {.n_blocks = o->grid.n_blocks,
                            .n_threads = cuda_gpu_threads(o->g),
                            .cluster = o->grid.cluster,
                            .shared_bytes = info->shared_bytes,
                            .max_tokens = tokens,
                            .one_blocks = one,
                            .one_threads = cuda_gpu_one_threads(o->g),
                            .many_tokens = MAX_BATCH,
                            .place = cuda_gpu_place,
                            .ctx = o->g};
    void *p[5] = {0};
    if (many)
        cuda_gpu_many_threads(o->g, at.many_threads);
    if (step_plan(&o->m, &o->one, &o->many, d, &at, &e) < 0) {
        if (e.code != SHOAL_EUNSUPPORTED)
            die("plan", &e);
        snprintf(refused, sizeof(refused), "%s", e.msg);
        cuda_gpu_close(o->g);
        return false;
    }
    if (cuda_gpu_prepare(o->g, &o->m, &o->one, &o->grid, &e) < 0) {
        printf("  grid of %u blocks%s is not possible: %s\n", o->grid.n_blocks,
               o->grid.cluster ? " in a cluster" : "", e.msg);
        cuda_gpu_close(o->g);
        return false;
    }
    const size_t in = cuda_pass_bytes(MAX_BATCH, N_PAGES * 64, o->m.dim);
    const size_t rows = (size_t)MAX_ROWS * o->m.n_vocab * sizeof(float);
    if (cuda_gpu_place(o->g, &p[0], NULL, N_PAGES * o->m.kv_page_bytes, &e) < 0 ||
        cuda_gpu_place(o->g, &p[1], NULL, in, &e) < 0 ||
        cuda_gpu_place(o->g, &p[2], NULL, rows, &e) < 0 || cuda_gpu_pin(o->g, &p[3], in, &e) < 0 ||
        cuda_gpu_pin(o->g, &p[4], rows, &e) < 0)
        die("memory", &e);
    o->m.kv = p[0];
    o->in_gpu = p[1];
    o->logits_gpu = p[2];
    o->in = p[3];
    o->logits = p[4];
    o->work = malloc(2 * o->m.dim * sizeof(float));
    return true;
}

static void gpu_close(struct on_gpu *o)
{
    cuda_gpu_close(o->g);
    many_plan_free(&o->many);
    free(o->work);
}

/* Queues the copy of a pass over these runs. */
static uint32_t gpu_pass(struct on_gpu *o, const struct decoder *d, const struct decoder_run *runs,
                         uint32_t n_runs)
{
    struct err e = {0};
    const size_t bytes = cuda_pass_write(&o->p, o->in, o->in_gpu, d, runs, n_runs,
                                         o->many.layers ? o->many.tile : 1, o->work);
    o->p.logits = o->logits_gpu;
    o->last = 0;
    for (uint32_t i = 0; i < n_runs; i++)
        if (runs[i].pos0 + runs[i].n > o->last + 1)
            o->last = runs[i].pos0 + runs[i].n - 1;
    if (cuda_gpu_copy_in(o->g, o->in_gpu, o->in, bytes, &e) < 0)
        die("copy", &e);
    return o->p.n_wanted;
}

static int gpu_launch(struct on_gpu *o, struct err *e)
{
    if (o->one.layers && o->p.n_tokens == 1 && o->last < o->one.most_keys)
        return cuda_gpu_one(o->g, &o->m, &o->one, &o->p, e);
    if (many_plan_fits(&o->many, o->p.n_tokens, o->last))
        return cuda_gpu_many(o->g, &o->m, &o->many, &o->p, o->last, e);
    return cuda_gpu_step(o->g, &o->m, &o->p, &o->grid, e);
}

static void gpu_run(struct on_gpu *o, uint32_t rows)
{
    struct err e = {0};
    if (gpu_launch(o, &e) < 0 ||
        (rows && cuda_gpu_copy_out(o->g, o->logits, o->logits_gpu,
                                   (size_t)rows * o->m.n_vocab * sizeof(float), &e) < 0) ||
        cuda_gpu_wait(o->g, &e) < 0)
        die("step", &e);
}

/* ---- bits ---- */

/* Three sequences of different lengths in passes of `batch` tokens, then `decode` steps of one
 * token each; every row of logits is compared. */
static uint32_t compare(struct model *m, struct on_gpu *o, uint32_t batch, uint32_t longest,
                        uint32_t decode)
{
    enum { N_SEQ = 3 };
    const uint32_t n_vocab = decoder_config(m->cpu)->n_vocab;
    uint32_t bad = 0, done[N_SEQ] = {0}, pages[N_SEQ][N_PAGES / N_SEQ];
    const uint32_t want[N_SEQ] = {longest, longest / 2 + 1, 3};
    static int32_t ids[N_SEQ][4096];
    for (uint32_t s = 0; s < N_SEQ; s++) {
        for (uint32_t i = 0; i < 4096; i++)
            ids[s][i] = (int32_t)((i * 7919u + s * 104729u + 3) % n_vocab);
        for (uint32_t i = 0; i < N_PAGES / N_SEQ; i++)
            pages[s][i] = (i * N_SEQ + s) * 37 % N_PAGES;
    }
    for (;;) {
        struct decoder_run runs[N_SEQ];
        uint32_t n_runs = 0, left = batch;
        for (uint32_t s = 0; s < N_SEQ && left; s++) {
            const uint32_t end = want[s] + decode;
            uint32_t n = done[s] < want[s] ? want[s] - done[s] : done[s] < end ? 1 : 0;
            n = n < left ? n : left;
            if (!n)
                continue;
            runs[n_runs++] = (struct decoder_run){.tokens = ids[s] + done[s],
                                                  .n = n,
                                                  .pos0 = done[s],
                                                  .pages = pages[s],
                                                  .n_logits_last = n < 5 ? n : 5};
            done[s] += n;
            left -= n;
        }
        if (!n_runs)
            return bad;
        const uint32_t rows = gpu_pass(o, m->rows, runs, n_runs);
        decoder_forward(m->cpu, runs, n_runs);
        gpu_run(o, rows);
        for (uint32_t r = 0; r < rows; r++)
            bad += memcmp(decoder_logits(m->cpu, r), o->logits + (size_t)r * n_vocab,
                          n_vocab * sizeof(float)) != 0;
    }
}

static const char *short_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static int bits(const char *path, bool small, int n_sms)
{
    const struct {
        struct cuda_gpu_grid grid;
        uint32_t one, tokens, batch;
        bool many;
    } cases[] = {{{0, false}, (uint32_t)n_sms, 0, 1, false},
                 {{0, false}, (uint32_t)n_sms, 0, 64, true},
                 {{0, false}, 0, 0, 7, true},
                 {{0, false}, 0, 0, 64, false},
                 {{16, true}, 0, 8, 19, false},
                 {{0, false}, 32, 0, 1, true},
                 {{8, true}, 0, 1, 7, false},
                 {{(uint32_t)n_sms, false}, 0, 8, 64, false},
                 {{3, false}, 0, 5, 33, false},
                 {{1, false}, 0, 2, 11, false}};
    int bad = 0;
    for (int kv = 0; kv < (small ? 1 : 2); kv++) {
        struct model m;
        model_load(&m, path, kv ? KERN_KV_Q8 : KERN_KV_F16, true);
        const uint32_t ctx = decoder_n_ctx(m.cpu), longest = small ? 20 : ctx < 96 ? ctx / 2 : 75;
        for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
            struct on_gpu o;
            if (small && i > 3)
                continue;
            if (!gpu_open(&o, m.rows, cases[i].grid, cases[i].one, cases[i].tokens,
                          cases[i].many)) {
                if (refused[0])
                    break;
                continue;
            }
            const uint32_t wrong = compare(&m, &o, cases[i].batch, longest, small ? 2 : 12);
            if (wrong)
                printf("DIFFERENT %s: %u rows, kv %s, %u blocks%s, steps of %u, batch %u, one: %u "
                       "blocks, many %d\n",
                       short_name(path), wrong, kv ? "q8" : "f16", o.grid.n_blocks,
                       o.grid.cluster ? " (cluster)" : "", o.m.tokens, cases[i].batch, o.one.blocks,
                       cases[i].many);
            bad += wrong != 0;
            gpu_close(&o);
        }
        model_close(&m);
    }
    printf("bits %-24s %s\n", short_name(path), bad ? "DIFFERENT" : refused[0] ? refused : "equal");
    refused[0] = '\0';
    fflush(stdout);
    return bad != 0;
}

/* ---- time ---- */

static double step_ms(struct on_gpu *o, struct model *m, uint32_t n_seq, uint32_t each,
                      uint32_t pos, uint32_t times)
{
    struct decoder_run runs[64];
    static uint32_t pages[64][N_PAGES];
    static int32_t ids[MAX_BATCH];
    struct err e = {0};
    const uint32_t of_run = (pos + each + 15) / 16;
    for (uint32_t i = 0; i < MAX_BATCH; i++)
        ids[i] = (int32_t)(i * 7919 % decoder_config(m->rows)->n_vocab);
    for (uint32_t s = 0; s < n_seq; s++) {
        for (uint32_t i = 0; i < of_run; i++)
            pages[s][i] = (s * of_run + i) % N_PAGES;
        runs[s] = (struct decoder_run){
            .tokens = ids + s, .n = each, .pos0 = pos, .pages = pages[s], .n_logits_last = 1};
    }
    gpu_run(o, gpu_pass(o, m->rows, runs, n_seq));
    double best = 1e9;
    for (int round = 0; round < 3; round++) {
        const double from = now_ms();
        for (uint32_t i = 0; i < times; i++)
            if (gpu_launch(o, &e) < 0)
                die("step", &e);
        if (cuda_gpu_wait(o->g, &e) < 0)
            die("step", &e);
        const double ms = (now_ms() - from) / times;
        best = ms < best ? ms : best;
    }
    return best;
}

/* A whole pass: copy in, step, logits back, one after the other. */
static double pass_ms(struct on_gpu *o, struct model *m, uint32_t pos, uint32_t times)
{
    uint32_t pages[N_PAGES];
    int32_t id = 5;
    for (uint32_t i = 0; i < N_PAGES; i++)
        pages[i] = i;
    const struct decoder_run run = {
        .tokens = &id, .n = 1, .pos0 = pos, .pages = pages, .n_logits_last = 1};
    const double from = now_ms();
    for (uint32_t i = 0; i < times; i++)
        gpu_run(o, gpu_pass(o, m->rows, &run, 1));
    return (now_ms() - from) / times;
}

/* Cycles of the first and of the last block in one step, if the kernels were compiled with
 * STEP_PROFILE. */
static void profile(struct on_gpu *o)
{
    static const char *const step[] = {"norm qkv/out", "norm ffn", "load",        "qkv",
                                       "attn_out",     "ffn",      "down",        "output",
                                       "barrier",      "attend",   "barrier att", NULL};
    static const char *const one[] = {"begin", "norm qkv", "qkv",  "att in", "out",    "norm ffn",
                                      "ffn",   "ffn in",   "down", "attend", "output", NULL};
    enum { N = 32 };
    const char *const *names = o->one.layers ? one : step;
    struct err e = {0};
    long long *cycles = malloc(N * sizeof(*cycles));
    memset(cycles, 0, N * sizeof(*cycles));
    if (cuda_gpu_copy_in(o->g, o->m.scores, cycles, N * sizeof(*cycles), &e) < 0 ||
        gpu_launch(o, &e) < 0 ||
        cuda_gpu_copy_out(o->g, cycles, o->m.scores, N * sizeof(*cycles), &e) < 0 ||
        cuda_gpu_wait(o->g, &e) < 0)
        die("profile", &e);
    for (int half = 0; half < (o->one.layers ? 2 : 1); half++) {
        long long all = 0;
        for (int i = 0; names[i]; i++)
            all += cycles[16 * half + i];
        printf("  %s block %lld:", half ? "last" : "first", all);
        for (int i = 0; names[i]; i++)
            printf(" %s %lld%s", names[i], cycles[16 * half + i], names[i + 1] ? "," : "\n");
    }
    free(cycles);
}

static void times(const char *path, int n_sms)
{
    const uint32_t n = (uint32_t)n_sms;
    const struct {
        struct cuda_gpu_grid grid;
        uint32_t one;
    } grids[] = {{{n, false}, n}, {{n, false}, 64}, {{n, false}, 0}, {{16, true}, 0}};
    const char *only = getenv("CUDA_CHECK_GRIDS"); /* how many of them */
    struct model m;
    model_load(&m, path, KERN_KV_F16, false);
    const struct decoder_sizes sizes = decoder_sizes(m.rows);
    printf("time %s: %.1f MB of weights by rows; ms a step\n", short_name(path),
           (double)sizes.weights / 1e6);
    printf("  columns: sequences@position, a prompt of 512 tokens, a whole pass with its copies\n");
    printf("  %-11s %8s %8s %8s %8s %8s %8s %8s %8s\n", "step/one", "1@16", "1@500", "1@1500",
           "4@16", "8@16", "16@16", "512", "pass1");
    for (size_t i = 0; i < sizeof(grids) / sizeof(grids[0]); i++) {
        struct on_gpu o;
        if (only && i >= strtoul(only, NULL, 10))
            break;
        if (sizes.weights > (size_t)400 << 20 && grids[i].grid.cluster)
            continue;
        if (!gpu_open(&o, m.rows, grids[i].grid, grids[i].one, 0, i == 0))
            continue;
        const bool longer = decoder_n_ctx(m.rows) > 1600;
        printf("  %3u%-2s/%3u  ", grids[i].grid.n_blocks, grids[i].grid.cluster ? "c" : "",
               o.one.blocks);
        printf(" %8.4f", step_ms(&o, &m, 1, 1, 16, 100));
        if (getenv("STEP_PROFILE")) {
            printf("\n");
            profile(&o);
            gpu_close(&o);
            continue;
        }
        printf(" %8.4f", decoder_n_ctx(m.rows) > 501 ? step_ms(&o, &m, 1, 1, 500, 50) : NAN);
        printf(" %8.4f", longer ? step_ms(&o, &m, 1, 1, 1500, 20) : NAN);
        if (getenv("CUDA_CHECK_ONE")) {
            printf("\n");
            gpu_close(&o);
            continue;
        }
        printf(" %8.4f", step_ms(&o, &m, 4, 1, 16, 50));
        printf(" %8.4f", step_ms(&o, &m, 8, 1, 16, 50));
        printf(" %8.4f", step_ms(&o, &m, 16, 1, 16, 20));
        printf(" %8.3f", decoder_n_ctx(m.rows) >= 512 ? step_ms(&o, &m, 1, 512, 0, 2) : NAN);
        printf(" %8.4f\n", pass_ms(&o, &m, 16, 200));
        fflush(stdout);
        gpu_close(&o);
    }
    model_close(&m);
}

/* One pass of each kind, for a profiler. */
static void passes(const char *path, int n_sms)
{
    struct model m;
    struct on_gpu o;
    model_load(&m, path, KERN_KV_F16, false);
    if (gpu_open(&o, m.rows, (struct cuda_gpu_grid){(uint32_t)n_sms, false}, (uint32_t)n_sms, 0,
                 true)) {
        (void)step_ms(&o, &m, 1, 1, 16, 1);
        (void)step_ms(&o, &m, 1, 512, 0, 1);
        (void)step_ms(&o, &m, 4, 1, 16, 1);
        gpu_close(&o);
    }
    model_close(&m);
}

int main(int argc, char **argv)
{
    struct cuda_gpu_info info;
    struct err e = {0};
    int bad = 0;
    if (argc < 3) {
        fprintf(stderr, "usage: cuda_check bits|small|passes|time FILE...\n");
        return 2;
    }
    if (cuda_gpu_describe(&info, &e) < 0 || !cuda_gpu_has_code()) {
        printf("skipped: %s\n", e.code ? e.msg : "this build has no CUDA kernels");
        return 77;
    }
    printf("%s, sm_%d%d, %d multiprocessors, %zu MiB, %zu KiB shared, L2 %zu MiB, driver for CUDA "
           "%d.%d\n",
           info.name, info.major, info.minor, info.n_sms, info.memory_bytes >> 20,
           info.shared_bytes >> 10, info.l2_bytes >> 20, info.driver / 1000,
           info.driver % 1000 / 10);
    struct cuda_gpu *whole; /* keeps the driver's context, which takes long to make */
    if (cuda_gpu_open(&whole, &e) < 0)
        die("GPU", &e);
    for (int i = 2; i < argc; i++) {
        if (strcmp(argv[1], "time") == 0)
            times(argv[i], info.n_sms);
        else if (strcmp(argv[1], "passes") == 0)
            passes(argv[i], info.n_sms);
        else
            bad |= bits(argv[i], strcmp(argv[1], "small") == 0, info.n_sms);
    }
    cuda_gpu_close(whole);
    return bad;
}
