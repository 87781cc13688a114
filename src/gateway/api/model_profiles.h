/* model_profiles.h - the models of the store (src/depot) that have a name, and what belongs to the
 * name: pulled, or made by clients with Ollama's /api/create and copy, or added at run time. Every
 * interface answers with them.
 *
 * The names are files of the store (depot/store/model_refs.h); this is their copy in memory. Blobs
 * that clients send are models of the store without a name.
 *
 * Thread:    any; one lock inside.  open, refresh, put, adopt, remove and the functions of blobs
 *            read and write the disk: not for an event loop.
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
struct model_store;
struct request;

#define MODEL_PROFILES_DIGEST_BYTES 72u /* "sha256:" and 64 hex digits */

struct model_profile { /* texts may be NULL, except name and path */
    const char *name;
    const char *path;       /* of the model */
    const char *from;       /* the model that it was created from */
    const char *system;     /* system message of conversations without one */
    const char *template;   /* chat template, Jinja */
    const char *parameters; /* default options, a JSON object */
    const char *license;
    const char *messages;      /* in front of those of every conversation, a JSON array */
    const char *source;        /* where it was pulled from */
    const char *task, *labels; /* as in registry_spec */
    uint32_t context, parallel;
    bool pinned;
};

/* dir: of the store; NULL: the usual one. memo_dir: as in model_store_opts. Reads the existing
 * names. A damaged file is skipped and logged. The folder is created on the first write. */
SHOAL_MUST_CHECK int model_profiles_open(struct model_profiles **out, const char *dir,
                                         const char *memo_dir, struct err *e);
void model_profiles_close(struct model_profiles *s); /* NULL is fine */
struct model_store *model_profiles_store(struct model_profiles *s);
/* Reads the names again: another process may have changed them. gone: is told the names that are
 * there no more. */
SHOAL_MUST_CHECK int model_profiles_refresh(struct model_profiles *s,
                                            void (*gone)(void *ctx, const char *name), void *ctx,
                                            struct err *e);
/* Calls fn for every profile. */
void model_profiles_each(struct model_profiles *s,
                         void (*fn)(void *ctx, const struct model_profile *p), void *ctx);

/* Whether a model may have this name: letters, digits and ._:/-, and no part of a path above it. */
bool model_profiles_is_name(const char *name);
/* NULL: none. */
const struct model_profile *model_profiles_get(struct model_profiles *s, const char *name);
void model_profiles_unref(struct model_profiles *s,
                          const struct model_profile *p); /* NULL is fine */
/* Applies a profile to a conversation with its model: its template, its first messages, and its
 * system message if the request has none.  s: NULL is fine. */
void model_profiles_apply(struct model_profiles *s, struct request *r);
/* Copies p; one of the same name is replaced. */
SHOAL_MUST_CHECK int model_profiles_put(struct model_profiles *s, const struct model_profile *p,
                                        struct err *e);
/* Takes over a name that was just written to the store. */
SHOAL_MUST_CHECK int model_profiles_adopt(struct model_profiles *s, const char *name,
                                          struct err *e);
/* Removes the name alone. */
SHOAL_MUST_CHECK int model_profiles_forget(struct model_profiles *s, const char *name,
                                           struct err *e);
/* Removes the name, and its model if the store has it under no other name. */
SHOAL_MUST_CHECK int model_profiles_remove(struct model_profiles *s, const char *name,
                                           struct err *e);

/* Path of the blob of a digest ("sha256:HEX"). SHOAL_ENOTFOUND: it does not exist. */
SHOAL_MUST_CHECK int model_profiles_find_blob(struct model_profiles *s, const char *digest,
                                              char path[PATH_MAX], struct err *e);
SHOAL_MUST_CHECK int model_profiles_put_blob(struct model_profiles *s, const char *digest,
                                             const void *data, size_t n, struct err *e);
/* Copies a file under another name, atomically. */
SHOAL_MUST_CHECK int model_profiles_copy_out(const char *from, const char *to, struct err *e);

#endif
