/* reading_log.h - stores the good readings of a plant (readings_store.h), without anybody waiting
 * for the disk.
 *
 * Readings go into a bounded queue; a thread "history" writes it once a second, or when half of it
 * is full. If the disk is too slow or full, readings are dropped and counted, and the log says so.
 *
 * Thread:    put: any, and never waits for the disk.
 * Ownership: create/destroy (NULL is fine); names are borrowed from the plant.
 * Failure:   create: the file cannot be opened. */
#ifndef SHOAL_SITE_THINGS_READING_LOG_H
#define SHOAL_SITE_THINGS_READING_LOG_H

#include <stdint.h>

#include "base/err.h"

struct buf;
struct reading_log;

#define READING_LOG_MAX_WAITING 16384u

/* *out is NULL without a path. */
SHOAL_MUST_CHECK int reading_log_create(struct reading_log **out, const char *path, int64_t keep_ms,
                                        uint64_t max_bytes, struct err *e);
/* Writes what waits; nothing is put any more. */
void reading_log_destroy(struct reading_log *l);
/* sensor, unit: stay until destroy. */
void reading_log_put(struct reading_log *l, const char *sensor, const char *unit, int64_t time_ms,
                     double value);
void reading_log_metrics(struct reading_log *l, struct buf *b); /* NULL is fine */

#endif
