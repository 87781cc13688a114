/* minisign.h - minisign's signatures of single files: Ed25519 over the file's BLAKE2b-512, and a
 * second one over the first and the trusted comment.
 *
 * Signatures of its old form (over the file itself, 'minisign -l') are refused.
 *
 * Thread:    no state.
 * Failure:   SHOAL_EFORMAT (says what is wrong), SHOAL_EIO. */
#ifndef SHOAL_SUPPLY_MINISIGN_H
#define SHOAL_SUPPLY_MINISIGN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

#define MINISIGN_MAX_BYTES 16384u /* of either file */
#define MINISIGN_COMMENT 8192u

struct minisign_key {
    uint8_t id[8], key[32];
};

struct minisign {
    uint8_t id[8], signature[64], of_comment[64];
    char comment[MINISIGN_COMMENT]; /* the trusted one */
};

/* Whether a file is one of minisign's, by its first line. */
bool minisign_is(const void *text, size_t n);
SHOAL_MUST_CHECK int minisign_read_key(struct minisign_key *out, const char *text, size_t n,
                                       struct err *e);
SHOAL_MUST_CHECK int minisign_read(struct minisign *out, const char *text, size_t n, struct err *e);
SHOAL_MUST_CHECK int minisign_check(const struct minisign *m, const struct minisign_key *k,
                                    const char *path, struct err *e);
/* As minisign prints it: 16 hex digits. */
void minisign_id(char out[17], const uint8_t id[8]);

#endif
