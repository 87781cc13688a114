/* doc_pdf.h - the text of a PDF, by pdftotext (Debian: poppler-utils) in a confined process.
 *
 * The process gets the bytes on its standard input and has nothing else: no network, no files to
 * write, 60 s of CPU time, 1 GiB of memory, 64 MiB of output.
 *
 * Thread:    any; it waits for the process, so not an event loop.
 * Failure:   as doc.h says; SHOAL_EUNSUPPORTED: pdftotext is not installed. */
#ifndef SHOAL_STORE_DOC_DOC_PDF_H
#define SHOAL_STORE_DOC_DOC_PDF_H

#include "store/doc/doc.h"

SHOAL_MUST_CHECK int doc_pdf_read(struct doc *d, const char *p, size_t n, struct err *e);

#endif
