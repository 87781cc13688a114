/* ollama_store.h - models that Ollama's /api/create, copy and pull made, and blobs that clients
 * sent.
 *
 *   DIR/models/NAME.json     what the model is made of (struct ollama_profile)
 *   DIR/blobs/sha256-HEX     files, found by their hash
 *
 * Thread:    any; one lock inside.  put, remove and the functions of blobs read and write the disk:
 *            not for an event loop.
 * Ownership: a profile that get returned is given back with unref and does not change.
 * Failure:   SHOAL_EINVAL (a bad name or digest), SHOAL_ENOTFOUND, SHOAL_EFORMAT (bytes that do not
 *            fit their hash), SHOAL_EIO, SHOAL_ENOMEM. */
#ifndef SHOAL_GATEWAY_API_OLLAMA_STORE_H
#define SHOAL_GATEWAY_API_OLLAMA_STORE_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct ollama_store;

#define OLLAMA_STORE_DIGEST_BYTES 72u /* "sha256:" and 64 hex digits */

struct ollama_profile { /* texts may be NULL, except name and path */
    const char *name;
    const char *path;       /* of the model file */
    const char *from;       /* the model that it was created from */
    const char *system;     /* system message of conversations without one */
    const char *template;   /* chat template, Jinja */
    const char *parameters; /* default options, a JSON object */
    const char *license;
};

/* Reads the existing entries. A damaged file is skipped and logged. The folder is created on the
 * first write. */
SHOAL_MUST_CHECK int ollama_store_open(struct ollama_store **out, const char *dir, struct err *e);
void ollama_store_close(struct ollama_store *s); /* NULL is fine */
/* Calls fn for every profile; it must not call the store. */
void ollama_store_each(struct ollama_store *s,
                       void (*fn)(void *ctx, const struct ollama_profile *p), void *ctx);

/* Whether a model may have this name: letters, digits and ._:/-, and no part of a path above it. */
bool ollama_store_is_name(const char *name);
/* NULL: none. */
const struct ollama_profile *ollama_store_get(struct ollama_store *s, const char *name);
void ollama_store_unref(struct ollama_store *s, const struct ollama_profile *p); /* NULL is fine */
/* Copies p; one of the same name is replaced. */
SHOAL_MUST_CHECK int ollama_store_put(struct ollama_store *s, const struct ollama_profile *p,
                                      struct err *e);
/* Removes the profile, and its blob if no other profile uses it. */
SHOAL_MUST_CHECK int ollama_store_remove(struct ollama_store *s, const char *name, struct err *e);

/* Path of the blob of a digest ("sha256:HEX"). SHOAL_ENOTFOUND: it does not exist. */
SHOAL_MUST_CHECK int ollama_store_find_blob(struct ollama_store *s, const char *digest,
                                            char path[PATH_MAX], struct err *e);
/* Path for the blob; its folder is created. */
SHOAL_MUST_CHECK int ollama_store_place_blob(struct ollama_store *s, const char *digest,
                                             char path[PATH_MAX], struct err *e);
SHOAL_MUST_CHECK int ollama_store_put_blob(struct ollama_store *s, const char *digest,
                                           const void *data, size_t n, struct err *e);
/* A copy of a file as a blob. */
SHOAL_MUST_CHECK int ollama_store_take_file(struct ollama_store *s, const char *from,
                                            char digest[OLLAMA_STORE_DIGEST_BYTES], uint64_t *bytes,
                                            char path[PATH_MAX], struct err *e);
/* Copies a file under another name, atomically. */
SHOAL_MUST_CHECK int ollama_store_copy_out(const char *from, const char *to, struct err *e);

#endif
