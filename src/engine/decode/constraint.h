/* constraint.h - constraints on an engine's answers: compiled once, cached by their text, and run
 * beside each task.
 *
 * A constraint is a grammar (text/grammar/) with the sets of tokens that it allows in this engine's
 * vocabulary.  Sets are computed while answers are generated and shared by all tasks with the same
 * constraint.
 *
 * Thread:    constraints_*: any.  constraint_run_*: the engine's thread.
 * Ownership: constraints_get gives a reference, constraint_unref takes it back (NULL is fine) while
 *            the struct constraints lives.
 *
 * Memory:    all constraints of an engine take CONSTRAINTS_MAX_BYTES together. Beyond that, unused
 *            ones are evicted, the oldest first, and constraints in use drop their sets when these
 *            exceed a sixteenth of it.
 *
 * Failure:   SHOAL_EINVAL or SHOAL_EUNSUPPORTED: the text is invalid, too large, or cannot be
 *            enforced; the message says where. SHOAL_ENOMEM. While it runs:
 *            SHOAL_ENOTOKEN: nothing in the vocabulary can follow. */
#ifndef SHOAL_ENGINE_DECODE_CONSTRAINT_H
#define SHOAL_ENGINE_DECODE_CONSTRAINT_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "shoal/shoal.h"
#include "text/grammar/grammar_mask.h"
#include "text/tokenizer/tokenizer.h"

#define CONSTRAINTS_KEPT 16u                     /* cached constraints without a task */
#define CONSTRAINTS_MAX_BYTES ((size_t)32 << 20) /* total, before old ones are evicted */

struct constraint;
struct vocab_trie;

struct constraints { /* of one engine; all zero except for the initialized lock */
    pthread_mutex_t lock;
    struct vocab_trie *vocab;                  /* NULL until the first constraint */
    struct constraint *kept[CONSTRAINTS_KEPT]; /* the newest first */
    uint32_t n_kept;
    _Atomic size_t bytes; /* of all constraints and the vocabulary trie, for any thread */
};

void constraints_init(struct constraints *c);
void constraints_fini(struct constraints *c); /* no task may be left */
/* n_vocab: tokens that the model has logits for. */
SHOAL_MUST_CHECK int constraints_get(struct constraint **out, struct constraints *c,
                                     const struct tokenizer *t, uint32_t n_vocab,
                                     enum shoal_constraint kind, const char *text, size_t n,
                                     struct err *e);
void constraint_unref(struct constraint *c);

struct constraint_set {   /* tokens that may follow */
    const uint64_t *bits; /* bits of the allowed tokens, see grammar_mask.h; NULL: all */
    uint32_t n;           /* how many; 0: nothing */
    int32_t only;         /* the token that must follow; -1: there is a choice */
};

struct constraint_run { /* state of one task; c NULL: no constraint */
    struct constraint *c;
    const struct tokenizer *t;
    int32_t prev;   /* the token before the answer */
    uint32_t place; /* valid while epoch is the constraint's */
    uint64_t epoch;
};

/* tokens: the n tokens of the answer so far; lead: a leading space of the next token is not shown.
 * The set is valid until the next call for the same constraint. An empty set: the answer is
 * complete. Where the constraint leaves only one text, the model does not choose the tokens: each
 * is the longest that fits (grammar_mask_only). This depends only on the grammar state, so an
 * answer continues elsewhere with the same tokens. */
SHOAL_MUST_CHECK int constraint_run_allowed(struct constraint_run *r, const int32_t *tokens,
                                            uint32_t n, bool lead, struct constraint_set *out);
/* The token was chosen from the set. *over: the answer is complete. */
SHOAL_MUST_CHECK int constraint_run_take(struct constraint_run *r, int32_t token, bool lead,
                                         bool *over);

#endif
