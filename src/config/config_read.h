/* config_read.h - fills a struct from YAML by the table of config_key.h, and records the settings.
 *
 * Thread:    belongs to its caller.
 * Ownership: strings belong to the filled struct until config_read_free.  config_settings_fini
 *            frees the settings.
 * Failure:   SHOAL_EFORMAT with "name:line:column: message", or SHOAL_ENOMEM. */
#ifndef SHOAL_CONFIG_CONFIG_READ_H
#define SHOAL_CONFIG_CONFIG_READ_H

#include "base/err.h"
#include "config/config_key.h"

/* The settings of a file, in order. */
struct config_setting {
    char *path;  /* "limits.body", "models[reply].path" */
    char *value; /* as written in the file; a list: its texts joined by ", " */
    const struct config_key *key;
    uint32_t line, column;
};

struct config_settings {
    struct config_setting *v;
    uint32_t n, n_room;
};

void config_settings_fini(struct config_settings *s);
/* The setting of a path; NULL: the file does not have it. */
const struct config_setting *config_settings_find(const struct config_settings *s,
                                                  const char *path);

/* Sets the defaults of all top-level keys, including those in top-level maps. */
SHOAL_MUST_CHECK int config_read_defaults(void *into, struct err *e);
SHOAL_MUST_CHECK int config_read(void *into, struct config_settings *set, const char *text,
                                 size_t n, const char *name, struct err *e);
/* Frees values filled by the table's keys, except entries of lists, which were taken. */
void config_read_free(void *into);

#endif
