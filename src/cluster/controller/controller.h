/* controller.h - the controller of a shoal: runs on every member that may become it, and acts while
 * the member holds the lease.
 *
 * It receives the heartbeats of all members and decides (controller_decide.h) when a node joins,
 * leaves or changes, when the desired state changes, and every few seconds for the autoscaler.
 * Decisions run on the thread of control.h, on the newest state, and are written with the lease's
 * fence. They are at least half a second apart; a new controller first listens for a while.
 *
 * Thread:    the owner's; get_status: any.
 * Ownership: create gives, destroy takes back (NULL is fine), before or after control_close. If a
 *            decision is running, its memory is freed after the executor has run the tasks posted
 *            by control.h.
 * Failure:   SHOAL_ENOMEM. A failed decision is logged and retried. */
#ifndef SHOAL_CLUSTER_CONTROLLER_CONTROLLER_H
#define SHOAL_CLUSTER_CONTROLLER_CONTROLLER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct control;
struct controller;
struct desired;
struct executor;

struct controller_status {
    bool acts;      /* it holds the lease, and has listened long enough */
    uint64_t fence; /* 0: it does not hold the lease */
    uint64_t n_changes, n_failed;
    uint32_t n_members; /* members heard recently */
    char error[320];    /* why the last decision failed; "": it succeeded */
    char gap[256];      /* replicas that do not fit; "": all fit */
};

SHOAL_MUST_CHECK int controller_create(struct controller **out, struct control *control,
                                       struct executor *x, struct err *e);
void controller_destroy(struct controller *c);

/* For the callbacks of control.h. */
void controller_on_heartbeat(struct controller *c, const void *bytes, size_t n);
void controller_on_desired(struct controller *c, const struct desired *d);
void controller_on_lease(struct controller *c, bool held, uint64_t fence);
void controller_on_link(struct controller *c, bool up);

void controller_get_status(struct controller *c, struct controller_status *out);

#endif
