/* config_read.h - fills a struct from YAML by the table of config_key.h, and keeps what was set.
 *
 * Thread:    belongs to its caller.
 * Ownership: strings belong to the filled struct until config_read_free.  config_settings_fini
 *            frees the settings.
 * Failure:   SHOAL_EFORMAT with "name:line:column: message", or SHOAL_ENOMEM. */
#ifndef SHOAL_GATEWAY_CONFIG_CONFIG_READ_H
#define SHOAL_GATEWAY_CONFIG_CONFIG_READ_H

#include "base/err.h"
#include "gateway/config/config_key.h"

/* What a file sets, in its order. */
struct config_setting {
    char *path;  /* "limits.body", "models[reply].path" */
    char *value; /* as the file has it; a list: its texts with ", " between them */
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

/* Sets the defaults of all keys at the top, or in maps at the top. */
SHOAL_MUST_CHECK int config_read_defaults(void *into, struct err *e);
SHOAL_MUST_CHECK int config_read(void *into, struct config_settings *set, const char *text,
                                 size_t n, const char *name, struct err *e);
/* Frees what the table's keys have filled, except entries of lists: those were taken. */
void config_read_free(void *into);

#endif
