/* jinja_text.c - see jinja_text.h. */
#include "text/jinja/jinja_text.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include <utf8proc.h>

#include "base/buf.h"
#include "base/decimal.h"
#include "text/jinja/jinja_case.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

size_t jinja_text_next(const char *text, size_t n, uint32_t *cp)
{
    const uint8_t *p = (const uint8_t *)text;
    if (p[0] < 0x80 || n < 2) {
        *cp = p[0];
        return 1;
    }
    if (p[0] < 0xe0 || n < 3) {
        *cp = (p[0] & 0x1fu) << 6 | (p[1] & 0x3fu);
        return 2;
    }
    if (p[0] < 0xf0 || n < 4) {
        *cp = (p[0] & 0x0fu) << 12 | (p[1] & 0x3fu) << 6 | (p[2] & 0x3fu);
        return 3;
    }
    *cp = (p[0] & 0x07u) << 18 | (p[1] & 0x3fu) << 12 | (p[2] & 0x3fu) << 6 | (p[3] & 0x3fu);
    return 4;
}

size_t jinja_text_put(char out[4], uint32_t cp)
{
    if (cp < 0x80) {
        out[0] = (char)cp;
        return 1;
    }
    if (cp < 0x800) {
        out[0] = (char)(0xc0 | cp >> 6);
        out[1] = (char)(0x80 | (cp & 0x3f));
        return 2;
    }
    if (cp < 0x10000) {
        out[0] = (char)(0xe0 | cp >> 12);
        out[1] = (char)(0x80 | (cp >> 6 & 0x3f));
        out[2] = (char)(0x80 | (cp & 0x3f));
        return 3;
    }
    out[0] = (char)(0xf0 | cp >> 18);
    out[1] = (char)(0x80 | (cp >> 12 & 0x3f));
    out[2] = (char)(0x80 | (cp >> 6 & 0x3f));
    out[3] = (char)(0x80 | (cp & 0x3f));
    return 4;
}

static void put_point(struct buf *b, uint32_t cp)
{
    char bytes[4];
    buf_put(b, bytes, jinja_text_put(bytes, cp));
}

size_t jinja_text_units(struct jinja_str s)
{
    size_t n = 0;
    for (size_t i = 0; i < s.n; i++) {
        uint8_t c = (uint8_t)s.p[i];
        n += (size_t)((c & 0xc0) != 0x80) + (size_t)(c >= 0xf0);
    }
    return n;
}

size_t jinja_text_points(struct jinja_str s)
{
    size_t n = 0;
    for (size_t i = 0; i < s.n; i++)
        n += ((uint8_t)s.p[i] & 0xc0) != 0x80;
    return n;
}

int jinja_text_compare(struct jinja_str a, struct jinja_str b)
{
    size_t i = 0;
    while (i < a.n && i < b.n && a.p[i] == b.p[i])
        i++;
    if (i == a.n || i == b.n)
        return (a.n > b.n) - (a.n < b.n);
    uint8_t x = (uint8_t)a.p[i], y = (uint8_t)b.p[i];
    /* Bytes order like code points.  UTF-16 differs in one thing: what lies outside the BMP starts
     * with a surrogate (0xd800..), so it sorts below U+E000..U+FFFF (first bytes ee, ef). */
    bool x_outside = x >= 0xf0, y_outside = y >= 0xf0;
    if (x_outside != y_outside && (x_outside ? y : x) >= 0xee)
        return x_outside ? -1 : 1;
    return x < y ? -1 : 1;
}

bool jinja_text_is_space(uint32_t cp)
{
    return cp == ' ' || (cp >= 9 && cp <= 13) || cp == 0xa0 || cp == 0x1680 ||
           (cp >= 0x2000 && cp <= 0x200a) || cp == 0x2028 || cp == 0x2029 || cp == 0x202f ||
           cp == 0x205f || cp == 0x3000 || cp == 0xfeff;
}

size_t jinja_text_skip_space(const char *p, size_t n)
{
    size_t i = 0;
    while (i < n) {
        uint32_t cp;
        size_t len = jinja_text_next(p + i, n - i, &cp);
        if (!jinja_text_is_space(cp))
            break;
        i += len;
    }
    return i;
}

struct jinja_str jinja_text_trim(struct jinja_str s, bool start, bool end)
{
    if (start) {
        size_t n = jinja_text_skip_space(s.p, s.n);
        s.p += n;
        s.n -= n;
    }
    while (end && s.n) {
        size_t at = s.n - 1;
        uint32_t cp;
        while (at > 0 && ((uint8_t)s.p[at] & 0xc0) == 0x80)
            at--;
        jinja_text_next(s.p + at, s.n - at, &cp);
        if (!jinja_text_is_space(cp))
            break;
        s.n = at;
    }
    return s;
}

