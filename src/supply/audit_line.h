/* audit_line.h - a line of the audit log: a JSON object that ends with its place in a hash chain.
 *
 *   {"n":7,"time":"2026-11-18T08:00:00.123Z","kind":"request",...,"chain":"HEX"}
 *
 * chain is the SHA-256 of the chain of the line before (32 bytes; zeros at the beginning) and of
 * the line itself up to the comma before "chain".  Lines of the kind "checkpoint" have a signature
 * over the chain before them; those of the kind "restart" follow a process that did not end by
 * itself.
 *
 * Thread:    no state.
 * Failure:   SHOAL_EFORMAT with what is wrong. */
#ifndef SHOAL_SUPPLY_AUDIT_LINE_H
#define SHOAL_SUPPLY_AUDIT_LINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "host/sha256.h"

#define AUDIT_LINE_MAX 16384u /* without the newline */
#define AUDIT_LINE_SIGNATURE 64u
#define AUDIT_LINE_SIGNED 44u /* bytes that a checkpoint signs: a word and the chain */

enum audit_kind {
    AUDIT_REQUEST,
    AUDIT_REFUSED, /* at the door */
    AUDIT_ADMIN,
    AUDIT_CHECKPOINT,
    AUDIT_RESTART,
    AUDIT_LOST, /* lines that could not be written */
    AUDIT_KINDS
};
const char *audit_kind_name(enum audit_kind k);

struct audit_line {
    uint64_t n;
    enum audit_kind kind;
    size_t n_covered; /* bytes that the chain covers */
    uint8_t chain[SHA256_BYTES];
    uint8_t before[SHA256_BYTES];            /* a checkpoint: the chain that it signs */
    uint8_t signature[AUDIT_LINE_SIGNATURE]; /* a checkpoint */
    uint64_t torn;                           /* restart: bytes of a line that was not finished */
    uint64_t lost;                           /* lost: lines */
};

SHOAL_MUST_CHECK int audit_line_read(struct audit_line *out, const char *text, size_t n,
                                     struct err *e);
/* false: no memory. */
SHOAL_MUST_CHECK bool audit_line_chain(uint8_t out[SHA256_BYTES],
                                       const uint8_t before[SHA256_BYTES], const void *text,
                                       size_t n_covered);
/* What a checkpoint signs. */
void audit_line_signed(uint8_t out[AUDIT_LINE_SIGNED], const uint8_t chain[SHA256_BYTES]);

#endif
