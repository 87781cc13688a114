/* json_out.c - see json_out.h. */
#include "wire/json_out.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct json_out json_out_make(struct buf *b)
{
    return (struct json_out){b, false};
}

static void before_value(struct json_out *j)
{
    if (j->comma)
        buf_putc(j->b, ',');
    j->comma = true;
}

void json_out_object(struct json_out *j)
{
    before_value(j);
    buf_putc(j->b, '{');
    j->comma = false;
}

void json_out_object_end(struct json_out *j)
{
    buf_putc(j->b, '}');
    j->comma = true;
}

void json_out_array(struct json_out *j)
{
    before_value(j);
    buf_putc(j->b, '[');
    j->comma = false;
}

void json_out_array_end(struct json_out *j)
{
    buf_putc(j->b, ']');
    j->comma = true;
}

void json_out_raw(struct json_out *j, const char *p, size_t n)
{
    before_value(j);
    buf_put(j->b, p, n);
}

/* Length of the valid UTF-8 sequence at s, or 0. */
static size_t utf8_len(const uint8_t *s, size_t n)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    size_t len = s[0] < 0x80         ? 1
                 : (s[0] >> 5) == 6  ? 2
                 : (s[0] >> 4) == 14 ? 3
                 : (s[0] >> 3) == 30 ? 4
                                     : 0;
    if (len <= 1)
        return len;
    if (len > n)
        return 0;
    uint32_t cp = s[0] & (0xffu >> (len + 1));
    for (size_t i = 1; i < len; i++) {
        if ((s[i] & 0xc0) != 0x80)
            return 0;
        cp = cp << 6 | (s[i] & 0x3f);
    }
    if (cp < least[len] || cp > 0x10ffff || (cp >= 0xd800 && cp <= 0xdfff))
        return 0;
    return len;
}

/* True for ASCII characters that need no escape. */
static bool is_plain(uint8_t c)
{
    return c >= 0x20 && c < 0x7f && c != '"' && c != '\\';
}

static void escape(struct buf *b, uint8_t c)
{
    if (c == '"' || c == '\\') {
        buf_putc(b, '\\');
        buf_putc(b, (char)c);
    } else if (c == '\n') {
        buf_put(b, "\\n", 2);
    } else if (c == '\t') {
        buf_put(b, "\\t", 2);
    } else if (c == '\r') {
        buf_put(b, "\\r", 2);
    } else {
        const char text[] = {
            '\\', 'u', '0', '0', (char)('0' + (c >> 4)), "0123456789abcdef"[c & 15]};
        buf_put(b, text, sizeof(text));
    }
}

/* True if none of eight bytes needs an escape.  In ones * x every byte is x; a byte's top bit
 * then flags a match.  A carry may flag the byte after a match by mistake, which is harmless:
 * flagged words are checked byte by byte. */
static bool word_is_plain(uint64_t w)
{
    const uint64_t ones = UINT64_MAX / 255, tops = ones * 0x80;
    uint64_t quote = w ^ (ones * '"'), slash = w ^ (ones * '\\');
    uint64_t low = (w - ones * 0x20) & ~w, del = w + ones;
    return (((quote - ones) | (slash - ones) | low | del | w) & tops) == 0;
}

/* false: some byte may need an escape.  The last word overlaps the one before, so that no bytes
 * are checked singly. */
static bool all_plain(const uint8_t *s, size_t n)
{
    uint64_t w;
    uint32_t low, high;
    for (size_t i = 0; i + 8 < n; i += 8) {
        memcpy(&w, s + i, 8);
        if (!word_is_plain(w))
            return false;
    }
    if (n >= 8) {
        memcpy(&w, s + n - 8, 8);
        return word_is_plain(w);
    }
    if (n >= 4) {
        memcpy(&low, s, 4);
        memcpy(&high, s + n - 4, 4);
        return word_is_plain((uint64_t)high << 32 | low);
    }
    for (size_t i = 0; i < n; i++)
        if (!is_plain(s[i]))
            return false;
    return true;
}

static size_t plain_bytes(const uint8_t *s, size_t n)
{
    size_t i = 0;
    while (i < n && is_plain(s[i]))
        i++;
    return i;
}

