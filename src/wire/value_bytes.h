/* value_bytes.h - a tree of values (base/value.h) as bytes: the same on every machine.
 *
 * Every value is preceded by its kind, every text and list by its length, all little-endian.
 *
 * Thread:    no state.
 * Ownership: results of get live in the arena.
 * Failure:   put: sticky in the buffer.  get: SHOAL_EFORMAT, SHOAL_ELIMIT (too deep), or the
 *            arena's rc. */
#ifndef SHOAL_WIRE_VALUE_BYTES_H
#define SHOAL_WIRE_VALUE_BYTES_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/value.h"

#define VALUE_BYTES_MAX_DEPTH 64u

void value_bytes_put(struct buf *b, const struct value *v);
/* The primitives, for data stored beside values. */
void value_bytes_put_uint(struct buf *b, uint64_t v);
void value_bytes_put_text(struct buf *b, const char *p, size_t n);
/* The n bytes must be exactly one value. Texts are NUL-terminated; they are not checked for
 * UTF-8. */
SHOAL_MUST_CHECK int value_bytes_get(struct value *out, struct arena *a, const uint8_t *p,
                                     size_t n);

#endif
