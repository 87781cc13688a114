/* gw_parts.h - opens the parts that a server is made of, in struct gw: what requests are held
 * against, the models, what requests use beside them, and the things around it.
 *
 * Thread:    the one that starts the server, in this order.
 * Ownership: all belongs to struct gw; gateway_destroy closes what was opened, also after a
 *            failure.
 * Failure:   0 or SHOAL_E*, and what is wrong in *e. */
#ifndef SHOAL_GATEWAY_SERVER_GW_PARTS_H
#define SHOAL_GATEWAY_SERVER_GW_PARTS_H

#include "gateway/gw.h"

/* Admission, quotas and caches for requests. Before the loops. */
SHOAL_MUST_CHECK int gw_parts_limits(struct gw *gw, struct err *e);
/* The registry and its models, after the loops. From here on they load, on their own threads. */
SHOAL_MUST_CHECK int gw_parts_models(struct gw *gw, struct err *e);
/* Parts besides models that requests use: the home, collections, sessions, pseudonyms. */
SHOAL_MUST_CHECK int gw_parts_state(struct gw *gw, struct err *e);
/* Sensors, alarms, the MQTT broker, actions of the home, calls of flows. */
SHOAL_MUST_CHECK int gw_parts_things(struct gw *gw, struct err *e);

#endif
