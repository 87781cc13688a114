/* json_nul.h - JSON whose strings hold NUL, which a model may write, as a cJSON tree.
 *
 * cJSON ends a string at a NUL.  In these trees a NUL is the bytes C0 80, which no UTF-8 text has.
 *
 * Thread:    no state.
 * Failure:   NULL: invalid JSON, or out of memory. */
#ifndef SHOAL_WIRE_JSON_NUL_H
#define SHOAL_WIRE_JSON_NUL_H

#include <stddef.h>

#include <cjson/cJSON.h>

#define JSON_NUL "\xc0\x80" /* a NUL in a string of such a tree */

struct arena;

cJSON *json_nul_parse(const char *p, size_t n);
/* cJSON_free.  A NUL is \u0000 again. */
char *json_nul_print(const cJSON *v);
/* A copy of a string of such a tree, with its NULs, and one more at its end. */
char *json_nul_text(struct arena *a, const char *text, size_t n, size_t *n_out);

#endif
