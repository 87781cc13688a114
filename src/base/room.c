/* room.c - see room.h. */
#include "base/room.h"

#include <string.h>

#include "base/mem.h"

/* Pointers are read and written as bytes: the array may be one of any type. */
static void *array_at(const void *array)
{
    void *p;
    memcpy(&p, array, sizeof(p));
    return p;
}

bool room_make(void *array, size_t *cap, size_t n, size_t size, size_t first)
{
    size_t bytes, want = *cap ? 2 * *cap : first;
    if (n < *cap)
        return true;
    void *more = mem_mul(&bytes, want, size) ? mem_realloc(array_at(array), bytes) : NULL;
    if (!more)
        return false;
    memcpy(array, &more, sizeof(more));
    *cap = want;
    return true;
}

bool room_make32(void *array, uint32_t *cap, uint32_t n, size_t size, uint32_t first)
{
    size_t wide = *cap;
    if (!room_make(array, &wide, n, size, first))
        return false;
    *cap = (uint32_t)wide;
    return true;
}

bool room_make_in(struct arena *a, void *array, uint32_t *cap, uint32_t n, size_t size,
                  uint32_t first)
{
    uint32_t want = *cap ? 2 * *cap : first;
    if (n < *cap)
        return true;
    void *more = arena_zalloc_n(a, want, size);
    if (!more)
        return false;
    if (n > 0)
        memcpy(more, array_at(array), n * size);
    memcpy(array, &more, sizeof(more));
    *cap = want;
    return true;
}

void *room_next(void *array, uint32_t n, size_t size)
{
    size_t cap = (n & (n - 1)) == 0 ? n : (size_t)n + 1; /* n is a power of two: full */
    return room_make(array, &cap, n, size, 1) ? (char *)array_at(array) + n * size : NULL;
}
