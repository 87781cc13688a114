/* tok_unigram.h - the Unigram model: of all ways to cut a word into pieces the one with the highest
 * sum of scores.
 *
 * Thread:    immutable after create.
 * Ownership: create copies the scores; the spellings are those of the tokenizer's vocabulary.
 * Failure:   SHOAL_ENOMEM, SHOAL_ELIMIT from the output. */
#ifndef SHOAL_TEXT_TOKENIZER_TOK_UNIGRAM_H
#define SHOAL_TEXT_TOKENIZER_TOK_UNIGRAM_H

#include "text/tokenizer/tok_internal.h"

/* scores: [t->v.n]; those of pieces with TOK_ATTR_PLAIN count.  unk_score: of a character that no
 * piece spells. */
SHOAL_MUST_CHECK int unigram_create(struct unigram **out, const struct tokenizer *t,
                                    const double *scores, double unk_score, struct err *e);
void unigram_destroy(struct unigram *u);
/* One word to tokens, in s->hf's working memory. */
SHOAL_MUST_CHECK int unigram_encode(struct tok_scratch *s, const char *p, size_t n);

#endif
