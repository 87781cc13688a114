/* routes.h - the table of all paths.  It names every handler, so only whoever makes a server
 * includes it; handlers find the table in struct gw.
 *
 * Thread: constant. */
#ifndef SHOAL_GATEWAY_SERVER_ROUTES_H
#define SHOAL_GATEWAY_SERVER_ROUTES_H

#include "gateway/gw.h"

/* Sets the server's routes. */
void routes_set(struct gw *gw);

#endif