static void quoted(struct buf *b, const char *str, size_t n)
{
    const uint8_t *s = (const uint8_t *)str;
    if (all_plain(s, n)) { /* most strings */
        char *at = buf_room(b, n + 2);
        if (!at)
            return;
        at[0] = '"';
        if (n > 0)
            memcpy(at + 1, s, n);
        at[n + 1] = '"';
        buf_used(b, n + 2);
        return;
    }
    buf_putc(b, '"');
    for (size_t i = 0; i < n;) {
        size_t len = s[i] < 0x80 ? plain_bytes(s + i, n - i) : utf8_len(s + i, n - i);
        if (len > 0) {
            buf_put(b, s + i, len);
            i += len;
            continue;
        }
        if (s[i] >= 0x80)
            buf_put(b, "\xef\xbf\xbd", 3);
        else
            escape(b, s[i]);
        i++;
    }
    buf_putc(b, '"');
}

void json_out_key(struct json_out *j, const char *key)
{
    before_value(j);
    quoted(j->b, key, strlen(key));
    buf_putc(j->b, ':');
    j->comma = false;
}

void json_out_strn(struct json_out *j, const char *s, size_t n)
{
    before_value(j);
    quoted(j->b, s, n);
}

void json_out_str(struct json_out *j, const char *s)
{
    json_out_strn(j, s, strlen(s));
}

static void put_digits(struct buf *b, uint64_t v, bool negative)
{
    char text[24];
    size_t at = sizeof(text);
    do {
        text[--at] = (char)('0' + v % 10);
        v /= 10;
    } while (v > 0);
    if (negative)
        text[--at] = '-';
    buf_put(b, text + at, sizeof(text) - at);
}

void json_out_int(struct json_out *j, int64_t v)
{
    before_value(j);
    put_digits(j->b, v < 0 ? 0 - (uint64_t)v : (uint64_t)v, v < 0);
}

void json_out_uint(struct json_out *j, uint64_t v)
{
    before_value(j);
    put_digits(j->b, v, false);
}

__extension__ typedef unsigned __int128 wide;

#define MAX_DECIMALS 19
static const uint64_t tens[MAX_DECIMALS + 1] = {1u,
                                                10u,
                                                100u,
                                                1000u,
                                                10000u,
                                                100000u,
                                                1000000u,
                                                10000000u,
                                                100000000u,
                                                1000000000u,
                                                10000000000u,
                                                100000000000u,
                                                1000000000000u,
                                                10000000000000u,
                                                100000000000000u,
                                                1000000000000000u,
                                                10000000000000000u,
                                                100000000000000000u,
                                                1000000000000000000u,
                                                10000000000000000000u};

/* Writes n / 10^decimals without trailing zeros. */
static void put_decimal(struct buf *b, uint64_t n, int decimals, bool negative)
{
    char text[MAX_DECIMALS];
    uint64_t part = n % tens[decimals];
    put_digits(b, n / tens[decimals], negative);
    if (part == 0)
        return;
    for (; part % 10 == 0; decimals--)
        part /= 10;
    for (int i = decimals; i > 0; i--, part /= 10)
        text[i - 1] = (char)('0' + part % 10);
    buf_putc(b, '.');
    buf_put(b, text, (size_t)decimals);
}

/* Number of decimals if this many significant digits are written; -1: the number needs an
 * exponent. */
static int decimals_for(double a, int digits)
{
    int n = digits;
    if (!(a >= 1e-4 && a < 1e9))
        return -1;
    for (; a < 0.1; a *= 10)
        n++;
    for (; a >= 1; a /= 10)
        n--;
    return n < 0 ? 0 : n;
}

/* a * 10^decimals, rounded to a whole number; exact.  a = mantissa / 2^shift, and 53 bits times
 * 10^19 are 117.  *reads_back: the result parses to a, not to a neighbouring double.
 */
static uint64_t scale_exactly(double a, int decimals, bool *reads_back)
{
    int exponent;
    uint64_t mantissa = (uint64_t)ldexp(frexp(a, &exponent), 53);
    int shift = 53 - exponent;
    wide ten = tens[decimals], scaled = mantissa * ten;
    uint64_t n = (uint64_t)((scaled + ((wide)1 << (shift - 1))) >> shift);
    wide back = (wide)n << shift, off = back > scaled ? back - scaled : scaled - back;
    /* half the distance between doubles is half of ten here; below a power of two it is half of
     * that */
    *reads_back = off * 4 < ten || (off * 2 < ten && mantissa != (uint64_t)1 << 52);
    return n;
}

/* Writes the fewest digits that parse to v.  Up to 15 digits survive a double, so the first try
 * finds shorter numbers; 17 are always enough. */
