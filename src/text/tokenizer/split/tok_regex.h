/* tok_regex.h - a compiled regular expression over valid UTF-8, as tokenizers use them.
 *
 * Thread:    a struct tok_regex is immutable after create; the match state belongs to a call.
 * Ownership: create gives the regex to the caller; *match is freed by tok_regex_match_free.
 * Failure:   SHOAL_EFORMAT says what is wrong in the pattern and where; SHOAL_ELIMIT: a text makes
 *            the expression try too much. */
#ifndef SHOAL_TEXT_TOKENIZER_SPLIT_TOK_REGEX_H
#define SHOAL_TEXT_TOKENIZER_SPLIT_TOK_REGEX_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

struct tok_regex; /* opaque: tok_regex.c */

/* Inside brackets: the White_Space property, which PCRE2's own \s is not quite. */
#define TOK_REGEX_WS                                                                               \
    "\\t-\\r "                                                                                     \
    "\\x{85}\\x{a0}\\x{1680}\\x{2000}-\\x{200a}\\x{2028}\\x{2029}\\x{202f}\\x{205f}\\x{3000}"

/* The pattern is PCRE2's; trusted: it is ours and known to take linear time, so there is no
 * limit. */
SHOAL_MUST_CHECK int tok_regex_create(struct tok_regex **out, const char *pattern, size_t n,
                                      bool trusted, struct err *e);
void tok_regex_destroy(struct tok_regex *rx);
/* The first match in [p, p + n) from `from` on: 1 and its range, 0 when there is none, or a
 * negative code.  *match is NULL before the first call and kept for the next ones. */
SHOAL_MUST_CHECK int tok_regex_find(const struct tok_regex *rx, void **match, const char *p,
                                    size_t n, size_t from, size_t *start, size_t *end);
void tok_regex_match_free(void *match);

/* Rewrites an expression of Oniguruma's syntax, as tokenizer.json has them, for PCRE2: \s, \w and
 * \d by their properties.  out: a string that mem_free frees. */
SHOAL_MUST_CHECK int tok_regex_translate(char **out, const char *pattern, size_t n, struct err *e);

#endif
