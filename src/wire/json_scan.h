/* json_scan.h - scans a JSON text before parsing for content that the parser would misread or that
 * would cost too much memory.
 *
 * cJSON ends a string at a NUL, so text after "\u0000" would be lost silently; and it needs about
 * 80 bytes for every value, so "[1,1,1,..." takes forty times its size.
 *
 * Thread:    no state.
 * Failure:   SHOAL_EFORMAT: there is a NUL, and path is its position ("messages[1].content", or ""
 *            outside of strings). SHOAL_ELIMIT: more values than max_values. */
#ifndef SHOAL_WIRE_JSON_SCAN_H
#define SHOAL_WIRE_JSON_SCAN_H

#include <stddef.h>

#include "base/err.h"

#define JSON_SCAN_VALUE_BYTES 80u /* memory for each value of a parsed text */

struct json_scan {
    size_t n_values; /* at least as many as in the text; 0: a short text without NUL, not counted */
    char path[96];   /* path of the string that contains a NUL */
};

/* Leaves invalid JSON to the parser. */
SHOAL_MUST_CHECK int json_scan(struct json_scan *out, const char *p, size_t n, size_t max_values,
                               struct err *e);

#endif
