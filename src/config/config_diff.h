/* config_diff.h - the differences between two configuration files.
 *
 * Thread:    any; no state.
 * Ownership: strings of a change are borrowed from the settings and the call. */
#ifndef SHOAL_CONFIG_CONFIG_DIFF_H
#define SHOAL_CONFIG_CONFIG_DIFF_H

#include "config/config_read.h"

struct config_change {
    const char *path; /* "limits.body"; "models[reply]": the whole entry was added or removed */
    const char *from; /* NULL: the entry is new */
    const char *to;   /* NULL: the entry was removed */
    bool restart;     /* takes effect after a restart */
};

/* Calls fn for every change, in the order of the old file, then of the new one. */
void config_diff(const struct config_settings *from, const struct config_settings *to,
                 void (*fn)(void *ctx, const struct config_change *c), void *ctx);

#endif
