/* oci_manifest.h - the manifest of a model in an OCI registry: which blobs the model is made of.
 *
 * Four forms are read: Ollama's, Docker's, ModelPack's (CNCF) and ORAS's, whose layers have the
 * names of files. Ollama's is written for a model of one file, ModelPack's for a folder.
 *
 * Thread:    no state.
 * Ownership: plain data.
 * Failure:   SHOAL_EFORMAT: not a manifest, or not of a model; SHOAL_ELIMIT: larger than allowed;
 *            SHOAL_EUNSUPPORTED: the model has parts that we cannot use. */
#ifndef SHOAL_DEPOT_SOURCE_OCI_MANIFEST_H
#define SHOAL_DEPOT_SOURCE_OCI_MANIFEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct buf;

#define OCI_MANIFEST_TYPE "application/vnd.docker.distribution.manifest.v2+json"
#define OCI_MANIFEST_OCI_TYPE "application/vnd.oci.image.manifest.v1+json"
#define OCI_MANIFEST_ACCEPT                                                                        \
    OCI_MANIFEST_TYPE ", " OCI_MANIFEST_OCI_TYPE ", application/vnd.oci.image.index.v1+json, "     \
                      "application/vnd.docker.distribution.manifest.list.v2+json"
#define OCI_MANIFEST_MAX_BYTES ((size_t)1 << 20)
#define OCI_MANIFEST_DIGEST_BYTES 72u /* "sha256:", 64 hex digits, NUL */
#define OCI_MANIFEST_MAX_FILES 64u
#define OCI_MANIFEST_NAME_BYTES 256u
#define OCI_MANIFEST_CONFIG_BYTES 256u

enum oci_part {
    OCI_PART_SYSTEM,
    OCI_PART_PARAMETERS,
    OCI_PART_LICENSE,
    OCI_PART_MESSAGES, /* of the conversations' beginning, a JSON array */
    OCI_PART_CONFIG,
    OCI_N_PARTS
};

struct oci_blob {
    char digest[OCI_MANIFEST_DIGEST_BYTES]; /* "": none */
    uint64_t bytes;
};

struct oci_file {
    char name[OCI_MANIFEST_NAME_BYTES]; /* within the model */
    struct oci_blob blob;
};

struct oci_manifest {
    struct oci_blob index; /* the manifest to read in its place; then there is nothing else */
    struct oci_blob parts[OCI_N_PARTS];
    struct oci_file files[OCI_MANIFEST_MAX_FILES]; /* one, or those of a folder */
    uint32_t n_files;
    bool folder;
};

/* Templates are ignored: Ollama's are Go templates, and the model file has its own. */
SHOAL_MUST_CHECK int oci_manifest_read(struct oci_manifest *out, const char *p, size_t n,
                                       uint64_t max_model, struct err *e);
void oci_manifest_write(const struct oci_manifest *m, struct buf *out);
/* Fills the blob of a text. */
SHOAL_MUST_CHECK int oci_manifest_text(struct oci_blob *out, const char *text, struct err *e);
/* The text of the config blob; all files must be known. */
void oci_manifest_config(const struct oci_manifest *m, char out[OCI_MANIFEST_CONFIG_BYTES]);
/* The media type of what oci_manifest_write writes. */
const char *oci_manifest_type(const struct oci_manifest *m);

#endif
