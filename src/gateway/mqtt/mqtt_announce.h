/* mqtt_announce.h - tells Home Assistant of our entities by its discovery messages: a problem
 * sensor for each machine, and the assistant as a text field that answers.
 *
 * Thread:  any.
 * Failure: logged. */
#ifndef SHOAL_GATEWAY_MQTT_MQTT_ANNOUNCE_H
#define SHOAL_GATEWAY_MQTT_MQTT_ANNOUNCE_H

#include <stdbool.h>

struct gw_config;
struct mqtt;

#define MQTT_ANNOUNCE_NODE 64u

/* The level of our entities in discovery topics: the client's id, with what a level cannot have
 * replaced. */
void mqtt_announce_node(char out[MQTT_ANNOUNCE_NODE], const char *client_id);
/* Publishes them, retained.  assistant: /v1/process is there. */
void mqtt_announce(struct mqtt *client, const struct gw_config *config, const char *node,
                   bool assistant);
/* A name as one level of a topic. */
void mqtt_announce_level(char *out, unsigned long cap, const char *name);

#endif
