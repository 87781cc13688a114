/* model_profiles.h - models that clients made, with Ollama's /api/create, copy and pull, and the
 * blobs that they sent for them.  Every interface answers with them.
 *
 *   DIR/models/NAME.json     what the model is made of (struct model_profile)
 *   DIR/blobs/sha256-HEX     files, found by their hash
 *
 * Thread:    any; one lock inside.  put, remove and the functions of blobs read and write the disk:
 *            not for an event loop.
 * Ownership: a profile that get returned is given back with unref and does not change.
 * Failure:   SHOAL_EINVAL (a bad name or digest), SHOAL_ENOTFOUND, SHOAL_EFORMAT (bytes that do not
 *            fit their hash), SHOAL_EIO, SHOAL_ENOMEM. */
#ifndef SHOAL_GATEWAY_API_MODEL_PROFILES_H
#define SHOAL_GATEWAY_API_MODEL_PROFILES_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct model_profiles;
struct request;

#define MODEL_PROFILES_DIGEST_BYTES 72u /* "sha256:" and 64 hex digits */

struct model_profile { /* texts may be NULL, except name and path */
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
SHOAL_MUST_CHECK int model_profiles_open(struct model_profiles **out, const char *dir,
                                         struct err *e);
void model_profiles_close(struct model_profiles *s); /* NULL is fine */
/* Calls fn for every profile; it must not call the store. */
void model_profiles_each(struct model_profiles *s,
                         void (*fn)(void *ctx, const struct model_profile *p), void *ctx);

/* Whether a model may have this name: letters, digits and ._:/-, and no part of a path above it. */
bool model_profiles_is_name(const char *name);
/* NULL: none. */
const struct model_profile *model_profiles_get(struct model_profiles *s, const char *name);
void model_profiles_unref(struct model_profiles *s,
                          const struct model_profile *p); /* NULL is fine */
/* Applies a profile to a conversation with its model: its template, and its system message if the
 * request has none.  s: NULL is fine. */
void model_profiles_apply(struct model_profiles *s, struct request *r);
/* Copies p; one of the same name is replaced. */
SHOAL_MUST_CHECK int model_profiles_put(struct model_profiles *s, const struct model_profile *p,
                                        struct err *e);
/* Removes the profile, and its blob if no other profile uses it. */
SHOAL_MUST_CHECK int model_profiles_remove(struct model_profiles *s, const char *name,
                                           struct err *e);

/* Path of the blob of a digest ("sha256:HEX"). SHOAL_ENOTFOUND: it does not exist. */
SHOAL_MUST_CHECK int model_profiles_find_blob(struct model_profiles *s, const char *digest,
                                              char path[PATH_MAX], struct err *e);
/* Path for the blob; its folder is created. */
SHOAL_MUST_CHECK int model_profiles_place_blob(struct model_profiles *s, const char *digest,
                                               char path[PATH_MAX], struct err *e);
SHOAL_MUST_CHECK int model_profiles_put_blob(struct model_profiles *s, const char *digest,
                                             const void *data, size_t n, struct err *e);
/* A copy of a file as a blob. */
SHOAL_MUST_CHECK int model_profiles_take_file(struct model_profiles *s, const char *from,
                                              char digest[MODEL_PROFILES_DIGEST_BYTES],
                                              uint64_t *bytes, char path[PATH_MAX], struct err *e);
/* Copies a file under another name, atomically. */
SHOAL_MUST_CHECK int model_profiles_copy_out(const char *from, const char *to, struct err *e);

#endif
