/* model_name.h - what -m means: a path, or the name of a model of the pack (models/models.json).
 *
 * Thread:    the main thread.
 * Ownership: model_name_fini frees what find gave. */
#ifndef SHOAL_CMD_MODEL_NAME_H
#define SHOAL_CMD_MODEL_NAME_H

#include <stdbool.h>

#include "base/err.h"

struct model_name {
    char *path;   /* what to open */
    bool int8;    /* to be computed with 8-bit weights */
    char *labels; /* label set that the name stands for, or NULL */
};

/* A path that exists is taken as it is; otherwise the pack's model of that name, whose files are
 * checked against the manifest. */
SHOAL_MUST_CHECK int model_name_find(struct model_name *m, const char *name, struct err *e);
void model_name_fini(struct model_name *m);

#endif
