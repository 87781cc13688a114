/* arena.h - memory of one piece of work, such as a parsed template: given out piece by piece,
 * freed whole.
 *
 * Thread:    belongs to its caller.
 * Ownership: pieces live until arena_fini; none is freed alone.
 * Failure:   NULL, and rc says why (SHOAL_ENOMEM, or SHOAL_ELIMIT past max_bytes); rc stays. */
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
void *arena_zalloc(struct arena *a, size_t n);                /* aligned, zeroed */
void *arena_zalloc_n(struct arena *a, size_t n, size_t size); /* n * size, checked */
char *arena_bytes(struct arena *a, size_t n);                 /* any alignment */
char *arena_copy(struct arena *a, const char *p, size_t n);
/* NUL-terminated; "" when memory is out, which rc tells: check once. */
const char *arena_printf(struct arena *a, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
/* True when the piece that ends at `end` is the newest one and has been made n bytes longer in
 * place: appending to the string made last costs nothing but the new bytes. */
bool arena_grow(struct arena *a, const char *end, size_t n);

#endif
