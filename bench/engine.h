/* engine.h - shared by the files of the engine benchmark: options, rows, limits, model files and
 * measurements.  What is measured and how: bench/README.md.
 *
 * Thread:    one.
 * Ownership: options borrow argv; engine_rows_fini and duel_fini free what a run made.
 * Failure:   SHOAL_ECANCELLED ends a run (a signal, or the time limit); other failures of one
 *            program are noted in the affected row and the run continues.  cJSON never returns NULL
 *            here: main() installs an allocator that exits if memory runs out. */
#ifndef SHOAL_BENCH_ENGINE_H
#define SHOAL_BENCH_ENGINE_H

#include <stdio.h>

#include "duel.h"

#define ENGINE_MAX_LIST 8u
#define ENGINE_MAX_ROUNDS 1000u
#define ENGINE_MAX_BAND 64u

/* ---- options ---- */

enum engine_test {
    ENGINE_DECODE,
    ENGINE_PROMPT,
    ENGINE_SEQS,
    ENGINE_BUSY,
    ENGINE_LOAD,
    ENGINE_N_TESTS
};

struct engine_words { /* a list on the command line, each word from a fixed set */
    const char *at[ENGINE_MAX_LIST];
    uint32_t n;
};

struct engine_opts {
    struct engine_words shapes, types, tests;
    uint32_t threads[ENGINE_MAX_LIST], n_threads, max_threads;
    uint32_t n_cpus; /* number of cores that the programs may use */
    bool pinned;
    cpu_set_t cpus;
    /* as given on the command line */
    bool help, quick, best, cpu, one_thread, peer_both, no_peer, no_limits, keep_f16, files;
    double rounds, limit_s, answer_s;
    const char *shape_list, *type_list, *test_list, *thread_list, *cpu_list;
    const char *ours, *peer, *peer_libs, *models, *json, *jsonl;
};

/* SHOAL_EINVAL: e says what is wrong. */
SHOAL_MUST_CHECK int engine_opts_read(struct engine_opts *o, int argc, char **argv, struct err *e);
void engine_opts_help(FILE *out);
bool engine_has_word(const struct engine_words *w, const char *word);
bool engine_wants(const struct engine_opts *o, enum engine_test test);

/* ---- rows ---- */

struct engine_row { /* NAN: unknown */
    char name[96];
    double ours, peer, ratio, roofline;
    const char *unit;
    char target[48]; /* "": no target */
    double met;      /* 0 or 1 */
    cJSON *more;     /* further fields, owned; or NULL */
};

struct engine_rows {
    cJSON *list;
    FILE *jsonl; /* or NULL */
};

double engine_median(const double *v, size_t n); /* NAN without values */
double engine_spread(const double *v, size_t n); /* half the interquartile range over the median */
cJSON *engine_number(double v);                  /* null for NAN */
cJSON *engine_pair(double ours, double peer);

SHOAL_MUST_CHECK int engine_rows_init(struct engine_rows *r, const char *jsonl, struct err *e);
void engine_rows_fini(struct engine_rows *r);
/* Also writes the row to the jsonl file at once. */
void engine_rows_add(struct engine_rows *r, const struct engine_row *row);
/* Our figure in the row of that name; NAN if there is none. */
double engine_rows_ours(const struct engine_rows *r, const char *name);
void engine_rows_print(const struct engine_rows *r, int first); /* a table, starting at that row */
/* Prints "N of M targets met". */
void engine_rows_judge(const struct engine_rows *r, const char *path);
/* Replaces the rows of the part "engine" in the file; other parts stay. */
SHOAL_MUST_CHECK int engine_rows_write(const struct engine_rows *r, const char *path,
                                       const cJSON *about, struct err *e);

/* ---- the machine's limits and the model files ---- */

struct engine_limits { /* the best of each figure so far: a limit is what can be reached */
    struct {
        uint32_t threads;
        double bytes, gb_s;
    } band[ENGINE_MAX_BAND];
    struct {
        uint32_t threads;
        double gops;
    } peak[ENGINE_MAX_BAND];
    size_t n_band, n_peak;
    char cpu[128];
};

/* names: read only the names of CPU and kernels. */
SHOAL_MUST_CHECK int engine_limits_measure(struct engine_limits *l, struct duel *d,
                                           const char *shoal, bool names, struct err *e);
/* Tokens per second; NAN: unknown. */
double engine_limits_decode(const struct engine_limits *l, double bytes, uint32_t threads);
double engine_limits_prompt(const struct engine_limits *l, double weights, uint32_t threads);
void engine_limits_about(const struct engine_limits *l, cJSON *about);

struct engine_shape {
    double weights_bytes, touched_bytes; /* touched: read for one decoded token */
    double layer_weights;
    double kv_token_bytes; /* F16 */
};

SHOAL_MUST_CHECK int engine_shape_read(struct engine_shape *s, const char *path, struct err *e);

/* ---- a run ---- */

struct engine_run {
    const struct engine_opts *o;
    struct duel d;
    struct engine_rows rows;
    struct engine_limits limits;
    cJSON *failures; /* messages, without duplicates */
    bool has_peer;
    /* what the programs must have loaded; holds: whether a program has */
    char file[1024];
    uint32_t ctx, seqs;
    bool holds[2];
};

/* Prints one line of progress to stderr; "" clears it on a terminal. */
void engine_say(const char *fmt, ...) SHOAL_PRINTF(1, 2);
/* Creates the parent folders of a file. */
void engine_make_folders(const char *path);
void engine_failed(struct engine_run *b, const char *text);
/* The file of a shape with weights of a type; made if it does not exist. */
SHOAL_MUST_CHECK int engine_file(struct engine_run *b, const char *shape, const char *type,
                                 char *path, size_t n, struct err *e);

struct engine_measure {
    const char *shape, *type;
    enum engine_test test;
    uint32_t n; /* number of prompt tokens */
};
#define ENGINE_NAME_BYTES 64
void engine_measure_name(const struct engine_measure *m, char out[ENGINE_NAME_BYTES]);
/* Runs a measurement and adds its rows.  Fails only with SHOAL_ECANCELLED. */
SHOAL_MUST_CHECK int engine_measure_run(struct engine_run *b, const struct engine_measure *m,
                                        const char *file, struct err *e);

#endif
