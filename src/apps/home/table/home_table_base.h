/* home_table_base.h - a table that names another one as its base has the same keys, but its own
 * words: models/home-de.json holds German over models/home.json.
 *
 * Thread:    any.
 * Ownership: *out is the caller's (cJSON_free).
 * Failure:   SHOAL_EFORMAT, SHOAL_ENOMEM. */
#ifndef SHOAL_APPS_HOME_HOME_TABLE_BASE_H
#define SHOAL_APPS_HOME_HOME_TABLE_BASE_H

#include "base/err.h"

#include <stddef.h>

/* The file that a table names as its base, in the folder of the table, into name (cap bytes);
 * "": it stands alone. */
SHOAL_MUST_CHECK int home_table_base_name(const char *json, size_t n, char *name, size_t cap,
                                          struct err *e);
/* The base with the words of the table. A map of maps or lists is merged key by key; anything else,
 * also a map of texts or numbers, is replaced as a whole: no English word stays in a German list.
 */
SHOAL_MUST_CHECK int home_table_base_merge(char **out, const char *base, size_t n_base,
                                           const char *json, size_t n, struct err *e);

#endif
