/* stream_keeper.h - keeps the streams of a scorer in a file, so that they survive a restart.
 *
 * Its own thread writes changes `every_ms` after the first one: a killed process loses at most the
 * rows since then. Closing writes the rest. Only copying the states happens under the lock; scoring
 * never waits for the disk.
 *
 * The file belongs to one process: another process with the same model and folder keeps its streams
 * only in memory, and logs that.
 *
 * Thread:    lock and unlock from the table's thread, around every use of it.
 * Ownership: borrows the table, which outlives it; close takes NULL.
 * Failure:   a file that cannot be read or written is logged, and the streams continue without it;
 *            open fails only without memory or a thread (SHOAL_ENOMEM). */
#ifndef SHOAL_ENGINE_NATIVE_STREAM_KEEPER_H
#define SHOAL_ENGINE_NATIVE_STREAM_KEEPER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

struct score_streams;
struct stream_keeper;

struct stream_keeper_opts {
    const char *dir;   /* created if missing; its parent must exist */
    const char *model; /* folder of the model: its bytes name the file */
    bool int8;         /* effectively another model */
    uint32_t every_ms;
};

/* Reads the stored streams into the table. */
SHOAL_MUST_CHECK int stream_keeper_open(struct stream_keeper **out, struct score_streams *t,
                                        const struct stream_keeper_opts *o, struct err *e);
void stream_keeper_close(struct stream_keeper *k);
/* NULL is fine: the streams are not kept. */
void stream_keeper_lock(struct stream_keeper *k);
void stream_keeper_unlock(struct stream_keeper *k, bool changed);

#endif
