/* prompt_cache.h - answers that were given before, by a hash of what was asked.
 *
 * Least recently used entries go first when the bytes are used up; entries older than the time to
 * live are not given any more.
 *
 * Thread:    any; one lock, held for a lookup or an insertion.
 * Ownership: get gives a reference that unref takes back; the bytes of an entry never change.
 * Failure:   put may do nothing (no memory, too large): a cache needs no errors. */
#ifndef SHOAL_HOST_PROMPT_CACHE_H
#define SHOAL_HOST_PROMPT_CACHE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct prompt_cache;

struct prompt_entry { /* read only */
    const char *data;
    size_t n;
};

struct prompt_cache_stats {
    uint64_t hits, misses, evicted, expired;
    size_t bytes;
    uint32_t entries;
};

#define PROMPT_KEY_BYTES 32u

SHOAL_MUST_CHECK int prompt_cache_create(struct prompt_cache **out, size_t max_bytes,
                                         uint64_t ttl_ns, struct err *e);
void prompt_cache_destroy(struct prompt_cache *c); /* NULL is fine */
/* now_ns: CLOCK_MONOTONIC.  NULL: not there. */
const struct prompt_entry *prompt_cache_get(struct prompt_cache *c,
                                            const uint8_t key[PROMPT_KEY_BYTES], uint64_t now_ns);
void prompt_cache_unref(const struct prompt_entry *e);
/* Copies the bytes.  group: for purge, such as a model's version. */
void prompt_cache_put(struct prompt_cache *c, const uint8_t key[PROMPT_KEY_BYTES], uint64_t group,
                      const char *data, size_t n, uint64_t now_ns);
void prompt_cache_purge(struct prompt_cache *c, uint64_t group);
void prompt_cache_stats(struct prompt_cache *c, struct prompt_cache_stats *out);

#endif
