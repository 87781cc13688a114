/* gw_names.h - whether what the configuration names exists (config/config_names.h), on this machine
 * before a start, or in the running server.
 *
 * Thread:  any for the first, a loop's for the second.
 * Failure: SHOAL_EFORMAT with the position in the file and the nearest right name. */
#ifndef SHOAL_GATEWAY_GW_NAMES_H
#define SHOAL_GATEWAY_GW_NAMES_H

#include "base/err.h"

struct config;
struct gw;

/* Reads the pack and the folder of collections, and opens the models whose label sets are named. */
SHOAL_MUST_CHECK int gw_names_check(const struct config *c, struct err *e);
/* The models that the server has now. */
SHOAL_MUST_CHECK int gw_names_check_now(struct gw *gw, const struct config *c, struct err *e);

#endif
