/* gguf.h - reads GGUF v2 and v3 files into a struct model_file.
 *
 * Thread:    as model_file.h.
 * Ownership: gguf_open maps the file read-only, or decrypts it into memory; gguf_parse borrows the
 * caller's bytes, which must
 *            stay until model_file_close.  Keys, values and tensors point into those bytes.
 * Failure:   SHOAL_EIO, SHOAL_EFORMAT (what and at which offset), SHOAL_EUNSUPPORTED (a tensor type
 *            by name), SHOAL_ENOMEM; then *out is NULL.  Nothing in the file is trusted: every
 *            count, length and offset is checked against the bytes that are there. */
#ifndef SHOAL_FORMAT_GGUF_H
#define SHOAL_FORMAT_GGUF_H

#include "format/model_file.h"

SHOAL_MUST_CHECK int gguf_open(struct model_file **out, const char *path, struct err *e);
/* The same for a file that may be encrypted (sealed_file.h; key_file: its key, or NULL): then the
 * matrices of layers are not there yet, and whoever reads them asks model_file_need. */
SHOAL_MUST_CHECK int gguf_open_parts(struct model_file **out, const char *path,
                                     const char *key_file, struct err *e);
/* bytes: the whole file, at any alignment. */
SHOAL_MUST_CHECK int gguf_parse(struct model_file **out, const void *bytes, size_t n,
                                struct err *e);

#endif
