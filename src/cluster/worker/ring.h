/* ring.h - a stream of bytes between two processes through shared memory: one writes, one reads.
 *
 * The writer is not trusted: it may write anything into the shared memory at any time. The reader
 * keeps its own position, validates the writer's, and copies the bytes out before using them. The
 * memory is sealed, so that the writer cannot shrink it.
 *
 * An idle side sleeps: the reader sets a flag in the ring, and the writer wakes it through an
 * eventfd; a writer that waits for room sets a flag, and ring_read reports that it must be woken.
 *
 * Thread:    one thread writes, one reads.
 * Ownership: open maps the memory of a descriptor, which stays the caller's.
 * Failure:   SHOAL_EIO, SHOAL_ENOMEM; ring_read: SHOAL_EFORMAT. */
#ifndef SHOAL_CLUSTER_WORKER_RING_H
#define SHOAL_CLUSTER_WORKER_RING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct ring_shared;

struct ring {
    struct ring_shared *shared;
    size_t cap;  /* size of the data area: a power of two */
    uint64_t at; /* bytes read, or written, since the start: our own position */
};

/* Sealed memory for a ring of at least cap bytes. */
SHOAL_MUST_CHECK int ring_memory(int *out_fd, size_t cap, struct err *e);
SHOAL_MUST_CHECK int ring_open(struct ring *r, int fd, struct err *e);
void ring_close(struct ring *r); /* not opened: fine */

/* Writer: appends as much as fits and returns how much. *wake: the reader sleeps and must be woken.
 * Less than n: the writer will be woken when there is room. */
size_t ring_write(struct ring *r, const void *p, size_t n, bool *wake);
/* Reader: copies out at most n bytes. *wake: the writer waits for room and must be woken. 0: empty.
 * SHOAL_EFORMAT: the writer's position is invalid. */
SHOAL_MUST_CHECK int ring_read(struct ring *r, void *p, size_t n, size_t *out_n, bool *wake);
/* The reader has read everything and goes to sleep. False: more bytes have arrived. */
bool ring_sleep(struct ring *r);

#endif
