/* jinja_text.h - strings and numbers as the reference sees them.
 *
 * The reference counts and compares strings in UTF-16 units; here they are UTF-8.  Half of a
 * surrogate pair (only s[i] on a character outside the BMP makes one) is kept as three bytes, the
 * way UTF-8 would write its number, and repaired on output by jinja_text_repair.
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
size_t jinja_text_units(struct jinja_str s);                    /* length in UTF-16 units */
size_t jinja_text_points(struct jinja_str s);                   /* length in code points */
int jinja_text_compare(struct jinja_str a, struct jinja_str b); /* by UTF-16 unit */
bool jinja_text_is_space(uint32_t cp);
size_t jinja_text_skip_space(const char *p, size_t n); /* bytes of white space at the start */
struct jinja_str jinja_text_trim(struct jinja_str s, bool start, bool end);
/* Offset of the first needle at or after `from`, or SIZE_MAX. */
size_t jinja_text_find(struct jinja_str s, struct jinja_str needle, size_t from);
void jinja_text_upper(struct buf *out, struct jinja_str s);
void jinja_text_lower(struct buf *out, struct jinja_str s);
void jinja_text_title(struct buf *out, struct jinja_str s);
/* Joins surrogate halves that stand side by side; a lone one becomes U+FFFD. */
void jinja_text_repair(struct buf *out, struct jinja_str s);

enum { JINJA_TEXT_NUMBER = 32 };
/* Shortest digits that read back the same, laid out as JavaScript does; NUL-terminated. */
size_t jinja_text_number(char out[JINJA_TEXT_NUMBER], double v);
/* The same with ".0" where a float has no fraction. */
size_t jinja_text_float(char out[JINJA_TEXT_NUMBER], double v);
/* The number that begins s after white space, NaN when none does. */
double jinja_text_parse_int(struct jinja_str s);
double jinja_text_parse_float(struct jinja_str s);
double jinja_text_to_number(struct jinja_str s); /* the whole of s is a number, or NaN */

#endif
