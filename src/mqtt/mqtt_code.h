/* mqtt_code.h - a message as bytes, for the queue on disk, and as libmosquitto's properties.
 *
 * Thread:    pure functions.
 * Ownership: a decoded message borrows the bytes.  Properties: mosquitto_property_free_all.
 * Failure:   SHOAL_EFORMAT, SHOAL_ENOMEM. */
#ifndef SHOAL_MQTT_MQTT_CODE_H
#define SHOAL_MQTT_MQTT_CODE_H

#include "base/buf.h"
#include "base/err.h"
#include "mqtt/mqtt_message.h"

struct mqtt5__property;

/* Appends; failures stick in out->rc. */
void mqtt_code_put(struct buf *out, const struct mqtt_message *m);
/* properties: room for MQTT_MAX_PROPERTIES, which m->properties then points to. */
SHOAL_MUST_CHECK int mqtt_code_get(struct mqtt_message *m, struct mqtt_property *properties,
                                   const void *bytes, size_t n);

/* The properties of a publish; id: "" or of the user property "id". */
SHOAL_MUST_CHECK int mqtt_code_properties(struct mqtt5__property **out,
                                          const struct mqtt_message *m, const char *id);

/* Those of a received message, copied: init, read, fini. */
struct mqtt_code_received {
    struct mqtt_property properties[MQTT_MAX_PROPERTIES];
    size_t n_properties;
    char *response_topic, *content_type;
    void *correlation;
    size_t n_correlation;
    uint32_t expiry_s;
    uint32_t subscriptions[8]; /* subscriptions whose filters it matched */
    size_t n_subscriptions;
};
void mqtt_code_read(struct mqtt_code_received *r, const struct mqtt5__property *list);
void mqtt_code_fini(struct mqtt_code_received *r);

#endif
