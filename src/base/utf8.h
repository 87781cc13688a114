/* utf8.h - strict UTF-8: decoding, validation, and holding back incomplete sequences of a stream.
 *
 * Thread:    no state except the caller's struct utf8_stream.
 * Ownership: borrows all bytes.
 * Failure:   invalid bytes are not an error: they are reported one by one and passed through
 *            unchanged. utf8_stream_* report only the output buffer's errors (its sticky rc). */
#ifndef SHOAL_BASE_UTF8_H
#define SHOAL_BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct arena;
struct buf;

/* Length (2..4) and code point of the well-formed sequence at p < end, whose first byte must be
 * >= 0x80; 0 if there is none (overlong, surrogate, truncated, stray byte). */
unsigned utf8_decode_multi(const uint8_t *p, const uint8_t *end, uint32_t *cp);

/* Length (1..4) and code point of the sequence at p < end; 0 if no valid sequence starts there. */
static inline unsigned utf8_decode(const uint8_t *p, const uint8_t *end, uint32_t *cp)
{
    if (*p < 0x80) {
        *cp = *p;
        return 1;
    }
    return utf8_decode_multi(p, end, cp);
}

/* The same for readers that continue after invalid bytes: each is U+FFFD, of length 1. */
static inline unsigned utf8_next(const char *p, const char *end, uint32_t *cp)
{
    unsigned len = utf8_decode((const uint8_t *)p, (const uint8_t *)end, cp);
    if (len > 0)
        return len;
    *cp = 0xfffd;
    return 1;
}

/* Writes 1..4 bytes; cp must be a scalar value (<= 0x10ffff, no surrogate). */
unsigned utf8_encode(char out[4], uint32_t cp);
/* Length of the longest prefix of p that is valid UTF-8; n if all of it is. */
size_t utf8_valid_prefix(const char *p, size_t n);
/* The text itself if it is valid, else a copy in the arena, NUL-terminated, in which U+FFFD stands
 * for every invalid byte.  Out of memory: "", and the arena's rc. */
const char *utf8_repaired(struct arena *a, const char *p, size_t n, size_t *n_out);

/* Text that arrives in arbitrary pieces (tokens) and leaves in whole characters: the bytes of an
 * incomplete character are held back.  Bytes that can no longer become a character pass through at
 * once, unchanged. */
struct utf8_stream { /* all zero: a fresh stream */
    uint8_t held[4];
    uint8_t n_held;
};

void utf8_stream_push(struct utf8_stream *s, struct buf *out, const char *p, size_t n);
/* End of the text: writes the bytes still held. */
void utf8_stream_flush(struct utf8_stream *s, struct buf *out);

#endif
