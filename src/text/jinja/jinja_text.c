/* jinja_text.c - see jinja_text.h. */
#include "text/jinja/jinja_text.h"

#include <utf8proc.h>

#include "base/buf.h"
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

size_t jinja_text_points(struct jinja_str s)
{
    size_t n = 0;
    for (size_t i = 0; i < s.n; i++)
        n += ((uint8_t)s.p[i] & 0xc0) != 0x80;
    return n;
}

int jinja_text_compare(struct jinja_str a, struct jinja_str b)
{
    size_t n = a.n < b.n ? a.n : b.n;
    int c = n ? memcmp(a.p, b.p, n) : 0; /* the bytes of UTF-8 are ordered as its code points */
    return c ? (c > 0) - (c < 0) : (a.n > b.n) - (a.n < b.n);
}

bool jinja_text_is_space(uint32_t cp)
{
    return cp == ' ' || (cp >= 9 && cp <= 13) || (cp >= 0x1c && cp <= 0x1f) || cp == 0x85 ||
           cp == 0xa0 || cp == 0x1680 || (cp >= 0x2000 && cp <= 0x200a) || cp == 0x2028 ||
           cp == 0x2029 || cp == 0x202f || cp == 0x205f || cp == 0x3000;
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

static bool is_trimmed(uint32_t cp, struct jinja_str c, const struct jinja_str *set)
{
    return set ? jinja_text_find(*set, c, 0) != SIZE_MAX : jinja_text_is_space(cp);
}

struct jinja_str jinja_text_strip(struct jinja_str s, bool start, bool end,
                                  const struct jinja_str *set)
{
    uint32_t cp;
    while (start && s.n) {
        size_t len = jinja_text_next(s.p, s.n, &cp);
        if (!is_trimmed(cp, (struct jinja_str){s.p, len}, set))
            break;
        s.p += len;
        s.n -= len;
    }
    while (end && s.n) {
        size_t at = s.n - 1;
        while (at > 0 && ((uint8_t)s.p[at] & 0xc0) == 0x80)
            at--;
        jinja_text_next(s.p + at, s.n - at, &cp);
        if (!is_trimmed(cp, (struct jinja_str){s.p + at, s.n - at}, set))
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
    /* letters such as the ligature fi have no other case of their own */
    utf8proc_category_t c = utf8proc_category((utf8proc_int32_t)cp);
    return c == UTF8PROC_CATEGORY_LU || c == UTF8PROC_CATEGORY_LL || c == UTF8PROC_CATEGORY_LT ||
           upper_point(cp) != cp || lower_point(cp) != cp;
}

/* Characters allowed between the letters of one word: the marks found in Greek and Latin text. */
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

/* The character of len bytes at i of s in lower case; a sigma depends on its neighbours. */
static void put_lower(struct buf *out, struct jinja_str s, size_t i, size_t len, uint32_t cp)
{
    if (cp < 0x80)
        buf_putc(out, (char)(cp >= 'A' && cp <= 'Z' ? cp + 32 : cp));
    else if (cp == 0x3a3)
        put_point(out, is_final_sigma(s, i, len) ? 0x3c2 : 0x3c3);
    else if (cp == 0x130) /* I with a dot keeps its dot */
        buf_puts(out, "i\xcc\x87");
    else
        put_point(out, lower_point(cp));
}

void jinja_text_lower(struct buf *out, struct jinja_str s)
{
    for (size_t i = 0; i < s.n;) {
        uint32_t cp;
        size_t len = jinja_text_next(s.p + i, s.n - i, &cp);
        put_lower(out, s, i, len, cp);
        i += len;
    }
}

/* The form of a letter that begins a word. */
static void put_title(struct buf *out, uint32_t cp)
{
    uint32_t title = (uint32_t)utf8proc_totitle((utf8proc_int32_t)cp);
    bool special = title == cp || cp == 0xdf; /* utf8proc knows a capital sharp s */
    for (size_t i = 0; special && i < COUNT(case_upper_special); i++)
        if (case_upper_special[i].from == cp) {
            const uint32_t *to = case_upper_special[i].to;
            put_point(out, to[0]);
            for (size_t k = 1; k < 3 && to[k]; k++)
                put_point(out, is_cased(to[0]) ? lower_point(to[k]) : to[k]);
            return;
        }
    put_point(out, title);
}

/* Writes s in lower case, but the letters that begin a word (first: only the first character) in
 * title case. */
static void put_words(struct buf *out, struct jinja_str s, bool first)
{
    bool in_word = false;
    for (size_t i = 0; i < s.n;) {
        uint32_t cp;
        size_t len = jinja_text_next(s.p + i, s.n - i, &cp);
        if (!in_word)
            put_title(out, cp);
        else
            put_lower(out, s, i, len, cp);
        in_word = first || is_cased(cp);
        i += len;
    }
}

void jinja_text_title(struct buf *out, struct jinja_str s)
{
    put_words(out, s, false);
}

void jinja_text_capitalize(struct buf *out, struct jinja_str s)
{
    put_words(out, s, true);
}

bool jinja_text_is_upper(uint32_t cp)
{
    utf8proc_category_t c = utf8proc_category((utf8proc_int32_t)cp);
    return c == UTF8PROC_CATEGORY_LU ||
           (is_cased(cp) && lower_point(cp) != cp && c != UTF8PROC_CATEGORY_LT);
}

bool jinja_text_is_lower(uint32_t cp)
{
    utf8proc_category_t c = utf8proc_category((utf8proc_int32_t)cp);
    return c == UTF8PROC_CATEGORY_LL ||
           (is_cased(cp) && upper_point(cp) != cp && c != UTF8PROC_CATEGORY_LT);
}

bool jinja_text_is_cased(uint32_t cp)
{
    return is_cased(cp);
}

bool jinja_text_is_alpha(uint32_t cp)
{
    utf8proc_category_t c = utf8proc_category((utf8proc_int32_t)cp);
    return c >= UTF8PROC_CATEGORY_LU && c <= UTF8PROC_CATEGORY_LO;
}

bool jinja_text_is_digit(uint32_t cp)
{
    return utf8proc_category((utf8proc_int32_t)cp) == UTF8PROC_CATEGORY_ND || cp == 0xb2 ||
           cp == 0xb3 || cp == 0xb9 || (cp >= 0x2070 && cp <= 0x2079 && cp != 0x2071) ||
           (cp >= 0x2080 && cp <= 0x2089);
}

bool jinja_text_is_word(uint32_t cp)
{
    utf8proc_category_t c = utf8proc_category((utf8proc_int32_t)cp);
    return cp == '_' || (c >= UTF8PROC_CATEGORY_LU && c <= UTF8PROC_CATEGORY_LO) ||
           (c >= UTF8PROC_CATEGORY_ND && c <= UTF8PROC_CATEGORY_NO);
}

bool jinja_text_is_printable(uint32_t cp)
{
    if (cp < 0x7f)
        return cp >= 0x20;
    utf8proc_category_t c = utf8proc_category((utf8proc_int32_t)cp);
    return c != UTF8PROC_CATEGORY_CN && c < UTF8PROC_CATEGORY_ZS;
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
