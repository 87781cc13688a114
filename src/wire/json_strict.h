/* json_strict.h - reads a JSON document whose shape is fixed: every key is known, every value has
 * the expected type and range, and an error names its path ("actions.turn_on.slots[2]").
 *
 * Errors are sticky: after the first one every call does nothing and returns an empty value, so a
 * reader checks json_strict_rc() once at the end.
 *
 * Thread:    belongs to its caller.
 * Ownership: json_strict_parse fills the caller's struct, json_strict_fini frees it.  Strings and
 *            nodes are borrowed from the document.
 * Failure:   SHOAL_EFORMAT or SHOAL_ELIMIT, with the path in the message. */
#ifndef SHOAL_WIRE_JSON_STRICT_H
#define SHOAL_WIRE_JSON_STRICT_H

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct json_strict {
    cJSON *root;
    struct err *e; /* the caller's; may be NULL */
    int rc;
};

struct json_node {              /* on the caller's stack; up must outlive it */
    const cJSON *v;             /* NULL: missing */
    const struct json_node *up; /* NULL: the root */
};

/* The whole text is one JSON value of at most max_bytes, and no object has a key twice. */
SHOAL_MUST_CHECK int json_strict_parse(struct json_strict *d, const char *text, size_t n,
                                       size_t max_bytes, struct err *e);
void json_strict_fini(struct json_strict *d);
struct json_node json_strict_root(const struct json_strict *d);
int json_strict_rc(const struct json_strict *d);
/* Records an error at a node, unless there is one already. */
void json_strict_fail(struct json_strict *d, const struct json_node *at, const char *fmt, ...)
    SHOAL_PRINTF(3, 4);
void json_strict_no_memory(struct json_strict *d);

/* The node must be an object with all keys of `required`, and no others than those and `optional`;
 * both are space-separated lists. */
bool json_strict_object(struct json_strict *d, const struct json_node *at, const char *required,
                        const char *optional);
/* The node must be an array, or an object whose keys are data, of at most max entries; returns how
 * many. A missing node has none. */
uint32_t json_strict_array(struct json_strict *d, const struct json_node *at, uint32_t max);
uint32_t json_strict_map(struct json_strict *d, const struct json_node *at, uint32_t max);

/* Member of an object; v is NULL if it is missing. */
struct json_node json_strict_get(const struct json_node *at, const char *key);
/* First entry of an array or object, and the next one; v is NULL after the last. */
struct json_node json_strict_first(const struct json_node *at);
struct json_node json_strict_next(const struct json_node *entry);
/* Key of an entry of an object. */
const char *json_strict_key(const struct json_node *entry);

/* "" after an error.  Empty strings and strings above max_bytes are errors. */
const char *json_strict_text(struct json_strict *d, const struct json_node *at, size_t max_bytes);
/* The same, but the text may be empty. */
const char *json_strict_any_text(struct json_strict *d, const struct json_node *at,
                                 size_t max_bytes);
/* Returns the given value if it is missing. */
double json_strict_number(struct json_strict *d, const struct json_node *at, double min, double max,
                          double missing);
uint32_t json_strict_u32(struct json_strict *d, const struct json_node *at, uint32_t min,
                         uint32_t max, uint32_t missing);
bool json_strict_bool(struct json_strict *d, const struct json_node *at, bool missing);

#endif
