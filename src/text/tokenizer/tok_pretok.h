/* tok_pretok.h - pre-tokenizers: how byte-level BPE cuts text into words before merging.
 *
 * A pre-tokenizer is a chain of steps; each step cuts every piece of the step before into matches
 * and the gaps between them.  A step is a regular expression (PCRE2), or a scanner written by hand
 * that does the same faster; tests hold the two against each other.
 *
 * Thread:    a struct pretok is immutable after create; a struct pretok_scratch belongs to a call.
 * Ownership: create gives the pretok to the caller; pretok_scratch_fini frees the scratch.
 * Failure:   SHOAL_EUNSUPPORTED for an unknown name; any bytes can be cut: those that are not UTF-8
 *            count as control characters. */
#ifndef SHOAL_TEXT_TOKENIZER_TOK_PRETOK_H
#define SHOAL_TEXT_TOKENIZER_TOK_PRETOK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct pretok; /* opaque: tok_pretok.c */

enum pretok_trait { /* what a pre-tokenizer's name says beside the cutting */
                    PRETOK_IGNORE_MERGES = 1 << 0,
                    PRETOK_ADD_BOS = 1 << 1, /* unless the file says otherwise */
                    PRETOK_ADD_SEP = 1 << 2,
                    PRETOK_CHARS = 1
                                   << 3, /* merges are over characters with U+2581 for the space */
                    PRETOK_NEWLINE_RUNS = 1 << 4, /* see tok_internal.h */
                    PRETOK_FORCE_BOS = 1 << 5,    /* whatever the file says */
};

enum pretok_mode {
    PRETOK_FAST,
    PRETOK_REGEX_ONLY /* for tests: no scanner where a regex exists */
};

struct pretok_scratch { /* all zero is empty */
    void *match;        /* of tok_regex_find */
    char *clean;        /* a copy of the text without invalid UTF-8 */
    size_t cap_clean;
};

SHOAL_MUST_CHECK int pretok_create(struct pretok **out, const char *name, enum pretok_mode mode,
                                   struct err *e);
void pretok_destroy(struct pretok *pt);
unsigned pretok_traits(const struct pretok *pt);
/* The i-th known name, or NULL past the last. */
const char *pretok_name(size_t i);

/* Takes one word; a negative code ends the cutting. */
typedef int (*pretok_word_fn)(void *ctx, const char *p, size_t n);
SHOAL_MUST_CHECK int pretok_split(const struct pretok *pt, struct pretok_scratch *s, const char *p,
                                  size_t n, pretok_word_fn word, void *ctx);
void pretok_scratch_fini(struct pretok_scratch *s);

#endif
