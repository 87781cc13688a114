/* json_in.h - reads JSON of bounded size and checks its values.  json_out.h writes JSON.
 *
 * Thread:    any.
 * Ownership: the caller frees *out with cJSON_Delete; it is NULL after a failure.
 * Failure:   SHOAL_EFORMAT (with the key), SHOAL_ELIMIT, SHOAL_EIO. */
#ifndef SHOAL_WIRE_JSON_IN_H
#define SHOAL_WIRE_JSON_IN_H

#include <cjson/cJSON.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

/* Parses a JSON object of at most max_bytes.  what: its name in messages, such as "config". */
SHOAL_MUST_CHECK int json_in_object(cJSON **out, const char *what, const void *bytes, size_t n,
                                    size_t max_bytes, struct err *e);
/* The same from a file; messages name the path. */
SHOAL_MUST_CHECK int json_in_file(cJSON **out, const char *what, const char *path, size_t max_bytes,
                                  struct err *e);

/* NULL if the key is missing or its value is null. */
const cJSON *json_in_item(const cJSON *object, const char *key);
/* Reads a whole number from min to max.  missing: the default for a missing key; if it is below
 * min, the key is required.
 */
SHOAL_MUST_CHECK int json_in_u32(const cJSON *object, const char *key, int64_t min, int64_t max,
                                 int64_t missing, uint32_t *out, struct err *e);

#endif
