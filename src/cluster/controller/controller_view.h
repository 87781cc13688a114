/* controller_view.h - the members of a shoal as their heartbeats show them, and snapshots of that
 * for decisions on another thread.
 *
 * Thread:    the view belongs to its owner; a snapshot to whoever took it.
 * Ownership: create/destroy; take gives a snapshot, controller_snapshot_free takes it back (NULL is
 *            fine).
 * Failure:   SHOAL_ENOMEM; SHOAL_EFORMAT, SHOAL_ELIMIT for heartbeats that are refused. */
#ifndef SHOAL_CLUSTER_CONTROLLER_VIEW_H
#define SHOAL_CLUSTER_CONTROLLER_VIEW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/strmap.h"

struct controller_view;
struct node_state;

#define CONTROLLER_VIEW_MAX 16384u /* members */

/* What a heartbeat, or its absence, changed. */
enum controller_news {
    CONTROLLER_NOTHING, /* load at most */
    CONTROLLER_JOINED,
    CONTROLLER_RESTARTED, /* the same name, another run of the process */
    CONTROLLER_CHANGED,   /* its models, or whether it drains */
    CONTROLLER_LEFT,
    CONTROLLER_TWINS, /* two running processes have this name: one is left out */
};

SHOAL_MUST_CHECK int controller_view_create(struct controller_view **out, struct err *e);
void controller_view_destroy(struct controller_view *v); /* NULL is fine */
/* One heartbeat.  *news: what it changed.  name (or NULL): the member's, until the next call. */
SHOAL_MUST_CHECK int controller_view_hear(struct controller_view *v, const void *bytes, size_t n,
                                          uint64_t now_ns, enum controller_news *news,
                                          const char **name, struct err *e);
/* Forgets one member that has been silent since before_ns. NULL: none. The name is valid
 * until the next call. */
const char *controller_view_expire(struct controller_view *v, uint64_t before_ns);
/* Counts all members as heard just now: after an outage of NATS, the silence says nothing about
 * them. */
void controller_view_refresh(struct controller_view *v, uint64_t now_ns);
uint32_t controller_view_count(const struct controller_view *v);

/* Input of a decision. */
struct controller_snapshot {
    struct node_state *nodes; /* nodes that answer requests, in no order */
    uint32_t n_nodes;
    const char *const *wanted; /* models that requests wait for somewhere; may repeat */
    uint32_t n_wanted;
    uint64_t oldest_epoch; /* oldest epoch of any running request; 0: none */
    uint64_t now_ms;       /* Unix time, for the state */
    uint64_t term_ms;      /* when the controller's term began, in Unix time; 0: it is none */
    uint64_t clock_ms;     /* monotonic, for durations */
    struct strmap by_name; /* maps a name to its index in nodes */
    struct arena arena;
};

SHOAL_MUST_CHECK int controller_view_take(const struct controller_view *v,
                                          struct controller_snapshot **out, struct err *e);
/* Called on the deciding thread: decodes the snapshot. */
SHOAL_MUST_CHECK int controller_snapshot_read(struct controller_snapshot *s, struct err *e);
/* The node of this name; NULL: offline. */
const struct node_state *controller_snapshot_node(const struct controller_snapshot *s,
                                                  const char *name);
/* Treats the node as absent. SHOAL_ENOTFOUND. */
SHOAL_MUST_CHECK int controller_snapshot_remove(struct controller_snapshot *s, const char *name);
void controller_snapshot_free(struct controller_snapshot *s);

#endif
