/* arena.c - see arena.h. */
#include "base/arena.h"

#include <stdalign.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "base/mem.h"

enum { CHUNK_MIN = 4096, CHUNK_MAX = 256 * 1024, ALIGN = alignof(max_align_t) };

struct arena_chunk {
    struct arena_chunk *next;
    size_t bytes;
    alignas(max_align_t) char data[];
};

void arena_init(struct arena *a, size_t max_bytes)
{
    *a = (struct arena){.max_bytes = max_bytes};
}

void arena_fini(struct arena *a)
{
    for (struct arena_chunk *c = a->chunks, *next; c; c = next) {
        next = c->next;
        mem_free(c);
    }
    *a = (struct arena){0};
}

void arena_reset(struct arena *a, size_t keep_bytes)
{
    struct arena_chunk *c = a->chunks;
    size_t max = a->max_bytes;
    while (c && (c->next || c->bytes > keep_bytes)) {
        struct arena_chunk *next = c->next;
        mem_free(c);
        c = next;
    }
    *a = (struct arena){.chunks = c, .max_bytes = max};
    if (c) {
        a->used_bytes = c->bytes;
        a->cur = c->data;
        a->end = c->data + c->bytes;
    }
}

static bool add_chunk(struct arena *a, size_t n)
{
    size_t bytes = a->chunks ? a->chunks->bytes * 2 : CHUNK_MIN;
    if (bytes > CHUNK_MAX)
        bytes = CHUNK_MAX;
    /* A large allocation gets twice the space, so that a string that grows by appending is copied
     * only a logarithmic number of times (arena_grow). */
    if (n > bytes / 2)
        bytes = n > SIZE_MAX / 4 ? n : n * 2;
    size_t left = a->max_bytes - a->used_bytes;
    if (bytes > left)
        bytes = left;
    if (bytes < n) {
        a->rc = SHOAL_ELIMIT;
        return false;
    }
    struct arena_chunk *c = mem_alloc(sizeof(*c) + bytes);
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

char *arena_bytes(struct arena *a, size_t n)
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

void *arena_zalloc(struct arena *a, size_t n)
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

void *arena_zalloc_n(struct arena *a, size_t n, size_t size)
{
    size_t bytes;
    if (!mem_mul(&bytes, n, size))
        bytes = SIZE_MAX;
    return arena_zalloc(a, bytes);
}

char *arena_copy(struct arena *a, const char *p, size_t n)
{
    char *to = arena_bytes(a, n);
    if (to && n)
        memcpy(to, p, n);
    return to;
}

bool arena_grow(struct arena *a, const char *end, size_t n)
{
    if (a->rc < 0 || !a->cur || end != a->cur || n > (size_t)(a->end - a->cur))
        return false;
    a->cur += n;
    return true;
}

const char *arena_printf(struct arena *a, const char *fmt, ...)
{
    va_list args, again;
    va_start(args, fmt);
    va_copy(again, args);
    int n = vsnprintf(NULL, 0, fmt, args);
    char *to = n < 0 ? NULL : arena_bytes(a, (size_t)n + 1);
    if (to)
        vsnprintf(to, (size_t)n + 1, fmt, again);
    va_end(again);
    va_end(args);
    return to ? to : "";
}
