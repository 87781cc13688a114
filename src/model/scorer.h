/* scorer.h - any small scorer behind one surface: trees, or a program of layers over samples.
 *
 * A row is what one sensor reading or one example is: n_inputs values, NaN where one is missing.
 * Trees score every row; a layer program scores every `hop` rows over a window of them.
 *
 * Thread:    immutable after opening; any number of threads, each with state and scratch of its
 * own. Ownership: open gives, close takes back (NULL is fine).  Names live as long as the scorer.
 * Failure:   as trees.h and recurrent.h; SHOAL_EUNSUPPORTED for a file of no known kind; then *out
 *            is NULL.  Running cannot fail and allocates nothing. */
#ifndef SHOAL_MODEL_SCORER_H
#define SHOAL_MODEL_SCORER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct scorer;

enum scorer_kind { SCORER_TREES, SCORER_LAYERS };

struct scorer_opts { /* NULL or all zero: defaults */
    bool int8;       /* layers: weights and activations in 8 bits */
    bool raw;        /* trees: the score before the objective's transformation */
};

struct scorer_info {
    enum scorer_kind kind;
    const char *description;         /* "LightGBM trees, binary sigmoid:1" */
    uint32_t n_inputs;               /* values of a row */
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

/* Bytes of 64-byte aligned memory that the calls below work in; floats that a stream keeps. */
size_t scorer_scratch_bytes(const struct scorer *s);
size_t scorer_state_floats(const struct scorer *s);

/* Scores of n rows: one per row, or per hop or window (recurrent_n_scores). */
size_t scorer_n_scores(const struct scorer *s, size_t n_rows);
/* rows: [n_rows][n_inputs]; out: [scorer_n_scores][n_outputs].  Stateful scorers begin anew. */
void scorer_run(const struct scorer *s, const double *rows, size_t n_rows, double *out,
                void *scratch);

/* A stream: the next `hop` rows, one score. */
void scorer_reset(const struct scorer *s, float *state);
void scorer_step(const struct scorer *s, float *state, const double *rows, double *out,
                 void *scratch);

#endif
