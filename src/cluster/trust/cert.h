/* cert.h - certificates of a shoal: identity and roles of a member.
 *
 * The common name is the member's name.  Each role is an alternative name of type URI,
 * "shoal:role:node", which every TLS library tolerates and nats-server maps to a user.
 *
 * Thread:    no state.
 * Failure:   SHOAL_EINVAL with a text that says what is wrong with which certificate, and what to
 *            do about it. */
#ifndef SHOAL_CLUSTER_TRUST_CERT_H
#define SHOAL_CLUSTER_TRUST_CERT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct tls_peer;
struct x509_st; /* X509 of OpenSSL */

#define CERT_ROLE_URI "shoal:role:"
#define CERT_NAME_BYTES 64u
#define CERT_PATH_BYTES 512u

struct cert_identity {
    char name[CERT_NAME_BYTES];
    unsigned roles; /* bits of enum role */
};

struct cert_info {
    struct cert_identity id;
    char hosts[512]; /* names and addresses, separated by blanks; the member's name is left out */
    char serial[48]; /* in hexadecimal */
    char issuer[128];
    char sha256[65];
    int64_t not_before_s, not_after_s; /* since 1970 */
};

/* The files a member needs, as 'shoal ca issue' writes them into one folder. */
struct cert_files {
    char cert[CERT_PATH_BYTES], key[CERT_PATH_BYTES], ca[CERT_PATH_BYTES], crl[CERT_PATH_BYTES];
};

/* Lower-case letters, digits and hyphens, at most 63: a name is a DNS label and part of subjects
 * and paths. */
bool cert_is_name(const char *name);
SHOAL_MUST_CHECK int cert_files_in(struct cert_files *out, const char *folder, struct err *e);
/* The identity of the peer of a verified connection. */
SHOAL_MUST_CHECK int cert_identity(struct cert_identity *out, const struct tls_peer *peer,
                                   struct err *e);
SHOAL_MUST_CHECK int cert_read(struct cert_info *out, const char *path, struct err *e);
SHOAL_MUST_CHECK int cert_load(struct x509_st **out, const char *path,
                               struct err *e); /* X509_free */
void cert_describe(struct cert_info *out, struct x509_st *cert);
/* Checks a member's own files before use: readable, currently valid, signed by the CA, not revoked,
 * matching key. */
SHOAL_MUST_CHECK int cert_check(struct cert_info *out, const struct cert_files *f, struct err *e);
/* "2026-11-15 21:00 UTC" */
void cert_date(char *out, size_t cap, int64_t at_s);

#endif
