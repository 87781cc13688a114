/* readings_store.h - the history of readings in one SQLite file of bounded size.
 *
 * Readings older than `keep`, and the oldest ones beyond `max_bytes`, are removed as new ones are
 * added; their space is used again, so the file does not grow beyond its bound by more than a
 * batch. Other processes may read the file meanwhile.
 *
 * Thread:    any; all calls wait for the disk.
 * Ownership: open/close (NULL is fine).
 * Failure:   as db.h; a batch is added as a whole or not at all. */
#ifndef SHOAL_STORE_READINGS_STORE_H
#define SHOAL_STORE_READINGS_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct readings_store;

struct readings_store_opts {
    int64_t keep_ms;    /* 0: for ever */
    uint64_t max_bytes; /* 0: any */
    bool must_exist;    /* do not make a file */
};

struct readings_store_row {
    const char *sensor, *unit; /* unit may be "" */
    int64_t time_ms;           /* since 1970 */
    double value;
};

struct readings_store_query {
    const char *sensor;        /* NULL: all */
    int64_t from_ms, until_ms; /* until_ms: not included; 0: no end */
};

SHOAL_MUST_CHECK int readings_store_open(struct readings_store **out, const char *path,
                                         const struct readings_store_opts *o, struct err *e);
void readings_store_close(struct readings_store *s);
/* A second value of a sensor at the same time replaces the first. now_ms: decides what is old. */
SHOAL_MUST_CHECK int readings_store_add(struct readings_store *s,
                                        const struct readings_store_row *rows, size_t n,
                                        int64_t now_ms, struct err *e);
/* Calls fn for each row in order of time, until it returns an error, which is returned. The row is
 * borrowed for the call. */
SHOAL_MUST_CHECK int readings_store_each(struct readings_store *s,
                                         const struct readings_store_query *q,
                                         int (*fn)(void *ctx, const struct readings_store_row *r),
                                         void *ctx, struct err *e);

#endif
