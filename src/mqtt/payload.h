/* payload.h - extracts numbers from a message's payload: plain, JSON or CSV.
 *
 * A path names a value of a JSON document: "temperature", "$.motor.bearings[1].celsius"; a last
 * part "*" means every member or element. A CSV payload is one or more rows, whose columns have
 * names from the configuration; a column named "-" is skipped. true and false are 1 and 0, numeric
 * texts are converted; other values become NaN, so that they count as bad readings.
 *
 * Times are numbers since 1970 (seconds, milliseconds, microseconds or nanoseconds, by their size)
 * or texts as 2026-11-16T03:04:05.678Z.
 *
 * Thread:    no state.
 * Failure:   SHOAL_EFORMAT, SHOAL_ELIMIT; readings that came before stay. */
#ifndef SHOAL_MQTT_PAYLOAD_H
#define SHOAL_MQTT_PAYLOAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/str.h"

#define PAYLOAD_MAX_VALUES 65536u /* of a JSON document */
#define PAYLOAD_MAX_COLUMNS 256u
#define PAYLOAD_MAX_NAME 128u

struct cJSON;

enum payload_kind { PAYLOAD_NUMBER, PAYLOAD_JSON, PAYLOAD_CSV, PAYLOAD_SPARKPLUG };

struct payload_map {
    enum payload_kind kind;
    const char *value;          /* JSON: path of the value; NULL: the document itself */
    const char *time;           /* JSON: path; CSV: name of the column; NULL: none */
    const char *const *columns; /* CSV: their names; none: 1, 2, ... */
    size_t n_columns;
};

struct payload_reading {
    struct str name; /* member, column or metric; "" if there is one value only */
    double value;    /* NaN: it is not a number */
    int64_t time_ms; /* 0: not known */
    bool is_past;    /* it was recorded earlier: Sparkplug's is_historical */
};

typedef void (*payload_fn)(void *ctx, const struct payload_reading *r);

/* Whether a path can be read. */
bool payload_path_ok(const char *path);
/* The value at a path; NULL: none. *every: the path ends with "*", and the value is the
 * container. */
const struct cJSON *payload_find(const struct cJSON *root, const char *path, bool *every);
/* All but Sparkplug, which has state (sparkplug.h). */
SHOAL_MUST_CHECK int payload_read(const struct payload_map *m, const void *bytes, size_t n,
                                  payload_fn fn, void *ctx, struct err *e);
/* Milliseconds since 1970; 0: not a time. */
int64_t payload_time_text(const char *text);
/* A whole text as a number; NaN: it is not one. */
double payload_number(const char *p, size_t n);

#endif
