/* sha256.h - SHA-256 of one piece or of several.
 *
 * Thread:    a struct sha256 belongs to its caller.
 * Ownership: sha256_begin takes memory that sha256_end gives back; every begin needs its end.
 * Failure:   sticky: sha256_end reports failures (no memory, no SHA-256 in the library).
 */
#ifndef SHOAL_HOST_SHA256_H
#define SHOAL_HOST_SHA256_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

#define SHA256_BYTES 32u

struct sha256 {
    void *md; /* OpenSSL's context */
    bool bad;
};

void sha256_begin(struct sha256 *s);
void sha256_add(struct sha256 *s, const void *p, size_t n);
SHOAL_MUST_CHECK bool sha256_end(struct sha256 *s, uint8_t out[SHA256_BYTES]);
/* 64 lower-case hex digits and NUL. */
void sha256_hex(char out[2 * SHA256_BYTES + 1], const uint8_t sum[SHA256_BYTES]);
/* Parses 64 hex digits of either case; false: malformed.  Does not read past the first byte that is
 * not a hex digit. */
SHOAL_MUST_CHECK bool sha256_read_hex(uint8_t out[SHA256_BYTES], const char *hex);

#endif
