/* bench_kernels.c - measures the matrix products of each kernel set: GB/s of tiled weights and
 * GOPS.
 *
 * One thread.  The matrices form a working set of tiles (random quants, all scales 1/64)
 * that fits into L2, L3 or memory.  The machine may be busy, so the best of many short windows
 * counts. "read" is a plain sum over the same bytes: the limit for one token. */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/mem.h"
#include "kernels/kern.h"
#include "kernels/tiles.h"

#define MAX_TOKENS 512

struct opts {
    const char *set, *fmt, *place;
    uint32_t cols, tokens; /* tokens 0: the usual three */
    double seconds;        /* per measurement */
};

struct place {
    const char *name;
    size_t bytes;
};

static void usage(FILE *to)
{
    fprintf(to, "usage: kernels [--set NAME] [--fmt NAME] [--tokens N] [--in L2|L3|mem]\n"
                "               [--cols N] [--seconds S per figure]\n");
}

static size_t cache_bytes(int level, size_t fallback)
{
    long n = sysconf(level == 2 ? _SC_LEVEL2_CACHE_SIZE : _SC_LEVEL3_CACHE_SIZE);
    return n > 0 ? (size_t)n : fallback; /* arm64 systems often do not report it */
}

/* Random quants; every F16 scale and min is 2^-6, and so is every float weight. */
static void fill(uint8_t *data, size_t n_tiles, const struct kern_ops *k, enum kern_fmt fmt,
                 uint32_t cols)
{
    const struct tiles_map map = tiles_map(&k->layout, fmt, cols);
    const float w32 = 0.015625f;
    const uint16_t w16 = fmt == KERN_BF16 ? 0x3c80 : quant_f32_to_f16(w32);
    uint64_t seed = 1;
    for (size_t t = 0; t < n_tiles; t++, data += map.bytes) {
        size_t floats = kern_fmt_is_float(fmt) ? map.bytes : map.quants;
        for (size_t i = 0; i < floats; i += fmt == KERN_F32 ? 4 : 2)
            memcpy(data + i, fmt == KERN_F32 ? (const void *)&w32 : (const void *)&w16,
                   fmt == KERN_F32 ? 4 : 2);
        for (size_t i = floats; i < map.bytes; i += 8) {
            uint64_t v = hash_mix(seed++);
            memcpy(data + i, &v, 8);
        }
    }
}

static double read_rate(const uint8_t *data, size_t bytes, double seconds)
{
    typedef uint64_t word __attribute__((vector_size(16)));
    const uint64_t stop = clock_ns() + (uint64_t)(seconds * 1e9);
    const size_t window = bytes < (16u << 20) ? bytes / 128 * 128 : (16u << 20);
    double best = 0;
    for (size_t at = 0; clock_ns() < stop || best == 0; at += window) {
        if (at + window > bytes)
            at = 0;
        uint64_t t0 = clock_ns();
        word sum[8] = {{0}};
        for (size_t i = at; i < at + window; i += sizeof(sum)) {
            word v[8];
            memcpy(v, data + i, sizeof(v));
            __builtin_prefetch(data + i + 2048);
            __builtin_prefetch(data + i + 2048 + 64);
#pragma GCC unroll 8
            for (int j = 0; j < 8; j++)
                sum[j] += v[j];
        }
        __asm__ volatile("" : : "m"(sum)); /* keeps the compiler from removing the sums */
        double rate = (double)window / (double)(clock_ns() - t0);
        best = rate > best ? rate : best;
    }
    return best;
}

/* The best rate in GB/s of weights; the rate of operations follows from it. */
static double gemm_rate(const struct kern_ops *k, const struct kern_mat *m, struct kern_act *a,
                        uint32_t tokens, size_t bytes, float *out, double seconds)
{
    const uint64_t stop = clock_ns() + (uint64_t)(seconds * 1e9);
    const uint32_t n_tiles = (uint32_t)(bytes / m->tile_bytes);
    /* windows of a few milliseconds, so that a short quiet moment is enough */
    size_t want = (tokens == 1 ? 16u << 20 : (2u << 20) / tokens + (64u << 10)) / m->tile_bytes + 1;
    uint32_t window = want < n_tiles ? (uint32_t)want : n_tiles;
    double best = 0;
    for (uint32_t tile = 0, runs = 0; clock_ns() < stop || runs < 2; tile += window, runs++) {
        if (tile + window > n_tiles)
            tile = 0;
        uint64_t t0 = clock_ns();
        k->gemm(m, a, tokens, tile, tile + window, out, m->n_rows);
        double rate = (double)window * (double)m->tile_bytes / (double)(clock_ns() - t0);
        best = rate > best ? rate : best;
    }
    return best;
}

