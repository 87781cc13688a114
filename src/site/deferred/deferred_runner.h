/* deferred_runner.h - runs deferred requests, like calls of their clients.
 *
 * A request that is refused temporarily (429, 502, 503, 504, or 404 while nodes are missing) is
 * retried at growing intervals until it expires; any other answer is final. A request interrupted
 * by the end of the process is run again after the next start. A request whose client lost its key
 * in the meantime is not run.
 *
 * Thread:    create, destroy: the owner's; end: the loop's, or the owner's after its end.  The door
 *            is called on the loop's thread.
 * Ownership: create gives, destroy takes back (NULL is fine).  What opts names outlives it. */
#ifndef SHOAL_SITE_DEFERRED_DEFERRED_RUNNER_H
#define SHOAL_SITE_DEFERRED_DEFERRED_RUNNER_H

#include <stdbool.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "store/deferred_store.h"

struct admission;
struct admission_client;
struct deferred;
struct deferred_runner;
struct flow_owner;
struct loop;

/* One request that is run. The door adds the answer. */
struct deferred_run {
    struct deferred_item item;
    struct arena arena; /* freed after the answer; for the door too */
    void *entered;      /* the door's */
    int status;         /* of the answer; 0: the run broke off */
    char type[96];      /* content type */
    struct buf text;
};

/* Where requests enter the server. */
struct deferred_door {
    /* Runs the request for the client (NULL: keys are not needed). Calls deferred_runner_answered
     * when the answer is complete, maybe before this returns. */
    void (*enter)(struct deferred_door *d, struct deferred_run *r, struct admission_client *client);
    /* Stops working on the request; deferred_runner_answered is not called for it any more. */
    void (*cancel)(struct deferred_door *d, struct deferred_run *r);
    /* Whether all nodes are heard: otherwise an unknown model may be on another one. */
    bool (*hears_all)(struct deferred_door *d);
    bool (*is_draining)(struct deferred_door *d);
};

struct deferred_runner_opts {
    struct deferred *deferred; /* NULL: nothing is deferred here */
    struct deferred_door *door;
    struct admission *admission;
    struct flow_owner *owner; /* for work on the pool */
    struct loop *loop;
};

/* *out is NULL without opts->deferred. */
SHOAL_MUST_CHECK int deferred_runner_create(struct deferred_runner **out,
                                            const struct deferred_runner_opts *o, struct err *e);
/* The answer is in r, which is the runner's again. */
void deferred_runner_answered(struct deferred_run *r);
/* Cancels the runs; their requests stay in the file. */
void deferred_runner_end(struct deferred_runner *x);
void deferred_runner_destroy(struct deferred_runner *x);

#endif
