/* config_where.h - where in the file something is wrong, for rules over several keys, which are
 * checked after the whole file was read.
 *
 * Thread:    pure.
 * Ownership: all is borrowed.
 * Failure:   config_where_fail returns the error that it sets. */
#ifndef SHOAL_CONFIG_CONFIG_WHERE_H
#define SHOAL_CONFIG_CONFIG_WHERE_H

#include "base/err.h"

struct config_settings;

struct config_where {
    const char *file;
    const struct config_settings *set;
    struct err *e;
};

/* SHOAL_EFORMAT with "FILE:LINE:COLUMN: " of the first setting of a key ("deeds[].tag") that has
 * the value; value NULL: any. A list has a value if it is one of its texts. Without such a setting:
 * the text alone. */
SHOAL_PRINTF(4, 5)
int config_where_fail(const struct config_where *w, const char *key, const char *value,
                      const char *fmt, ...);

#endif
