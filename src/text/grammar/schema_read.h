/* schema_read.h - reads one JSON Schema: keywords, types and references.
 *
 * Thread:    no state.
 * Ownership: what is returned is borrowed from the document.
 * Failure:   SHOAL_EUNSUPPORTED or SHOAL_EINVAL, and the message names the keyword. */
#ifndef SHOAL_TEXT_GRAMMAR_SCHEMA_READ_H
#define SHOAL_TEXT_GRAMMAR_SCHEMA_READ_H

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

/* Types as bits; an integer is a number too. */
enum schema_type {
    SCHEMA_TYPE_NULL = 1 << 0,
    SCHEMA_TYPE_BOOLEAN = 1 << 1,
    SCHEMA_TYPE_INTEGER = 1 << 2,
    SCHEMA_TYPE_NUMBER = 1 << 3, /* a number that is not an integer */
    SCHEMA_TYPE_STRING = 1 << 4,
    SCHEMA_TYPE_ARRAY = 1 << 5,
    SCHEMA_TYPE_OBJECT = 1 << 6,
    SCHEMA_TYPE_ALL = 127,
};

/* Internal keywords for merged schemas; no user schema has such names.
 */
#define SCHEMA_ALSO_PATTERNS "\001patterns"    /* list: each must match, beside `pattern` */
#define SCHEMA_NOT_PATTERNS "\001not patterns" /* list: none may match */
#define SCHEMA_NOT_VALUES "\001not enum"       /* list: no such value */

/* Whether a keyword has no effect on validity. */
bool schema_read_is_annotation(const char *key);
/* A member of an object, NULL: none. */
const cJSON *schema_read_get(const cJSON *schema, const char *key);
/* The types that `type` allows; all without it.  SHOAL_EINVAL: it names no type. */
SHOAL_MUST_CHECK int schema_read_types(const cJSON *schema, unsigned *types, struct err *e);
unsigned schema_read_type_of(const cJSON *value);
/* The target of a reference, "#/$defs/x", "#anchor", or the $id of a part; borrowed from root. */
SHOAL_MUST_CHECK int schema_read_resolve(const cJSON **out, const cJSON *root, const char *ref,
                                         struct err *e);
/* Whether `required` names it. */
bool schema_read_requires(const cJSON *schema, const char *key);
/* Whether it is for any object: no property that it names can appear. */
bool schema_read_names_none(const cJSON *schema);

#endif
