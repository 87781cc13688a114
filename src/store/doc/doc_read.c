/* doc_read.c - see doc_read.h. */
#include "store/doc/doc_read.h"

#include <string.h>

#include "store/doc/doc_pdf.h"

int doc_read(struct doc *d, enum doc_format f, const char *bytes, size_t n, const char *name,
             struct err *e)
{
    static int (*const readers[DOC_N_FORMATS])(struct doc *, const char *, size_t,
                                               struct err *) = {[DOC_TEXT] = doc_text_read,
                                                                [DOC_MARKDOWN] = doc_markdown_read,
                                                                [DOC_HTML] = doc_html_read,
                                                                [DOC_JSONL] = doc_jsonl_read,
                                                                [DOC_PDF] = doc_pdf_read};
    if (n > DOC_MAX_BYTES)
        return err_set(e, SHOAL_ELIMIT, "%s is larger than %zu MiB: split it", name,
                       DOC_MAX_BYTES >> 20);
    if (f != DOC_PDF && n >= 4 && memcmp(bytes, "%PDF", 4) == 0)
        f = DOC_PDF;
    int rc = readers[f](d, bytes, n, e);
    if (rc < 0)
        return err_wrap(e, "%s", name);
    if (d->text.rc < 0)
        return err_set(e, d->text.rc, "%s: %s", name,
                       d->text.rc == SHOAL_ENOMEM ? "out of memory"
                                                  : "more than 64 MiB of text: split it");
    doc_drop_empty(d);
    return 0;
}
