/* agree.h - which of several answers say the same, and what most of them say.
 *
 * Thread:    pure functions.
 * Ownership: agree_normal gives its text to the caller, mem_free frees it.
 * Failure:   NULL: out of memory. */
#ifndef SHOAL_ENSEMBLE_AGREE_H
#define SHOAL_ENSEMBLE_AGREE_H

#include <stddef.h>
#include <stdint.h>

#include "ensemble/ensemble.h"

/* The part of an answer that is compared: lower case (ASCII), single blanks, no punctuation at its
 * ends.  A number has no thousands separators and no zeros behind its last decimal.  Without a
 * number, or with an empty last line, the whole answer counts. */
char *agree_normal(const char *text, size_t n, enum ensemble_part part);

struct agree_answer {
    const char *normal;
    double score; /* decides between answers that say the same, and between equal groups */
};

struct agree_choice {
    uint32_t best;  /* the answer to give */
    uint32_t n_for; /* how many say the same */
};

/* n at least 1. */
struct agree_choice agree_choose(const struct agree_answer *answers, uint32_t n);

#endif
