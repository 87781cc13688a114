/* load_plan.h - what a run sends, and when: from a pattern of arrivals and a mix, or from a trace.
 *
 * Thread:    belongs to its caller.
 * Ownership: borrows the mix, the trace and the prompts.
 * Failure:   none. */
#ifndef SHOAL_LOAD_LOAD_PLAN_H
#define SHOAL_LOAD_LOAD_PLAN_H

#include <stdbool.h>
#include <stddef.h>

#include "load/load_arrivals.h"
#include "load/load_mix.h"

struct buf;
struct load_trace;

struct load_plan {
    struct load_arrivals arrivals;
    const struct load_mix *mix;
    const struct load_trace *trace; /* in place of arrivals and mix; NULL: none */
    double speed;                   /* of the trace: 2 is twice as fast */
    uint64_t end_ns;                /* nothing is due at this time or later; 0: the trace's end */
    uint64_t max_requests;          /* 0: no limit */
    const char *const *prompts;     /* [n_prompts]; none: some of our own */
    size_t n_prompts;
    uint32_t n_words, max_tokens; /* of made-up prompts (0: none are made up); of answers */
    uint64_t seed;
    /* private, zero at the beginning */
    uint64_t n;
};

struct load_item {
    uint64_t at_ns; /* after the start */
    uint32_t part, max_tokens, n_words;
    const char *prompt; /* NULL: made up, of n_words words */
};

/* false: the plan is over. */
bool load_plan_next(struct load_plan *p, struct load_item *out);
/* The next prompt of a kind: for a turn that follows another. */
void load_plan_prompt(struct load_plan *p, enum load_kind kind, struct load_item *out);
/* Appends n words at random: no two prompts begin alike, so no cache of prefixes helps. */
void load_plan_words(struct buf *b, uint32_t n, uint64_t *seed);

#endif
