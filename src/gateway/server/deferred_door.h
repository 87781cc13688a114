/* deferred_door.h - lets deferred requests (site/deferred) in as calls of the first event loop.
 *
 * Thread:    create, destroy: the owner's; end: the loop's, or the owner's after its end.
 * Ownership: create puts door and runner into the gateway, destroy takes them out. */
#ifndef SHOAL_GATEWAY_SERVER_DEFERRED_DOOR_H
#define SHOAL_GATEWAY_SERVER_DEFERRED_DOOR_H

#include "gateway/gw.h"

/* No effect if nothing is deferred here. */
SHOAL_MUST_CHECK int deferred_door_create(struct gw *gw, struct err *e);
/* Cancels the runs of this loop; their requests stay in the file. */
void deferred_door_end(struct gw_loop *gl);
void deferred_door_destroy(struct gw *gw);

#endif
