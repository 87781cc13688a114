/* cert_make.h - makes keys, certificates and revocation lists; private to src/cluster.
 *
 * Keys are P-256 with ECDSA: what every TLS library of today accepts.
 *
 * Thread:    no state.
 * Ownership: what is made belongs to the caller (X509_free, EVP_PKEY_free, X509_CRL_free).
 * Failure:   0 or SHOAL_E*; then *out is NULL. */
#ifndef SHOAL_CLUSTER_TRUST_CERT_MAKE_H
#define SHOAL_CLUSTER_TRUST_CERT_MAKE_H

#include <openssl/x509.h>

#include "base/err.h"

struct cert_signer {
    X509 *cert;
    EVP_PKEY *key;
};

struct cert_request {
    const char *name;
    unsigned roles;
    const char *const *hosts; /* names and addresses */
    size_t n_hosts;
    unsigned days;
    EVP_PKEY *key; /* ca_issue: the public key that the member has made itself; NULL: one is made */
};

SHOAL_MUST_CHECK int cert_make_key(EVP_PKEY **out, struct err *e);
/* A CA for `key`. by: NULL: self-signed; otherwise the same CA, cross-signed by an older one. */
SHOAL_MUST_CHECK int cert_make_ca(X509 **out, EVP_PKEY *key, const char *name, unsigned days,
                                  const struct cert_signer *by, struct err *e);
SHOAL_MUST_CHECK int cert_make_member(X509 **out, EVP_PKEY *key, const struct cert_request *r,
                                      const struct cert_signer *by, struct err *e);
/* A list that also contains the revocations of `before` (NULL: none). */
SHOAL_MUST_CHECK int cert_make_crl(X509_CRL **out, const struct cert_signer *by, X509_CRL *before,
                                   const ASN1_INTEGER *const *serials, size_t n, struct err *e);

#endif
