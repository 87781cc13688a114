/* quoting.h - a question answered by a sentence of a collection: retrieves passages, and ranks
 * their sentences by how likely they answer (quote_rank.h). No model writes anything, so there is
 * nothing to invent; a question that no sentence answers is not answered.
 *
 * Thread:    the owner's.
 * Ownership: the struct is the caller's and must live until `done` was called, as must its texts;
 *            quoting_fini frees the results.
 * Failure:   typed, to `done`. An empty collection, or one that does not answer, is no failure. */
#ifndef SHOAL_KNOWLEDGE_QUOTING_H
#define SHOAL_KNOWLEDGE_QUOTING_H

#include "knowledge/quote_rank.h"
#include "knowledge/retrieval.h"

#define QUOTING_MAX_SENTENCES 256u
#define QUOTING_N_PASSAGES 12u /* that are read, at least */
/* Score from which a sentence is an answer; chosen on questions that can and cannot be answered
 * (docs/RETRIEVAL.md). */
#define QUOTING_ENOUGH 0.35

struct quoting_sentence {
    const char *text; /* in the arena of the retrieval: line breaks are blanks */
    uint32_t hit;     /* its passage in retrieval.hits */
    uint32_t place;   /* which of its sentences */
    double score;
    double features[QUOTE_N_FEATURES];
};

struct quoting {
    struct retrieval retrieval; /* set as described in retrieval.h, without done */
    void (*done)(struct quoting *x, const struct failure *f);
    /* results */
    struct quoting_sentence *sentences; /* the best first */
    uint32_t n_sentences;               /* 0: nothing was found */
    bool found;                         /* the first one answers */
    /* Another sentence that belongs to the answer: beside the first in its passage, and an answer
     * too; 0: none. */
    uint32_t second;
    uint64_t n_tokens; /* that were embedded */
    /* private */
    struct quote_count counts[QUOTE_MAX_WORDS];
    uint32_t n_counts;
    struct quote_context *contexts;
    struct str *texts;
    struct embedding embedding;
    bool cancelled;
};

/* All members are set except private ones and results, which are zero. */
void quoting_run(struct quoting *x);
void quoting_cancel(struct quoting *x); /* done is still called */
void quoting_fini(struct quoting *x);
/* The answer: one sentence, or two in the order of the passage; "" if there is none. */
const char *quoting_text(struct quoting *x);

#endif
