/* doc_markdown.c - Markdown: headings begin sections, links and images become their text. */
#include <string.h>

#include "store/doc/doc.h"

#define MAX_LEVELS 6

struct reader {
    struct doc *doc;
    char path[MAX_LEVELS][DOC_MAX_HEADING_BYTES / 2 + 1]; /* headings above, by level */
    bool fenced;
    char fence;
};

/* "Install > Linux": the headings from the second level down to this one.  The first is the
 * title. */
static void begin(struct reader *r, int level, const char *text, size_t n)
{
    char path[DOC_MAX_HEADING_BYTES + 1] = "";
    size_t len = 0;
    if (n >= sizeof(r->path[0])) {
        n = sizeof(r->path[0]) - 1;
        while (n > 0 && ((unsigned char)text[n] & 0xc0) == 0x80)
            n--;
    }
    memcpy(r->path[level], text, n);
    r->path[level][n] = '\0';
    for (int i = level + 1; i < MAX_LEVELS; i++)
        r->path[i][0] = '\0';
    if (level == 0)
        doc_set_title(r->doc, text, n);
    for (int i = level == 0 ? 0 : 1; i <= level; i++) {
        if (!r->path[i][0])
            continue;
        size_t k = strlen(r->path[i]), room = sizeof(path) - 1 - len;
        if (len > 0 && room > 3) {
            memcpy(path + len, " > ", 3);
            len += 3;
            room -= 3;
        }
        if (k > room)
            break;
        memcpy(path + len, r->path[i], k);
        len += k;
    }
    doc_section_begin(r->doc, path, len, 0);
}

/* Writes [text](target) and ![text](target) as text. */
static void put_line(struct reader *r, const char *p, size_t n)
{
    size_t from = 0;
    for (size_t i = 0; i < n && !r->fenced; i++) {
        if (p[i] != '[')
            continue;
        const char *close = memchr(p + i, ']', n - i);
        size_t k = close ? (size_t)(close - p) : n;
        if (!close || k + 1 >= n || p[k + 1] != '(')
            continue;
        const char *end = memchr(p + k, ')', n - k);
        if (!end)
            continue;
        size_t stop = i > from && p[i - 1] == '!' ? i - 1 : i;
        doc_section_put(r->doc, p + from, stop - from);
        doc_section_put(r->doc, p + i + 1, k - i - 1);
        from = (size_t)(end - p) + 1;
        i = from - 1;
    }
    doc_section_put(r->doc, p + from, n - from);
    doc_section_put(r->doc, "\n", 1);
}

static bool all_of(const char *p, size_t n, char c)
{
    for (size_t i = 0; i < n; i++)
        if (p[i] != c)
            return false;
    return n > 0;
}

static size_t trimmed(const char **p, size_t n)
{
    while (n > 0 && (**p == ' ' || **p == '\t'))
        (*p)++, n--;
    while (n > 0 && ((*p)[n - 1] == ' ' || (*p)[n - 1] == '\t' || (*p)[n - 1] == '\r'))
        n--;
    return n;
}

/* next: the line below, for headings that are underlined.  True: it was used. */
static bool take_line(struct reader *r, const char *line, size_t n, const char *next, size_t n_next)
{
    const char *p = line;
    size_t k = trimmed(&p, n), hashes = 0;
    if (k >= 3 && (all_of(p, 3, '`') || all_of(p, 3, '~')) && (!r->fenced || *p == r->fence)) {
        r->fenced = !r->fenced;
        r->fence = *p;
        return false;
    }
    while (hashes < k && p[hashes] == '#')
        hashes++;
    if (!r->fenced && hashes >= 1 && hashes <= MAX_LEVELS && hashes < k && p[hashes] == ' ') {
        const char *text = p + hashes;
        size_t m = k - hashes;
        while (m > 0 && (text[m - 1] == '#' || text[m - 1] == ' '))
            m--;
        m = trimmed(&text, m);
        begin(r, (int)hashes - 1, text, m);
        return false;
    }
    const char *below = next;
    size_t m = trimmed(&below, n_next);
    if (!r->fenced && k > 0 && m >= 2 && (all_of(below, m, '=') || all_of(below, m, '-')) &&
        p[0] != '|' && p[0] != '-' && p[0] != '>') {
        begin(r, *below == '=' ? 0 : 1, p, k);
        return true;
    }
    put_line(r, line, n);
    return false;
}

/* The block between two lines of ---, of which only the title matters; returns its length. */
static size_t front_matter(struct doc *d, const char *p, size_t n)
{
    if (n < 4 || memcmp(p, "---\n", 4) != 0)
        return 0;
    const char *end = memmem(p + 3, n - 3, "\n---", 4);
    if (!end)
        return 0;
    const char *title = memmem(p, (size_t)(end - p), "\ntitle:", 7);
    if (title) {
        const char *from = title + 7, *to = memchr(from, '\n', (size_t)(end + 1 - from));
        size_t k = trimmed(&from, (size_t)(to - from));
        if (k >= 2 && (*from == '"' || *from == '\'') && from[k - 1] == *from)
            from++, k -= 2;
        doc_set_title(d, from, k);
    }
    size_t used = (size_t)(end - p) + 4;
    const char *line = memchr(p + used, '\n', n - used);
    return line ? (size_t)(line - p) + 1 : n;
}

int doc_markdown_read(struct doc *d, const char *p, size_t n, struct err *e)
{
    struct reader r = {.doc = d};
    (void)e;
    if (n >= 3 && memcmp(p, "\xef\xbb\xbf", 3) == 0)
        p += 3, n -= 3;
    size_t at = front_matter(d, p, n);
    while (at < n && d->text.rc == 0) {
        const char *end = memchr(p + at, '\n', n - at);
        size_t k = end ? (size_t)(end - p) - at : n - at, after = end ? at + k + 1 : n;
        const char *end2 = after < n ? memchr(p + after, '\n', n - after) : NULL;
        size_t k2 = end2 ? (size_t)(end2 - p) - after : n - after;
        bool both = take_line(&r, p + at, k, p + after, k2);
        at = both ? after + k2 + (end2 ? 1 : 0) : after;
    }
    return 0;
}