void json_out_num(struct json_out *j, double v)
{
    char text[40];
    double a = fabs(v);
    bool reads_back = false;
    before_value(j);
    if (a < 1e15 && a == (double)(uint64_t)a && !(a == 0 && signbit(v))) { /* also 0 */
        put_digits(j->b, (uint64_t)a, v < 0);
        return;
    }
    for (int digits = 15; digits <= 17; digits++) {
        int k = decimals_for(a, digits);
        if (k <= 0 || k > MAX_DECIMALS)
            break;
        uint64_t n = scale_exactly(a, k, &reads_back);
        if (reads_back) {
            put_decimal(j->b, n, k, v < 0);
            return;
        }
    }
    if (!isfinite(v)) {
        buf_puts(j->b, "null");
        return;
    }
    for (int digits = 15; digits <= 17; digits++) {
        snprintf(text, sizeof(text), "%.*g", digits, v);
        if (digits == 17 || strtod(text, NULL) == v)
            break;
    }
    buf_puts(j->b, text);
}

void json_out_rounded(struct json_out *j, double v, int decimals)
{
    double n = nearbyint(fabs(v) * (double)tens[decimals]);
    if (!(n < 1e15)) { /* or no number at all */
        json_out_num(j, v);
        return;
    }
    before_value(j);
    put_decimal(j->b, (uint64_t)n, decimals, v < 0 && n > 0);
}

/* The quotient is rounded twice here, which may differ from strtof, so the result is checked with
 * strtof. */
void json_out_float(struct json_out *j, float v)
{
    char text[40];
    double a = fabs((double)v);
    before_value(j);
    if (!isfinite(v)) {
        buf_puts(j->b, "null");
        return;
    }
    size_t before = j->b->len;
    for (int digits = 6, k; digits <= 9 && (k = decimals_for(a, digits)) >= 0; digits++) {
        double n = nearbyint(a * (double)tens[k]);
        if ((float)(n / (double)tens[k]) != (float)a)
            continue;
        put_decimal(j->b, (uint64_t)n, k, v < 0);
        if (j->b->rc < 0 || strtof(j->b->data + before, NULL) == v)
            return;
        j->b->len = before;
        break;
    }
    for (int digits = 6; digits <= 9; digits++) {
        snprintf(text, sizeof(text), "%.*g", digits, (double)v);
        if (strtof(text, NULL) == v)
            break;
    }
    buf_puts(j->b, text);
}

void json_out_bool(struct json_out *j, bool v)
{
    before_value(j);
    buf_puts(j->b, v ? "true" : "false");
}

void json_out_null(struct json_out *j)
{
    before_value(j);
    buf_puts(j->b, "null");
}

void json_out_member_object(struct json_out *j, const char *key)
{
    json_out_key(j, key);
    json_out_object(j);
}

void json_out_member_array(struct json_out *j, const char *key)
{
    json_out_key(j, key);
    json_out_array(j);
}

void json_out_member_str(struct json_out *j, const char *key, const char *s)
{
    json_out_key(j, key);
    json_out_str(j, s);
}

void json_out_member_strn(struct json_out *j, const char *key, const char *s, size_t n)
{
    json_out_key(j, key);
    json_out_strn(j, s, n);
}

void json_out_member_int(struct json_out *j, const char *key, int64_t v)
{
    json_out_key(j, key);
    json_out_int(j, v);
}

void json_out_member_uint(struct json_out *j, const char *key, uint64_t v)
{
    json_out_key(j, key);
    json_out_uint(j, v);
}

void json_out_member_num(struct json_out *j, const char *key, double v)
{
    json_out_key(j, key);
    json_out_num(j, v);
}

void json_out_member_rounded(struct json_out *j, const char *key, double v, int decimals)
{
    json_out_key(j, key);
    json_out_rounded(j, v, decimals);
}

void json_out_member_float(struct json_out *j, const char *key, float v)
{
    json_out_key(j, key);
    json_out_float(j, v);
}

void json_out_member_bool(struct json_out *j, const char *key, bool v)
{
    json_out_key(j, key);
    json_out_bool(j, v);
}

void json_out_member_null(struct json_out *j, const char *key)
{
    json_out_key(j, key);
    json_out_null(j);
}

void json_out_member_raw(struct json_out *j, const char *key, const char *p, size_t n)
{
    json_out_key(j, key);
    json_out_raw(j, p, n);
}
