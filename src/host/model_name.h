/* model_name.h - resolves the name of a model that a person wrote: a path, or the name of an
 * included model (models/models.json).
 *
 * Thread:    any.
 * Ownership: model_name_fini frees the result of find. */
#ifndef SHOAL_HOST_MODEL_NAME_H
#define SHOAL_HOST_MODEL_NAME_H

#include <stdbool.h>

#include "base/err.h"

struct model_name {
    char *path;   /* path to open */
    bool int8;    /* compute with 8-bit weights */
    char *labels; /* label set that the name implies, or NULL */
};

/* An existing path is used as it is; otherwise the included model of that name, whose files are
 * checked against the manifest.  dir: folder of the pack; NULL: where pack_open looks. */
SHOAL_MUST_CHECK int model_name_find(struct model_name *m, const char *dir, const char *name,
                                     struct err *e);
/* The included model of that name, never a file: what a command takes without -m must not depend on
 * what happens to be in the current folder. */
SHOAL_MUST_CHECK int model_name_included(struct model_name *m, const char *name, struct err *e);
void model_name_fini(struct model_name *m);

#endif
