/* prefix_table.h - which beginnings of prompts a node has read lately (prefix_chain.h), and the
 * copy of it that a gateway keeps from the node's heartbeats.
 *
 * A fixed number of slots; the oldest of eight gives way.  A heartbeat carries the slots that
 * changed since the one before.
 *
 * Thread:    the node's table: any, by a lock inside. The copy: its owner's.
 * Failure:   none after create: what is not remembered is routed by load. */
#ifndef SHOAL_CLUSTER_AFFINITY_PREFIX_TABLE_H
#define SHOAL_CLUSTER_AFFINITY_PREFIX_TABLE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

struct arena;
struct prefix_chain;
struct prefix_table;

#define PREFIX_TABLE_SLOTS 4096u

struct prefix_slot {
    uint32_t at;   /* below PREFIX_TABLE_SLOTS */
    uint64_t hash; /* that it holds now */
};

SHOAL_MUST_CHECK int prefix_table_create(struct prefix_table **out, struct err *e);
void prefix_table_destroy(struct prefix_table *t); /* NULL is fine */
/* This node reads such a prompt now. */
void prefix_table_note(struct prefix_table *t, const struct prefix_chain *c);
bool prefix_table_has(struct prefix_table *t, uint64_t hash);
/* The slots that changed after *seen, in the arena; moves *seen on. 0: from the beginning. */
uint32_t prefix_table_since(struct prefix_table *t, uint64_t *seen, struct arena *a,
                            const struct prefix_slot **out);

/* The copy: hashes by slot, 0: empty. */
bool prefix_copy_has(const uint64_t slots[PREFIX_TABLE_SLOTS], uint64_t hash);

#endif
