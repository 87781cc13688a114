/* score_config.h - the config.json of our own scorers, identified by its model_type.
 *
 * Thread:    any.
 * Ownership: the caller frees *out with cJSON_Delete; it is NULL after a failure.
 * Failure:   SHOAL_EFORMAT, SHOAL_EUNSUPPORTED, SHOAL_ELIMIT, SHOAL_EIO. */
#ifndef SHOAL_SCORE_SCORE_CONFIG_H
#define SHOAL_SCORE_SCORE_CONFIG_H

#include "wire/json_in.h"

/* Parses a JSON object with this "model_type". */
SHOAL_MUST_CHECK int score_config_parse(cJSON **out, const void *bytes, size_t n,
                                        const char *model_type, struct err *e);
/* path: a folder with config.json, or that file.  dir receives the folder of the config, "" or
 * ending with a slash, for the names of other files. */
SHOAL_MUST_CHECK int score_config_open(cJSON **out, const char *path, const char *model_type,
                                       char *dir, size_t dir_cap, struct err *e);

#endif
