/* tok_unigram.h - the Unigram model: splits a word into the pieces with the highest sum of scores.
 *
 * Thread:    immutable after create.
 * Ownership: create gives the state to the caller; tok_unigram_ops.destroy takes it back.  The
 *            scores are copied, the vocabulary is borrowed.
 * Failure:   SHOAL_ENOMEM; then *out is NULL. */
#ifndef SHOAL_TEXT_TOKENIZER_ALGORITHM_TOK_UNIGRAM_H
#define SHOAL_TEXT_TOKENIZER_ALGORITHM_TOK_UNIGRAM_H

#include "text/tokenizer/tok_vocab.h"
#include "text/tokenizer/tokenizer_ops.h"

extern const struct tokenizer_ops tok_unigram_ops; /* words only */

/* scores: [v->n]; those of pieces with TOK_ATTR_PLAIN count.  A piece with -INFINITY is found only
 * where it is a whole run of characters that no piece spells.  unk_score: of such a character. */
SHOAL_MUST_CHECK int tok_unigram_create(void **out, const struct tok_vocab *v, const double *scores,
                                        double unk_score, struct err *e);

#endif
