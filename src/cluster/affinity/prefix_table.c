/* prefix_table.c - see prefix_table.h. */
#include "cluster/affinity/prefix_table.h"

#include <pthread.h>

#include "base/arena.h"
#include "base/mem.h"
#include "cluster/affinity/prefix_chain.h"

#define WAYS 8u /* slots that a hash may be in */

struct prefix_table {
    pthread_mutex_t lock;
    uint64_t clock; /* counts notes and changes */
    uint64_t hash[PREFIX_TABLE_SLOTS];
    uint64_t used[PREFIX_TABLE_SLOTS], changed[PREFIX_TABLE_SLOTS]; /* by clock */
};

int prefix_table_create(struct prefix_table **out, struct err *e)
{
    struct prefix_table *t = mem_zalloc(sizeof(*t));
    *out = NULL;
    if (!t)
        return err_set(e, SHOAL_ENOMEM, "out of memory for the prompts that this node has read");
    pthread_mutex_init(&t->lock, NULL);
    *out = t;
    return 0;
}

void prefix_table_destroy(struct prefix_table *t)
{
    if (!t)
        return;
    pthread_mutex_destroy(&t->lock);
    mem_free(t);
}

static uint32_t first_way(uint64_t hash)
{
    return (uint32_t)(hash % (PREFIX_TABLE_SLOTS / WAYS)) * WAYS;
}

/* The slot with this hash, or the one that it should take. */
static uint32_t slot_for(const struct prefix_table *t, uint64_t hash)
{
    uint32_t first = first_way(hash), to = first;
    for (uint32_t i = first; i < first + WAYS; i++) {
        if (t->hash[i] == hash)
            return i;
        if (t->used[i] < t->used[to])
            to = i;
    }
    return to;
}

static void note(struct prefix_table *t, uint64_t hash)
{
    uint32_t i = slot_for(t, hash);
    t->used[i] = ++t->clock;
    if (t->hash[i] != hash) {
        t->hash[i] = hash;
        t->changed[i] = t->clock;
    }
}

void prefix_table_note(struct prefix_table *t, const struct prefix_chain *c)
{
    pthread_mutex_lock(&t->lock);
    for (uint32_t i = 0; i < c->n; i++)
        if (prefix_chain_kept(c, i))
            note(t, prefix_chain_key(c, c->blocks[i].hash));
    if (c->session)
        note(t, prefix_chain_key(c, c->session));
    pthread_mutex_unlock(&t->lock);
}

bool prefix_copy_has(const uint64_t slots[PREFIX_TABLE_SLOTS], uint64_t hash)
{
    for (uint32_t i = first_way(hash), n = 0; n < WAYS; i++, n++)
        if (slots[i] == hash)
            return true;
    return false;
}

bool prefix_table_has(struct prefix_table *t, uint64_t hash)
{
    pthread_mutex_lock(&t->lock);
    bool has = prefix_copy_has(t->hash, hash);
    pthread_mutex_unlock(&t->lock);
    return has;
}

uint32_t prefix_table_since(struct prefix_table *t, uint64_t *seen, struct arena *a,
                            const struct prefix_slot **out)
{
    struct prefix_slot *list = NULL;
    uint32_t n = 0, have = 0;
    pthread_mutex_lock(&t->lock);
    for (uint32_t i = 0; i < PREFIX_TABLE_SLOTS; i++)
        n += t->changed[i] > *seen;
    list = n > 0 ? arena_zalloc_n(a, n, sizeof(*list)) : NULL;
    for (uint32_t i = 0; list && i < PREFIX_TABLE_SLOTS; i++)
        if (t->changed[i] > *seen)
            list[have++] = (struct prefix_slot){i, t->hash[i]};
    if (list)
        *seen = t->clock;
    pthread_mutex_unlock(&t->lock);
    *out = list;
    return have;
}
