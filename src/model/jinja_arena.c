/* jinja_arena.c - see jinja_arena.h. */
#include "model/jinja_arena.h"

#include <stdalign.h>
#include <stdint.h>
#include <string.h>

#include "base/err.h"
#include "base/mem.h"

enum { CHUNK_MIN = 4096, CHUNK_MAX = 256 * 1024, ALIGN = alignof(max_align_t) };

struct jinja_arena_chunk {
    struct jinja_arena_chunk *next;
    size_t bytes;
    alignas(max_align_t) char data[];
};

void jinja_arena_init(struct jinja_arena *a, size_t max_bytes)
{
    *a = (struct jinja_arena){.max_bytes = max_bytes};
}

void jinja_arena_fini(struct jinja_arena *a)
{
    for (struct jinja_arena_chunk *c = a->chunks, *next; c; c = next) {
        next = c->next;
        mem_free(c);
    }
    *a = (struct jinja_arena){0};
}

static bool add_chunk(struct jinja_arena *a, size_t n)
{
    size_t bytes = a->chunks ? a->chunks->bytes * 2 : CHUNK_MIN;
    if (bytes > CHUNK_MAX)
        bytes = CHUNK_MAX;
    /* A large piece gets as much room again: a string that grows by appending is then copied a
     * logarithmic number of times (jinja_arena_grow). */
    if (n > bytes / 2)
        bytes = n > SIZE_MAX / 4 ? n : n * 2;
    size_t left = a->max_bytes - a->used_bytes;
    if (bytes > left)
        bytes = left;
    if (bytes < n) {
        a->rc = SHOAL_ELIMIT;
        return false;
    }
    struct jinja_arena_chunk *c = mem_alloc(sizeof(*c) + bytes);
    if (!c) {
        a->rc = SHOAL_ENOMEM;
        return false;
    }
    c->next = a->chunks;
    c->bytes = bytes;
    a->chunks = c;
    a->used_bytes += bytes;
    a->cur = c->data;
    a->end = c->data + bytes;
    return true;
}

char *jinja_arena_bytes(struct jinja_arena *a, size_t n)
{
    if (a->rc < 0)
        return NULL;
    if (n > SIZE_MAX / 2) {
        a->rc = SHOAL_ELIMIT;
        return NULL;
    }
    if ((!a->cur || n > (size_t)(a->end - a->cur)) && !add_chunk(a, n))
        return NULL;
    char *p = a->cur;
    a->cur += n;
    return p;
}

void *jinja_arena_zalloc(struct jinja_arena *a, size_t n)
{
    if (a->rc < 0)
        return NULL;
    if (n > SIZE_MAX / 2) {
        a->rc = SHOAL_ELIMIT;
        return NULL;
    }
    size_t skip = a->cur ? (size_t)(-(uintptr_t)a->cur & (ALIGN - 1)) : 0;
    if (!a->cur || skip + n > (size_t)(a->end - a->cur)) {
        if (!add_chunk(a, n))
            return NULL;
        skip = 0;
    }
    char *p = a->cur + skip;
    a->cur = p + n;
    memset(p, 0, n);
    return p;
}

void *jinja_arena_zalloc_n(struct jinja_arena *a, size_t n, size_t size)
{
    size_t bytes;
    if (!mem_mul(&bytes, n, size))
        bytes = SIZE_MAX;
    return jinja_arena_zalloc(a, bytes);
}

char *jinja_arena_copy(struct jinja_arena *a, const char *p, size_t n)
{
    char *to = jinja_arena_bytes(a, n);
    if (to && n)
        memcpy(to, p, n);
    return to;
}

bool jinja_arena_grow(struct jinja_arena *a, const char *end, size_t n)
{
    if (a->rc < 0 || !a->cur || end != a->cur || n > (size_t)(a->end - a->cur))
        return false;
    a->cur += n;
    return true;
}
