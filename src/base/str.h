/* str.h - a string with its length; the bytes are borrowed.  And what string.h lacks for strings
 * that end with a NUL.
 *
 * Thread:    pure functions. */
#ifndef SHOAL_BASE_STR_H
#define SHOAL_BASE_STR_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

struct str { /* not NUL-terminated; p may be NULL where that means "missing" */
    const char *p;
    size_t n;
};

#define STR(literal) ((struct str){literal, sizeof(literal) - 1})

static inline bool str_is(struct str s, const char *text)
{
    return s.p && strlen(text) == s.n && memcmp(s.p, text, s.n) == 0;
}

static inline bool str_has(struct str s, const char *part)
{
    return s.p && memmem(s.p, s.n, part, strlen(part)) != NULL;
}

static inline bool str_starts(struct str s, const char *start)
{
    return s.p && s.n >= strlen(start) && memcmp(s.p, start, strlen(start)) == 0;
}

static inline bool str_ends_with(const char *s, const char *end)
{
    size_t n = strlen(s), k = strlen(end);
    return n >= k && strcmp(s + n - k, end) == 0;
}

#endif
