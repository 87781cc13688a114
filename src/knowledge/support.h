/* support.h - whether an answer is supported by passages: sentence by sentence, by its numbers,
 * names, negations and words, and by the similarity of vectors where there are some.
 *
 * It compares words and proves nothing: it detects invented numbers and names, negated statements,
 * sentences unrelated to the passages, and answers to another question.
 *
 * Thread:    pure functions.
 * Ownership: plain data; texts are borrowed for the call. */
#ifndef SHOAL_KNOWLEDGE_SUPPORT_H
#define SHOAL_KNOWLEDGE_SUPPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SUPPORT_MAX_SENTENCES 32u
#define SUPPORT_MAX_PASSAGES 32u

enum support_verdict { SUPPORT_FALSE, SUPPORT_PARTLY, SUPPORT_TRUE };

enum support_reason {
    SUPPORT_FINE,
    SUPPORT_NUMBER,    /* a number that no passage has */
    SUPPORT_NAME,      /* a name or a code (E12, usb_driver) that no passage has */
    SUPPORT_NEGATED,   /* the nearest sentence says the opposite */
    SUPPORT_UNRELATED, /* too few of its words are there */
    SUPPORT_REPEATED,  /* it repeats itself, as small models tend to */
    SUPPORT_UNANSWERED /* the passages say it, but it does not answer the question */
};

struct support_sentence {
    size_t at, n; /* in the answer */
    bool supported;
    enum support_reason reason;
    int32_t passage; /* the passage that supports it best; -1: none */
    double overlap;  /* share of its words that are there */
};

struct support {
    enum support_verdict verdict;
    struct support_sentence sentences[SUPPORT_MAX_SENTENCES];
    uint32_t n; /* 0: the answer is empty */
};

/* Finds the sentences; marks such as [12] are not part of one.  Fills at and n. */
void support_split(struct support *s, const char *answer, size_t n);
/* After support_split.  similarity: [s->n][n_passages] of the vectors, or NULL: not known. */
void support_judge(struct support *s, const char *answer, const char *const *passages,
                   uint32_t n_passages, const float *similarity);
/* After support_judge: a true text may still not answer the question. One sentence must add
 * something to the question (unless it is a yes/no question), and the passage sentence that
 * supports it must be about the question: contain its names and most of its words. Otherwise
 * nothing is supported. */
void support_answers(struct support *s, const char *answer, const char *question, size_t n,
                     const char *const *passages);
const char *support_verdict_name(enum support_verdict v);
const char *support_reason_text(enum support_reason r);

#endif
