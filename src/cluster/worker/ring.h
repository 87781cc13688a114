/* ring.h - a stream of bytes between two processes through shared memory: one writes, one reads.
 *
 * The writer is not trusted: it may write anything into the shared memory at any time.  The reader
 * keeps its own position, checks what it reads of the writer's, and copies the bytes out before
 * anybody looks at them.  The memory is sealed, so that the writer cannot shrink it.
 *
 * Whoever has nothing to do sleeps: the reader says so in the ring, and the writer wakes it through
 * an eventfd; the writer says that it waits for room, and ring_read tells that it is to be woken.
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
    size_t cap;  /* of the data: a power of two */
    uint64_t at; /* bytes read, or written, since the start: our own position */
};

/* Sealed memory for a ring of at least cap bytes. */
SHOAL_MUST_CHECK int ring_memory(int *out_fd, size_t cap, struct err *e);
SHOAL_MUST_CHECK int ring_open(struct ring *r, int fd, struct err *e);
void ring_close(struct ring *r); /* not opened: fine */

/* The writer: appends what fits and returns how much that was.  *wake: the reader sleeps and is to
 * be woken.  Less than n: the writer will be woken when there is room. */
size_t ring_write(struct ring *r, const void *p, size_t n, bool *wake);
/* The reader: copies out at most n bytes.  *wake: the writer waits for room and is to be woken.
 * 0: nothing is there.  SHOAL_EFORMAT: the writer's position is impossible. */
SHOAL_MUST_CHECK int ring_read(struct ring *r, void *p, size_t n, size_t *out_n, bool *wake);
/* The reader has read everything and goes to sleep.  False: something has come meanwhile. */
bool ring_sleep(struct ring *r);

#endif
