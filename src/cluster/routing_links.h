/* routing_links.h - the replicas of other nodes as candidates of routes (flow/routing.h).
 *
 * Thread:    the loop's.
 * Ownership: borrows the members. */
#ifndef SHOAL_CLUSTER_ROUTING_LINKS_H
#define SHOAL_CLUSTER_ROUTING_LINKS_H

#include "flow/routing.h"

struct members;

struct routing_links {
    struct routing_source source; /* for flow_owner.replicas */
    const struct members *members;
};

void routing_links_init(struct routing_links *l, const struct members *m);

#endif
