/* jinja_arena.h - memory of one parsed template or of one rendering: given out piece by piece,
 * freed whole.
 *
 * Thread:    belongs to its caller.
 * Ownership: pieces live until jinja_arena_fini; none is freed alone.
 * Failure:   NULL, and rc says why (SHOAL_ENOMEM, or SHOAL_ELIMIT past max_bytes); rc stays. */
#ifndef SHOAL_MODEL_JINJA_ARENA_H
#define SHOAL_MODEL_JINJA_ARENA_H

#include <stdbool.h>
#include <stddef.h>

struct jinja_arena_chunk;

struct jinja_arena {
    struct jinja_arena_chunk *chunks;
    char *cur, *end; /* free part of the newest chunk */
    size_t used_bytes, max_bytes;
    int rc;
};

void jinja_arena_init(struct jinja_arena *a, size_t max_bytes);
void jinja_arena_fini(struct jinja_arena *a);
void *jinja_arena_zalloc(struct jinja_arena *a, size_t n);                /* aligned, zeroed */
void *jinja_arena_zalloc_n(struct jinja_arena *a, size_t n, size_t size); /* n * size, checked */
char *jinja_arena_bytes(struct jinja_arena *a, size_t n);                 /* any alignment */
char *jinja_arena_copy(struct jinja_arena *a, const char *p, size_t n);
/* True when the piece that ends at `end` is the newest one and has been made n bytes longer in
 * place: appending to the string made last costs nothing but the new bytes. */
bool jinja_arena_grow(struct jinja_arena *a, const char *end, size_t n);

#endif
