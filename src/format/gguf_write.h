/* gguf_write.h - streaming writer of GGUF v3 files.
 *
 * Set metadata, declare tensors, begin, write the data of every tensor in the order of declaration,
 * finish.  The file appears under its name whole or not at all: until gguf_write_finish it is a
 * temporary file beside it, which is removed on failure.
 *
 * Thread:    belongs to its caller.
 * Ownership: create gives the writer to the caller, destroy takes it back (NULL is fine).  All
 *            arguments are copied.
 * Failure:   the calls that set and declare are sticky: the first failure is kept and reported by
 *            gguf_write_begin.  SHOAL_EIO with the system's reason when the disk is full; space is
 *            asked for at begin, so that this shows before the work and not after it. */
#ifndef SHOAL_FORMAT_GGUF_WRITE_H
#define SHOAL_FORMAT_GGUF_WRITE_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "format/model_file.h"

struct gguf_write;

SHOAL_MUST_CHECK int gguf_write_create(struct gguf_write **out, const char *path, struct err *e);
void gguf_write_destroy(struct gguf_write *w);

/* Metadata keeps the order of first mention; a key set again gets the new value.
 * scalar: type is neither STRING nor ARRAY, value points to one of it (BOOL: one byte). */
void gguf_write_scalar(struct gguf_write *w, const char *key, enum model_file_type type,
                       const void *value);
void gguf_write_u32(struct gguf_write *w, const char *key, uint32_t v);
void gguf_write_f32(struct gguf_write *w, const char *key, float v);
void gguf_write_bool(struct gguf_write *w, const char *key, bool v);
void gguf_write_str(struct gguf_write *w, const char *key, const char *s, size_t n);
/* n elements of a scalar type. */
void gguf_write_array(struct gguf_write *w, const char *key, enum model_file_type elem,
                      const void *v, size_t n);
void gguf_write_strings(struct gguf_write *w, const char *key, const struct str *v, size_t n);
/* Every value of a model. */
void gguf_write_copy(struct gguf_write *w, const struct model_file *m);

/* dims[0] is the row length and a multiple of the type's block. */
void gguf_write_tensor(struct gguf_write *w, const char *name, size_t name_len,
                       enum quant_type type, uint32_t n_dims, const uint64_t *dims);

/* Writes the header.  Size of the whole file: gguf_write_size, valid from here on. */
SHOAL_MUST_CHECK int gguf_write_begin(struct gguf_write *w, struct err *e);
uint64_t gguf_write_size(const struct gguf_write *w);
/* The next n bytes of tensor data, in pieces of any size; padding between tensors is
 * added, but a piece must belong to one tensor. */
SHOAL_MUST_CHECK int gguf_write_data(struct gguf_write *w, const void *p, size_t n, struct err *e);
/* Flushes everything to the disk and renames the file.  Only destroy may follow. */
SHOAL_MUST_CHECK int gguf_write_finish(struct gguf_write *w, struct err *e);

#endif
