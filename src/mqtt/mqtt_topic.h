/* mqtt_topic.h - names of topics and filters with wildcards.
 *
 * Thread: pure functions. */
#ifndef SHOAL_MQTT_MQTT_TOPIC_H
#define SHOAL_MQTT_MQTT_TOPIC_H

#include <stdbool.h>
#include <stddef.h>

#include "base/str.h"

#define MQTT_TOPIC_MAX_BYTES 512u
#define MQTT_TOPIC_MAX_LEVELS 16u

/* Whether a message may be published there: not empty, no wildcard, no control character. */
bool mqtt_topic_is_name(const char *topic);
/* Whether it can be subscribed to: "+" alone in a level, "#" alone in the last. */
bool mqtt_topic_is_filter(const char *filter);
/* The filter without "$share/GROUP/". */
const char *mqtt_topic_unshared(const char *filter);
/* Whether the filter (without $share) covers the topic. wild, if not NULL: the texts matched by
 * each "+" and the "#", *n_wild of them; at most MQTT_TOPIC_MAX_LEVELS. */
bool mqtt_topic_matches(const char *filter, const char *topic, struct str *wild, size_t *n_wild);
/* Writes pattern with {1}, {2}, ... replaced by the matched texts; "/" of a "#" stays. False: too
 * long, or it names a missing wildcard. */
bool mqtt_topic_fill(char *out, size_t cap, const char *pattern, const struct str *wild,
                     size_t n_wild);

#endif
