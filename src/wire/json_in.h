/* json_in.h - reads JSON of bounded size, and values of it with checks.  json_out.h writes.
 *
 * Thread:    any.
 * Ownership: what object and file give goes back through cJSON_Delete; *out is NULL after a
 * failure. Failure:   SHOAL_EFORMAT (with the key), SHOAL_ELIMIT, SHOAL_EIO. */
#ifndef SHOAL_WIRE_JSON_IN_H
#define SHOAL_WIRE_JSON_IN_H

#include <cjson/cJSON.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

/* A JSON object of at most max_bytes.  what: its name in messages, "config". */
SHOAL_MUST_CHECK int json_in_object(cJSON **out, const char *what, const void *bytes, size_t n,
                                    size_t max_bytes, struct err *e);
/* The same from a file; messages name the path. */
SHOAL_MUST_CHECK int json_in_file(cJSON **out, const char *what, const char *path, size_t max_bytes,
                                  struct err *e);

/* NULL when the key is missing or its value is null. */
const cJSON *json_in_item(const cJSON *object, const char *key);
/* A whole number from min to max.  missing: the value of a missing key; below min: it is required.
 */
SHOAL_MUST_CHECK int json_in_u32(const cJSON *object, const char *key, int64_t min, int64_t max,
                                 int64_t missing, uint32_t *out, struct err *e);

#endif
