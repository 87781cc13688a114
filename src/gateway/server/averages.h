/* averages.h - turns a route with `average` into a registry model with the route's name.
 *
 * Thread:    any; no state. */
#ifndef SHOAL_GATEWAY_SERVER_AVERAGES_H
#define SHOAL_GATEWAY_SERVER_AVERAGES_H

#include "config/config.h"

/* Whether the configuration has an average of this name with the same members; path: that of the
 * registry's model. */
bool averages_has(const struct config *c, const char *name, const char *path);
/* Adds the averages of the configuration that are missing. */
SHOAL_MUST_CHECK int averages_add(struct registry *r, const struct config *c, struct err *e);

#endif
