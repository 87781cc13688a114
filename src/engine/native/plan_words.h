/* plan_words.h - which words of the plan language may follow each other.
 *
 * Some words point: <w3> to a word of the text, <t2> to a line of it, and so on.  The others are
 * actions and values; those up to the end of texts are none of the language.
 *
 * Thread:    any. */
#ifndef SHOAL_ENGINE_NATIVE_PLAN_WORDS_H
#define SHOAL_ENGINE_NATIVE_PLAN_WORDS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"

struct plan_pointer { /* of a word of the language; kind '\0': it is none */
    char kind;
    uint32_t number;
};

/* A plan that is being written. */
struct plan_so_far {
    const struct plan_pointer *pointers; /* by word */
    const bool *read;                    /* by word: the text has it */
    int32_t end;
    const int32_t *words;
    uint32_t n;
};

struct plan_pointer plan_pointer_of(struct str name);
/* A span is two words of the text, in order, behind a word that takes one; what is pointed to must
 * have been read; the plan is not empty. */
bool plan_may_follow(const struct plan_so_far *plan, uint32_t word);

#endif
