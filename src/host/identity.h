/* identity.h - identifies a model by the SHA-256 of its bytes.
 *
 * Two nodes that hold the same bytes get the same identity, whatever the path, the times or the
 * inode.  A file's identity is the hash of its content.  A folder's is a hash over the sorted names
 * and hashes of its files, hidden ones, documentation (*.md, LICENSE, pictures) and its signature
 * (model.sig) left out.  An
 * .onnx file counts with its data and with the settings and tokenizer beside it or one folder
 * above.  An average of models has the hash of its members' identities and weights.
 *
 * Hashing a large model takes seconds, so it has two steps: identity_list() looks at the files
 * without reading them and gives an identity that is valid on this machine only; the hash of the
 * content comes from a verified manifest, from an earlier run (cache_dir), or is computed in the
 * background.
 *
 * Thread:    a listing belongs to its caller.
 * Ownership: identity_list gives, identity_list_free takes back.
 * Failure:   SHOAL_EIO, SHOAL_ELIMIT (too many files), SHOAL_ENOMEM, SHOAL_ECANCELLED. */
#ifndef SHOAL_HOST_IDENTITY_H
#define SHOAL_HOST_IDENTITY_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "host/sha256.h"

struct identity_list;
struct pack_model;

enum identity_kind {
    IDENTITY_NONE,    /* not usable as a cache key */
    IDENTITY_LOCAL,   /* from inodes and times: never leaves this process */
    IDENTITY_CONTENT, /* from the bytes: the same everywhere */
};

struct identity {
    enum identity_kind kind;
    uint8_t sum[SHA256_BYTES];
    char version[20]; /* for people: "fp_" and 12 hex digits; "" until the content is known */
};

/* The files of a model as they are now, with their sizes and times. */
SHOAL_MUST_CHECK int identity_list(struct identity_list **out, const char *path, struct err *e);
/* The files of several models that answer together. Takes over the parts, also on failure; queries
 * for single files (identity_list_n, identity_list_file) are not possible. */
SHOAL_MUST_CHECK int identity_list_join(struct identity_list **out, struct identity_list **parts,
                                        const double *weights, uint32_t n, struct err *e);
void identity_list_free(struct identity_list *l); /* NULL is fine */
/* One file of a model. */
struct identity_file {
    const char
        *name; /* within the model, "../config.json" beside an .onnx file; "": a single file */
    const char *path; /* borrowed from the listing; NULL where there is none */
    uint64_t bytes;
    uint8_t sum[SHA256_BYTES]; /* valid after identity_known or identity_read found all of them */
};
uint32_t identity_list_n(const struct identity_list *l);
/* Whether the identity is a hash over names and hashes. */
bool identity_list_is_folder(const struct identity_list *l);
/* In the order of the names. */
void identity_list_file(const struct identity_list *l, uint32_t i, struct identity_file *out);
/* The content identity of a folder with these files, sorted by name. */
struct identity identity_of_folder(const struct identity_file *files, uint32_t n);

/* Whether a file of this name is a setting, a tokenizer or a template, without which a model may
 * answer otherwise, but load. */
bool identity_is_setting(const char *name);

/* The newest of the files' times, in seconds. */
uint64_t identity_list_time_s(const struct identity_list *l);
/* IDENTITY_LOCAL: equal while no file was changed or replaced. */
struct identity identity_local(const struct identity_list *l);
/* IDENTITY_CONTENT if every file's hash is known without reading it: from a manifest just verified
 * (or NULL), or from cache_dir (or NULL). Otherwise IDENTITY_NONE. */
struct identity identity_known(struct identity_list *l, const char *cache_dir,
                               const struct pack_model *verified);
/* Hashes the unknown files. *stop may become true on another thread: SHOAL_ECANCELLED. A file that
 * changes during this is SHOAL_EIO. */
SHOAL_MUST_CHECK int identity_read(struct identity *out, struct identity_list *l,
                                   const char *cache_dir, const _Atomic bool *stop, struct err *e);

#endif
