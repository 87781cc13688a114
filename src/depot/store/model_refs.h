/* model_refs.h - names for models: small files in the store, DIR/names/NAME.json.
 *
 * A name refers to a model of the store by its SHA-256, or to a path outside of it, and has what
 * belongs to the name: where the model came from, its system message, template and options. "NAME"
 * stands for "NAME:latest", or for the only tag of that name.
 *
 * Thread:    any; reads and writes the disk. A list belongs to its caller and does not change.
 * Ownership: open gives, close takes back (NULL is fine); references belong to the list.
 * Failure:   SHOAL_ENOTFOUND (says what there is), SHOAL_EINVAL (not a name), SHOAL_EFORMAT,
 *            SHOAL_EIO, SHOAL_ENOMEM. A damaged file is logged and skipped. */
#ifndef SHOAL_DEPOT_STORE_MODEL_REFS_H
#define SHOAL_DEPOT_STORE_MODEL_REFS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "host/sha256.h"

struct model_refs;

#define MODEL_REFS_NAME_BYTES 128u

struct model_ref { /* texts may be NULL, except name */
    const char *name;
    bool stored; /* false: path */
    uint8_t sha256[SHA256_BYTES];
    const char *path;   /* of a model outside of the store */
    const char *source; /* where it was pulled from */
    const char *from;   /* the model that it was created from */
    const char *system, *template, *parameters, *license, *messages;
    const char *task, *labels;
    const char *signer; /* who signed it, as the trust policy of the pull names them */
    uint64_t added_s;
    uint32_t context, parallel;
    bool pinned;
};

/* Letters, digits and ._:/@-, and no part of a path above it. */
bool model_refs_is_name(const char *name);

SHOAL_MUST_CHECK int model_refs_open(struct model_refs **out, const char *dir, struct err *e);
void model_refs_close(struct model_refs *r);
/* In the order of their names. */
void model_refs_each(const struct model_refs *r, void (*fn)(void *ctx, const struct model_ref *ref),
                     void *ctx);
/* NULL: none. exact: no tag is added or guessed. */
const struct model_ref *model_refs_find(const struct model_refs *r, const char *name, bool exact);
/* As find, not exact. SHOAL_ENOTFOUND names the nearest, SHOAL_EINVAL the tags to choose from. */
SHOAL_MUST_CHECK int model_refs_get(const struct model_refs *r, const char *name,
                                    const struct model_ref **out, struct err *e);

/* Writes a reference; one of the same name is replaced. */
SHOAL_MUST_CHECK int model_refs_put(const char *dir, const struct model_ref *ref, struct err *e);
SHOAL_MUST_CHECK int model_refs_remove(const char *dir, const char *name, struct err *e);

#endif
