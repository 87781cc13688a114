/* bench_adapters.c - what LoRA adapters cost when sequences decode together: a step without them,
 * with one that all share, and with a different one for each sequence, in turn.
 *
 * usage: bench_adapters MODEL [RANK [SEQUENCES [STEPS [THREADS]]]]   a decoder; weights of the
 * adapters are random */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/mem.h"
#include "format/model_open.h"
#include "model/adapter.h"
#include "model/adapter_make.h"
#include "model/decoder.h"

enum { MAX_SEQUENCES = 64, MAX_STEPS = 1000, CONTEXT = 256, WAYS = 3 };

static void die(const char *what, const struct err *e)
{
    fprintf(stderr, "bench_adapters: %s: %s\n", what, e->msg);
    exit(1);
}

static void add_matrix(struct model_file *m, const char *base, char which, uint64_t rows,
                       uint64_t cols, uint64_t seed)
{
    char name[160];
    const int n = snprintf(name, sizeof(name), "%s.lora_%c", base, which);
    float *values = model_file_alloc(m, rows * cols * sizeof(float));
    char *own = model_file_alloc(m, (size_t)n + 1);
    struct model_file_tensor *t = values && own ? model_file_add_tensor(m) : NULL;
    if (!t) {
        fprintf(stderr, "bench_adapters: out of memory\n");
        exit(1);
    }
    memcpy(own, name, (size_t)n + 1);
    for (uint64_t i = 0; i < rows * cols; i++)
        values[i] = (float)((double)(hash_mix(seed * 1000003 + i) >> 40) / (1 << 24) - 0.5) * 0.05f;
    *t = (struct model_file_tensor){.name = {own, (size_t)n},
                                    .type = QUANT_F32,
                                    .n_dims = 2,
                                    .dims = {cols, rows, 1, 1},
                                    .data = (const uint8_t *)values,
                                    .n_bytes = rows * cols * sizeof(float),
                                    .in_memory = true};
}

/* An adapter of queries and values, or of all matrices of the layers. */
static struct adapter *make(const struct decoder *d, const struct model_file *base, bool all,
                            uint32_t rank, uint64_t seed)
{
    static const char *const ends[] = {"attn_q.weight",      "attn_v.weight",   "attn_k.weight",
                                       "attn_output.weight", "ffn_gate.weight", "ffn_up.weight",
                                       "ffn_down.weight"};
    struct model_file *m;
    struct adapter *a;
    struct err e = {0};
    if (model_file_create(&m, &e) < 0)
        die("adapter", &e);
    model_file_put_f32(m, "adapter.lora.alpha", (float)rank);
    for (size_t i = 0; i < base->n_tensors; i++) {
        const struct model_file_tensor *t = &base->tensors[i];
        char name[128];
        snprintf(name, sizeof(name), "%.*s", (int)t->name.n, t->name.p);
        for (size_t k = 0; k < (all ? 7 : 2); k++) {
            const size_t n = strlen(ends[k]);
            if (t->name.n < n || strcmp(name + t->name.n - n, ends[k]) != 0)
                continue;
            add_matrix(m, name, 'a', rank, t->dims[0], seed + 2 * i);
            add_matrix(m, name, 'b', t->dims[1], rank, seed + 2 * i + 1);
        }
    }
    if (adapter_make(&a, d, m, &e) < 0)
        die("adapter", &e);
    model_file_close(m);
    return a;
}

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* One step of all sequences; way: 0 without adapters, 1 all with the first, 2 each with its own. */
static double step(struct decoder *d, struct adapter *const *list, uint32_t n, uint32_t pos,
                   int way)
{
    static uint32_t pages[MAX_SEQUENCES][CONTEXT / KERN_PAGE];
    static const int32_t token = 5;
    struct decoder_run runs[MAX_SEQUENCES];
    for (uint32_t i = 0; i < n; i++) {
        for (uint32_t p = 0; p < CONTEXT / KERN_PAGE; p++)
            pages[i][p] = i * (CONTEXT / KERN_PAGE) + p;
        runs[i] = (struct decoder_run){.tokens = &token,
                                       .n = 1,
                                       .pos0 = pos,
                                       .pages = pages[i],
                                       .n_logits_last = 1,
                                       .adapter = way == 0 ? NULL : list[way == 1 ? 0 : i],
                                       .adapter_scale = 1.0f};
    }
    const uint64_t from = clock_ns();
    decoder_forward(d, runs, n);
    return (double)(clock_ns() - from) / 1e6;
}

