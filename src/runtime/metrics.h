/* metrics.h - how good answers are, from pairs of what was said and what is true.
 *
 * Thread:    pure functions, or the caller's struct.
 * Failure:   SHOAL_ENOMEM. */
#ifndef SHOAL_RUNTIME_METRICS_H
#define SHOAL_RUNTIME_METRICS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

/* ---- counts by label ------------------------------------------------------------------------ */

struct metrics_count {
    const char *label;         /* borrowed */
    uint64_t hit, said, true_; /* said and true; said; true */
};

struct metrics_counts {
    struct metrics_count *by;
    uint32_t n, cap;
};

/* One more thing that was said and, or, true of this label. */
SHOAL_MUST_CHECK int metrics_add(struct metrics_counts *c, const char *label, uint32_t hit,
                                 uint32_t said, uint32_t true_, struct err *e);
void metrics_counts_fini(struct metrics_counts *c);

struct metrics_f1 {
    double precision, recall, f1;
};
struct metrics_f1 metrics_f1(uint64_t hit, uint64_t said, uint64_t true_);
/* All labels together. */
struct metrics_f1 metrics_micro(const struct metrics_counts *c);
/* Mean of the labels' F1, of those that were said or true at all. */
double metrics_macro_f1(const struct metrics_counts *c);

/* ---- calibration ---------------------------------------------------------------------------- */

#define METRICS_BINS 15u
struct metrics_ece {
    uint64_t n[METRICS_BINS], right[METRICS_BINS];
    double sum[METRICS_BINS]; /* of confidences */
};
void metrics_ece_add(struct metrics_ece *m, double confidence, bool right);
/* How far confidence is from being right, weighted over 15 bins of equal width. */
double metrics_ece(const struct metrics_ece *m);

/* ---- spans ---------------------------------------------------------------------------------- */

struct metrics_span {
    const char *type; /* borrowed; n bytes */
    size_t type_bytes;
    uint32_t from, to; /* tokens */
};

/* Spans of BIO or BIOES tags, as seqeval reads them (an I- or E- without a beginning opens one).
 * At most n_tags spans into out; returns how many. */
uint32_t metrics_spans(const char *const *tags, uint32_t n_tags, struct metrics_span *out);

/* ---- ROUGE ---------------------------------------------------------------------------------- */

struct metrics_rouge {
    double r1, r2, rl; /* F-measures */
};
/* Words are runs of letters a-z and digits, lower case, no stemming. */
SHOAL_MUST_CHECK int metrics_rouge(struct metrics_rouge *out, const char *said, const char *true_,
                                   struct err *e);

/* ---- ranking and spread --------------------------------------------------------------------- */

/* Area under the ROC curve of scores against 0/1 labels; order is scratch for n indices.  NaN when
 * all labels are the same. */
double metrics_auc(const double *scores, const bool *labels, size_t n, uint32_t *order);
/* The q-th part (0..1) of values, by linear interpolation; sorts them. */
double metrics_quantile(double *values, size_t n, double q);

#endif