size_t jinja_text_find(struct jinja_str s, struct jinja_str needle, size_t from)
{
    if (from > s.n)
        return SIZE_MAX;
    if (needle.n == 0)
        return from;
    const char *hit = memmem(s.p + from, s.n - from, needle.p, needle.n);
    return hit ? (size_t)(hit - s.p) : SIZE_MAX;
}

static uint32_t upper_point(uint32_t cp)
{
    return (uint32_t)utf8proc_toupper((utf8proc_int32_t)cp);
}

static uint32_t lower_point(uint32_t cp)
{
    return (uint32_t)utf8proc_tolower((utf8proc_int32_t)cp);
}

static void put_upper(struct buf *out, uint32_t cp)
{
    for (size_t i = 0; i < COUNT(case_upper_special) && case_upper_special[i].from <= cp; i++)
        if (case_upper_special[i].from == cp) {
            for (size_t k = 0; k < 3 && case_upper_special[i].to[k]; k++)
                put_point(out, case_upper_special[i].to[k]);
            return;
        }
    put_point(out, upper_point(cp));
}

void jinja_text_upper(struct buf *out, struct jinja_str s)
{
    for (size_t i = 0; i < s.n;) {
        uint32_t cp;
        i += jinja_text_next(s.p + i, s.n - i, &cp);
        if (cp < 0x80)
            buf_putc(out, (char)(cp >= 'a' && cp <= 'z' ? cp - 32 : cp));
        else
            put_upper(out, cp);
    }
}

static bool is_cased(uint32_t cp)
{
    if (cp < 0x80)
        return (cp | 32) >= 'a' && (cp | 32) <= 'z';
    return upper_point(cp) != cp || lower_point(cp) != cp || cp == 0xdf;
}

/* What may stand between the letters of one word: the marks met in Greek and Latin text. */
static bool is_inside_word(uint32_t cp)
{
    return cp == '\'' || cp == '.' || cp == ':' || cp == 0xad || cp == 0xb7 || cp == 0x2019 ||
           (cp >= 0x300 && cp <= 0x36f);
}

/* Unicode's Final_Sigma: a letter before, none after. */
static bool is_final_sigma(struct jinja_str s, size_t at, size_t len)
{
    uint32_t cp = 0;
    size_t i = at;
    for (;;) {
        if (i == 0)
            return false;
        i--;
        while (i > 0 && ((uint8_t)s.p[i] & 0xc0) == 0x80)
            i--;
        jinja_text_next(s.p + i, s.n - i, &cp);
        if (!is_inside_word(cp))
            break;
    }
    if (!is_cased(cp))
        return false;
    for (i = at + len; i < s.n;) {
        i += jinja_text_next(s.p + i, s.n - i, &cp);
        if (!is_inside_word(cp))
            return !is_cased(cp);
    }
    return true;
}

void jinja_text_lower(struct buf *out, struct jinja_str s)
{
    for (size_t i = 0; i < s.n;) {
        uint32_t cp;
        size_t len = jinja_text_next(s.p + i, s.n - i, &cp);
        if (cp < 0x80)
            buf_putc(out, (char)(cp >= 'A' && cp <= 'Z' ? cp + 32 : cp));
        else if (cp == 0x3a3)
            put_point(out, is_final_sigma(s, i, len) ? 0x3c2 : 0x3c3);
        else if (cp == 0x130) /* I with a dot keeps it */
            buf_puts(out, "i\xcc\x87");
        else
            put_point(out, lower_point(cp));
        i += len;
    }
}

