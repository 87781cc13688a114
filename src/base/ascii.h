/* ascii.h - classes and case of ASCII characters, whatever the locale.  A byte of another character
 * is in no class and has no case.
 *
 * Thread:    pure functions. */
#ifndef SHOAL_BASE_ASCII_H
#define SHOAL_BASE_ASCII_H

#include <stdbool.h>

static inline bool ascii_is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static inline bool ascii_is_upper(char c)
{
    return c >= 'A' && c <= 'Z';
}

static inline bool ascii_is_lower(char c)
{
    return c >= 'a' && c <= 'z';
}

static inline bool ascii_is_letter(char c)
{
    return ascii_is_upper(c) || ascii_is_lower(c);
}

/* As isspace in the C locale: with vertical tab and form feed. */
static inline bool ascii_is_space(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

static inline char ascii_lower(char c)
{
    return ascii_is_upper(c) ? (char)(c | 32) : c;
}

static inline char ascii_upper(char c)
{
    return ascii_is_lower(c) ? (char)(c & ~32) : c;
}

/* Value of a hexadecimal digit of either case; -1: not one. */
static inline int ascii_hex(char c)
{
    if (ascii_is_digit(c))
        return c - '0';
    c = ascii_lower(c);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

#endif
