/* folder_watch.h - collections that follow folders (`collections.watch`): documents are added,
 * replaced and removed with their files.
 *
 * Thread:    create, destroy: the owner's; end: the first loop's, or the owner's after its end. The
 *            work is the first loop's and the pool's.
 * Ownership: create puts them into the gateway, destroy takes them out.
 * Failure:   create: an entry is wrong, or a folder cannot be watched. Later failures are logged,
 * and
 *            tried again when something changes. */
#ifndef SHOAL_GATEWAY_SERVER_FOLDER_WATCH_H
#define SHOAL_GATEWAY_SERVER_FOLDER_WATCH_H

#include "base/err.h"

struct gw;
struct gw_loop;

/* After the models are known, before the loops run. */
SHOAL_MUST_CHECK int folder_watch_create(struct gw *gw, struct err *e);
/* Ends the work of this loop, and waits for it. */
void folder_watch_end(struct gw_loop *gl);
void folder_watch_destroy(struct gw *gw);

#endif
