/* prompt_cache.h - answers that were given before, by model and question.
 *
 * The least recently used entries go first when the bytes are used up.  Entries older than the time
 * to live are not given any more.
 *
 * Thread:    any; one lock, held for a lookup or an insertion (longer for purge and rename).
 * Ownership: get gives a reference that unref takes back; the bytes of an entry never change.
 * Failure:   put may do nothing (no memory, too large): a cache needs no errors. */
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
/* now_ns: CLOCK_MONOTONIC.  NULL: not there. */
const struct prompt_entry *prompt_cache_get(struct prompt_cache *c, const struct prompt_key *key,
                                            uint64_t now_ns);
void prompt_cache_unref(const struct prompt_entry *e);
/* Copies the bytes. */
void prompt_cache_put(struct prompt_cache *c, const struct prompt_key *key, const char *data,
                      size_t n, uint64_t now_ns);
/* Drops all answers of a model. */
void prompt_cache_purge(struct prompt_cache *c, const uint8_t model[SHA256_BYTES]);
/* The same model is known by another identity from now on. */
void prompt_cache_rename(struct prompt_cache *c, const uint8_t from[SHA256_BYTES],
                         const uint8_t to[SHA256_BYTES]);
void prompt_cache_stats(struct prompt_cache *c, struct prompt_cache_stats *out);

#endif
