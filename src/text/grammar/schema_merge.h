/* schema_merge.h - JSON Schemas combined: references followed, allOf joined, and whether two
 * schemas can both hold.
 *
 * Thread:    no state.
 * Ownership: results are new trees, which the caller deletes (cJSON_Delete).
 * Failure:   SHOAL_EUNSUPPORTED or SHOAL_EINVAL, and the message names the keyword; or the result
 *            says that nothing can satisfy both. */
#ifndef SHOAL_TEXT_GRAMMAR_SCHEMA_MERGE_H
#define SHOAL_TEXT_GRAMMAR_SCHEMA_MERGE_H

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

/* Types as bits; an integer is a number too. */
enum schema_type {
    SCHEMA_TYPE_NULL = 1 << 0,
    SCHEMA_TYPE_BOOLEAN = 1 << 1,
    SCHEMA_TYPE_INTEGER = 1 << 2,
    SCHEMA_TYPE_NUMBER = 1 << 3, /* that is not whole */
    SCHEMA_TYPE_STRING = 1 << 4,
    SCHEMA_TYPE_ARRAY = 1 << 5,
    SCHEMA_TYPE_OBJECT = 1 << 6,
    SCHEMA_TYPE_ALL = 127,
};

/* Whether a keyword says nothing about what is valid. */
bool schema_merge_is_annotation(const char *key);
/* A member of an object, NULL: none. */
const cJSON *schema_merge_get(const cJSON *schema, const char *key);
/* The types that `type` allows; all without it.  SHOAL_EINVAL: it names no type. */
SHOAL_MUST_CHECK int schema_merge_types(const cJSON *schema, unsigned *types, struct err *e);
unsigned schema_merge_type_of(const cJSON *value);
/* The schema that a reference means, "#/$defs/x"; borrowed from root. */
SHOAL_MUST_CHECK int schema_merge_resolve(const cJSON **out, const cJSON *root, const char *ref,
                                          struct err *e);
/* A schema without $ref and allOf at its top, and const as enum.  *out NULL without an error:
 * nothing satisfies it. */
SHOAL_MUST_CHECK int schema_merge_flatten(cJSON **out, const cJSON *root, const cJSON *schema,
                                          struct err *e);
/* Whether no text that is generated for a (flat) can be valid under b (flat).  False: not known. */
bool schema_merge_disjoint(const cJSON *root, const cJSON *a, const cJSON *b);
/* The types that are generated for a (flat) and that b (flat) allows. */
unsigned schema_merge_common_types(const cJSON *a, const cJSON *b);
/* Whether the property would keep every value of a (flat, generated) that has it apart from b
 * (flat). False: not known. */
bool schema_merge_parts(const cJSON *root, const cJSON *a, const cJSON *b, const char *key);
/* Whether a value is valid under a flat schema. */
enum schema_verdict { SCHEMA_UNKNOWN, SCHEMA_VALID, SCHEMA_INVALID };
enum schema_verdict schema_merge_judge(const cJSON *schema, const cJSON *value);
/* Whether `required` names it. */
bool schema_merge_requires(const cJSON *schema, const char *key);

#endif
