/* base64.h - base64 with padding (RFC 4648), read strictly: each value has one text.
 *
 * Thread:    no state.
 * Ownership: what is read lives in the arena.
 * Failure:   NULL: not base64, or no memory (arena.rc). */
#ifndef SHOAL_SUPPLY_BASE64_H
#define SHOAL_SUPPLY_BASE64_H

#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buf.h"

/* NUL-terminated behind its n_out bytes. */
uint8_t *base64_read(struct arena *a, const char *text, size_t n, size_t *n_out);
void base64_write(struct buf *out, const void *bytes, size_t n);

#endif
