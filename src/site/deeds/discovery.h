/* discovery.h - imports Home Assistant's entities into our home: discovery messages add devices,
 * and the ways to set them, at run time.
 *
 * Thread:    messages come on the client's thread.
 * Ownership: create/destroy (NULL is fine), after the client's thread has ended.  All else is
 *            borrowed.
 * Failure:   an entity that cannot be used is logged once. */
#ifndef SHOAL_SITE_DEEDS_DISCOVERY_H
#define SHOAL_SITE_DEEDS_DISCOVERY_H

#include "base/err.h"

struct deeds;
struct discovery;
struct home_table;
struct home_things;
struct mqtt;

#define DISCOVERY_MAX_ENTITIES 1024u

/* prefix: "homeassistant". own: topic level of our own entities, which are not imported. */
SHOAL_MUST_CHECK int discovery_create(struct discovery **out, const char *prefix, const char *own,
                                      struct mqtt *client, struct deeds *deeds,
                                      struct home_things *home, const struct home_table *table,
                                      struct err *e);
void discovery_destroy(struct discovery *d);

#endif
