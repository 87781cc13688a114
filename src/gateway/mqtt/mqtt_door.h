/* mqtt_door.h - requests that come as MQTT messages, and their answers.
 *
 * A message becomes a separate call, like a message of a WebSocket: keys, limits, deadlines and
 * handlers are the same as over HTTP. Answers go to the message's response topic with its
 * correlation data. A response topic must match one of the configured filters: otherwise any sender
 * could make this server publish to topics that only the server may use.
 *
 * Thread:    messages are read on the thread "mqtt"; the call belongs to one event loop, in turn.
 * Ownership: create/destroy; destroy after the loops have ended and mqtt_door_end was called for
 *            each.
 * Failure:   every refused request is answered, unless it has no usable response topic: that is
 *            logged and counted. */
#ifndef SHOAL_GATEWAY_MQTT_MQTT_DOOR_H
#define SHOAL_GATEWAY_MQTT_MQTT_DOOR_H

#include "gateway/gw.h"

struct mqtt_door;

/* Subscribes with the client of gw->mqtt, which outlives the door. *out is NULL without a broker,
 * or if requests over MQTT are off. */
SHOAL_MUST_CHECK int mqtt_door_create(struct mqtt_door **out, struct gw *gw, struct err *e);
void mqtt_door_destroy(struct mqtt_door *d); /* NULL is fine */
/* Cancels the calls of a loop whose thread has ended. */
void mqtt_door_end(struct mqtt_door *d, struct gw_loop *gl);
/* Metrics as Prometheus text; nothing without a door. */
void mqtt_door_metrics(const struct mqtt_door *d, struct buf *b);

#endif
