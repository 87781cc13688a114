/* tok_pretok.h - pre-tokenizers: how byte-level BPE splits text into words before merging.
 *
 * A pre-tokenizer is a chain of steps; each step splits every piece of the previous one into
 * matches and the gaps between them. A step is a regular expression (PCRE2), or a hand-written
 * scanner that does the same faster; tests compare the two.
 *
 * Thread:    a struct tok_pretok is immutable after create; a struct tok_pretok_scratch belongs to
 *            one call.
 * Ownership: create gives the pre-tokenizer to the caller; tok_pretok_scratch_fini frees the
 *            scratch.
 * Failure:   SHOAL_EUNSUPPORTED for an unknown name. Any bytes can be cut: those that are not UTF-8
 *            count as control characters. */
#ifndef SHOAL_TEXT_TOKENIZER_SPLIT_TOK_PRETOK_H
#define SHOAL_TEXT_TOKENIZER_SPLIT_TOK_PRETOK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct tok_pretok; /* opaque: tok_pretok.c */

/* Other settings that the name of a pre-tokenizer implies. */
enum tok_pretok_trait {
    TOK_PRETOK_IGNORE_MERGES = 1 << 0,
    TOK_PRETOK_ADD_BOS = 1 << 1, /* unless the file says otherwise */
    TOK_PRETOK_ADD_SEP = 1 << 2,
    TOK_PRETOK_CHARS = 1 << 3,        /* merges are over characters, U+2581 is a space */
    TOK_PRETOK_NEWLINE_RUNS = 1 << 4, /* a run of newlines that is a token is that token */
    TOK_PRETOK_FORCE_BOS = 1 << 5,    /* whatever the file says */
};

enum tok_pretok_mode {
    TOK_PRETOK_FAST,
    TOK_PRETOK_REGEX_ONLY /* for tests: no scanner where a regex exists */
};

struct tok_pretok_scratch { /* all zero is empty */
    void *match;            /* of tok_regex_find */
    char *clean;            /* a copy of the text without invalid UTF-8 */
    size_t cap_clean;
};

SHOAL_MUST_CHECK int tok_pretok_create(struct tok_pretok **out, const char *name,
                                       enum tok_pretok_mode mode, struct err *e);
void tok_pretok_destroy(struct tok_pretok *pt);
unsigned tok_pretok_traits(const struct tok_pretok *pt);
/* The i-th known name, or NULL past the last. */
const char *tok_pretok_name(size_t i);

/* Takes one word; a negative code stops. */
typedef int (*tok_pretok_word_fn)(void *ctx, const char *p, size_t n);
SHOAL_MUST_CHECK int tok_pretok_split(const struct tok_pretok *pt, struct tok_pretok_scratch *s,
                                      const char *p, size_t n, tok_pretok_word_fn word, void *ctx);
void tok_pretok_scratch_fini(struct tok_pretok_scratch *s);

#endif
