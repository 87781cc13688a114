/* jinja_text.h - strings as Python sees them: sequences of code points.
 *
 * Half of a surrogate pair, which JSON may hold by its escape, is kept as three bytes, the way
 * UTF-8 would write its number, and repaired on output by jinja_text_repair.
 *
 * Thread:    no state.
 * Ownership: struct jinja_str borrows its bytes.
 * Failure:   none; writers into a buf fail through the buf's rc. */
#ifndef SHOAL_TEXT_JINJA_JINJA_TEXT_H
#define SHOAL_TEXT_JINJA_JINJA_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct buf;

struct jinja_str {
    const char *p;
    size_t n;
};

#define JINJA_STR(literal) ((struct jinja_str){literal, sizeof(literal) - 1})

static inline bool jinja_str_is(struct jinja_str s, const char *text)
{
    size_t n = strlen(text);
    return s.n == n && memcmp(s.p, text, n) == 0;
}

static inline bool jinja_str_eq(struct jinja_str a, struct jinja_str b)
{
    return a.n == b.n && (a.n == 0 || memcmp(a.p, b.p, a.n) == 0);
}

/* The code point at p (n > 0 bytes of valid text) and its length in bytes. */
size_t jinja_text_next(const char *p, size_t n, uint32_t *cp);
size_t jinja_text_put(char out[4], uint32_t cp);
size_t jinja_text_points(struct jinja_str s);                   /* length in code points */
int jinja_text_compare(struct jinja_str a, struct jinja_str b); /* by code point */
/* str.isspace, isupper, islower, isalpha, isdigit and isprintable of one character; is_word is
 * the \w of regular expressions. */
bool jinja_text_is_space(uint32_t cp);
bool jinja_text_is_upper(uint32_t cp);
bool jinja_text_is_lower(uint32_t cp);
bool jinja_text_is_cased(uint32_t cp);
bool jinja_text_is_alpha(uint32_t cp);
bool jinja_text_is_digit(uint32_t cp);
bool jinja_text_is_word(uint32_t cp);
bool jinja_text_is_printable(uint32_t cp);
size_t jinja_text_skip_space(const char *p, size_t n); /* bytes of white space at the start */
/* Removes white space, or the characters of set, from the ends. */
struct jinja_str jinja_text_strip(struct jinja_str s, bool start, bool end,
                                  const struct jinja_str *set);
/* Offset of the first needle at or after `from`, or SIZE_MAX. */
size_t jinja_text_find(struct jinja_str s, struct jinja_str needle, size_t from);
void jinja_text_upper(struct buf *out, struct jinja_str s);
void jinja_text_lower(struct buf *out, struct jinja_str s);
void jinja_text_title(struct buf *out, struct jinja_str s);
void jinja_text_capitalize(struct buf *out, struct jinja_str s);
/* Joins surrogate halves that stand side by side; a lone one becomes U+FFFD. */
void jinja_text_repair(struct buf *out, struct jinja_str s);

#endif
