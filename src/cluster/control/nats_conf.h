/* nats_conf.h - configuration files for nats-server: JetStream, TLS with the shoal's CA on both
 * sides, and permissions by role.
 *
 * A client is identified by its certificate (verify_and_map): nats-server uses the first URI in it
 * that is the name of a user, "shoal:role:controller". Certificates list the most powerful role
 * first, and each role includes the rights of the weaker ones: admin, controller, gateway, node.
 *
 * Paths are relative: certificates, data and configuration of a server are in one folder, in which
 * nats-server is started.
 *
 * Thread:    no state.
 * Failure:   SHOAL_EINVAL (bad arguments), SHOAL_ENOMEM, SHOAL_ELIMIT. */
#ifndef SHOAL_CLUSTER_CONTROL_NATS_CONF_H
#define SHOAL_CLUSTER_CONTROL_NATS_CONF_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/err.h"

#define NATS_CONF_MAX_SERVERS 5u
#define NATS_CONF_PORT 4222u  /* for members */
#define NATS_CONF_ROUTE 6222u /* between servers */

struct nats_conf {
    const char *cluster;
    const char *const *hosts; /* hosts of all servers, the same list on each */
    size_t n_servers;         /* 1, 3 or 5 */
    size_t index;             /* index of this server */
    unsigned port[NATS_CONF_MAX_SERVERS], route[NATS_CONF_MAX_SERVERS];
    const char *secret; /* letters and digits, known to servers only */
};

/* Appends the configuration of one server. */
SHOAL_MUST_CHECK int nats_conf_put(struct buf *out, const struct nats_conf *c, struct err *e);
/* A host's name or address: letters, digits, ".", "-", ":". */
bool nats_conf_host_ok(const char *host);

#endif
