/* join.h - how members find each other through NATS: nodes send their state as heartbeats, gateways
 * listen and learn where the nodes are.
 *
 * It is for finding only.  Whether a node is alive is seen on the connection to it (node_link.h),
 * so a shoal that has found its nodes goes on while NATS is away.
 *
 * Thread:    the executor's; up and heartbeats: any.
 * Ownership: join_close ends everything; strings are copied.
 * Failure:   that NATS cannot be reached is no failure: it is tried again, and said once. */
#ifndef SHOAL_CLUSTER_JOIN_H
#define SHOAL_CLUSTER_JOIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/executor.h"

#define JOIN_MAX_NODES 1024u

struct join;

struct join_opts {
    const char *cluster;     /* name of the shoal */
    const char *name;        /* of this member */
    const char *const *urls; /* of NATS servers */
    size_t n_urls;
    const char *ca_file, *cert_file, *key_file; /* all or none */
    uint32_t heartbeat_ms;
    uint32_t forget_ms; /* a node that sent nothing for so long is taken for removed */
    /* This member's state, for heartbeats; NULL: it is no node. */
    int (*state)(void *ctx, struct buf *out);
    /* A node appeared, or has been silent for forget_ms; NULL: not wanted. */
    void (*found)(void *ctx, const char *address, const char *name);
    void (*gone)(void *ctx, const char *address);
    void *ctx;
};

SHOAL_MUST_CHECK int join_open(struct join **out, struct executor *x, const struct join_opts *o,
                               struct err *e);
void join_close(struct join *j); /* NULL is fine */
bool join_up(const struct join *j);
uint64_t join_heartbeats(const struct join *j); /* received so far */

#endif
