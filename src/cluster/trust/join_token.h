/* join_token.h - a token that lets one machine join a shoal: 'shoal cluster token'.
 *
 * It holds a secret of 128 bits and the first 128 bits of the fingerprint of the shoal's CA: the
 * machine that joins recognizes the shoal by it, and proves with the secret that it was invited
 * (enrol.h).  As text it is "shoal-" and base32 in groups, with a checksum against typing errors.
 *
 * Thread:    no state.
 * Failure:   SHOAL_EINVAL with a text that does not repeat the token; SHOAL_EIO: no random bytes.
 */
#ifndef SHOAL_CLUSTER_TRUST_JOIN_TOKEN_H
#define SHOAL_CLUSTER_TRUST_JOIN_TOKEN_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

#define JOIN_TOKEN_SECRET 16u
#define JOIN_TOKEN_CA 16u
#define JOIN_TOKEN_TEXT 80u

struct join_token {
    uint8_t secret[JOIN_TOKEN_SECRET];
    uint8_t ca[JOIN_TOKEN_CA];
};

/* ca_sha256: fingerprint of the CA's certificate (DER), 32 bytes. */
SHOAL_MUST_CHECK int join_token_make(struct join_token *out, const uint8_t ca_sha256[32],
                                     struct err *e);
void join_token_text(char out[JOIN_TOKEN_TEXT], const struct join_token *t);
/* Blanks, hyphens and case do not matter. */
SHOAL_MUST_CHECK int join_token_parse(struct join_token *out, const char *text, struct err *e);

#endif
