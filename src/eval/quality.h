/* quality.h - quality figures from predictions and the truth.
 *
 * Thread:    pure functions, or the caller's struct.
 * Failure:   SHOAL_ENOMEM. */
#ifndef SHOAL_EVAL_QUALITY_H
#define SHOAL_EVAL_QUALITY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

/* ---- counts by label ------------------------------------------------------------------------ */

struct quality_count {
    const char *label;         /* borrowed */
    uint64_t hit, said, true_; /* predicted and true; predicted; true */
};

struct quality_counts {
    struct quality_count *by;
    uint32_t n, cap;
};

/* Adds counts to a label. */
SHOAL_MUST_CHECK int quality_add(struct quality_counts *c, const char *label, uint32_t hit,
                                 uint32_t said, uint32_t true_, struct err *e);
void quality_counts_fini(struct quality_counts *c);

struct quality_f1 {
    double precision, recall, f1;
};
struct quality_f1 quality_f1(uint64_t hit, uint64_t said, uint64_t true_);
/* All labels together. */
struct quality_f1 quality_micro(const struct quality_counts *c);
/* Mean F1 of all labels that were predicted or true at least once. */
double quality_macro_f1(const struct quality_counts *c);

/* ---- calibration ---------------------------------------------------------------------------- */

#define QUALITY_BINS 15u
struct quality_ece {
    uint64_t n[QUALITY_BINS], right[QUALITY_BINS];
    double sum[QUALITY_BINS]; /* of confidences */
};
void quality_ece_add(struct quality_ece *m, double confidence, bool right);
/* Expected calibration error over 15 bins of equal width. */
double quality_ece(const struct quality_ece *m);

/* ---- spans ---------------------------------------------------------------------------------- */

struct quality_span {
    const char *type; /* borrowed; n bytes */
    size_t type_bytes;
    uint32_t from, to; /* tokens */
};

/* Spans of BIO or BIOES tags, as seqeval reads them (an I- or E- without a B- opens one).
 * At most n_tags spans into out; returns how many. */
uint32_t quality_spans(const char *const *tags, uint32_t n_tags, struct quality_span *out);

/* ---- ROUGE ---------------------------------------------------------------------------------- */

struct quality_rouge {
    double r1, r2, rl; /* F-measures */
};
/* Words are runs of letters a-z and digits, lower case, no stemming. */
SHOAL_MUST_CHECK int quality_rouge(struct quality_rouge *out, const char *said, const char *true_,
                                   struct err *e);

/* ---- ranking and spread --------------------------------------------------------------------- */

/* Area under the ROC curve of scores against 0/1 labels; order is scratch for n indices.  NaN when
 * all labels are the same. */
double quality_auc(const double *scores, const bool *labels, size_t n, uint32_t *order);
/* The q-quantile (0..1) of values by linear interpolation; sorts them. */
double quality_quantile(double *values, size_t n, double q);

#endif
