/* map_guard.h - turns SIGBUS in a mapped file into an error of that mapping instead of a crash.
 *
 * Reading a page of a mapping whose file was truncated, or whose disk fails, raises SIGBUS. The
 * first mapping added here installs a handler for the process. If the fault is inside a guarded
 * mapping, the handler puts a page of zeros there, marks the mapping broken, and the reader
 * continues; its owner checks map_guard_is_broken before it uses the results. A fault elsewhere
 * goes to the handler that was installed before.
 *
 * Thread:    any; the handler only reads a list that grows and is never freed.
 * Ownership: map_guard_add gives the entry to the caller, map_guard_remove takes it back (NULL is
 *            fine), before the mapping is unmapped.
 * Failure:   NULL when out of memory. */
#ifndef SHOAL_BASE_FILE_MAP_GUARD_H
#define SHOAL_BASE_FILE_MAP_GUARD_H

#include <stdbool.h>
#include <stddef.h>

struct map_guard;

/* prot: protection of the mapping, for the pages that replace lost ones. */
struct map_guard *map_guard_add(void *map, size_t n, int prot);
void map_guard_remove(struct map_guard *g);
bool map_guard_is_broken(const struct map_guard *g);
/* For a reader that detected the truncated file without the handler. */
void map_guard_set_broken(struct map_guard *g);

#endif
