/* schema_merge.h - merges JSON Schemas: follows references, joins allOf, and decides whether two
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
#include "text/grammar/schema_read.h"

/* A schema without $ref, allOf, not and if at its top, and const as enum.  *out NULL without an
 * error: nothing satisfies it. */
SHOAL_MUST_CHECK int schema_merge_flatten(cJSON **out, const cJSON *root, const cJSON *schema,
                                          uint32_t *joins, struct err *e);
/* Whether no text generated for a (flat) can be valid under b (flat). False: unknown. */
bool schema_merge_disjoint(const cJSON *root, const cJSON *a, const cJSON *b);
/* The types that are generated for a (flat) and that b (flat) allows. */
unsigned schema_merge_common_types(const cJSON *a, const cJSON *b);
/* Whether the property would make every value of a (flat, generated) that has it invalid under b
 * (flat). False: unknown. */
bool schema_merge_parts(const cJSON *root, const cJSON *a, const cJSON *b, const char *key);
/* Whether a value is valid under a flat schema. */
enum schema_verdict { SCHEMA_UNKNOWN, SCHEMA_VALID, SCHEMA_INVALID };
enum schema_verdict schema_merge_judge(const cJSON *schema, const cJSON *value);
#endif
