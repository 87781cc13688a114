/* doc_check.h - invariants of every document read, whatever its bytes: for tests and fuzz targets.
 */
#ifndef SHOAL_TESTS_SUPPORT_DOC_CHECK_H
#define SHOAL_TESTS_SUPPORT_DOC_CHECK_H

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/utf8.h"
#include "store/chunk.h"
#include "store/doc/doc_read.h"
#include "support/fuzz_note.h"

static inline void doc_check_part(const struct doc *d, size_t at, size_t n)
{
    const char *p = buf_str(&d->text) + at;
    if (at > d->text.len || n > d->text.len - at || memchr(p, '\0', n) ||
        utf8_valid_prefix(p, n) != n)
        abort();
}

/* Every section is inside the text and clean; passages are not empty, not too long, and cover the
 * last word of each section. */
static inline void doc_check(const struct doc *d)
{
    const struct chunk_opts o = {.max_tokens = 24, .overlap = 6};
    struct chunk *chunks;
    struct err e = {0};
    uint32_t n, k = 0;
    if (utf8_valid_prefix(d->title, strlen(d->title)) != strlen(d->title))
        abort();
    for (uint32_t i = 0; i < d->n_sections; i++) {
        const struct doc_section *s = &d->sections[i];
        doc_check_part(d, s->heading_at, s->heading_bytes);
        doc_check_part(d, s->ref_at, s->ref_bytes);
        doc_check_part(d, s->text_at, s->text_bytes);
        if (s->heading_bytes > 3 * DOC_MAX_HEADING_BYTES || s->text_bytes == 0)
            abort();
    }
    if (chunk_cut(&chunks, &n, d, &o, &e) < 0)
        abort();
    for (uint32_t i = 0; i < d->n_sections; i++) {
        const struct doc_section *s = &d->sections[i];
        const char *end = buf_str(&d->text) + s->text_at + s->text_bytes, *last = NULL;
        while (k < n && chunks[k].text >= buf_str(&d->text) + s->text_at && chunks[k].text < end) {
            const struct chunk *c = &chunks[k++];
            if (c->text_bytes == 0 || utf8_valid_prefix(c->text, c->text_bytes) != c->text_bytes ||
                (c->n_tokens > o.max_tokens && memchr(c->text, ' ', c->text_bytes)))
                abort();
            last = c->text + c->text_bytes;
        }
        if (last && last != end && strspn(last, " \t\r\n\f\v") < (size_t)(end - last))
            abort();
    }
    if (k != n)
        abort();
    mem_free(chunks);
}

static inline void doc_check_bytes(int (*read)(struct doc *, const char *, size_t, struct err *),
                                   const void *bytes, size_t n)
{
    struct doc d;
    struct err e = {0};
    doc_init(&d);
    int rc = read(&d, bytes, n, &e);
    if (rc < 0 && !e.msg[0])
        abort();
    doc_fini(&d);
}

/* Through doc_read, which trims and drops empty parts. */
static inline void doc_check_read(enum doc_format f, const void *bytes, size_t n)
{
    struct doc d;
    struct err e = {0};
    doc_init(&d);
    int rc = doc_read(&d, f, bytes, n, "fuzzed", &e);
    if (rc < 0 && !e.msg[0])
        abort();
    if (rc == 0)
        doc_check(&d);
    FUZZ_NOTE("%d %s ", rc, e.msg);
    for (uint32_t i = 0; rc == 0 && i < d.n_sections; i++) {
        const struct doc_section *s = &d.sections[i];
        FUZZ_NOTE("|%s %zu %u ", d.title, (size_t)s->heading_bytes, s->page);
        FUZZ_NOTE_BYTES(buf_str(&d.text) + s->heading_at, s->heading_bytes);
        FUZZ_NOTE_BYTES(buf_str(&d.text) + s->text_at, s->text_bytes);
    }
    doc_fini(&d);
}

#endif
