/* bench_trees.c - our trees compared with LightGBM's single-row C API, one thread each.
 *
 * usage: bench_trees LIB_LIGHTGBM.so [ROUNDS]
 *
 * Trains models of several shapes with the library itself, on generated rows, and scores 1,000
 * other rows one by one with both, in turn.  Prints one line of JSON per shape: nanoseconds per row
 * of every round, and the largest difference between the results. */
#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/hash.h"
#include "score/trees.h"

enum { TRAIN_ROWS = 6000, ROWS = 1000, MAX_FEATURES = 64, MAX_OUTPUTS = 8, MAX_ROUNDS = 200 };

static const struct shape {
    const char *name;
    int n_features, n_categorical, n_outputs, n_trees;
    bool missing;
    const char *parameters;
} shapes[] = {
    {"100 trees, 31 leaves, 28 features", 28, 0, 1, 100, false, "objective=binary num_leaves=31"},
    {"100 trees, 31 leaves, missing values", 28, 0, 1, 100, true, "objective=binary num_leaves=31"},
    {"100 trees, 31 leaves, categories", 20, 6, 1, 100, true,
     "objective=regression num_leaves=31 categorical_feature=0,1,2,3,4,5"},
    {"100 trees, 127 leaves, 60 features", 60, 0, 1, 100, false,
     "objective=regression num_leaves=127"},
    {"100 trees, 8 leaves, 12 features", 12, 0, 1, 100, false, "objective=binary num_leaves=8"},
    {"5 classes of 20 trees, 31 leaves", 28, 0, 5, 100, false,
     "objective=multiclass num_class=5 num_leaves=31"},
};

typedef void *handle;
static struct {
    int (*dataset)(const void *, int, int32_t, int32_t, int, const char *, handle, handle *);
    int (*set_field)(handle, const char *, const void *, int, int);
    int (*create)(handle, const char *, handle *);
    int (*update)(handle, int *);
    int (*save)(handle, int, int, int, const char *);
    int (*load)(const char *, int *, handle *);
    int (*fast_init)(handle, int, int, int, int, int32_t, const char *, handle *);
    int (*fast)(handle, const void *, int64_t *, double *);
    int (*free_booster)(handle);
    int (*free_dataset)(handle);
} lgbm;

static void die(const char *what)
{
    fprintf(stderr, "bench_trees: %s\n", what);
    exit(1);
}

static void open_library(const char *path)
{
    static const struct {
        const char *name;
        void *to;
    } symbols[] = {
        {"LGBM_DatasetCreateFromMat", &lgbm.dataset},
        {"LGBM_DatasetSetField", &lgbm.set_field},
        {"LGBM_BoosterCreate", &lgbm.create},
        {"LGBM_BoosterUpdateOneIter", &lgbm.update},
        {"LGBM_BoosterSaveModel", &lgbm.save},
        {"LGBM_BoosterCreateFromModelfile", &lgbm.load},
        {"LGBM_BoosterPredictForMatSingleRowFastInit", &lgbm.fast_init},
        {"LGBM_BoosterPredictForMatSingleRowFast", &lgbm.fast},
        {"LGBM_BoosterFree", &lgbm.free_booster},
        {"LGBM_DatasetFree", &lgbm.free_dataset},
    };
    void *lib = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!lib)
        die(dlerror());
    for (size_t i = 0; i < sizeof(symbols) / sizeof(symbols[0]); i++) {
        void *at = dlsym(lib, symbols[i].name);
        if (!at)
            die(symbols[i].name);
        memcpy(symbols[i].to, &at, sizeof(at));
    }
}

static void make_row(const struct shape *s, uint64_t row, double *x)
{
    for (int f = 0; f < s->n_features; f++) {
        uint64_t h = hash_mix(row * 64 + (uint64_t)f + 1);
        x[f] = f < s->n_categorical ? (double)(h % 40) : (double)(h >> 11) / 0x1p51 - 2;
        if (s->missing && h % 9 == 0)
            x[f] = NAN;
    }
}

static float label_of(const struct shape *s, uint64_t row, const double *x)
{
    double y = 0;
    for (int f = 0; f < s->n_features; f++) {
        double v = isnan(x[f]) ? 0.3 : f < s->n_categorical ? fmod(x[f] * 7, 5) - 2 : x[f];
        y += sin(v * (1 + f % 3)) / (1 + f % 7) + (f % 4 == 1 ? 0.2 * v * x[(f + 5) % 8] : 0);
    }
    y += (double)(hash_mix(row + 77) % 1000) / 1000;
    if (isnan(y))
        y = 0;
    if (strstr(s->parameters, "multiclass"))
        return (float)(((int)floor(y * 2) % 5 + 5) % 5);
    return strstr(s->parameters, "binary") ? y > 0.5 : (float)y;
}

