/* doc_html.c - HTML as it is found: text without tags, headings begin sections.
 *
 * This is no validator: broken markup gives odd text, never an error.  Scripts, styles, navigation
 * and hidden templates are left out. */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/ascii.h"
#include "base/utf8.h"
#include "store/doc/doc.h"

#define MAX_TAG 16u

struct reader {
    struct doc *doc;
    struct buf heading; /* being read */
    bool in_heading, in_title, spaced;
};

static void put(struct reader *r, const char *p, size_t n)
{
    if (r->in_heading || r->in_title)
        buf_put(&r->heading, p, n);
    else
        doc_section_put(r->doc, p, n);
}

static void put_space(struct reader *r)
{
    if (!r->spaced)
        put(r, " ", 1);
    r->spaced = true;
}

/* ---- entities ---- */

static const struct {
    const char *name;
    uint32_t cp;
} entities[] = {{"amp", '&'},       {"lt", '<'},       {"gt", '>'},       {"quot", '"'},
                {"apos", '\''},     {"nbsp", ' '},     {"ndash", 0x2013}, {"mdash", 0x2014},
                {"hellip", 0x2026}, {"lsquo", 0x2018}, {"rsquo", 0x2019}, {"ldquo", 0x201c},
                {"rdquo", 0x201d},  {"deg", 0xb0},     {"euro", 0x20ac},  {"pound", 0xa3},
                {"copy", 0xa9},     {"reg", 0xae},     {"trade", 0x2122}, {"times", 0xd7},
                {"auml", 0xe4},     {"ouml", 0xf6},    {"uuml", 0xfc},    {"szlig", 0xdf},
                {"Auml", 0xc4},     {"Ouml", 0xd6},    {"Uuml", 0xdc},    {"eacute", 0xe9},
                {"egrave", 0xe8},   {"agrave", 0xe0},  {"ccedil", 0xe7},  {"ntilde", 0xf1},
                {"micro", 0xb5},    {"middot", 0xb7},  {"bull", 0x2022},  {"plusmn", 0xb1}};

/* The character of &NAME; or &#N;, and its length in the source; 0: it is none. */
static size_t entity(const char *p, size_t n, uint32_t *cp)
{
    const char *end = memchr(p, ';', n < 12 ? n : 12);
    size_t k = end ? (size_t)(end - p) : 0;
    if (k < 2)
        return 0;
    if (p[1] == '#') {
        bool hex = k > 2 && (p[2] == 'x' || p[2] == 'X');
        char digits[12] = "";
        char *rest;
        memcpy(digits, p + (hex ? 3 : 2), k - (hex ? 3u : 2u));
        unsigned long v = strtoul(digits, &rest, hex ? 16 : 10);
        if (*rest || !digits[0] || v == 0 || v > 0x10ffff || (v >= 0xd800 && v < 0xe000))
            return 0;
        *cp = (uint32_t)v;
        return k + 1;
    }
    for (size_t i = 0; i < sizeof(entities) / sizeof(entities[0]); i++)
        if (strlen(entities[i].name) == k - 1 && memcmp(entities[i].name, p + 1, k - 1) == 0) {
            *cp = entities[i].cp;
            return k + 1;
        }
    return 0;
}

static size_t put_entity(struct reader *r, const char *p, size_t n)
{
    uint32_t cp = '&';
    char bytes[4];
    size_t used = entity(p, n, &cp);
    if (cp == ' ') {
        put_space(r);
        return used;
    }
    put(r, bytes, utf8_encode(bytes, cp));
    r->spaced = false;
    return used ? used : 1;
}

/* ---- tags ---- */

static bool is_one_of(const char *name, const char *list)
{
    size_t n = strlen(name);
    for (const char *p = list; *p;) {
        const char *end = strchr(p, ' ');
        size_t k = end ? (size_t)(end - p) : strlen(p);
        if (k == n && memcmp(p, name, n) == 0)
            return true;
        p += k + (end ? 1 : 0);
    }
    return false;
}

