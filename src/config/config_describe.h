/* config_describe.h - documentation of the configuration keys, for people and editors.
 *
 * Thread:    any; no state.
 * Ownership: appends to the caller's buffer, whose failure sticks. */
#ifndef SHOAL_CONFIG_CONFIG_DESCRIBE_H
#define SHOAL_CONFIG_CONFIG_DESCRIBE_H

#include "base/buf.h"
#include "config/config_key.h"

/* JSON Schema (draft 7) of the file. */
void config_describe_schema(struct buf *b);
/* docs/CONFIG.md. */
void config_describe_reference(struct buf *b);
/* One key for a terminal; a map or list with the keys in it. */
void config_describe_key(struct buf *b, const struct config_key *k);
/* The same as a JSON object. */
void config_describe_json(struct buf *b, const struct config_key *k);
/* The key of a path that a person typed: "models.path" and "models[].path" are the same. NULL:
 * none; then *near is the closest path, or NULL. */
const struct config_key *config_describe_find(const char *typed, const char **near);

#endif
