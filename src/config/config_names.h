/* config_names.h - whether what a configuration names exists: models, keys, machines, collections,
 * label sets, a broker for its subscriptions.
 *
 * Reading the file checks each value alone. Names can only be resolved when all models are known,
 * those of the command line and of the pack included, so this is a step of its own: `shoal config
 * check` takes it before a start, `/readyz` while the server runs.
 *
 * Thread:    any; the configuration and the world do not change meanwhile.
 * Ownership: all is borrowed.
 * Failure:   SHOAL_EFORMAT with "file:line:column: ", what is not there, and the nearest name that
 *            is. */
#ifndef SHOAL_CONFIG_CONFIG_NAMES_H
#define SHOAL_CONFIG_CONFIG_NAMES_H

#include <stdbool.h>

#include "base/err.h"

struct config;

/* What there is besides the file. Lists end with NULL. */
struct config_names_world {
    const char *const *models;      /* of the pack, or added at run time; NULL: none */
    const char *const *collections; /* NULL: not known */
    bool runs;                      /* `models` has those of before a change of the file, too */
    bool elsewhere;                 /* other nodes may have more models, and their own keys */
    void *ctx;
    /* Whether the model writes text; NULL: not known. */
    bool (*generates)(void *ctx, const char *model);
    /* The label sets of a model; NULL, or returns NULL: not known. */
    const char *const *(*label_sets)(void *ctx, const char *model);
};

SHOAL_MUST_CHECK int config_names_check(const struct config *c, const struct config_names_world *w,
                                        const char *file, struct err *e);
/* Whether a server with this configuration offers the models of the pack. */
bool config_names_use_pack(const struct config *c);

#endif