/* Index after </name ...>, or n. */
static size_t skip_element(const char *p, size_t n, size_t at, const char *name)
{
    size_t k = strlen(name);
    for (size_t i = at; i + k + 2 <= n; i++) {
        if (p[i] != '<' || p[i + 1] != '/' || strncasecmp(p + i + 2, name, k) != 0)
            continue;
        const char *end = memchr(p + i, '>', n - i);
        return end ? (size_t)(end - p) + 1 : n;
    }
    return n;
}

/* Index after the tag that begins at i; quotes may hold a '>'. */
static size_t tag_end(const char *p, size_t n, size_t i)
{
    char quote = 0;
    for (i++; i < n; i++) {
        if (quote ? p[i] == quote : p[i] == '>') {
            if (!quote)
                return i + 1;
            quote = 0;
        } else if (!quote && (p[i] == '"' || p[i] == '\'') && p[i - 1] == '=') {
            quote = p[i];
        }
    }
    return n;
}

static void end_heading(struct reader *r)
{
    if (r->in_title)
        doc_set_title(r->doc, buf_str(&r->heading), r->heading.len);
    else if (r->in_heading)
        doc_section_begin(r->doc, buf_str(&r->heading), r->heading.len, 0);
    r->in_title = r->in_heading = false;
    buf_clear(&r->heading);
    r->spaced = true;
}

static void on_tag(struct reader *r, const char *name, bool closing)
{
    bool heading = name[0] == 'h' && name[1] >= '1' && name[1] <= '6' && !name[2];
    if (heading || strcmp(name, "title") == 0) {
        end_heading(r);
        r->in_heading = heading && !closing;
        r->in_title = !heading && !closing;
    } else if (is_one_of(name, "p div br li tr table ul ol section article main header footer "
                               "blockquote pre dt dd hr body")) {
        if (r->in_heading || r->in_title)
            put_space(r);
        else
            put(r, "\n", 1);
        r->spaced = true;
    } else if (is_one_of(name, "td th")) {
        put_space(r);
    }
}

/* A comment, a declaration or a tag at i; returns the index after it. */
static size_t take_markup(struct reader *r, const char *p, size_t n, size_t i)
{
    char name[MAX_TAG + 1] = "";
    size_t k = 0;
    if (n - i >= 4 && memcmp(p + i, "<!--", 4) == 0) {
        const char *end = memmem(p + i + 4, n - i - 4, "-->", 3);
        return end ? (size_t)(end - p) + 3 : n;
    }
    bool closing = i + 1 < n && p[i + 1] == '/';
    for (size_t j = i + (closing ? 2 : 1); j < n && k < MAX_TAG; j++) {
        char c = ascii_lower(p[j]);
        if (!(ascii_is_lower(c) || (ascii_is_digit(c) && k > 0)))
            break;
        name[k++] = c;
    }
    if (k == 0 && !closing && !(i + 1 < n && (p[i + 1] == '!' || p[i + 1] == '?'))) {
        put(r, "<", 1); /* a lone "<" is text */
        return i + 1;
    }
    size_t end = tag_end(p, n, i);
    if (!closing && is_one_of(name, "script style template noscript svg nav iframe"))
        return skip_element(p, n, end, name);
    on_tag(r, name, closing);
    return end;
}

int doc_html_read(struct doc *d, const char *p, size_t n, struct err *e)
{
    struct reader r = {.doc = d, .spaced = true};
    (void)e;
    buf_init(&r.heading, DOC_MAX_TEXT_BYTES);
    for (size_t i = 0; i < n && d->text.rc == 0 && r.heading.rc == 0;) {
        if (p[i] == '<') {
            i = take_markup(&r, p, n, i);
        } else if (p[i] == '&') {
            i += put_entity(&r, p + i, n - i);
        } else if (p[i] == ' ' || p[i] == '\n' || p[i] == '\r' || p[i] == '\t') {
            put_space(&r);
            i++;
        } else {
            size_t k = i;
            while (k < n && !strchr("<& \n\r\t", p[k]))
                k++;
            k += k == i; /* a NUL */
            put(&r, p + i, k - i);
            r.spaced = false;
            i = k;
        }
    }
    if (d->text.rc == 0)
        d->text.rc = r.heading.rc;
    end_heading(&r);
    buf_fini(&r.heading);
    return 0;
}
