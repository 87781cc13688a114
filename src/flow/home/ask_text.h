/* ask_text.h - words, small text tools and values of the ask flow (docs/ASK.md).
 *
 * Thread:    any; all results live in the caller's arena.
 * Failure:   sticky in the arena: after it strings are "" and lists empty; check arena->rc once. */
#ifndef SHOAL_FLOW_HOME_ASK_TEXT_H
#define SHOAL_FLOW_HOME_ASK_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"

struct ask_words {
    const char **w; /* NUL-terminated */
    uint32_t n;
};

/* Split at white space. */
struct ask_words ask_words(struct arena *a, const char *text);
/* Words from..to-1 joined by one space. */
const char *ask_join(struct arena *a, const struct ask_words *w, uint32_t from, uint32_t to);
const char *ask_lower(struct arena *a, const char *text);
/* Lower case, without .,;:!?"() at both ends. */
const char *ask_plain(struct arena *a, const char *word);
/* Without any of the bytes in set at the end. */
const char *ask_trim_end(struct arena *a, const char *text, const char *set);
/* Is word one of a list separated by single spaces? */
bool ask_one_of(const char *word, const char *list);

/* A text as its clauses, each to be understood alone; returns how many, in *out. */
uint32_t ask_clauses(struct arena *a, const char *text, const char ***out);

/* What a slot's text means. */
struct ask_value {
    const char *show; /* as the reply shall say it */
    const char *text; /* value as text; NULL: it is a number */
    double number;    /* value as number */
    const char *unit; /* NULL: none */
    bool understood;  /* durations, times: number or text are the normal form */
};

/* "19 degrees", "forty percent", "half"; action decides what a bare number is. */
struct ask_value ask_value(struct arena *a, const char *text, const char *action);
struct ask_value ask_duration(struct arena *a, const char *text); /* number: seconds */
struct ask_value ask_clock(struct arena *a, const char *text);    /* text: "HH:MM" */
const char *ask_date(struct arena *a, const char *text);
/* "7 times 8"; false: not understood.  show: at most two decimals. */
bool ask_calculate(struct arena *a, const char *expr, const char **show, double *result);

#endif
