/* doc_read.h - bytes of any format to a document.
 *
 * Thread and failure: as doc.h says. */
#ifndef SHOAL_STORE_DOC_DOC_READ_H
#define SHOAL_STORE_DOC_DOC_READ_H

#include "store/doc/doc.h"

/* Fills an empty document. Bytes that start like a PDF are read as one, whatever the format. name:
 * for messages. */
SHOAL_MUST_CHECK int doc_read(struct doc *d, enum doc_format f, const char *bytes, size_t n,
                              const char *name, struct err *e);

#endif
