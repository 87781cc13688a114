/* mqtt_message.h - an MQTT 5 message, to publish or received.
 *
 * Ownership: everything it points to is borrowed. */
#ifndef SHOAL_MQTT_MQTT_MESSAGE_H
#define SHOAL_MQTT_MQTT_MESSAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define MQTT_MAX_PROPERTIES 32u

struct mqtt_property {
    const char *name, *value;
};

struct mqtt_message { /* all zero but topic: empty, QoS 0 */
    const char *topic;
    const void *payload;
    size_t n;
    uint8_t qos;
    bool retain;
    bool durable; /* to publish: kept on disk until it is acknowledged; QoS 1 or 2 */
    const char *response_topic, *content_type; /* NULL: none */
    const void *correlation;
    size_t n_correlation;
    uint32_t expiry_s; /* 0: none */
    const struct mqtt_property *properties;
    size_t n_properties;
};

/* The value of a user property; NULL: none. */
static inline const char *mqtt_message_get(const struct mqtt_message *m, const char *name)
{
    for (size_t i = 0; i < m->n_properties; i++)
        if (strcmp(m->properties[i].name, name) == 0)
            return m->properties[i].value;
    return NULL;
}

#endif
