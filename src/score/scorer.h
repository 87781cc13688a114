/* scorer.h - one interface to all small scorers: trees, layer programs over samples, and the
 * anomaly model over any number of channels.
 *
 * A row is one sensor reading or one example: n_inputs values, NaN if one is missing.  Trees and
 * the anomaly model score every row; a layer program scores a window of rows every `hop` rows.
 *
 * Thread:    immutable after opening; any number of threads, each with its own state and scratch.
 * Ownership: the caller closes what open returns (NULL is fine).  Names live as long as the scorer.
 * Failure:   as in trees.h, recurrent.h and anomaly.h; SHOAL_EUNSUPPORTED for an unknown kind of
 *            file; then *out is NULL.  Running cannot fail and allocates nothing. */
#ifndef SHOAL_SCORE_SCORER_H
#define SHOAL_SCORE_SCORER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct scorer;

enum scorer_kind { SCORER_TREES, SCORER_LAYERS, SCORER_ANOMALY };

struct scorer_opts { /* NULL or all zero: defaults */
    bool int8;       /* layers: 8-bit weights and activations */
    bool raw;        /* trees: the score before the objective's transformation */
};

struct scorer_info {
    enum scorer_kind kind;
    const char *description;         /* "LightGBM trees, binary sigmoid:1" */
    uint32_t n_inputs;               /* values per row; 0: any number */
    uint32_t max_inputs;             /* n_inputs, or the largest number allowed */
    const char *const *input_names;  /* [n_inputs] or NULL */
    uint32_t window, hop;            /* in rows; 1 and 1 for trees */
    bool stateful;                   /* a score depends on all previous rows */
    uint32_t n_outputs;              /* values per score */
    const char *const *output_names; /* [n_outputs] */
    bool has_threshold;
    double threshold; /* the first output is an alarm from this value on */
};

/* path: a LightGBM model text file, a folder with a scorer's config.json, or that file. */
SHOAL_MUST_CHECK int scorer_open(struct scorer **out, const char *path, const struct scorer_opts *o,
                                 struct err *e);
void scorer_close(struct scorer *s);
struct scorer_info scorer_info(const struct scorer *s);

/* Sizes in bytes of 64-byte aligned memory: scratch for the calls below, and the state of a stream
 * of rows of n_columns values (may be 0).  n_columns is info.n_inputs unless that is 0. */
size_t scorer_scratch_bytes(const struct scorer *s);
size_t scorer_state_bytes(const struct scorer *s, uint32_t n_columns);

/* Number of scores for n rows: one per row, or per hop or window (recurrent_n_scores). */
size_t scorer_n_scores(const struct scorer *s, size_t n_rows);
/* rows: [n_rows][n_columns]; out: [scorer_n_scores][n_outputs].  Resets the state first. */
void scorer_run(const struct scorer *s, const double *rows, size_t n_rows, uint32_t n_columns,
                double *out, void *state, void *scratch);

/* A stream: `hop` rows per step, one score each. */
void scorer_reset(const struct scorer *s, void *state, uint32_t n_columns);
/* Whether bytes from a file may be used as a state (they come from the same model). */
bool scorer_state_fits(const struct scorer *s, const void *state, uint32_t n_columns);
void scorer_step(const struct scorer *s, void *state, const double *rows, double *out,
                 void *scratch);

#endif
