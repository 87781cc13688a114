/* mqtt_seen.h - detects duplicate messages.
 *
 * A broker sends a message of QoS 1 again when the connection was lost before it got the
 * acknowledgement, and only then. So a message is a duplicate if an equal one came over an earlier
 * connection, shortly after a reconnect; a sender may repeat itself. A message with a sender's id
 * is a duplicate whenever the id is known.
 *
 * Thread:    belongs to its caller.
 * Failure:   none: a fixed number of the newest messages is remembered. */
#ifndef SHOAL_MQTT_MQTT_SEEN_H
#define SHOAL_MQTT_MQTT_SEEN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MQTT_SEEN_SLOTS 4096u       /* a power of two */
#define MQTT_SEEN_WAYS 8u           /* slots in which a message may be */
#define MQTT_SEEN_NS 60000000000ull /* after a reconnection */

struct mqtt_seen {
    struct {
        uint64_t key;
        uint32_t link, age;
    } slots[MQTT_SEEN_SLOTS];
    uint32_t link, next_age;
    uint64_t linked_ns;
};

/* A connection was made. */
void mqtt_seen_connected(struct mqtt_seen *s, uint64_t now_ns);
/* Remembers the message; true: it was handled before.  key: a hash of it.  exact: the key is that
 * of an id of the sender. */
bool mqtt_seen_add(struct mqtt_seen *s, uint64_t key, bool exact, uint64_t now_ns);

#endif
