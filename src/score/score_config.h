/* score_config.h - the config.json of our own scorers, told apart by its model_type.
 *
 * Thread:    any.
 * Ownership: what parse and open give goes back through cJSON_Delete; *out is NULL after a failure.
 * Failure:   SHOAL_EFORMAT, SHOAL_EUNSUPPORTED, SHOAL_ELIMIT, SHOAL_EIO. */
#ifndef SHOAL_SCORE_SCORE_CONFIG_H
#define SHOAL_SCORE_SCORE_CONFIG_H

#include "wire/json_in.h"

/* A JSON object whose "model_type" is this one. */
SHOAL_MUST_CHECK int score_config_parse(cJSON **out, const void *bytes, size_t n,
                                        const char *model_type, struct err *e);
/* path: a folder with config.json, or that file.  dir: gets what to put in front of the names of
 * files beside it, "" or with a slash at the end. */
SHOAL_MUST_CHECK int score_config_open(cJSON **out, const char *path, const char *model_type,
                                       char *dir, size_t dir_cap, struct err *e);

#endif
