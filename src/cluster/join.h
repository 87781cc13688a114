/* join.h - this process as a member of a shoal, through NATS: it sends heartbeats, reports the
 * nodes that it hears, follows the desired state (agent.h), and takes part in the election of the
 * controller (controller.h).
 *
 * Requests do not depend on it. A node's liveness is checked on the connection to it (node_link.h),
 * so a shoal that has found its nodes continues while NATS is down.  Addresses are kept on disk
 * (peer_book.h), so that a member that starts then finds them too.
 *
 * Thread:    the executor's; fill, up, heartbeats and the functions for people: any.
 * Ownership: join_close ends everything; strings are copied.
 * Failure:   an unreachable NATS is not an error: it is retried, and logged once. */
#ifndef SHOAL_CLUSTER_JOIN_H
#define SHOAL_CLUSTER_JOIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/thread/executor.h"
#include "cluster/agent/agent.h"
#include "cluster/controller/controller.h"

#define JOIN_MAX_NODES 1024u

struct arena;
struct control_change;
struct deployed;
struct desired;
struct join;
struct node_state;
struct once_bucket;
struct quota_bucket;
struct registry;

struct join_opts {
    const char *cluster;     /* name of the shoal */
    const char *name;        /* of this member */
    const char *const *urls; /* of NATS servers */
    size_t n_urls;
    const char *ca_file, *cert_file, *key_file; /* all or none */
    const char *snapshot;                       /* as in control.h; NULL: in the cache folder */
    const char *cache_dir;                      /* as in shoal_engine_opts */
    uint32_t heartbeat_ms;
    uint32_t forget_ms; /* a node silent for this long counts as removed */
    uint32_t lease_ms;  /* as in lease.h */
    bool may_control;   /* takes part in the election */
    bool may_change;    /* its certificate may change the desired state */
    /* This member's state, for heartbeats. */
    int (*state)(void *ctx, struct buf *out);
    /* A node appeared, or has been silent for forget_ms; may be NULL. */
    void (*found)(void *ctx, const char *address, const char *name);
    void (*gone)(void *ctx, const char *address);
    /* The state of another node, as long as listens returns true; may be NULL. */
    void (*heard)(void *ctx, const struct node_state *s);
    bool (*listens)(void *ctx);
    void *ctx;
    struct registry
        *registry; /* for models that the controller assigns; NULL: this is not a node */
    const struct agent_source *source; /* with registry */
    struct deployed *deployed;         /* kept up to date; may be NULL */
    struct quota_bucket *quota;        /* connected while this member has joined; may be NULL */
    struct once_bucket *once;          /* likewise */
};

SHOAL_MUST_CHECK int join_open(struct join **out, struct executor *x, const struct join_opts *o,
                               struct err *e);
void join_close(struct join *j); /* NULL is fine */
/* This member's own state beside its models: duties, models it waits for, whether it is the
 * controller. */
void join_fill(struct join *j, struct node_state *s, struct arena *a);
bool join_up(const struct join *j);
/* This node serves a version of the desired state that it could not compare with NATS: it may be
 * outdated.  may_be_old: of the request, which is also answered before it was compared.  j NULL:
 * no. */
bool join_is_isolated(const struct join *j, bool may_be_old);
uint64_t join_heartbeats(const struct join *j); /* received so far */

/* As agent_damaged; the executor's thread. */
void join_damaged(struct join *j, const uint8_t sha256[SHA256_BYTES]);

/* The shoal as this member sees it, for people. */
struct join_view {
    char controller[128]; /* its name; "": none heard recently */
    uint64_t fence;
    struct controller_status own; /* all zero unless this member takes part in the election */
};
void join_get_view(struct join *j, struct join_view *out);
/* Drains a node, or gives it work again, as an administrator wishes; in the background.
 * SHOAL_EINVAL: this member may not, or the name is none.  SHOAL_EBUSY: NATS is down.  Any thread.
 */
SHOAL_MUST_CHECK int join_set_drained(struct join *j, const char *node, bool drained,
                                      struct err *e);
/* The desired state in force, while fn runs; it is not called if there is none.  Any thread. */
void join_with_desired(struct join *j, void (*fn)(void *ctx, const struct desired *d), void *ctx);
/* Changes the desired state on behalf of an administrator; see control.h. SHOAL_EINVAL: this member
 * may not. SHOAL_EBUSY: NATS is down. Then the change still belongs to the caller. Any thread. */
SHOAL_MUST_CHECK int join_submit(struct join *j, struct control_change *change, struct err *e);

#endif
