/* value_json.h - JSON text to a tree of values (base/value.h), and back.
 *
 * Thread:    no state.
 * Ownership: the tree lives in the arena.
 * Failure:   SHOAL_EFORMAT: not JSON, or nested deeper than 64; or the arena's rc. */
#ifndef SHOAL_WIRE_VALUE_JSON_H
#define SHOAL_WIRE_VALUE_JSON_H

#include <cjson/cJSON.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/value.h"
#include "wire/json_out.h"

/* Numbers become doubles; texts are made valid UTF-8. */
SHOAL_MUST_CHECK int value_json_read(struct value *out, struct arena *a, const char *p, size_t n);
/* The same from a parsed tree; out of memory: see a.rc. */
struct value value_json_of(struct arena *a, const cJSON *v);
/* As the next value; what is nested deeper than 64 is null. */
void value_json_put(struct json_out *j, const struct value *v);
/* About as many bytes as that writes. */
size_t value_json_bytes(const struct value *v);

#endif
