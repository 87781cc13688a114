/* doc_text.c - plain text, and text of pages: see doc.h. */
#include <string.h>

#include "store/doc/doc.h"

#define MIN_TITLE_LINE 4u
#define MAX_TITLE_LINE 120u

/* The first line, if it is short enough to be a title. */
static void title_from(struct doc *d, const char *p, size_t n)
{
    size_t from = 0;
    while (from < n && strchr(" \t\r\n\f", p[from]) && p[from])
        from++;
    const char *end = memchr(p + from, '\n', n - from);
    size_t k = end ? (size_t)(end - p) - from : n - from;
    if (k >= MIN_TITLE_LINE && k <= MAX_TITLE_LINE)
        doc_set_title(d, p + from, k);
}

int doc_text_read(struct doc *d, const char *p, size_t n, struct err *e)
{
    (void)e;
    if (n >= 3 && memcmp(p, "\xef\xbb\xbf", 3) == 0)
        p += 3, n -= 3;
    title_from(d, p, n);
    doc_section_begin(d, "", 0, 0);
    doc_section_put(d, p, n);
    return 0;
}

int doc_pages_read(struct doc *d, const char *p, size_t n, struct err *e)
{
    (void)e;
    title_from(d, p, n);
    for (uint32_t page = 1; n > 0 && d->text.rc == 0; page++) {
        const char *end = memchr(p, '\f', n);
        size_t k = end ? (size_t)(end - p) : n;
        doc_section_begin(d, "", 0, page);
        doc_section_put(d, p, k);
        p += end ? k + 1 : k;
        n -= end ? k + 1 : k;
    }
    return 0;
}
