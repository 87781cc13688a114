/* beams.h - from logits to a text's tokens, for one task: greedy, drawn, or by beam search with the
 * scores, length penalty and stopping of Hugging Face's transformers.
 *
 * The model computes a row of logits for each live hypothesis; beams_step picks how to go on: each
 * new row continues a row of the step before (its parent) with one token.
 *
 * Thread:    one at a time.
 * Ownership: everything is reserved at create; a step allocates nothing.
 * Failure:   beams_create returns NULL when memory is out. */
#ifndef SHOAL_ENGINE_NATIVE_BEAMS_H
#define SHOAL_ENGINE_NATIVE_BEAMS_H

#include <stdbool.h>
#include <stdint.h>

#include "kernels/kern.h"
#include "engine/sampler.h"

#define BEAMS_MAX 64u
#define BEAMS_MAX_ENDS 8u

enum beams_early {
    BEAMS_EARLY_NO,   /* until no live one can beat the finished ones at its present length */
    BEAMS_EARLY_YES,  /* as soon as there are n_beams finished ones */
    BEAMS_EARLY_NEVER /* until none can beat them at any length */
};

struct beams_opts {
    uint32_t n_beams;         /* 1: greedy, or drawn when sampling.temperature is above 0 */
    uint32_t max_tokens;      /* to write, the end included; at least 1 */
    uint32_t min_tokens;      /* before the end may come */
    uint32_t no_repeat_ngram; /* no sequence of so many tokens twice; 0: any */
    float repeat_penalty;     /* 0 or 1: none */
    float length_penalty;     /* scores are divided by length to this power */
    enum beams_early early;
    int32_t start; /* the decoder's first token */
    int32_t ends[BEAMS_MAX_ENDS];
    uint32_t n_ends;
    struct shoal_sampling sampling; /* temperature, top_k, top_p, min_p and seed */
};

/* What steps of any task compute with: its scratch belongs to the engine. */
struct beams_with {
    const struct kern_ops *k;
    uint32_t n_vocab;
    float *row;              /* [n_vocab] */
    struct sampler *sampler; /* NULL where nothing is drawn */
};

struct beams;

struct beams *beams_create(const struct beams_opts *o);
void beams_destroy(struct beams *b);
const struct beams_opts *beams_opts(const struct beams *b);

/* Live rows, and for each its last token and the row of the step before that it continues. */
uint32_t beams_n_rows(const struct beams *b);
int32_t beams_token(const struct beams *b, uint32_t row);
uint32_t beams_parent(const struct beams *b, uint32_t row);
/* Tokens written so far: the position of the rows' last token. */
uint32_t beams_n_tokens(const struct beams *b);

/* logits: of all live rows, one after the other.  false: it is over. */
bool beams_step(struct beams *b, const struct beams_with *w, const float *logits);
/* The best: its tokens (with the end, where it came), and its score (0 without a search). */
const int32_t *beams_result(const struct beams *b, uint32_t *n, float *score);

#endif
