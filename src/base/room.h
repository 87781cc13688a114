/* room.h - arrays that grow by doubling.
 *
 * Thread:    belongs to the array's owner.
 * Ownership: the array stays its owner's (mem_free, or the arena).
 * Failure:   false: out of memory; array and capacity are as before. */
#ifndef SHOAL_BASE_ROOM_H
#define SHOAL_BASE_ROOM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"

/* Room for the element n of an array with n elements, each of `size` bytes.  array: address of the
 * pointer to it, which may move.  first: capacity of an array that had none. */
SHOAL_MUST_CHECK bool room_make(void *array, size_t *cap, size_t n, size_t size, size_t first);
SHOAL_MUST_CHECK bool room_make32(void *array, uint32_t *cap, uint32_t n, size_t size,
                                  uint32_t first);
/* In an arena, which keeps the old elements, too, until its end. */
SHOAL_MUST_CHECK bool room_make_in(struct arena *a, void *array, uint32_t *cap, uint32_t n,
                                   size_t size, uint32_t first);
/* The place of element n of an array without a capacity, which grows at every power of two; NULL:
 * out of memory. */
SHOAL_MUST_CHECK void *room_next(void *array, uint32_t n, size_t size);

#endif
