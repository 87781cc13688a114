/* model_manifest.h - the files of a model, with their sizes and hashes.
 *
 * A model is identified by one SHA-256 (host/identity.h): for a single file that of its content,
 * for a folder one over the names and hashes of its files. So a manifest from any source can be
 * verified with the model's SHA-256, before a byte of the files is fetched. Only `open` and the
 * name of a single file are not covered: they are checked when all files are there.
 *
 * Thread:    belongs to its caller.
 * Ownership: init/fini over the caller's storage; strings are in the manifest's arena.
 * Failure:   SHOAL_EFORMAT (names the entry that is wrong), SHOAL_ELIMIT, SHOAL_ENOMEM, SHOAL_EIO.
 */
#ifndef SHOAL_DEPOT_STORE_MODEL_MANIFEST_H
#define SHOAL_DEPOT_STORE_MODEL_MANIFEST_H

#include "base/arena.h"
#include "base/buf.h"
#include "host/identity.h"

#define MODEL_MANIFEST_MAX_FILES 4096u
#define MODEL_MANIFEST_MAX_BYTES ((size_t)2 << 20) /* as JSON */
#define MODEL_MANIFEST_MAX_NAME 255u
#define MODEL_MANIFEST_MAX_SIGNATURE ((size_t)1 << 20)

struct model_manifest {
    struct arena arena;
    bool folder;      /* the model's SHA-256 is over names and hashes */
    const char *open; /* the file to load, relative to the files; "": the folder itself */
    struct identity_file *files; /* sorted by name */
    uint32_t n_files;
    /* Signature of the model that came with it, if any; not part of it: neither hashed nor in its
     * JSON.  Whoever trusts it checks it (supply/trust_policy.h). */
    const void *signature;
    size_t n_signature;
    bool above; /* some files are one folder above the others: "../config.json" */
};

void model_manifest_init(struct model_manifest *m);
void model_manifest_fini(struct model_manifest *m);

/* From a listing with known hashes (identity_known, identity_read). path: what was listed. */
SHOAL_MUST_CHECK int model_manifest_of(struct model_manifest *m, const struct identity_list *l,
                                       const char *path, struct err *e);
/* For a single file: its hash is the model's. */
SHOAL_MUST_CHECK int model_manifest_single(struct model_manifest *m, const char *name,
                                           uint64_t bytes, const uint8_t sum[SHA256_BYTES],
                                           struct err *e);
/* For readers of other encodings: add every file, then finish. */
SHOAL_MUST_CHECK int model_manifest_add(struct model_manifest *m, const char *name, uint64_t bytes,
                                        const uint8_t sum[SHA256_BYTES], struct err *e);
/* Checks names and order, and that it is the manifest of this model. */
SHOAL_MUST_CHECK int model_manifest_finish(struct model_manifest *m, bool folder, const char *open,
                                           const uint8_t model[SHA256_BYTES], struct err *e);

/* Sorts the files that were added and finishes it as a folder; sum: its identity. */
SHOAL_MUST_CHECK int model_manifest_seal(struct model_manifest *m, uint8_t sum[SHA256_BYTES],
                                         struct err *e);

/* Copies a signature into it; one that is too large is left out. */
void model_manifest_set_signature(struct model_manifest *m, const void *p, size_t n);
/* The same with that of a model on this machine, if it has one. */
void model_manifest_find_signature(struct model_manifest *m, const char *path);

/* JSON, as in manifest.json of the store. */
SHOAL_MUST_CHECK int model_manifest_read(struct model_manifest *m, const void *json, size_t n,
                                         const uint8_t model[SHA256_BYTES], struct err *e);
void model_manifest_write(struct buf *out, const struct model_manifest *m);

uint64_t model_manifest_bytes(const struct model_manifest *m);
/* Path of file i below the folder of the files, never outside of it. false: too long. */
bool model_manifest_place(char *out, size_t cap, const struct model_manifest *m, uint32_t i);
/* The path to load, below the folder of the files; "" is the folder itself. */
bool model_manifest_open_place(char *out, size_t cap, const struct model_manifest *m);
/* A name that may be part of a model: relative, no hidden files, no control characters. */
bool model_manifest_name_ok(const char *name);

#endif
