/* oci_manifest.h - the manifest of a model in an OCI registry, as Ollama writes it: which blobs the
 * model is made of.
 *
 * Thread:    no state.
 * Ownership: plain data.
 * Failure:   SHOAL_EFORMAT: not a manifest, or not of a model; SHOAL_ELIMIT: larger than allowed;
 *            SHOAL_EUNSUPPORTED: the model has parts that we cannot use. */
#ifndef SHOAL_GATEWAY_API_OCI_MANIFEST_H
#define SHOAL_GATEWAY_API_OCI_MANIFEST_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct buf;

#define OCI_MANIFEST_TYPE "application/vnd.docker.distribution.manifest.v2+json"
#define OCI_MANIFEST_MAX_BYTES ((size_t)1 << 20)
#define OCI_MANIFEST_DIGEST_BYTES 72u /* "sha256:", 64 hex digits, NUL */

enum oci_part {
    OCI_PART_MODEL,
    OCI_PART_SYSTEM,
    OCI_PART_PARAMETERS,
    OCI_PART_LICENSE,
    OCI_PART_CONFIG,
    OCI_N_PARTS,
};

struct oci_blob {
    char digest[OCI_MANIFEST_DIGEST_BYTES]; /* "": none */
    uint64_t bytes;
};

struct oci_manifest {
    struct oci_blob parts[OCI_N_PARTS];
};

/* Templates are ignored: Ollama's are Go templates, and the model file has its own. */
SHOAL_MUST_CHECK int oci_manifest_read(struct oci_manifest *out, const char *p, size_t n,
                                       uint64_t max_model, struct err *e);
void oci_manifest_write(const struct oci_manifest *m, struct buf *out);

#endif
