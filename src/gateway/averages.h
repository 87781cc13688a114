/* averages.h - turns a route with `average` into a registry model with the route's name.
 *
 * Thread:    any; no state.
 * Ownership: a spec borrows from the configuration, and points into itself: it cannot be copied. */
#ifndef SHOAL_GATEWAY_AVERAGES_H
#define SHOAL_GATEWAY_AVERAGES_H

#include "config/config.h"

struct averages_spec {
    struct registry_spec spec;
    struct registry_part parts[SHOAL_MAX_AVERAGE];
    char path[128];
};

/* False: the route is not an average. */
bool averages_of(struct averages_spec *out, const struct config *c,
                 const struct router_route *route);
/* Whether the configuration has an average of this name with the same members: path is the result
 * of averages_of. */
bool averages_has(const struct config *c, const char *name, const char *path);
/* Adds the averages of the configuration that are missing. */
SHOAL_MUST_CHECK int averages_add(struct registry *r, const struct config *c, struct err *e);

#endif
