/* score_stream_file.h - file format for a scorer's streams, to survive a restart.
 *
 * "SHOALST1", the model's fingerprint, then records, each with its length and hash; a later record
 * of a stream replaces an earlier one, so a file can be appended to.  Numbers and states are as the
 * machine has them in memory: a state means nothing to another model or another layout.
 *
 * Thread:    that of the table.
 * Failure:   SHOAL_EFORMAT: not such a file, or of another model; SHOAL_ENOMEM, SHOAL_EBUSY. */
#ifndef SHOAL_SCORE_SCORE_STREAM_FILE_H
#define SHOAL_SCORE_SCORE_STREAM_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct buf;
struct score_streams;

struct score_stream_clock {
    uint64_t now_ns;  /* as the table's */
    uint64_t wall_ms; /* since 1970: continues across restarts */
};

void score_stream_file_begin(struct buf *out, uint64_t model);
/* Appends a record of each stream that changed since the last call, or of every one. */
void score_stream_file_put(struct buf *out, struct score_streams *t, struct score_stream_clock c,
                           bool every);
/* Loads the streams of a file into the table; expired ones are skipped. *whole: bytes up to the
 * last complete record; the rest is damaged and ignored. */
SHOAL_MUST_CHECK int score_stream_file_read(struct score_streams *t, const void *p, size_t n,
                                            uint64_t model, struct score_stream_clock c,
                                            size_t *whole, struct err *e);
/* One record without its length and hash. */
SHOAL_MUST_CHECK int score_stream_file_take(struct score_streams *t, const void *p, size_t n,
                                            struct score_stream_clock c, struct err *e);

#endif
