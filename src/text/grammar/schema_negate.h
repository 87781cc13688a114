/* schema_negate.h - negates JSON Schemas, for not, if and oneOf.
 *
 * Thread:    no state.
 * Ownership: the result is a new tree, which the caller deletes (cJSON_Delete).
 * Failure:   SHOAL_EUNSUPPORTED, and the message names the keyword. */
#ifndef SHOAL_TEXT_GRAMMAR_SCHEMA_NEGATE_H
#define SHOAL_TEXT_GRAMMAR_SCHEMA_NEGATE_H

#include <cjson/cJSON.h>

#include "base/err.h"

/* A schema of values that the schema rejects: of some of them if not all can be described. */
SHOAL_MUST_CHECK int schema_negate(cJSON **out, const cJSON *root, const cJSON *schema,
                                   struct err *e);

#endif
