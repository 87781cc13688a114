/* spool.h - a bounded queue of records on disk that survives a crash.
 *
 * One file: a header, then records, appended. A record is either bytes to keep, or the note that an
 * earlier one is done. Each has a checksum. put returns when the record is on disk, so a record can
 * be sent again after a crash; a damaged end (from a crash while writing) is cut off when the file
 * is opened. A file with more done records than live ones is compacted.
 *
 * Record numbers grow and are never reused in a file, also across restarts; together with `salt`
 * they identify a record permanently.
 *
 * Thread:    belongs to its caller, who has a lock if several threads use it.
 * Ownership: open gives, close takes back (NULL is fine).
 * Failure:   SHOAL_EIO, SHOAL_ELIMIT (full, or used by another process), SHOAL_EFORMAT (another
 *            kind of file), SHOAL_ENOMEM. After a failed put the file is as before. */
#ifndef SHOAL_MQTT_SPOOL_H
#define SHOAL_MQTT_SPOOL_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

#define SPOOL_MAX_RECORD ((size_t)16 << 20)

struct spool;

struct spool_opts {
    const char *path;
    size_t max_bytes; /* limit of live records; 0: 16 MiB */
};

struct spool_stats {
    uint64_t n_put, n_done, n_refused; /* since it was opened */
    size_t n_live, live_bytes;
    size_t file_bytes;
    size_t dropped_bytes; /* damaged, cut off when it was opened */
};

/* Called for every live record, oldest first; the bytes are borrowed.  Below 0: the open fails. */
typedef int (*spool_each_fn)(void *ctx, uint64_t number, const void *bytes, size_t n);

SHOAL_MUST_CHECK int spool_open(struct spool **out, const struct spool_opts *o, spool_each_fn each,
                                void *ctx, struct err *e);
void spool_close(struct spool *s);
SHOAL_MUST_CHECK int spool_put(struct spool *s, const void *bytes, size_t n, uint64_t *number,
                               struct err *e);
/* The record will not be returned again. Not synced: after a power failure it may be. */
void spool_done(struct spool *s, uint64_t number);
uint64_t spool_salt(const struct spool *s);
void spool_get_stats(const struct spool *s, struct spool_stats *out);

#endif