static int bench_fmt(const struct kern_ops *k, enum kern_fmt fmt, const struct place *place,
                     const struct opts *o)
{
    static const uint32_t usual[] = {1, 8, 128};
    struct kern_mat m = {.fmt = fmt, .n_cols = o->cols, .mul = 1.0f};
    m.tile_bytes = tiles_bytes(&k->layout, fmt, o->cols);
    const uint32_t n_tiles = (uint32_t)(place->bytes / m.tile_bytes) + 1;
    m.n_rows = n_tiles * k->layout.tile_rows;
    const size_t bytes = n_tiles * m.tile_bytes, n_x = (size_t)MAX_TOKENS * o->cols;
    const size_t n_out = (size_t)MAX_TOKENS * m.n_rows * sizeof(float);
    uint8_t *data = mem_pages(bytes);
    float *x = mem_pages(n_x * sizeof(float)), *out = mem_pages(n_out);
    int8_t *q = mem_pages(n_x);
    float *scale = mem_pages(n_x / 8);
    int32_t *sums = mem_pages(n_x / 4);
    int rc = 1;
    if (data && x && out && q && scale && sums) {
        fill(data, n_tiles, k, fmt, o->cols);
        m.data = data;
        struct kern_act a = {
            .x = x, .ld = o->cols, .q = q, .scale = scale, .sums = sums, .n_cols = o->cols};
        for (size_t i = 0; i < n_x; i++)
            x[i] = (float)(int64_t)(hash_mix(i) >> 40) * 0x1p-23f - 1.0f;
        for (uint32_t t = 0; t < MAX_TOKENS; t++)
            k->quantize(&a, t, 0, o->cols / 32);
        printf("%-12s %-5s %-4s %7.1f", k->name, tiles_fmt_name(fmt), place->name,
               read_rate(data, bytes, o->seconds));
        for (size_t i = 0; i < (o->tokens ? 1 : 3); i++) {
            uint32_t n = o->tokens ? o->tokens : usual[i];
            double rate = gemm_rate(k, &m, &a, n, bytes, out, o->seconds);
            double weights = (double)k->layout.tile_rows * o->cols / (double)m.tile_bytes;
            printf("   %7.1f %7.1f", rate, rate * weights * 2 * n);
            fflush(stdout);
        }
        printf("\n");
        rc = 0;
    }
    mem_pages_free(data, bytes);
    mem_pages_free(x, n_x * sizeof(float));
    mem_pages_free(out, n_out);
    mem_pages_free(q, n_x);
    mem_pages_free(scale, n_x / 8);
    mem_pages_free(sums, n_x / 4);
    if (rc)
        fprintf(stderr, "kernels: cannot allocate %zu bytes of weights\n", bytes);
    return rc;
}

static int parse(struct opts *o, int argc, char **argv)
{
    static const struct option longs[] = {
        {"set", required_argument, NULL, 's'},    {"fmt", required_argument, NULL, 'f'},
        {"tokens", required_argument, NULL, 't'}, {"in", required_argument, NULL, 'i'},
        {"cols", required_argument, NULL, 'c'},   {"seconds", required_argument, NULL, 'x'},
        {"help", no_argument, NULL, 'h'},         {NULL, 0, NULL, 0}};
    for (int c; (c = getopt_long(argc, argv, "", longs, NULL)) != -1;)
        switch (c) {
        case 's':
            o->set = optarg;
            break;
        case 'f':
            o->fmt = optarg;
            break;
        case 'i':
            o->place = optarg;
            break;
        case 't':
            o->tokens = (uint32_t)strtoul(optarg, NULL, 10);
            break;
        case 'c':
            o->cols = (uint32_t)strtoul(optarg, NULL, 10);
            break;
        case 'x':
            o->seconds = strtod(optarg, NULL);
            break;
        case 'h':
            usage(stdout);
            exit(0);
        default:
            return -1;
        }
    return optind == argc && o->cols >= 32 && o->cols % 32 == 0 && o->cols <= 65536 &&
                   o->tokens <= MAX_TOKENS
               ? 0
               : -1;
}

int main(int argc, char **argv)
{
    struct opts o = {.cols = 2048, .seconds = 0.1};
    if (parse(&o, argc, argv) < 0) {
        usage(stderr);
        return 2;
    }
    const size_t l2 = cache_bytes(2, 1u << 20), l3 = cache_bytes(3, 16u << 20);
    const struct place places[] = {
        {"L2", l2 / 2},
        {"L3", l3 / 4 > 4 * l2 ? 4 * l2 : l3 / 4},
        {"mem", l3 * 4 > (256u << 20) ? l3 * 4 : 256u << 20},
    };
    const struct kern_ops *sets[8];
    size_t n_sets = kern_usable(sets, 8);
    printf("%u columns; GB/s of weights and 10^9 operations/s (2 per weight and token)\n", o.cols);
    printf("%-12s %-5s %-4s %7s", "set", "fmt", "in", "read");
    if (o.tokens)
        printf("   %6u tokens\n", o.tokens);
    else
        printf("   %15s   %15s   %15s\n", "1 token", "8 tokens", "128 tokens");
    int rc = 0;
    for (size_t s = 0; s < n_sets; s++)
        for (int f = 0; f < KERN_N_FMTS; f++)
            for (size_t p = 0; p < sizeof(places) / sizeof(places[0]); p++) {
                /* the reference is slow: run it only if it is named */
                if (o.set ? strcmp(o.set, sets[s]->name) != 0 : sets[s] == &kern_scalar)
                    continue;
                if ((o.fmt && strcmp(o.fmt, tiles_fmt_name((enum kern_fmt)f)) != 0) ||
                    (o.place && strcmp(o.place, places[p].name) != 0))
                    continue;
                rc |= bench_fmt(sets[s], (enum kern_fmt)f, &places[p], &o);
            }
    return rc;
}
