/* scorer.h - any small scorer behind one surface: trees, a program of layers over samples, or the
 * anomaly model over any number of channels.
 *
 * A row is what one sensor reading or one example is: n_inputs values, NaN where one is missing.
 * Trees and the anomaly model score every row; a layer program scores every `hop` rows over a
 * window of them.
 *
 * Thread:    immutable after opening; any number of threads, each with state and scratch of its
 * own. Ownership: open gives, close takes back (NULL is fine).  Names live as long as the scorer.
 * Failure:   as trees.h, recurrent.h and anomaly.h; SHOAL_EUNSUPPORTED for a file of no known kind;
 * then *out is NULL.  Running cannot fail and allocates nothing. */
#ifndef SHOAL_SCORE_SCORER_H
#define SHOAL_SCORE_SCORER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct scorer;

enum scorer_kind { SCORER_TREES, SCORER_LAYERS, SCORER_ANOMALY };

struct scorer_opts { /* NULL or all zero: defaults */
    bool int8;       /* layers: weights and activations in 8 bits */
    bool raw;        /* trees: the score before the objective's transformation */
};

struct scorer_info {
    enum scorer_kind kind;
    const char *description;         /* "LightGBM trees, binary sigmoid:1" */
    uint32_t n_inputs;               /* values of a row; 0: as many as the caller has */
    uint32_t max_inputs;             /* n_inputs, or the most there may be */
    const char *const *input_names;  /* [n_inputs] or NULL */
    uint32_t window, hop;            /* in rows; 1 and 1 for trees */
    bool stateful;                   /* a score depends on all rows before it */
    uint32_t n_outputs;              /* values of a score */
    const char *const *output_names; /* [n_outputs] */
    bool has_threshold;
    double threshold; /* from which on the first output is an alarm */
};

/* path: a LightGBM model text file, a folder with a config.json of a scorer, or that file. */
SHOAL_MUST_CHECK int scorer_open(struct scorer **out, const char *path, const struct scorer_opts *o,
                                 struct err *e);
void scorer_close(struct scorer *s);
struct scorer_info scorer_info(const struct scorer *s);

/* Bytes of 64-byte aligned memory: what the calls below work in, and what a stream of rows of
 * n_columns values keeps (may be 0).  n_columns is info.n_inputs unless that is 0. */
size_t scorer_scratch_bytes(const struct scorer *s);
size_t scorer_state_bytes(const struct scorer *s, uint32_t n_columns);

/* Scores of n rows: one per row, or per hop or window (recurrent_n_scores). */
size_t scorer_n_scores(const struct scorer *s, size_t n_rows);
/* rows: [n_rows][n_columns]; out: [scorer_n_scores][n_outputs].  Begins anew in state. */
void scorer_run(const struct scorer *s, const double *rows, size_t n_rows, uint32_t n_columns,
                double *out, void *state, void *scratch);

/* A stream: the next `hop` rows, one score. */
void scorer_reset(const struct scorer *s, void *state, uint32_t n_columns);
void scorer_step(const struct scorer *s, void *state, const double *rows, double *out,
                 void *scratch);

#endif
