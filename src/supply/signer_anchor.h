/* signer_anchor.h - whom to believe: a public key, or the certificates of authorities.
 *
 * A key is a PEM file with an elliptic curve, or minisign's public key. With certificates the
 * signer's own comes with the signature and must lead to one of the authorities: valid now, allowed
 * to sign (digitalSignature or codeSigning), and not in a revocation list that the file has too.
 *
 * Thread:    immutable after open; any number of readers.
 * Ownership: open gives, close takes back (NULL is fine).
 * Failure:   SHOAL_EINVAL, SHOAL_EIO; SHOAL_EFORMAT: the signature is not theirs, with the reason.
 */
#ifndef SHOAL_SUPPLY_SIGNER_ANCHOR_H
#define SHOAL_SUPPLY_SIGNER_ANCHOR_H

#include <stdbool.h>

#include "base/err.h"
#include "supply/oms_bundle.h"

struct minisign;
struct signer_anchor;

enum signer_method { SIGNER_NONE, SIGNER_KEY, SIGNER_CERTIFICATE, SIGNER_MINISIGN };

struct signed_by {
    enum signer_method method;
    char name[64];     /* in the trust policy; "": none asked */
    char subject[128]; /* common name of the certificate; "": none */
    char key[65];      /* hint of the key, SHA-256 of the certificate, or minisign's key id */
};
const char *signer_method_name(enum signer_method m);

struct signer_anchor_opts {
    const char *key;          /* file; or */
    const char *certificates; /* file with authorities, and revocation lists */
    const char *subject;      /* common name that the signer must have; NULL: any */
};

SHOAL_MUST_CHECK int signer_anchor_open(struct signer_anchor **out,
                                        const struct signer_anchor_opts *o, struct err *e);
void signer_anchor_close(struct signer_anchor *a);
/* Whether it is for signatures of minisign. */
bool signer_anchor_is_minisign(const struct signer_anchor *a);
/* How signatures name its key (signed_by.key); "" for authorities. */
void signer_anchor_key(const struct signer_anchor *a, char out[65]);
SHOAL_MUST_CHECK int signer_anchor_check(const struct signer_anchor *a, const struct oms_bundle *b,
                                         struct signed_by *by, struct err *e);
SHOAL_MUST_CHECK int signer_anchor_check_minisign(const struct signer_anchor *a,
                                                  const struct minisign *m, const char *path,
                                                  struct signed_by *by, struct err *e);

#endif
