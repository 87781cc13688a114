/* shares.h - how much of a bounded table each of its users holds: the one that holds most makes
 * room, so that nobody can push out what others keep.
 *
 * Thread:    the table's: no lock inside.
 * Ownership: all zero is empty; fini takes the memory back.
 * Failure:   add returns false without memory, and nothing was added. */
#ifndef SHOAL_BASE_SHARES_H
#define SHOAL_BASE_SHARES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct share {
    uint64_t who; /* a hash of the user's name: two that collide share one share */
    size_t held;
};

struct shares {
    struct share *rows;
    uint32_t n, cap;
};

uint64_t shares_who(const char *name);
bool shares_add(struct shares *s, uint64_t who, size_t n);
/* n were added before. */
void shares_sub(struct shares *s, uint64_t who, size_t n);
size_t shares_held(const struct shares *s, uint64_t who);
/* Who holds most; `own` if nobody holds more than that. */
uint64_t shares_most(const struct shares *s, uint64_t own);
void shares_fini(struct shares *s);

#endif
