/* tok_words.h - whole words: a word is one token or unknown ("WordLevel").
 *
 * Thread:    no state but the borrowed vocabulary.
 * Ownership: the vocabulary itself is the state. */
#ifndef SHOAL_TEXT_TOKENIZER_ALGORITHM_TOK_WORDS_H
#define SHOAL_TEXT_TOKENIZER_ALGORITHM_TOK_WORDS_H

#include "text/tokenizer/tokenizer_ops.h"

extern const struct tokenizer_ops tok_words_ops; /* words only; state: a struct tok_vocab */

#endif
