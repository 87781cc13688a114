/* averages.h - a route with `average` as a model of the registry, which has the route's name.
 *
 * Thread:    any; no state.
 * Ownership: a spec borrows from the configuration, and points into itself: it cannot be copied. */
#ifndef SHOAL_GATEWAY_AVERAGES_H
#define SHOAL_GATEWAY_AVERAGES_H

#include "gateway/config.h"

struct averages_spec {
    struct registry_spec spec;
    struct registry_part parts[SHOAL_MAX_AVERAGE];
    char path[128];
};

/* False: the route is no average. */
bool averages_of(struct averages_spec *out, const struct gw_config *c,
                 const struct router_route *route);
/* Whether the configuration has an average of this name that is made of the same models: path is
 * the one that averages_of gave. */
bool averages_has(const struct gw_config *c, const char *name, const char *path);
/* Adds those of the configuration that are not there yet. */
SHOAL_MUST_CHECK int averages_add(struct registry *r, const struct gw_config *c, struct err *e);

#endif