void jinja_text_title(struct buf *out, struct jinja_str s)
{
    bool in_word = false; /* words are of ASCII letters, digits and _ in the reference */
    for (size_t i = 0; i < s.n; i++) {
        char c = s.p[i];
        bool word =
            (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
        buf_putc(out, !in_word && c >= 'a' && c <= 'z' ? (char)(c - 32) : c);
        in_word = word;
    }
}

void jinja_text_repair(struct buf *out, struct jinja_str s)
{
    size_t done = 0;
    for (size_t i = 0; i + 2 < s.n;) {
        if ((uint8_t)s.p[i] != 0xed || (uint8_t)s.p[i + 1] < 0xa0) {
            i++;
            continue;
        }
        uint32_t a, b = 0;
        size_t len = jinja_text_next(s.p + i, s.n - i, &a);
        buf_put(out, s.p + done, i - done);
        i += len;
        if (a < 0xdc00 && i < s.n && (len = jinja_text_next(s.p + i, s.n - i, &b), b >= 0xdc00) &&
            b <= 0xdfff) {
            put_point(out, 0x10000 + ((a - 0xd800) << 10) + (b - 0xdc00));
            i += len;
        } else {
            put_point(out, 0xfffd);
        }
        done = i;
    }
    buf_put(out, s.p + done, s.n - done);
}

/* Digits of |v| without a point, and where the point stands: v = 0.DIGITS * 10^point. */
static size_t shortest_digits(char digits[20], int *point, double v)
{
    char text[40];
    for (int p = 0; p < 17; p++) {
        snprintf(text, sizeof(text), "%.*e", p, v);
        if (strtod(text, NULL) == v)
            break;
    }
    size_t n = 0;
    const char *t = text;
    for (; *t && *t != 'e'; t++)
        if (*t >= '0' && *t <= '9' && n < 19)
            digits[n++] = *t;
    *point = (*t ? (int)strtol(t + 1, NULL, 10) : 0) + 1;
    while (n > 1 && digits[n - 1] == '0')
        n--;
    digits[n] = '\0';
    return n;
}

size_t jinja_text_number(char out[JINJA_TEXT_NUMBER], double v)
{
    const size_t room = JINJA_TEXT_NUMBER;
    if (isnan(v))
        return (size_t)snprintf(out, room, "NaN");
    if (isinf(v))
        return (size_t)snprintf(out, room, v < 0 ? "-Infinity" : "Infinity");
    if (v == 0)
        return (size_t)snprintf(out, room, "0");
    if (fabs(v) < 9007199254740992.0 && v == floor(v))
        return (size_t)snprintf(out, room, "%lld", (long long)v);
    char digits[20];
    int point;
    int n = (int)shortest_digits(digits, &point, fabs(v));
    const char *sign = v < 0 ? "-" : "";
    int len;
    if (point > 21 || point <= -6) {
        int exp = point - 1;
        len = snprintf(out, room, "%s%c%s%se%c%d", sign, digits[0], n > 1 ? "." : "", digits + 1,
                       exp < 0 ? '-' : '+', abs(exp));
    } else if (point >= n) {
        len = snprintf(out, room, "%s%s%.*s", sign, digits, point - n, "000000000000000000000");
    } else if (point > 0) {
        len = snprintf(out, room, "%s%.*s.%s", sign, point, digits, digits + point);
    } else {
        len = snprintf(out, room, "%s0.%.*s%s", sign, -point, "000000", digits);
    }
    return (size_t)len;
}

size_t jinja_text_float(char out[JINJA_TEXT_NUMBER], double v)
{
    if (v == 0)
        return (size_t)snprintf(out, JINJA_TEXT_NUMBER, signbit(v) ? "-0.0" : "0.0");
    if (isfinite(v) && v == floor(v) && fabs(v) < 1e21)
        return (size_t)snprintf(out, JINJA_TEXT_NUMBER, "%.1f", v);
    return jinja_text_number(out, v);
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static double parse_infinity(struct jinja_str s)
{
    size_t sign = s.n && (s.p[0] == '+' || s.p[0] == '-');
    if (s.n - sign >= 8 && memcmp(s.p + sign, "Infinity", 8) == 0)
        return s.p[0] == '-' ? -INFINITY : INFINITY;
    return NAN;
}

double jinja_text_parse_float(struct jinja_str s)
{
    s = jinja_text_trim(s, true, false);
    size_t n = decimal_span(s.p, s.n);
    return n ? decimal_read(s.p, n) : parse_infinity(s);
}

double jinja_text_parse_int(struct jinja_str s)
{
    s = jinja_text_trim(s, true, false);
    size_t i = s.n && (s.p[0] == '+' || s.p[0] == '-');
    size_t digits = i;
    while (digits < s.n && is_digit(s.p[digits]))
        digits++;
    return digits > i ? decimal_read(s.p, digits) : (double)NAN;
}

double jinja_text_to_number(struct jinja_str s)
{
    s = jinja_text_trim(s, true, true);
    if (s.n == 0)
        return 0;
    int base = 0;
    if (s.n > 2 && s.p[0] == '0')
        switch (s.p[1] | 32) {
        case 'x':
            base = 16;
            break;
        case 'o':
            base = 8;
            break;
        case 'b':
            base = 2;
            break;
        default:
            break;
        }
    if (base) {
        double v = 0;
        for (size_t i = 2; i < s.n; i++) {
            char c = (char)(s.p[i] | 32);
            int d = is_digit(s.p[i]) ? s.p[i] - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : 99;
            if (d >= base)
                return NAN;
            v = v * base + d;
        }
        return v;
    }
    size_t n = decimal_span(s.p, s.n);
    if (n == s.n)
        return decimal_read(s.p, n);
    double inf = parse_infinity(s);
    bool whole = s.n == 8u + (s.p[0] == '+' || s.p[0] == '-');
    return n == 0 && whole ? inf : (double)NAN;
}
