/* vote.h - votes for labels, counted.
 *
 * Thread:    the caller's struct.
 * Ownership: labels are borrowed.
 * Failure:   SHOAL_ENOMEM. */
#ifndef SHOAL_ENSEMBLE_VOTE_H
#define SHOAL_ENSEMBLE_VOTE_H

#include <stdint.h>

#include "base/err.h"

struct vote_label {
    const char *label;
    double votes; /* total weight of the label */
    double sure;  /* sum of confidences: decides between equal votes */
};

struct vote { /* all zero: no votes */
    struct vote_label *labels;
    uint32_t n, cap;
    double total; /* of all weights */
};

/* weight: of the vote; confidence: of the voter in this label. */
SHOAL_MUST_CHECK int vote_add(struct vote *v, const char *label, double weight, double confidence);
/* Sorts by votes, then by confidence, then by arrival: the winner comes first. */
void vote_sort(struct vote *v);
/* The share of label i in all votes. */
double vote_share(const struct vote *v, uint32_t i);
void vote_fini(struct vote *v);

#endif
