/* sign_key.h - keys that sign models: ECDSA on P-256, P-384 and P-521, in PEM files, as OpenSSF's
 * model signing has them.  The digest is that of the curve: SHA-256, SHA-384, SHA-512.
 *
 * Thread:    no state.
 * Ownership: EVP_PKEY_free.
 * Failure:   SHOAL_EINVAL: not such a key (the text says what to do), SHOAL_EIO, SHOAL_EFORMAT: a
 *            signature does not match. */
#ifndef SHOAL_SUPPLY_SIGN_KEY_H
#define SHOAL_SUPPLY_SIGN_KEY_H

#include <openssl/evp.h>

#include "base/buf.h"
#include "base/err.h"

#define SIGN_KEY_HINT 65u /* 64 hex digits */

SHOAL_MUST_CHECK int sign_key_private(EVP_PKEY **out, const char *path, struct err *e);
SHOAL_MUST_CHECK int sign_key_public(EVP_PKEY **out, const void *pem, size_t n, const char *path,
                                     struct err *e);
/* Whether a key of a certificate may sign. */
SHOAL_MUST_CHECK int sign_key_check(EVP_PKEY *key, const char *what, struct err *e);
/* How signatures name a public key: the SHA-256 of its PEM text. "": no memory. */
void sign_key_hint(char out[SIGN_KEY_HINT], EVP_PKEY *key);
SHOAL_MUST_CHECK int sign_key_sign(struct buf *sig, EVP_PKEY *key, const struct buf *bytes,
                                   struct err *e);
bool sign_key_verify(EVP_PKEY *key, const struct buf *bytes, const void *sig, size_t n_sig);
/* The same as cosign signs: with SHA-256 whatever the curve, or with Ed25519. */
SHOAL_MUST_CHECK int sign_key_sign_plain(struct buf *sig, EVP_PKEY *key, const void *bytes,
                                         size_t n, struct err *e);
bool sign_key_verify_plain(EVP_PKEY *key, const void *bytes, size_t n, const void *sig,
                           size_t n_sig);
/* The text of OpenSSL's last error. */
const char *sign_key_reason(char *out, size_t cap);

#endif
