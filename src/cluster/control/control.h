/* control.h - a member's complete control plane: one object over bus.h, desired_store.h, lease.h
 * and event_log.h.
 *
 * Everything reaches the owner as callbacks on its executor's thread, and nothing here blocks that
 * thread except open and close. Changes of the desired state run on a thread "control".
 *
 * Thread:    the owner's; event, beat and submit: any.
 * Ownership: open gives, close takes back (NULL is fine). A change belongs to the caller and must
 *            stay valid until done was called, which happens exactly once, also after close. close
 *            waits for a change that runs (at most 5 s); those that wait end with SHOAL_ECANCELLED.
 *            Tasks may still be posted, see bus.h.
 * Failure:   SHOAL_EINVAL, SHOAL_EIO (certificates), SHOAL_ENOMEM. An unavailable NATS is not a
 *            failure. */
#ifndef SHOAL_CLUSTER_CONTROL_CONTROL_H
#define SHOAL_CLUSTER_CONTROL_CONTROL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/thread/executor.h"
#include "cluster/control/bus.h"
#include "cluster/control/desired_store.h"
#include "cluster/control/event_log.h"
#include "cluster/control/lease.h"

struct control;
struct desired;

struct control_opts {
    struct bus_opts bus;      /* bus.name: this member's name, as in its certificate */
    const char *snapshot;     /* file for the last desired state, or NULL */
    bool hears;               /* receives heartbeats */
    bool may_control;         /* takes part in the election */
    uint32_t lease_ttl_ms;    /* as in lease.h */
    unsigned replicas;        /* NATS servers that hold each bucket; 0: by the addresses */
    uint32_t desired_poll_ms; /* as in desired_store.h */
};

/* Each may be NULL. */
struct control_watch {
    void *ctx;
    void (*on_link)(void *ctx, const struct bus_status *s);
    /* A heartbeat: an encoded NodeState. */
    void (*on_heartbeat)(void *ctx, const void *bytes, size_t n);
    /* The desired state in force; borrowed until the next call or close. */
    void (*on_desired)(void *ctx, const struct desired *d);
    /* The roll is called: a heartbeat with this number is to be sent (roll_call.h). */
    void (*on_call)(void *ctx, uint64_t number);
    /* This member became controller, or no longer is. */
    void (*on_controller)(void *ctx, bool held, uint64_t fence);
};

struct control_status {
    struct bus_status bus;
    struct desired_store_status desired;
    struct lease_status lease; /* all zero unless may_control */
    struct event_log_status events;
};

SHOAL_MUST_CHECK int control_open(struct control **out, const struct control_opts *o,
                                  struct executor *x, const struct control_watch *w, struct err *e);
void control_close(struct control *c);

/* Sends this member's heartbeat.  SHOAL_EBUSY: NATS is down; the next one may arrive. */
SHOAL_MUST_CHECK int control_beat(struct control *c, const void *bytes, size_t n, struct err *e);
/* The connection, for other data that members share. */
struct bus *control_bus(struct control *c);
/* Compares the desired state with NATS now; any thread. */
void control_look(struct control *c);
/* As desired_store_confirmed. */
bool control_confirmed(struct control *c, uint64_t version, uint64_t since_ns);
/* As desired_store_heard. */
void control_heard(struct control *c, const struct desired_heard *h);
/* The highest fence that this member knows; any thread. */
uint64_t control_known_fence(struct control *c);
void control_event(struct control *c, const struct event_log_entry *entry);
/* The state in force, or NULL. */
const struct desired *control_desired(const struct control *c);
/* True if this member is the controller now; check just before sending a command. */
bool control_held(struct control *c, uint64_t *fence);
void control_get_status(struct control *c, struct control_status *out);

/* One change of the desired state. */
struct control_change {
    /* Runs on the thread "control", perhaps several times: see desired_store.h. */
    desired_update_fn fn;
    /* On the owner's thread.  SHOAL_ECHANGED: this member is not the controller. */
    void (*done)(struct control_change *change, int rc, const struct err *e);
    void *ctx;       /* for fn and done */
    bool controller; /* only as controller, with its fence; false: as an administrator */
    /* private */
    struct control_change *next;
    struct executor_task task;
    struct err e;
    int rc;
};
void control_submit(struct control *c, struct control_change *change);

#endif
