/* cluster_site.h - access to a whole shoal through NATS for commands: its desired state and the
 * heartbeats of its members.
 *
 * Thread:    the main thread.
 * Ownership: open gives, close takes back (after a failed open too). */
#ifndef SHOAL_CMD_CLUSTER_CLUSTER_SITE_H
#define SHOAL_CMD_CLUSTER_CLUSTER_SITE_H

#include "base/thread/executor_queue.h"
#include "cluster/control/desired_store.h"
#include "cmd/cli/opts.h"

struct bus;
struct controller_snapshot;
struct controller_view;
struct desired;

struct cluster_site {
    const struct opts *o;
    struct executor_queue queue;
    bool queued;
    struct bus *bus;
    struct desired_store *store;
    struct controller_view *view;
};

/* Connects. hears: also listen to heartbeats. CMD_OK, or an exit code after a message. */
int cluster_site_open(struct cluster_site *s, const struct opts *o, bool hears);
void cluster_site_close(struct cluster_site *s);
/* Changes the desired state.  out: the state afterwards, or NULL.  CMD_OK, or an exit code after a
 * message. */
int cluster_site_change(struct cluster_site *s, desired_update_fn fn, void *ctx,
                        struct desired **out);
/* How long to wait for one answer of NATS; what takes --timeout is asked again. */
uint32_t cluster_site_wait_ms(const struct opts *o);
/* As desired_store_load; a state that could not be confirmed is one to warn about. */
int cluster_site_read(struct desired_store *s, const struct opts *o, struct desired **out,
                      struct err *e);
/* The desired state; an empty one if there is none yet. */
int cluster_site_load(struct cluster_site *s, struct desired **out);
/* Listens for this long, then takes a snapshot. Members silent for longer than the state's policy
 * allows are left out. */
int cluster_site_look(struct cluster_site *s, uint32_t ms, const struct desired *d,
                      struct controller_snapshot **out);

#endif
