/* str.h - a string with its length; the bytes are borrowed.
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

#endif
