/* prefix_sent.c - see prefix_sent.h. */
#include "cluster/affinity/prefix_sent.h"

#include <string.h>

#include "base/hash.h"
#include "cluster/affinity/prefix_chain.h"

#define VALID_NS UINT64_C(3000000000)

static uint64_t key_of(const char *node, uint64_t hash)
{
    return hash_bytes(node, strlen(node), hash);
}

static void note(struct prefix_sent *s, uint64_t key, uint64_t now_ns)
{
    const uint32_t i = key % PREFIX_SENT_SLOTS;
    atomic_store_explicit(&s->slots[i].key, key, memory_order_relaxed);
    atomic_store_explicit(&s->slots[i].at_ns, now_ns, memory_order_relaxed);
}

void prefix_sent_note(struct prefix_sent *s, const char *node, const struct prefix_chain *c,
                      uint64_t now_ns)
{
    for (uint32_t i = 0; i < c->n; i++)
        if (prefix_chain_kept(c, i))
            note(s, key_of(node, prefix_chain_key(c, c->blocks[i].hash)), now_ns);
    if (c->session)
        note(s, key_of(node, prefix_chain_key(c, c->session)), now_ns);
}

bool prefix_sent_has(struct prefix_sent *s, const char *node, uint64_t hash, uint64_t now_ns)
{
    const uint64_t key = key_of(node, hash);
    const uint32_t i = key % PREFIX_SENT_SLOTS;
    const uint64_t at = atomic_load_explicit(&s->slots[i].at_ns, memory_order_relaxed);
    return atomic_load_explicit(&s->slots[i].key, memory_order_relaxed) == key &&
           now_ns < at + VALID_NS;
}
