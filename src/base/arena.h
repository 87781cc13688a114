/* arena.h - memory for one piece of work, such as a parsed template: allocated in pieces, freed as
 * a whole.
 *
 * Thread:    belongs to its caller.
 * Ownership: pieces live until arena_fini; they cannot be freed one by one.
 * Failure:   NULL, and rc says why (SHOAL_ENOMEM, or SHOAL_ELIMIT past max_bytes).  rc is sticky.
 */
#ifndef SHOAL_BASE_ARENA_H
#define SHOAL_BASE_ARENA_H

#include <stdbool.h>
#include <stddef.h>

struct arena_chunk;

struct arena {
    struct arena_chunk *chunks;
    char *cur, *end; /* free part of the newest chunk */
    size_t used_bytes, max_bytes;
    int rc;
};

void arena_init(struct arena *a, size_t max_bytes);
void arena_fini(struct arena *a);
/* Frees all pieces; a first chunk of at most keep_bytes stays for the next ones. */
void arena_reset(struct arena *a, size_t keep_bytes);
void *arena_zalloc(struct arena *a, size_t n);                /* aligned, zeroed */
void *arena_zalloc_n(struct arena *a, size_t n, size_t size); /* n * size, checked */
char *arena_bytes(struct arena *a, size_t n);                 /* any alignment */
char *arena_copy(struct arena *a, const char *p, size_t n);
/* NUL-terminated; "" if the allocation fails. rc is then set, so one check at the end is enough. */
const char *arena_printf(struct arena *a, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
/* Extends the piece that ends at `end` by n bytes in place.  True if it is the newest piece and
 * there is room: appending to the newest string then copies only the new bytes. */
bool arena_grow(struct arena *a, const char *end, size_t n);

#endif