static void train(const struct shape *s, const char *path)
{
    static double x[TRAIN_ROWS * MAX_FEATURES];
    static float y[TRAIN_ROWS];
    char parameters[512];
    handle data = NULL, booster = NULL;
    int done = 0, bad;
    for (uint64_t r = 0; r < TRAIN_ROWS; r++) {
        double *row = x + r * (uint64_t)s->n_features;
        make_row(s, 1000000 + r, row);
        y[r] = label_of(s, r, row);
    }
    snprintf(parameters, sizeof(parameters),
             "%s learning_rate=0.05 min_data_in_leaf=10 num_threads=1 verbosity=-1 seed=7",
             s->parameters);
    bad = lgbm.dataset(x, 1, TRAIN_ROWS, s->n_features, 1, parameters, NULL, &data) ||
          lgbm.set_field(data, "label", y, TRAIN_ROWS, 0) ||
          lgbm.create(data, parameters, &booster);
    for (int i = 0; !bad && i < s->n_trees / s->n_outputs; i++)
        bad = lgbm.update(booster, &done);
    if (bad || lgbm.save(booster, 0, -1, 0, path))
        die("training failed");
    lgbm.free_booster(booster);
    lgbm.free_dataset(data);
}

/* CPU time of this thread, on which both compute: other processes do not affect it. */
static uint64_t cpu_ns(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
    return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static double round_ours(const struct trees *t, const struct shape *s, const double *x, double *out,
                         double *scratch)
{
    uint64_t from = cpu_ns();
    for (int r = 0; r < ROWS; r++)
        trees_predict(t, x + r * s->n_features, 1, false, out + r * s->n_outputs, scratch);
    return (double)(cpu_ns() - from) / ROWS;
}

static double round_theirs(handle fast, const struct shape *s, const double *x, double *out)
{
    int64_t n;
    uint64_t from = cpu_ns();
    for (int r = 0; r < ROWS; r++)
        if (lgbm.fast(fast, x + r * s->n_features, &n, out + r * s->n_outputs))
            die("prediction failed");
    return (double)(cpu_ns() - from) / ROWS;
}

static void print_list(const char *name, const double *v, int n)
{
    printf("\"%s\":[", name);
    for (int i = 0; i < n; i++)
        printf("%s%.1f", i ? "," : "", v[i]);
    printf("],");
}

static void compare(const struct shape *s, int rounds)
{
    static double x[ROWS * MAX_FEATURES], ours[ROWS * MAX_OUTPUTS], theirs[ROWS * MAX_OUTPUTS];
    double ns_ours[MAX_ROUNDS], ns_theirs[MAX_ROUNDS], worst = 0;
    char path[] = "/tmp/shoal-trees-XXXXXX";
    struct trees *t;
    struct err e = {0};
    handle booster = NULL, fast = NULL;
    int n, fd = mkstemp(path);
    if (fd < 0)
        die("cannot create a temporary file");
    close(fd);
    train(s, path);
    for (uint64_t r = 0; r < ROWS; r++)
        make_row(s, r, x + r * (uint64_t)s->n_features);
    if (trees_open(&t, path, &e) < 0)
        die(e.msg);
    if (lgbm.load(path, &n, &booster) ||
        lgbm.fast_init(booster, 0, 0, -1, 1, s->n_features, "num_threads=1", &fast))
        die("cannot load the model");
    unlink(path);
    double *scratch = malloc(trees_scratch(t) * sizeof(*scratch));
    round_ours(t, s, x, ours, scratch); /* warm-up of both */
    round_theirs(fast, s, x, theirs);
    for (int i = 0; i < rounds; i++) {
        if (i % 2)
            ns_theirs[i] = round_theirs(fast, s, x, theirs);
        ns_ours[i] = round_ours(t, s, x, ours, scratch);
        if (i % 2 == 0)
            ns_theirs[i] = round_theirs(fast, s, x, theirs);
    }
    for (int i = 0; i < ROWS * s->n_outputs; i++)
        worst = fmax(worst, fabs(ours[i] - theirs[i]));
    printf("{\"name\":\"%s\",\"n_trees\":%u,", s->name, trees_info(t).n_trees);
    print_list("ours_ns", ns_ours, rounds);
    print_list("peer_ns", ns_theirs, rounds);
    printf("\"difference\":%.3g}\n", worst);
    fflush(stdout);
    lgbm.free_booster(booster);
    free(scratch);
    trees_close(t);
}

int main(int argc, char **argv)
{
    int rounds = argc > 2 ? (int)strtol(argv[2], NULL, 10) : 30;
    if (argc < 2 || rounds < 1 || rounds > MAX_ROUNDS) {
        fprintf(stderr, "usage: bench_trees LIB_LIGHTGBM.so [ROUNDS (30, at most %d)]\n",
                MAX_ROUNDS);
        return 2;
    }
    open_library(argv[1]);
    for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++)
        compare(&shapes[i], rounds);
    return 0;
}
