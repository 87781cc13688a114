/* tok_wpm.h - WordPiece as in BERT: normalize, split into words, longest match first.
 *
 * A piece that begins a word has a space in front (U+2581 in GGUF files), a piece inside a word has
 * nothing, instead of "##" before the latter.
 *
 * Thread:    immutable after create.
 * Ownership: create gives the state to the caller; tok_wpm_ops.destroy takes it back.  The
 *            vocabulary and the special tokens are borrowed.
 * Failure:   SHOAL_ENOMEM; then *out is NULL. */
#ifndef SHOAL_TEXT_TOKENIZER_ALGORITHM_TOK_WPM_H
#define SHOAL_TEXT_TOKENIZER_ALGORITHM_TOK_WPM_H

#include "text/tokenizer/tok_special.h"
#include "text/tokenizer/tokenizer_ops.h"

extern const struct tokenizer_ops tok_wpm_ops; /* texts and words */

#define TOK_WPM_MAX_WORD_CHARS 100 /* a longer word is unknown, as in the models' own tokenizer */

struct tok_wpm_opts {
    const struct tok_vocab *v;
    const struct tok_special *special;
    bool lowercase, strip_accents; /* of texts; words come normalized */
    uint32_t max_word_chars;       /* a longer word is unknown */
};

SHOAL_MUST_CHECK int tok_wpm_create(void **out, const struct tok_wpm_opts *o, struct err *e);

bool tok_wpm_is_cjk(uint32_t c);
/* cat: utf8proc's category of c */
bool tok_wpm_is_punctuation(uint32_t c, int cat);

#endif
