/* draft.h - guesses of the next tokens of an answer, which one pass verifies together.
 *
 * A guess repeats what followed the last tokens earlier in the prompt or the answer.  The model
 * computes the guessed tokens in one run; each is kept if it is the token that would have been
 * sampled from the logits before it.  Native decoders compute the same bits for tokens together as
 * one by one, and the sampler depends on seed and position alone, so the answer is the same as
 * without guesses; only its pace differs.
 *
 * Whether a guess pays depends on how often guesses of this answer came true and on what a pass
 * with more rows costs on this machine.  Both are measured: where rows are expensive (small models,
 * large batches) or guesses fail, guesses get shorter and stop; now and then one is tried again.
 *
 * Thread:    the engine's thread.
 * Ownership: plain values, no heap.
 * Failure:   none. */
#ifndef SHOAL_ENGINE_DECODE_DRAFT_H
#define SHOAL_ENGINE_DECODE_DRAFT_H

#include <stdbool.h>
#include <stdint.h>

#define DRAFT_MAX 8u    /* tokens of a guess, and of all guesses of a step */
#define DRAFT_KNOWN 32u /* rows of a step up to which its time is learned */

struct draft_costs {                 /* of an engine */
    double step_ns[DRAFT_KNOWN + 1]; /* by the rows of a step without prompts; 0: not known */
    bool always;                     /* whenever something repeats, whatever it costs */
};

struct draft {       /* of a task; all zero at its start */
    float hit[2];    /* how likely a token of a guess is right, after a short and a long repetition;
                        0: not known */
    uint8_t kind;    /* of the present guess: index of hit */
    uint8_t n;       /* its tokens; 0: none */
    uint8_t skipped; /* steps since a guess was not made though something repeats */
    int32_t tokens[DRAFT_MAX];
};

/* Makes a guess of what follows tokens[0 .. n - 1] of at most `room` tokens, for a step that has
 * `rows` rows without it.  Returns its length, d->n. */
uint32_t draft_propose(struct draft *d, const struct draft_costs *c, const int32_t *tokens,
                       uint32_t n, uint32_t room, uint32_t rows);
/* The first n_right tokens of the guess came true; the guess is over. */
void draft_saw(struct draft *d, uint32_t n_right);
/* A step without prompts with this many rows took so long. */
void draft_saw_step(struct draft_costs *c, uint32_t rows, uint64_t ns);

#endif
