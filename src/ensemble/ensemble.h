/* ensemble.h - merges answers of several models, or several answers of one model, into one: the
 * settings of a route, and the decisions.
 *
 *   cascade    the first model answers; while it is not sure, the next one does
 *   vote       all models classify; the label with the most weight is the answer
 *   consensus  one model answers several times; what most answers say is the answer
 *   rerank     a fast model writes several answers, a better one scores them
 *   refine     the fast answer at once, the better one later
 *   average    several decoders with one vocabulary: the mean of their next-token probabilities
 *
 * Thread:    pure functions; a plan is immutable once it is in use.
 * Ownership: ensemble_fini frees names and weights. */
#ifndef SHOAL_ENSEMBLE_ENSEMBLE_H
#define SHOAL_ENSEMBLE_ENSEMBLE_H

#include <stdbool.h>
#include <stdint.h>

#define ENSEMBLE_MAX_MODELS 8u
#define ENSEMBLE_MAX_SAMPLES 32u

enum ensemble_kind {
    ENSEMBLE_NONE,
    ENSEMBLE_CASCADE,
    ENSEMBLE_VOTE,
    ENSEMBLE_CONSENSUS,
    ENSEMBLE_RERANK,
    ENSEMBLE_REFINE,
    ENSEMBLE_AVERAGE,
    ENSEMBLE_N_KINDS
};

/* Measure of a classification's confidence; generations have their own. */
enum ensemble_measure {
    ENSEMBLE_CONFIDENCE, /* probability of the answer */
    ENSEMBLE_MARGIN,     /* between the best label and the second */
};
#define ENSEMBLE_MEASURES "confidence|margin" /* in the same order */

/* The part of the answers that a consensus compares. */
enum ensemble_part {
    ENSEMBLE_WHOLE,
    ENSEMBLE_LAST_LINE,
    ENSEMBLE_NUMBER, /* the last number */
};
#define ENSEMBLE_PARTS "whole|last_line|number" /* in the same order */

enum ensemble_count {
    ENSEMBLE_BY_LABEL,       /* a model's weight goes to its answer */
    ENSEMBLE_BY_PROBABILITY, /* a model's weight is divided by its probabilities */
};
#define ENSEMBLE_COUNTS "label|probability" /* in the same order */

struct ensemble {
    enum ensemble_kind kind;
    char **models; /* cascade, refine, rerank: the cheapest first */
    double *weights;
    uint32_t n_models;
    enum ensemble_measure measure; /* cascade */
    double threshold;              /* cascade: from 0 to 1; below it the next model is used */
    uint32_t hold;      /* cascade: number of first tokens of a generation that are held back */
    bool replace;       /* cascade: a marked event may replace a stream after tokens were sent */
    uint32_t samples;   /* consensus, rerank */
    double temperature; /* consensus, rerank: for requests that do not sample */
    enum ensemble_part part; /* consensus */
    enum ensemble_count by;  /* vote */
};

void ensemble_fini(struct ensemble *e);
/* "cascade" */
const char *ensemble_name(enum ensemble_kind k);

/* Confidence of a classification, by the cascade's measure. best, second: the two highest
 * probabilities; confidence: of the answer. */
double ensemble_sureness(const struct ensemble *e, double confidence, double best, double second);

/* Running confidence of a generation: the geometric mean of its tokens' probabilities. */
struct ensemble_running {
    double sum; /* of log-probabilities */
    uint32_t n;
};
void ensemble_running_add(struct ensemble_running *r, double logprob);
/* 1 without tokens. */
double ensemble_running_sureness(const struct ensemble_running *r);
/* Whether to abandon the model now. At the end the whole answer counts; before that, a few tokens
 * are needed, since one says too little. */
bool ensemble_should_leave(const struct ensemble *e, const struct ensemble_running *r, bool ended);

#endif
