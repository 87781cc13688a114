/* doc.h - a document as sections of plain text, from text, Markdown, HTML, JSON lines or PDF.
 *
 * A section has its heading and page, so that a passage can name its source. Text is valid UTF-8
 * without NUL; bytes that are not become U+FFFD.
 *
 * Thread:    belongs to its caller.  Reading a PDF starts a process and waits for it: not for an
 *            event loop.
 * Ownership: init/fini over the caller's storage.  Pointers from doc_section_text and the like are
 *            borrowed until the next change.
 * Failure:   SHOAL_EFORMAT: the bytes do not match the format; SHOAL_ELIMIT: too large;
 *            SHOAL_EUNSUPPORTED: a tool is missing, and the text names its package. */
#ifndef SHOAL_STORE_DOC_DOC_H
#define SHOAL_STORE_DOC_DOC_H

#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"

#define DOC_MAX_BYTES ((size_t)256 << 20)     /* of a document's bytes */
#define DOC_MAX_TEXT_BYTES ((size_t)64 << 20) /* of the text in it */
#define DOC_MAX_SECTIONS 1000000u
#define DOC_MAX_HEADING_BYTES 200u
#define DOC_MAX_REF_BYTES 100u

enum doc_format { DOC_TEXT, DOC_MARKDOWN, DOC_HTML, DOC_JSONL, DOC_PDF, DOC_N_FORMATS };

struct doc_section {
    size_t heading_at, heading_bytes; /* in doc.text */
    size_t ref_at, ref_bytes;         /* JSON lines: the id of the line */
    size_t text_at, text_bytes;
    uint32_t page; /* from 1; 0: the format has none */
};

struct doc {
    char title[DOC_MAX_HEADING_BYTES + 1]; /* "": none was found */
    struct buf text;
    struct doc_section *sections;
    uint32_t n_sections, cap_sections;
};

void doc_init(struct doc *d);
void doc_fini(struct doc *d);
/* By file extension; text if unknown. */
enum doc_format doc_format_of(const char *path);
/* False: there is no format of that name. */
bool doc_format_find(const char *name, enum doc_format *out);

/* ---- for the readers of the formats ---- */

/* Errors of the three functions below stick in doc.text.rc. */
void doc_section_begin(struct doc *d, const char *heading, size_t n, uint32_t page);
void doc_section_put(struct doc *d, const char *p, size_t n);   /* appends to the last section */
void doc_section_ref(struct doc *d, const char *ref, size_t n); /* before its text */
/* Removes empty sections, and blanks around the text of the others. */
void doc_drop_empty(struct doc *d);
void doc_set_title(struct doc *d, const char *p, size_t n); /* unless there is one */

SHOAL_MUST_CHECK int doc_text_read(struct doc *d, const char *p, size_t n, struct err *e);
SHOAL_MUST_CHECK int doc_markdown_read(struct doc *d, const char *p, size_t n, struct err *e);
SHOAL_MUST_CHECK int doc_html_read(struct doc *d, const char *p, size_t n, struct err *e);
SHOAL_MUST_CHECK int doc_jsonl_read(struct doc *d, const char *p, size_t n, struct err *e);
/* The text of a PDF as written by pdftotext: a form feed after each page. */
SHOAL_MUST_CHECK int doc_pages_read(struct doc *d, const char *p, size_t n, struct err *e);

#endif
