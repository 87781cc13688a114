/* mqtt_site.h - the server's use of MQTT: the client of the configured broker, and its users.
 *
 * Thread:    main's: open, start, stop, close.
 * Ownership: open puts it into the gateway; close takes it out.
 * Failure:   open and start report errors in the configuration. An unreachable broker is not an
 *            error. */
#ifndef SHOAL_GATEWAY_MQTT_MQTT_SITE_H
#define SHOAL_GATEWAY_MQTT_MQTT_SITE_H

#include "gateway/gw.h"

struct buf;
struct mqtt;

/* No effect without a broker in the configuration. */
SHOAL_MUST_CHECK int mqtt_site_open(struct gw *gw, struct err *e);
/* NULL: no broker is configured. */
struct mqtt *mqtt_site_client(struct gw *gw);
/* The level of our own entities in discovery topics. */
const char *mqtt_site_node(struct gw *gw);
/* Begins to connect: the loops exist. */
SHOAL_MUST_CHECK int mqtt_site_start(struct gw *gw, struct err *e);
/* The loops have ended: what they published is sent, and the client's thread ends. */
void mqtt_site_stop(struct gw *gw);
/* Cancels the requests of a loop whose thread has ended; after stop. */
void mqtt_site_end_calls(struct gw_loop *gl);
void mqtt_site_close(struct gw *gw);
/* Metrics as Prometheus text; nothing without a broker. */
void mqtt_site_metrics(struct gw *gw, struct buf *b);

#endif
