/* quote_rank.h - how likely a sentence is to answer a question: a small logistic model over words,
 * vectors and the kind of answer that the question wants. docs/RETRIEVAL.md has how it was fitted
 * and how well it does.
 *
 * Thread:    pure functions.
 * Ownership: plain data; texts are borrowed for the call. */
#ifndef SHOAL_KNOWLEDGE_QUOTE_RANK_H
#define SHOAL_KNOWLEDGE_QUOTE_RANK_H

#include "knowledge/wording.h"

#define QUOTE_MAX_WORDS 32u /* of a question that are weighed */

enum quote_feature {
    QUOTE_SIMILARITY,    /* of the vectors of question and sentence */
    QUOTE_PASSAGE,       /* of the vectors of question and passage */
    QUOTE_WORDS,         /* share of the question's words in the sentence, rare ones count more */
    QUOTE_AROUND,        /* the same with the sentence before and the heading */
    QUOTE_PASSAGE_WORDS, /* the same with the whole passage */
    QUOTE_PAIRS,         /* share of pairs of words that follow each other */
    QUOTE_NAMES,         /* share of the question's names that the passage lacks */
    QUOTE_KIND,          /* it has the number or the name that the question wants */
    QUOTE_NO_KIND,       /* it does not */
    QUOTE_LENGTH,        /* logarithm of the number of its words that the question does not have */
    QUOTE_RANK,          /* 1 for the first passage, 1/2 for the second */
    QUOTE_BEHIND,        /* how far its QUOTE_WORDS is behind the best of all sentences */
    QUOTE_BELOW,         /* the same for QUOTE_SIMILARITY */
    QUOTE_N_FEATURES
};

enum quote_kind { QUOTE_ANY, QUOTE_NUMBER, QUOTE_NAME, QUOTE_REASON };

struct quote_question {
    struct wording words;
    double weights[WORDING_MAX]; /* of words; 0: it does not count */
    double sum;
    enum quote_kind wants;
};

/* A word of the question, and how many of all passages have it. */
struct quote_count {
    char word[WORDING_STEM_BYTES];
    uint64_t n_passages;
};

/* The words whose counts quote_question_read needs, in lower case; returns how many. */
uint32_t quote_question_words(struct quote_count out[QUOTE_MAX_WORDS], const char *question);
/* n_passages: of the collection. */
void quote_question_read(struct quote_question *q, const char *question,
                         const struct quote_count *counts, uint32_t n, uint64_t n_passages);

struct quote_context {                             /* of a sentence */
    const char *text, *before, *heading, *passage; /* before, heading: may be "" */
    size_t n, n_before;
    float similarity, passage_similarity; /* NAN: not known */
    uint32_t rank;                        /* of its passage, from 0 */
};

/* All features but those that compare with other sentences (BEHIND, BELOW). */
void quote_rank_features(double out[QUOTE_N_FEATURES], const struct quote_question *q,
                         const struct quote_context *c);
/* Sets BEHIND and BELOW of n sentences. */
void quote_rank_compare(double (*features)[QUOTE_N_FEATURES], uint32_t n);
/* Probability that it answers, 0 to 1. */
double quote_rank_score(const double features[QUOTE_N_FEATURES]);
const char *quote_rank_name(enum quote_feature f);

#endif
