/* holders.h - which nodes have which models, from their heartbeats.
 *
 * Thread:    belongs to its caller.
 * Ownership: create gives, destroy takes back (NULL is fine).  Strings that find gives are borrowed
 *            until the next call.
 * Failure:   without memory or room, a heartbeat is ignored. */
#ifndef SHOAL_CLUSTER_STORE_HOLDERS_H
#define SHOAL_CLUSTER_STORE_HOLDERS_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "host/sha256.h"

struct holders;
struct node_state;

struct holders_node {
    const char *address, *name;
    uint32_t in_flight; /* requests that it works on */
};

SHOAL_MUST_CHECK int holders_create(struct holders **out, struct err *e);
void holders_destroy(struct holders *h);
void holders_hear(struct holders *h, const struct node_state *s, uint64_t now_ns);
/* Nodes heard within the last ten seconds, the least busy first; at most cap. */
size_t holders_find(struct holders *h, const uint8_t sha256[SHA256_BYTES], uint64_t now_ns,
                    struct holders_node *out, size_t cap);

#endif
