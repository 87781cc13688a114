/* cluster_opts.h - options of commands that connect to a shoal's NATS servers.
 *
 * Thread:    the main thread.
 * Ownership: connect gives a bus: bus_close. */
#ifndef SHOAL_CMD_CLUSTER_CLUSTER_OPTS_H
#define SHOAL_CMD_CLUSTER_CLUSTER_OPTS_H

#include "cmd/cli/opts.h"

struct bus;
struct executor;

extern const struct opts_group cluster_opts_nats; /* --nats, --cluster, --certs, --timeout */

/* Connects and waits.  x: for subscriptions, or NULL.  CMD_OK, or an exit code after a message. */
int cluster_opts_connect(struct bus **out, const struct opts *o, struct executor *x);
/* Checks that --source, if given, can be fetched by nodes. CMD_OK, or an exit code after a
 * message. */
int cluster_opts_check_source(const struct opts *o);

#endif
