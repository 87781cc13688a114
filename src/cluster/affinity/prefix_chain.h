/* prefix_chain.h - the beginnings of a prompt as hashes: what two requests have in common shows
 * without their texts.
 *
 * A block ends with each message of a conversation, and within long texts every 256 bytes at first,
 * then ever less often.  Its hash covers everything before it.  So the node that answered the last
 * turn of a conversation has the hash of a block of the next one.
 *
 * Hashes are salted as cached prefixes are (engine/decode/kv_pages.h): by client, unless clients
 * share the cache.  A client therefore finds nothing that another one has sent, and SHA-256 keeps
 * it from making a prompt with the hash of another's.
 *
 * Thread:    plain data.
 * Ownership: a chain lives in the arena. */
#ifndef SHOAL_CLUSTER_AFFINITY_PREFIX_CHAIN_H
#define SHOAL_CLUSTER_AFFINITY_PREFIX_CHAIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/hash.h"

struct arena;
struct request;

#define PREFIX_CHAIN_MAX 512u /* blocks; what follows is not compared */

struct prefix_block {
    uint64_t hash;
    uint64_t bytes; /* of the prompt, to its end */
    /* The same, with the answer that follows it in the conversation: the node that read the
     * question also wrote the answer. */
    uint64_t answered;
};

struct prefix_chain {
    uint64_t model;   /* hash of its name: each has a cache of its own */
    uint64_t session; /* as a block's, of the session's id; 0: none */
    uint64_t bytes;   /* of the whole prompt, as far as it was cut into blocks */
    uint32_t n;
    struct prefix_block *blocks; /* [n], from the start of the prompt on */
};

/* shared: of clients that share the model's cache. NULL: the request has no prompt to continue, or
 * out of memory, which does not matter: it is routed by load. */
struct prefix_chain *prefix_chain_make(struct arena *a, const struct request *r, bool shared);
/* For another model. */
void prefix_chain_for(struct prefix_chain *c, const char *model);
/* What a block of this hash is remembered as; never 0. */
static inline uint64_t prefix_chain_key(const struct prefix_chain *c, uint64_t hash)
{
    const uint64_t key = hash_mix(hash ^ c->model);
    return key ? key : 1;
}
/* Whether a node remembers the i-th block.  Not all: the first ones are the most likely to be
 * shared, and the last one is where the conversation continues. */
bool prefix_chain_kept(const struct prefix_chain *c, uint32_t i);
/* Its blocks as a registry compares them (host/registry.h), for the copies of a model in one
 * process: they belong to the request r. */
void prefix_chain_tell(const struct prefix_chain *c, struct request *r);
/* The share of the prompt, 0 to 1, that is known to whoever `has` these keys. */
double prefix_chain_held(const struct prefix_chain *c, bool (*has)(void *ctx, uint64_t key),
                         void *ctx);

#endif
