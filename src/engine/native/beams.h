/* beams.h - chooses the tokens of one task's text: greedy, sampled, or by beam search with the
 * scores, length penalty and stopping rules of Hugging Face's transformers.
 *
 * The model computes a row of logits for each live hypothesis; beams_step chooses the next rows,
 * each of which extends a row of the step before (its parent) by one token.
 *
 * Thread:    one at a time.
 * Ownership: everything is reserved at create; a step allocates nothing.
 * Failure:   beams_create returns NULL when out of memory. */
#ifndef SHOAL_ENGINE_NATIVE_BEAMS_H
#define SHOAL_ENGINE_NATIVE_BEAMS_H

#include <stdbool.h>
#include <stdint.h>

#include "kernels/kern.h"
#include "engine/decode/sampler.h"

#define BEAMS_MAX 64u
#define BEAMS_MAX_ENDS 8u
#define BEAMS_MAX_BAD 16u
#define BEAMS_MAX_BAD_TOKENS 8u

enum beams_early {
    BEAMS_EARLY_NO, /* stop when no live hypothesis can beat the finished ones at its current length
                     */
    BEAMS_EARLY_YES,  /* stop as soon as n_beams are finished */
    BEAMS_EARLY_NEVER /* stop when none can beat them at any length */
};

struct beams_forced { /* a token at a certain place, whatever the model says */
    bool on;
    int32_t token;
};

struct beams_bad { /* a sequence of tokens that does not occur */
    uint32_t n;
    int32_t tokens[BEAMS_MAX_BAD_TOKENS];
};

struct beams_opts {
    uint32_t n_beams;         /* 1: greedy, or sampled if sampling.temperature is above 0 */
    uint32_t max_tokens;      /* to generate, including the end; at least 1 */
    uint32_t min_tokens;      /* before the end is allowed */
    uint32_t no_repeat_ngram; /* no sequence of this many tokens occurs twice; 0: no limit */
    float repeat_penalty;     /* 0 or 1: none */
    float length_penalty;     /* scores are divided by length to this power */
    enum beams_early early;
    int32_t start; /* the decoder's first token */
    int32_t ends[BEAMS_MAX_ENDS];
    uint32_t n_ends;
    struct beams_forced first, last; /* the first token after the start; the last of max_tokens */
    struct beams_bad bad[BEAMS_MAX_BAD];
    uint32_t n_bad;
    bool renormalize; /* search: probabilities are those among the tokens that are allowed */
    struct shoal_sampling sampling; /* temperature, top_k, top_p, min_p and seed */
};

/* Inputs of a step; shared by all tasks of an engine. */
struct beams_with {
    const struct kern_ops *k;
    uint32_t n_vocab;
    float *row;              /* [2][n_vocab] */
    struct sampler *sampler; /* NULL: nothing is sampled */
};

struct beams;

struct beams *beams_create(const struct beams_opts *o);
void beams_destroy(struct beams *b);
const struct beams_opts *beams_opts(const struct beams *b);

/* Number of live rows; the last token of each, and the row of the step before that it extends. */
uint32_t beams_n_rows(const struct beams *b);
int32_t beams_token(const struct beams *b, uint32_t row);
uint32_t beams_parent(const struct beams *b, uint32_t row);
/* Tokens generated so far: the position of the rows' last token. */
uint32_t beams_n_tokens(const struct beams *b);

/* logits: [n_rows][n_vocab].  false: the text is complete. */
bool beams_step(struct beams *b, const struct beams_with *w, const float *logits);
/* The best hypothesis: its tokens (with the end, if it was reached) and score (0 without search).
 */
const int32_t *beams_result(const struct beams *b, uint32_t *n, float *score);

#endif
