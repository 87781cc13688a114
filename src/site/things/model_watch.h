/* model_watch.h - drift of models' confidences (host/confidence_watch.h) as readings of the plant,
 * so that its alarms go where all others go: the broker, webhooks, the API, the page, the file of
 * open alarms.
 *
 * Thread:    create before the plant starts; it works on the plant's thread.
 * Ownership: the registry and the plant must outlive the plant's thread; destroy after plant_stop.
 * Failure:   SHOAL_ENOMEM. */
#ifndef SHOAL_SITE_THINGS_MODEL_WATCH_H
#define SHOAL_SITE_THINGS_MODEL_WATCH_H

#include "base/err.h"

struct model_watch;
struct plant;
struct registry;

/* plant NULL: *out is NULL. */
SHOAL_MUST_CHECK int model_watch_create(struct model_watch **out, struct registry *r,
                                        struct plant *p, struct err *e);
void model_watch_destroy(struct model_watch *w); /* NULL is fine */

#endif
