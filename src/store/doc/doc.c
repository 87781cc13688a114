/* doc.c - see doc.h. */
#include "store/doc/doc.h"

#include <string.h>
#include <strings.h>

#include "base/mem.h"
#include "base/room.h"
#include "base/utf8.h"

static const char *const names[DOC_N_FORMATS] = {"text", "markdown", "html", "jsonl", "pdf"};

void doc_init(struct doc *d)
{
    *d = (struct doc){.title = ""};
    buf_init(&d->text, DOC_MAX_TEXT_BYTES);
}

void doc_fini(struct doc *d)
{
    buf_fini(&d->text);
    mem_free(d->sections);
    d->sections = NULL;
    d->n_sections = d->cap_sections = 0;
}

enum doc_format doc_format_of(const char *path)
{
    static const struct {
        const char *ending;
        enum doc_format format;
    } table[] = {{".md", DOC_MARKDOWN}, {".markdown", DOC_MARKDOWN}, {".html", DOC_HTML},
                 {".htm", DOC_HTML},    {".jsonl", DOC_JSONL},       {".ndjson", DOC_JSONL},
                 {".pdf", DOC_PDF}};
    size_t n = strlen(path);
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        size_t k = strlen(table[i].ending);
        if (n > k && strcasecmp(path + n - k, table[i].ending) == 0)
            return table[i].format;
    }
    return DOC_TEXT;
}

bool doc_format_find(const char *name, enum doc_format *out)
{
    for (int i = 0; i < DOC_N_FORMATS; i++)
        if (strcmp(names[i], name) == 0) {
            *out = (enum doc_format)i;
            return true;
        }
    return false;
}

/* ---- sections ---- */

/* NUL becomes a space: text of a database ends there. */
static void put_clean(struct buf *b, const char *p, size_t n)
{
    size_t from = b->len;
    while (n > 0 && b->rc == 0) {
        size_t k = utf8_valid_prefix(p, n);
        buf_put(b, p, k);
        if (k < n) {
            buf_put(b, "\xef\xbf\xbd", 3);
            k++;
        }
        p += k;
        n -= k;
    }
    for (size_t i = from; i < b->len; i++)
        if (b->data[i] == '\0')
            b->data[i] = ' ';
}

/* The longest prefix of at most max bytes that ends with a whole character. */
static size_t cut(const char *p, size_t n, size_t max)
{
    if (n <= max)
        return n;
    while (max > 0 && ((unsigned char)p[max] & 0xc0) == 0x80)
        max--;
    return max;
}

static size_t trim(const char **p, size_t n)
{
    while (n > 0 && strchr(" \t\r\n\f", **p) && **p)
        (*p)++, n--;
    while (n > 0 && strchr(" \t\r\n\f", (*p)[n - 1]) && (*p)[n - 1])
        n--;
    return n;
}

void doc_section_begin(struct doc *d, const char *heading, size_t n, uint32_t page)
{
    if (d->text.rc < 0)
        return;
    if (d->n_sections > 0 && d->sections[d->n_sections - 1].text_bytes == 0)
        d->n_sections--; /* an empty one */
    if (d->n_sections == DOC_MAX_SECTIONS) {
        d->text.rc = SHOAL_ELIMIT;
        return;
    }
    if (!room_make32(&d->sections, &d->cap_sections, d->n_sections, sizeof(*d->sections), 16)) {
        d->text.rc = SHOAL_ENOMEM;
        return;
    }
    n = trim(&heading, n);
    size_t at = d->text.len;
    put_clean(&d->text, heading, cut(heading, n, DOC_MAX_HEADING_BYTES));
    d->sections[d->n_sections++] = (struct doc_section){
        .heading_at = at, .heading_bytes = d->text.len - at, .text_at = d->text.len, .page = page};
}

void doc_section_ref(struct doc *d, const char *ref, size_t n)
{
    if (d->text.rc < 0 || d->n_sections == 0)
        return;
    struct doc_section *s = &d->sections[d->n_sections - 1];
    s->ref_at = d->text.len;
    put_clean(&d->text, ref, cut(ref, n, DOC_MAX_REF_BYTES));
    s->ref_bytes = d->text.len - s->ref_at;
    s->text_at = d->text.len;
}

void doc_section_put(struct doc *d, const char *p, size_t n)
{
    if (d->n_sections == 0)
        doc_section_begin(d, "", 0, 0);
    if (d->text.rc < 0)
        return;
    put_clean(&d->text, p, n);
    struct doc_section *s = &d->sections[d->n_sections - 1];
    s->text_bytes = d->text.len - s->text_at;
}

void doc_set_title(struct doc *d, const char *p, size_t n)
{
    struct buf b;
    n = trim(&p, n);
    if (d->title[0] || n == 0)
        return;
    buf_init(&b, 4 * DOC_MAX_HEADING_BYTES);
    put_clean(&b, p, cut(p, n, DOC_MAX_HEADING_BYTES));
    size_t k = b.rc == 0 ? cut(buf_str(&b), b.len, DOC_MAX_HEADING_BYTES) : 0;
    memcpy(d->title, buf_str(&b), k);
    d->title[k] = '\0';
    for (char *at = d->title; *at; at++)
        if (*at == '\n' || *at == '\r' || *at == '\t')
            *at = ' ';
    buf_fini(&b);
}

void doc_drop_empty(struct doc *d)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < d->n_sections; i++) {
        struct doc_section *s = &d->sections[i];
        const char *p = buf_str(&d->text) + s->text_at;
        size_t k = trim(&p, s->text_bytes);
        s->text_at = (size_t)(p - buf_str(&d->text));
        s->text_bytes = k;
        if (k > 0)
            d->sections[n++] = *s;
    }
    d->n_sections = n;
}
