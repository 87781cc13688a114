/* oms_bundle.h - OpenSSF model signing v1: a sigstore bundle with a DSSE envelope, whose payload is
 * an in-toto statement with the SHA-256 of every file of a model.
 *
 * What was read is a claim until its signature was checked (signer_anchor.h).
 *
 * Thread:    belongs to its caller.
 * Ownership: init/fini over the caller's storage; all of it is in its arena.
 * Failure:   SHOAL_EFORMAT (says what is wrong), SHOAL_EUNSUPPORTED (other hashes than SHA-256 of
 *            whole files), SHOAL_ELIMIT, SHOAL_ENOMEM. */
#ifndef SHOAL_SUPPLY_OMS_BUNDLE_H
#define SHOAL_SUPPLY_OMS_BUNDLE_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "host/sha256.h"

#define OMS_MAX_BYTES ((size_t)16 << 20) /* of a bundle */
#define OMS_MAX_FILES 16384u
#define OMS_MAX_CERTIFICATES 8u
#define OMS_MAX_IGNORED 64u
#define OMS_SINGLE "." /* name of the file, if the model is one */

struct oms_file {
    const char *name; /* relative, without ".." */
    uint8_t sum[SHA256_BYTES];
};

struct oms_bytes {
    const uint8_t *p;
    size_t n;
};

/* A signature over the payload itself (cosign.h), with SHA-256 or Ed25519. */
struct oms_plain {
    struct oms_bytes payload, signature;
};
#define OMS_MAX_PLAIN 16u

struct oms_bundle {
    struct arena arena;
    struct oms_bytes payload, signature;
    const char *hint; /* of the public key (sign_key_hint); "": none */
    struct oms_bytes certificates[OMS_MAX_CERTIFICATES]; /* DER; the signer's first */
    uint32_t n_certificates;
    const char *model;      /* its name when it was signed */
    struct oms_file *files; /* in the order of oms_compare_names */
    uint32_t n_files;
    const char *ignored[OMS_MAX_IGNORED]; /* files and folders that are not covered */
    uint32_t n_ignored;
    struct oms_plain plain[OMS_MAX_PLAIN]; /* one of these has to fit, in place of `signature` */
    uint32_t n_plain;
};

void oms_bundle_init(struct oms_bundle *b);
void oms_bundle_fini(struct oms_bundle *b);
SHOAL_MUST_CHECK int oms_bundle_read(struct oms_bundle *b, const void *json, size_t n,
                                     struct err *e);

/* The in-toto statement of model, files and ignored. */
SHOAL_MUST_CHECK int oms_bundle_statement(struct buf *out, const struct oms_bundle *b,
                                          struct err *e);
/* The bundle of payload, signature, and hint or certificates. */
void oms_bundle_write(struct buf *out, const struct oms_bundle *b);
/* What is signed: DSSE's encoding of payload and its type. */
void oms_bundle_signed(struct buf *out, const struct oms_bundle *b);

/* By the parts of the paths, as the format sorts them. */
int oms_compare_names(const char *a, const char *b);
/* NULL: it has none of this name. */
const struct oms_file *oms_bundle_find(const struct oms_bundle *b, const char *name);
/* A path within a model. */
bool oms_name_ok(const char *name);

#endif
