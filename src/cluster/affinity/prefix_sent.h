/* prefix_sent.h - where this process has just sent which beginnings of prompts: nodes tell what
 * they have read with their next heartbeat, and the next turn of a conversation may come sooner.
 *
 * Thread:    any: relaxed atomics. An entry that is half written, or that another one has
 *            overwritten, costs a worse choice of a node at most.
 * Failure:   none. */
#ifndef SHOAL_CLUSTER_AFFINITY_PREFIX_SENT_H
#define SHOAL_CLUSTER_AFFINITY_PREFIX_SENT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct prefix_chain;

#define PREFIX_SENT_SLOTS 4096u

struct prefix_sent { /* all zero: nothing */
    struct {
        _Atomic uint64_t key, at_ns;
    } slots[PREFIX_SENT_SLOTS];
};

void prefix_sent_note(struct prefix_sent *s, const char *node, const struct prefix_chain *c,
                      uint64_t now_ns);
/* Within the last few seconds: after that, the node's heartbeats know better. */
bool prefix_sent_has(struct prefix_sent *s, const char *node, uint64_t hash, uint64_t now_ns);

#endif