static void measure(struct decoder *d, const struct model_file *base, bool all, uint32_t rank,
                    uint32_t n, uint32_t n_steps)
{
    static double times[WAYS][MAX_STEPS];
    struct adapter *list[MAX_SEQUENCES];
    size_t bytes = 0;
    double median[WAYS];
    for (uint32_t i = 0; i < n; i++) {
        list[i] = make(d, base, all, rank, (uint64_t)i * 7919);
        bytes += adapter_bytes(list[i]);
    }
    for (uint32_t i = 0; i < n_steps + 3; i++) /* in turn: the machine is the same for all */
        for (int way = 0; way < WAYS; way++) {
            const double ms = step(d, list, n, 32 + i % (CONTEXT - 32), way);
            if (i >= 3)
                times[way][i - 3] = ms;
        }
    for (int way = 0; way < WAYS; way++) {
        qsort(times[way], n_steps, sizeof(double), by_value);
        median[way] = times[way][n_steps / 2];
    }
    printf("%-22s %10.3f %10.3f %+6.1f %% %10.3f %+6.1f %% %8.1f\n",
           all ? "all matrices of a layer" : "queries and values", median[0], median[1],
           100 * (median[1] / median[0] - 1), median[2], 100 * (median[2] / median[0] - 1),
           (double)bytes / 1e6);
    for (uint32_t i = 0; i < n; i++)
        adapter_destroy(list[i]);
}

static uint32_t number(int argc, char **argv, int i, uint32_t usual, uint32_t most)
{
    const unsigned long v = i < argc ? strtoul(argv[i], NULL, 10) : usual;
    return v < 1 ? 1 : v > most ? most : (uint32_t)v;
}

int main(int argc, char **argv)
{
    struct model_file *base;
    struct decoder *d;
    struct err e = {0};
    if (argc < 2) {
        fprintf(stderr, "usage: bench_adapters MODEL [RANK [SEQUENCES [STEPS [THREADS]]]]\n");
        return 2;
    }
    const uint32_t rank = number(argc, argv, 2, 16, ADAPTER_MAX_RANK);
    const uint32_t n = number(argc, argv, 3, 16, MAX_SEQUENCES);
    const uint32_t n_steps = number(argc, argv, 4, 60, MAX_STEPS);
    const struct decoder_opts o = {.n_ctx = CONTEXT,
                                   .max_batch = MAX_SEQUENCES,
                                   .max_logits = MAX_SEQUENCES,
                                   .n_threads = argc > 5 ? number(argc, argv, 5, 1, 64) : 0};
    if (model_open(&base, argv[1], &e) < 0 || decoder_create(&d, base, argv[1], &o, &e) < 0)
        die(argv[1], &e);
    const size_t kv_bytes = decoder_kv_page_bytes(d) * MAX_SEQUENCES * (CONTEXT / KERN_PAGE);
    uint8_t *kv = mem_pages(kv_bytes);
    if (!kv)
        die("memory for keys and values", &e);
    decoder_set_kv(d, kv);
    printf("%u sequences, rank %u, %u threads, %s; ms of a step, median of %u\n", n, rank,
           decoder_n_threads(d), decoder_kernels(d)->name, n_steps);
    printf("%-22s %10s %10s %8s %10s %8s %8s\n", "adapters of", "without", "shared", "", "each own",
           "", "MB");
    measure(d, base, false, rank, n, n_steps);
    measure(d, base, true, rank, n, n_steps);
    decoder_destroy(d);
    mem_pages_free(kv, kv_bytes);
    model_file_close(base);
    return 0;
}
