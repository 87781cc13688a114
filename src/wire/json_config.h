/* json_config.h - the config.json of our own scorers: opened, told apart, and read with checks.
 *
 * Thread:    any.
 * Ownership: what parse and open give goes back through cJSON_Delete; *out is NULL after a
 *            failure.
 * Failure:   SHOAL_EFORMAT with the key, SHOAL_EUNSUPPORTED, SHOAL_ELIMIT, SHOAL_EIO. */
#ifndef SHOAL_WIRE_JSON_CONFIG_H
#define SHOAL_WIRE_JSON_CONFIG_H

#include <cjson/cJSON.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

/* A JSON object whose "model_type" is this one. */
SHOAL_MUST_CHECK int json_config_parse(cJSON **out, const void *bytes, size_t n,
                                       const char *model_type, struct err *e);
/* path: a folder with config.json, or that file.  dir: gets what to put in front of the names of
 * files beside it, "" or with a slash at the end. */
SHOAL_MUST_CHECK int json_config_open(cJSON **out, const char *path, const char *model_type,
                                      char *dir, size_t dir_cap, struct err *e);

/* NULL where there is none, or null. */
const cJSON *json_config_item(const cJSON *object, const char *key);
/* missing below min: the key is required. */
SHOAL_MUST_CHECK int json_config_u32(const cJSON *object, const char *key, int64_t min, int64_t max,
                                     int64_t missing, uint32_t *out, struct err *e);

#endif
