/* mqtt_feed.h - reads sensor readings from MQTT messages, and publishes alarms.
 *
 * A QoS 1 message is acknowledged when its readings were evaluated and any alarm is on disk: after
 * a crash in between, the broker sends it again.
 *
 * Topics: TOPIC/event/MACHINE (or the sensor's name) gets every change of an alarm, QoS 1, kept on
 * disk until the broker has it.  TOPIC/state/MACHINE is retained: "ok", or the worst open alarm.
 *
 * Thread:    messages and most alarms: the client's thread; alarms of lost signals: the plant's.
 * Ownership: create/destroy (NULL is fine), after the client's thread has ended.
 * Failure:   a message that cannot be read is counted, and logged once a minute. */
#ifndef SHOAL_SITE_MQTT_MQTT_FEED_H
#define SHOAL_SITE_MQTT_MQTT_FEED_H

#include "config/config.h"

struct mqtt;
struct mqtt_feed;
struct plant;

struct mqtt_feed_counts {
    uint64_t n_messages, n_readings, n_bad, n_unknown; /* unknown: of no configured sensor */
    uint64_t n_alarms;                                 /* events published */
};

/* Subscribes and listens; all are borrowed. */
SHOAL_MUST_CHECK int mqtt_feed_create(struct mqtt_feed **out, const struct config *config,
                                      struct mqtt *client, struct plant *plant, struct err *e);
void mqtt_feed_destroy(struct mqtt_feed *f);
void mqtt_feed_count(const struct mqtt_feed *f, struct mqtt_feed_counts *out);

#endif
