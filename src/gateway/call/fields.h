/* fields.h - reads a JSON object into a struct by a table of fields; unknown fields are refused by
 * name.  The same tables describe the interface in /openapi.json.
 *
 * Thread:    no state.
 * Ownership: strings and values point into the cJSON tree.
 * Failure:   SHOAL_EINVAL with param and text filled. */
#ifndef SHOAL_GATEWAY_CALL_FIELDS_H
#define SHOAL_GATEWAY_CALL_FIELDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cjson/cJSON.h>

#include "base/err.h"

enum field_type {
    FIELD_BOOL,    /* bool */
    FIELD_INT,     /* int64_t, min to max */
    FIELD_NUM,     /* double, min to max */
    FIELD_STR,     /* const char * */
    FIELD_VALUE,   /* const cJSON *: the handler reads it */
    FIELD_IGNORED, /* accepted: has no effect on the answer */
    FIELD_UNBUILT, /* known but unsupported: refused unless its value is neutral */
};

struct field {
    const char *name;
    enum field_type type;
    size_t offset; /* in the struct; not for IGNORED and UNBUILT */
    double min, max;
    const char *help;
    const char *schema; /* VALUE: JSON Schema for /openapi.json; UNBUILT: the neutral text or number
                           that is accepted; or NULL */
};

struct fields_error {
    char param[64];
    char msg[256];
    const char *code; /* OpenAI's name of the kind of error, or NULL */
};

#define FIELDS_MAX 128u

/* Read by call_request, for every API that has it in its table. */
#define FIELDS_SESSION                                                                             \
    {                                                                                              \
        "session_id", FIELD_IGNORED, 0, 0, 0,                                                      \
            "continues the conversation of this id, which the server keeps", NULL                  \
    }

/* A null field counts as missing and leaves its member unchanged, also an unknown one. lenient:
 * unknown and unsupported fields are skipped. */
SHOAL_MUST_CHECK int fields_read(const struct field *table, size_t n, const cJSON *object,
                                 void *into, bool lenient, struct fields_error *e);
/* Checks a number that did not come as JSON against the limits of its field. */
SHOAL_MUST_CHECK int fields_check(const struct field *table, size_t n, const char *name, double v,
                                  struct fields_error *e);
int fields_fail(struct fields_error *e, const char *param, const char *code, const char *fmt, ...)
    SHOAL_PRINTF(4, 5);

#endif
