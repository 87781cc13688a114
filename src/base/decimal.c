/* decimal.c - see decimal.h. */
#include "base/ascii.h"
#include "base/decimal.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

size_t decimal_span(const char *p, size_t n)
{
    size_t i = 0, digits = 0;
    if (i < n && (p[i] == '+' || p[i] == '-'))
        i++;
    for (; i < n && ascii_is_digit(p[i]); i++)
        digits++;
    if (i < n && p[i] == '.') {
        size_t k = i + 1, frac = 0;
        for (; k < n && ascii_is_digit(p[k]); k++)
            frac++;
        if (digits + frac > 0)
            i = k;
        digits += frac;
    }
    if (digits == 0)
        return 0;
    if (i < n && (p[i] == 'e' || p[i] == 'E')) {
        size_t k = i + 1;
        if (k < n && (p[k] == '+' || p[k] == '-'))
            k++;
        if (k < n && ascii_is_digit(p[k])) {
            while (k < n && ascii_is_digit(p[k]))
                k++;
            i = k;
        }
    }
    return i;
}

/* Rewrites the literal as DIGITSe+N: strtod needs a NUL, and digits after the 700th never change a
 * double. */
double decimal_read(const char *p, size_t n)
{
    char text[760];
    size_t k = 0;
    long exp = 0;
    bool point = false, any = false;
    for (size_t i = 0; i < n; i++) {
        if (p[i] == 'e' || p[i] == 'E') {
            long given = 0;
            bool minus = p[i + 1] == '-';
            for (i++; i < n; i++)
                if (ascii_is_digit(p[i]) && given < 1000000)
                    given = given * 10 + (p[i] - '0');
            exp += minus ? -given : given;
        } else if (p[i] == '.') {
            point = true;
        } else if (!ascii_is_digit(p[i])) {
            text[k++] = p[i]; /* the sign */
        } else if (k < 700 && (any || p[i] != '0')) {
            any = true;
            text[k++] = p[i];
            exp -= point;
        } else {
            exp += any ? !point : -(long)point;
        }
    }
    if (!any)
        text[k++] = '0';
    snprintf(text + k, sizeof(text) - k, "e%ld", exp);
    return strtod(text, NULL);
}
