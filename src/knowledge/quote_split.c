/* quote_split.c - see quote_split.h. */
#include "knowledge/quote_split.h"

#include <string.h>

#include "base/ascii.h"

#define MIN_DOTS 4u
#define MIN_LETTERS 4u
#define SHORT_LINE 0.6 /* of the longest: it is not wrapped */

static bool is_one_of(char c, const char *set)
{
    return c && strchr(set, c);
}

bool quote_is_contents(const char *text, size_t n)
{
    size_t dots = 0;
    for (size_t i = 0; i < n; i++) {
        if (text[i] == '.')
            dots++;
        else if (text[i] != ' ' && text[i] != '\n')
            dots = 0;
        if (dots >= MIN_DOTS)
            return true;
    }
    return false;
}

static size_t longest_line(const char *text, size_t n)
{
    size_t most = 0, from = 0;
    for (size_t i = 0; i <= n; i++)
        if (i == n || text[i] == '\n') {
            most = i - from > most ? i - from : most;
            from = i + 1;
        }
    return most;
}

static bool is_bullet(const char *p, size_t n)
{
    return n > 1 && ((is_one_of(p[0], "-*+") && p[1] == ' ') ||
                     (n > 3 && strncmp(p, "\xe2\x80\xa2", 3) == 0)); /* a bullet */
}

/* Whether the line break at i ends a sentence. from: where its line begins. */
static bool breaks_at(const char *p, size_t n, size_t from, size_t i, size_t longest)
{
    size_t next = i + 1;
    while (next < n && p[next] == ' ')
        next++;
    if (next >= n || p[next] == '\n' || is_bullet(p + next, n - next))
        return true;
    bool begins = ascii_is_upper(p[next]) || ascii_is_digit(p[next]) || p[next] == '[';
    return begins && (double)(i - from) < SHORT_LINE * (double)longest;
}

/* "e.g.", "Dr.", "J.": a stop after it ends no sentence. at: of the stop. */
static bool is_short_form(const char *p, size_t at)
{
    static const char *const forms[] = {"mr", "mrs", "ms", "dr",     "st",   "jr",  "vs",  "etc",
                                        "no", "fig", "ca", "approx", "prof", "gen", "col", "cf"};
    size_t from = at;
    while (from > 0 && (ascii_is_letter(p[from - 1]) || p[from - 1] == '.'))
        from--;
    size_t n = at - from;
    if (n == 1 && ascii_is_upper(p[from])) /* an initial */
        return true;
    if (n > 1 && memchr(p + from, '.', n)) /* "e.g", "U.S" */
        return true;
    for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
        size_t k = 0;
        while (k < n && ascii_lower(p[from + k]) == forms[i][k])
            k++;
        if (k == n && forms[i][k] == '\0')
            return true;
    }
    return false;
}

static bool stops_at(const char *p, size_t n, size_t i)
{
    if (!is_one_of(p[i], ".!?") || (p[i] == '.' && is_short_form(p, i)))
        return false;
    size_t k = i + 1;
    while (k < n && is_one_of(p[k], ")]\"'"))
        k++;
    if (k < n && p[k] != ' ' && p[k] != '\n')
        return false;
    while (k < n && (p[k] == ' ' || p[k] == '\n'))
        k++;
    return k == n || ascii_is_upper(p[k]) || ascii_is_digit(p[k]) || is_one_of(p[k], "\"'([-*") ||
           (p[k] & 0x80);
}

static bool is_sentence(const char *p, size_t n)
{
    size_t letters = 0;
    for (size_t i = 0; i < n; i++)
        letters += ascii_is_letter(p[i]) || (p[i] & 0x80);
    return letters >= MIN_LETTERS && !quote_is_contents(p, n);
}

struct splitter {
    struct quote_span *out;
    uint32_t n;
    const char *text;
};

static void add(struct splitter *s, size_t from, size_t end)
{
    const char *p = s->text;
    while (from < end && (p[from] == ' ' || p[from] == '\n'))
        from++;
    while (end > from && (p[end - 1] == ' ' || p[end - 1] == '\n'))
        end--;
    if (is_sentence(p + from, end - from))
        s->out[s->n++] = (struct quote_span){from, end - from};
}

/* End of the line at i, if it is one of a table of contents; else i. */
static size_t skip_contents(const char *text, size_t n, size_t i)
{
    const char *end = memchr(text + i, '\n', n - i);
    size_t line = end ? (size_t)(end - text) + 1 - i : n - i;
    return quote_is_contents(text + i, line) ? i + line : i;
}

uint32_t quote_split(struct quote_span *out, uint32_t max, const char *text, size_t n)
{
    struct splitter s = {.out = out, .text = text};
    const size_t longest = longest_line(text, n);
    size_t from = 0, line = 0;
    for (size_t i = 0; i < n && s.n < max; i++) {
        size_t end = i == line ? skip_contents(text, n, i) : i;
        if (end > i) {
            add(&s, from, i);
            from = line = end;
            i = end - 1;
            continue;
        }
        end = i + 1;
        bool ends = end == n ||
                    (text[i] == '\n' ? breaks_at(text, n, line, i, longest) : stops_at(text, n, i));
        if (text[i] == '\n')
            line = end;
        if (!ends)
            continue;
        while (end < n && text[i] != '\n' && is_one_of(text[end], ")]\"'")) /* they belong to it */
            end++;
        add(&s, from, end);
        from = end;
        i = end - 1;
    }
    return s.n;
}
