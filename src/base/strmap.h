/* strmap.h - hash map from byte strings to uint32_t, built once and read-only afterwards.
 *
 * Thread:    one writer while it is built; any number of readers afterwards.
 * Ownership: keys are borrowed: their bytes must outlive the map. */
#ifndef SHOAL_BASE_STRMAP_H
#define SHOAL_BASE_STRMAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct strmap_slot {
    const char *key; /* NULL: free */
    uint32_t len, value;
};

struct strmap {
    struct strmap_slot *slots;
    size_t n_slots, n_used; /* n_slots is a power of two, at most half used */
};

/* Reserves room for n_keys. */
SHOAL_MUST_CHECK int strmap_init(struct strmap *m, size_t n_keys);
void strmap_fini(struct strmap *m);
/* Returns 0 if the key was added, 1 if it exists already (its value stays), or a negative code. */
SHOAL_MUST_CHECK int strmap_put(struct strmap *m, const char *key, size_t len, uint32_t value);
bool strmap_get(const struct strmap *m, const char *key, size_t len, uint32_t *value);

#endif
