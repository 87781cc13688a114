/* mqtt_announce.h - announces our entities to Home Assistant with discovery messages: a problem
 * sensor for each machine, and the assistant as a text field.
 *
 * Thread:  any.
 * Failure: logged. */
#ifndef SHOAL_SITE_MQTT_MQTT_ANNOUNCE_H
#define SHOAL_SITE_MQTT_MQTT_ANNOUNCE_H

#include <stdbool.h>

struct config;
struct mqtt;

#define MQTT_ANNOUNCE_NODE 64u

/* The topic level of our entities: the client's id, with invalid characters replaced. */
void mqtt_announce_node(char out[MQTT_ANNOUNCE_NODE], const char *client_id);
/* Publishes them, retained. assistant: /v1/process is available. */
void mqtt_announce(struct mqtt *client, const struct config *config, const char *node,
                   bool assistant);
/* A name as one level of a topic. */
void mqtt_announce_level(char *out, unsigned long cap, const char *name);

#endif
