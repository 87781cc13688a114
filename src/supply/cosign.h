/* cosign.h - cosign's signatures of what is in an OCI registry: a text that names the digest of a
 * manifest ("simple signing"), and a signature over it.
 *
 * A model from a registry is kept without its manifest, so what is kept beside it is a document of
 * our own with all that a later check needs:
 *   {"mediaType": COSIGN_KEPT, "manifest": BASE64, "signatures": [{"payload": .., "sig": ..}]}
 * It becomes a bundle whose files are the layers of that manifest.  Payloads that name another
 * manifest are not in it.
 *
 * Keys only: certificates of a keyless signature are not read.
 *
 * Thread:    no state.
 * Failure:   SHOAL_EFORMAT (says what is wrong), SHOAL_ELIMIT, SHOAL_ENOMEM. */
#ifndef SHOAL_SUPPLY_COSIGN_H
#define SHOAL_SUPPLY_COSIGN_H

#include "supply/oms_bundle.h"

#define COSIGN_KEPT "application/vnd.shoal.cosign.v1+json"
/* In a registry: the type of a layer that is a payload, and where its signature is. */
#define COSIGN_LAYER_TYPE "application/vnd.dev.cosign.simplesigning.v1+json"
#define COSIGN_ANNOTATION "dev.cosignproject.cosign/signature"
#define COSIGN_MAX_PAYLOAD ((size_t)64 << 10)

/* The text to sign for a manifest.  reference: "HOST/NAME"; digest: "sha256:HEX". */
SHOAL_MUST_CHECK int cosign_payload(struct buf *out, const char *reference, const char *digest,
                                    struct err *e);

/* Writes what is kept; the payloads and signatures are those of b->plain. */
void cosign_write(struct buf *out, const struct oms_bundle *b, const void *manifest, size_t n);
/* Whether it is such a document. */
bool cosign_is(const void *json, size_t n);
SHOAL_MUST_CHECK int cosign_read(struct oms_bundle *b, const void *json, size_t n, struct err *e);

#endif
