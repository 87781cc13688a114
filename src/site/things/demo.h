/* demo.h - the simulated plant of `make run`: runs it in this process, or controls the one that
 * runs beside the broker (tools/demo_devices.c).
 *
 * Thread:    set and broken: any.  Here: a thread "demo" feeds ten readings a second to the plant.
 * Ownership: create/destroy (NULL is fine); plant and client are borrowed.
 * Failure:   create says what the configuration lacks. */
#ifndef SHOAL_SITE_THINGS_DEMO_H
#define SHOAL_SITE_THINGS_DEMO_H

#include <stdbool.h>

#include "base/err.h"

#define DEMO_FAULT_TOPIC "demo/fault/bearing" /* "on" or "off", retained */

struct demo;
struct mqtt;
struct plant;

enum demo_mode { DEMO_OFF, DEMO_HERE, DEMO_MQTT }; /* as config `demo` */

/* *out is NULL for DEMO_OFF.  After the plant has started. */
SHOAL_MUST_CHECK int demo_create(struct demo **out, enum demo_mode mode, struct plant *plant,
                                 struct mqtt *client, struct err *e);
void demo_destroy(struct demo *d); /* before the plant stops */
/* SHOAL_EBUSY: the broker is not connected. */
SHOAL_MUST_CHECK int demo_set(struct demo *d, bool broken, struct err *e);
bool demo_broken(const struct demo *d);

#endif
