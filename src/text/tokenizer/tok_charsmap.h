/* tok_charsmap.h - SentencePiece's precompiled table of character replacements: a double array of
 * keys, then the replacements, each ended by a NUL.
 *
 * Thread:    immutable after create.
 * Ownership: create copies the bytes; replacements are borrowed until destroy.
 * Failure:   SHOAL_EFORMAT when the bytes are no such table, SHOAL_ENOMEM. */
#ifndef SHOAL_TEXT_TOKENIZER_TOK_CHARSMAP_H
#define SHOAL_TEXT_TOKENIZER_TOK_CHARSMAP_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

struct tok_charsmap; /* opaque: tok_charsmap.c */

SHOAL_MUST_CHECK int tok_charsmap_create(struct tok_charsmap **out, const void *bytes, size_t n,
                                         struct err *e);
void tok_charsmap_destroy(struct tok_charsmap *m);
/* The replacement of the shortest key that p begins with, as Hugging Face's tokenizers look it up;
 * of the longest one, as SentencePiece does, with the length of the key. */
bool tok_charsmap_first(const struct tok_charsmap *m, const char *p, size_t n, const char **to,
                        size_t *n_to);
bool tok_charsmap_longest(const struct tok_charsmap *m, const char *p, size_t n, size_t *used,
                          const char **to, size_t *n_to);

#endif
