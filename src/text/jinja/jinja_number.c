/* jinja_number.c - see jinja_number.h. */
#include "text/jinja/jinja_number.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/ascii.h"
#include "base/decimal.h"

/* Digits of |v| without a point, and the position of the point: v = 0.DIGITS * 10^point. */
static size_t shortest_digits(char digits[20], int *point, double v)
{
    char text[40];
    for (int p = 0; p < 17; p++) {
        snprintf(text, sizeof(text), "%.*e", p, v);
        if (decimal_read(text, strlen(text)) == v)
            break;
    }
    size_t n = 0;
    const char *t = text;
    for (; *t && *t != 'e'; t++)
        if (ascii_is_digit(*t) && n < 19)
            digits[n++] = *t;
    *point = (*t ? (int)strtol(t + 1, NULL, 10) : 0) + 1;
    while (n > 1 && digits[n - 1] == '0')
        n--;
    digits[n] = '\0';
    return n;
}

size_t jinja_number_repr(char out[JINJA_NUMBER_TEXT], double v)
{
    const size_t room = JINJA_NUMBER_TEXT;
    if (isnan(v))
        return (size_t)snprintf(out, room, "nan");
    if (isinf(v))
        return (size_t)snprintf(out, room, v < 0 ? "-inf" : "inf");
    if (v == 0)
        return (size_t)snprintf(out, room, signbit(v) ? "-0.0" : "0.0");
    char digits[20];
    int point, len;
    int n = (int)shortest_digits(digits, &point, fabs(v));
    const char *sign = v < 0 ? "-" : "";
    if (point > 16 || point <= -4) {
        int exp = point - 1;
        len = snprintf(out, room, "%s%c%s%se%c%02d", sign, digits[0], n > 1 ? "." : "", digits + 1,
                       exp < 0 ? '-' : '+', abs(exp));
    } else if (point >= n) {
        len = snprintf(out, room, "%s%s%.*s.0", sign, digits, point - n, "0000000000000000");
    } else if (point > 0) {
        len = snprintf(out, room, "%s%.*s.%s", sign, point, digits, digits + point);
    } else {
        len = snprintf(out, room, "%s0.%.*s%s", sign, -point, "0000", digits);
    }
    return (size_t)len;
}

static int digit_value(char c)
{
    if (ascii_is_digit(c))
        return c - '0';
    c = ascii_lower(c);
    return ascii_is_lower(c) ? c - 'a' + 10 : 99;
}

enum jinja_number_kind jinja_number_int(struct jinja_str s, unsigned base, int64_t *out)
{
    s = jinja_text_strip(s, true, true, NULL);
    size_t i = 0;
    bool minus = s.n && s.p[0] == '-', big = false, after_digit = false;
    if (s.n && (minus || s.p[0] == '+'))
        i++;
    if (s.n - i > 2 && s.p[i] == '0') {
        char c = (char)(s.p[i + 1] | 32);
        if ((base == 16 && c == 'x') || (base == 8 && c == 'o') || (base == 2 && c == 'b')) {
            i += 2;
            i += s.p[i] == '_'; /* 0x_1f */
        }
    }
    uint64_t v = 0;
    if (i == s.n)
        return JINJA_NUMBER_BAD;
    for (; i < s.n; i++) {
        unsigned d = (unsigned)digit_value(s.p[i]);
        if (s.p[i] == '_' && after_digit && i + 1 < s.n) {
            after_digit = false;
            continue;
        }
        if (d >= base)
            return JINJA_NUMBER_BAD;
        after_digit = true;
        big = big || __builtin_mul_overflow(v, (uint64_t)base, &v) ||
              __builtin_add_overflow(v, (uint64_t)d, &v);
    }
    if (!after_digit)
        return JINJA_NUMBER_BAD;
    if (big || v > (uint64_t)INT64_MAX + (minus ? 1 : 0))
        return JINJA_NUMBER_BIG;
    *out = minus ? (int64_t)(0 - v) : (int64_t)v;
    return JINJA_NUMBER_INT;
}

/* Is the rest of s `word`, in any case of letters? */
static bool is_word(struct jinja_str s, size_t from, const char *word)
{
    size_t n = strlen(word);
    if (s.n - from != n)
        return false;
    for (size_t i = 0; i < n; i++)
        if ((s.p[from + i] | 32) != word[i])
            return false;
    return true;
}

bool jinja_number_float(struct jinja_str s, double *out)
{
    char plain[400];
    s = jinja_text_strip(s, true, true, NULL);
    size_t sign = s.n && (s.p[0] == '+' || s.p[0] == '-'), n = 0;
    bool minus = sign && s.p[0] == '-';
    if (is_word(s, sign, "inf") || is_word(s, sign, "infinity")) {
        *out = minus ? -INFINITY : INFINITY;
        return true;
    }
    if (is_word(s, sign, "nan")) {
        *out = NAN;
        return true;
    }
    if (s.n >= sizeof(plain))
        return false;
    for (size_t i = sign; i < s.n; i++) {
        bool between =
            i > sign && digit_value(s.p[i - 1]) < 10 && i + 1 < s.n && digit_value(s.p[i + 1]) < 10;
        if (s.p[i] != '_' || !between)
            plain[n++] = s.p[i];
    }
    if (n == 0 || plain[0] == '+' || plain[0] == '-' || decimal_span(plain, n) != n)
        return false;
    double v = decimal_read(plain, n);
    *out = minus ? -v : v;
    return true;
}
