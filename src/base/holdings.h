/* holdings.h - how much of a bounded table each of its users holds: the one that holds most makes
 * room, so that nobody can push out what others keep.
 *
 * Thread:    the table's: no lock inside.
 * Ownership: all zero is empty; fini takes the memory back.
 * Failure:   add returns false without memory, and nothing was added. */
#ifndef SHOAL_BASE_HOLDINGS_H
#define SHOAL_BASE_HOLDINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct holding {
    uint64_t who; /* a hash of the user's name: two that collide count as one */
    size_t held;
};

struct holdings {
    struct holding *rows;
    uint32_t n, cap;
};

uint64_t holdings_who(const char *name);
bool holdings_add(struct holdings *s, uint64_t who, size_t n);
/* n were added before. */
void holdings_sub(struct holdings *s, uint64_t who, size_t n);
size_t holdings_held(const struct holdings *s, uint64_t who);
/* Who holds most; `own` if nobody holds more than that. */
uint64_t holdings_most(const struct holdings *s, uint64_t own);
void holdings_fini(struct holdings *s);

#endif
