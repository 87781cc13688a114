/* agree.h - groups equal answers and finds the majority.
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
 * ends. Numbers are normalized: no thousands separators, no trailing zeros after the decimal point.
 * Without a number, or with an empty last line, the whole answer is used. */
char *agree_normal(const char *text, size_t n, enum ensemble_part part);

struct agree_answer {
    const char *normal;
    double score; /* decides between equal answers, and between groups of equal size */
};

struct agree_choice {
    uint32_t best;  /* the answer to give */
    uint32_t n_for; /* number of answers that agree */
};

/* n at least 1. */
struct agree_choice agree_choose(const struct agree_answer *answers, uint32_t n);

#endif
