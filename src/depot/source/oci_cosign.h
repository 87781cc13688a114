/* oci_cosign.h - the signatures that cosign keeps beside a manifest: a manifest of their own under
 * the tag sha256-HEX.sig, each a layer.
 *
 * Thread:    that of the registry; calls block.
 * Failure:   get: what cannot be read is as if it were not there; make: SHOAL_ENOMEM and others. */
#ifndef SHOAL_DEPOT_SOURCE_OCI_COSIGN_H
#define SHOAL_DEPOT_SOURCE_OCI_COSIGN_H

#include "depot/source/oci_manifest.h"
#include "depot/source/oci_registry.h"
#include "depot/store/model_manifest.h"

#define OCI_COSIGN_TAG_BYTES 80u

/* "sha256-HEX.sig" of "sha256:HEX". */
void oci_cosign_tag(char out[OCI_COSIGN_TAG_BYTES], const char *digest);
/* Sets the signature of m, if there are any for this manifest. */
void oci_cosign_get(struct oci_registry *r, const struct buf *manifest, struct model_manifest *m);
/* The manifest of a signature. */
void oci_cosign_manifest(struct buf *out, const struct oci_blob *config,
                         const struct oci_blob *payload, const struct buf *signature);

#endif
