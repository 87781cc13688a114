/* prompt_cache.h - a cache of complete answers, by model and question.
 *
 * When it is full, the least recently used entries are evicted.  Entries expire after the time to
 * live.
 *
 * Thread:    any; one lock, held for a lookup or an insertion (longer for purge and rename).
 * Ownership: get gives a reference that unref takes back; the bytes of an entry never change.
 * Failure:   put may do nothing (out of memory, too large); that is not an error for a cache. */
#ifndef SHOAL_HOST_PROMPT_CACHE_H
#define SHOAL_HOST_PROMPT_CACHE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "host/prompt_key.h"

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

SHOAL_MUST_CHECK int prompt_cache_create(struct prompt_cache **out, size_t max_bytes,
                                         uint64_t ttl_ns, struct err *e);
void prompt_cache_destroy(struct prompt_cache *c); /* NULL is fine */
/* now_ns: CLOCK_MONOTONIC.  NULL: not found. */
const struct prompt_entry *prompt_cache_get(struct prompt_cache *c, const struct prompt_key *key,
                                            uint64_t now_ns);
void prompt_cache_unref(const struct prompt_entry *e);
/* Copies the bytes. */
void prompt_cache_put(struct prompt_cache *c, const struct prompt_key *key, const char *data,
                      size_t n, uint64_t now_ns);
/* Drops all answers of a model. */
void prompt_cache_purge(struct prompt_cache *c, const uint8_t model[SHA256_BYTES]);
/* The model has a new identity; its answers stay valid. */
void prompt_cache_rename(struct prompt_cache *c, const uint8_t from[SHA256_BYTES],
                         const uint8_t to[SHA256_BYTES]);
void prompt_cache_stats(struct prompt_cache *c, struct prompt_cache_stats *out);

#endif
