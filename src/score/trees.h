/* trees.h - ensembles of decision trees, from LightGBM's model text files.
 *
 * Regression, binary, multiclass (softmax and one-versus-all), random forests, DART, poisson,
 * gamma, tweedie, cross entropy and ranking; numerical and categorical splits, missing values,
 * linear leaves.  Results equal LightGBM's: the same leaves, summed in the same order.
 *
 * Thread:    immutable after opening; any number of threads, each with its own scratch.
 * Ownership: the caller closes what trees_open and trees_parse return (NULL is fine).  Nothing
 *            points into the parsed bytes.  trees_info is valid as long as the trees.
 * Failure:   SHOAL_EFORMAT (the text names tree and field), SHOAL_ELIMIT, SHOAL_EUNSUPPORTED,
 *            SHOAL_EIO, SHOAL_ENOMEM; then *out is NULL. */
#ifndef SHOAL_SCORE_TREES_H
#define SHOAL_SCORE_TREES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct trees;

struct trees_info {
    uint32_t n_features, n_outputs, n_trees;
    const char *objective;            /* as in the file: "binary sigmoid:1"; "" if there is none */
    const char *const *feature_names; /* [n_features] */
    bool average;                     /* a random forest */
};

SHOAL_MUST_CHECK int trees_open(struct trees **out, const char *path, struct err *e);
SHOAL_MUST_CHECK int trees_parse(struct trees **out, const void *bytes, size_t n, struct err *e);
/* True if these first bytes of a file look like a model for trees_parse. */
bool trees_detect(const void *bytes, size_t n);
void trees_close(struct trees *t);
struct trees_info trees_info(const struct trees *t);

/* Number of doubles of scratch that the calls below need. */
size_t trees_scratch(const struct trees *t);
/* rows: [n_rows, n_features], row-major, NaN if a value is missing.  out: [n_rows, n_outputs].
 * raw: LightGBM's raw score, before the objective's transformation (for a random forest, the
 * sum). */
void trees_predict(const struct trees *t, const double *rows, size_t n_rows, bool raw, double *out,
                   double *scratch);
/* The leaf that each tree ends in; out: [n_trees]. */
void trees_leaves(const struct trees *t, const double *row, uint32_t *out, double *scratch);

#endif
