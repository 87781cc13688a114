/* confidence_file.h - the file of a calibration: `shoal calibrate` writes it,
 * `models[].calibration` names it.
 *
 *   {"shoal": "calibration", "version": 1, "temperature": 1.31, "rows": 1500,
 *    "confidence": [0, 0.01, ...]}
 *
 * "confidence" has the share of rows in each bin of confidence.h.  Other members are for people.
 *
 * Thread:    any.
 * Failure:   SHOAL_EIO, SHOAL_EFORMAT with what is wrong. */
#ifndef SHOAL_ENSEMBLE_CONFIDENCE_FILE_H
#define SHOAL_ENSEMBLE_CONFIDENCE_FILE_H

#include "base/err.h"
#include "ensemble/confidence.h"

struct json_out;

SHOAL_MUST_CHECK int confidence_file_read(struct confidence_calibration *out, const char *path,
                                          struct err *e);
/* The file's bytes; name is for messages. */
SHOAL_MUST_CHECK int confidence_file_parse(struct confidence_calibration *out, const char *name,
                                           const void *bytes, size_t n, struct err *e);
/* The members that are read, into an open object. */
void confidence_file_put(struct json_out *j, const struct confidence_calibration *c);

#endif
