/* stream_keeper.h - keeps the streams of a scorer in a file, so that they go on after a restart.
 *
 * A thread of its own writes what changed, `every_ms` after the first change: a process that is
 * killed loses no older rows than that.  Closing writes the rest.  Only the copy of the states is
 * made under the lock; whoever scores never waits for the disk.
 *
 * The file belongs to one process: another one that has the same model and folder open keeps its
 * own streams in memory alone, and says so.
 *
 * Thread:    lock and unlock from the table's thread, around every use of it.
 * Ownership: borrows the table, which outlives it; close takes NULL.
 * Failure:   a file that cannot be read or written is logged, and the streams go on without it;
 *            open fails only without memory or a thread (SHOAL_ENOMEM). */
#ifndef SHOAL_ENGINE_NATIVE_STREAM_KEEPER_H
#define SHOAL_ENGINE_NATIVE_STREAM_KEEPER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

struct score_streams;
struct stream_keeper;

struct stream_keeper_opts {
    const char *dir;   /* made if it is not there; its parent must be */
    const char *model; /* folder of the model: its bytes name the file */
    bool int8;         /* another model in effect */
    uint32_t every_ms;
};

/* Reads the streams that are there into the table. */
SHOAL_MUST_CHECK int stream_keeper_open(struct stream_keeper **out, struct score_streams *t,
                                        const struct stream_keeper_opts *o, struct err *e);
void stream_keeper_close(struct stream_keeper *k);
/* NULL is fine: the streams are not kept. */
void stream_keeper_lock(struct stream_keeper *k);
void stream_keeper_unlock(struct stream_keeper *k, bool changed);

#endif
