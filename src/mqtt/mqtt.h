/* mqtt.h - a client of an MQTT 5 broker.
 *
 * It opens at once, even while the broker is unreachable, and reconnects without end, with
 * exponential backoff from reconnect_ms to reconnect_max_ms and jitter. The broker keeps the
 * session for session_s, so QoS 1 and 2 messages that arrive in the meantime are not lost.
 * Duplicates are dropped (mqtt_seen.h).
 *
 * A publish of QoS 1 or 2 waits in memory while the broker is away, a `durable` one also on disk
 * (spool.h): it is retransmitted until the broker acknowledges it, also by a later process. After a
 * crash it can arrive twice, with the same user property "id".
 *
 * The last will tells other clients that this one is gone: "offline", retained, at status_topic;
 * "online" while it is connected.
 *
 * Thread:    one of its own, "mqtt", owns the connection.  Handlers of messages run on it: a
 *            message of QoS 1 is acknowledged when its handlers have returned.  publish,
 *            subscribe and status: any thread.
 * Ownership: open gives, close takes back (NULL is fine).  Strings of the options are copied.
 * Failure:   SHOAL_EINVAL, SHOAL_EIO (a certificate, the queue's file), SHOAL_EBUSY (away, QoS
 *            0), SHOAL_ELIMIT (queue full, message too large), SHOAL_ENOMEM. */
#ifndef SHOAL_MQTT_MQTT_H
#define SHOAL_MQTT_MQTT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "mqtt/mqtt_message.h"

struct mqtt;

struct mqtt_opts {
    const char *host;
    uint16_t port;
    bool tls;
    const char *ca, *cert, *key;      /* PEM files; ca NULL: the system's */
    const char *user, *password_file; /* NULL: none */
    const char *client_id;
    const char *status_topic;
    uint32_t keepalive_s;      /* 0: 30 */
    uint32_t session_s;        /* lifetime of the session without a connection */
    uint32_t reconnect_ms;     /* 0: 250 */
    uint32_t reconnect_max_ms; /* 0: 30000 */
    const char *spool_path;    /* NULL: nothing can be durable */
    size_t spool_bytes;        /* 0: 16 MiB */
    size_t queue_bytes;        /* limit of messages that wait in memory; 0: 16 MiB */
    size_t max_payload;        /* of received messages; larger ones are dropped; 0: 16 MiB */
};

enum mqtt_link { MQTT_CONNECTING, MQTT_UP, MQTT_AWAY };

struct mqtt_status {
    enum mqtt_link link;
    char broker[160];
    char error[160]; /* reason of the last disconnect; "" while connected */
    uint64_t n_connects, n_losses;
    uint64_t n_received, n_again;           /* again: dropped as duplicates */
    uint64_t n_sent, n_refused, n_rejected; /* rejected: by the broker */
    size_t n_queued, queued_bytes;          /* not acknowledged yet */
    size_t n_kept, kept_bytes;              /* those of them on disk */
    size_t n_unconfirmed; /* subscriptions not yet acknowledged on this connection */
};

enum mqtt_retained { MQTT_RETAINED_ALWAYS, MQTT_RETAINED_NEVER };

/* m and what it points to are borrowed. */
typedef void (*mqtt_message_fn)(void *ctx, const struct mqtt_message *m);
/* The connection was established or lost; on the thread "mqtt". */
typedef void (*mqtt_link_fn)(void *ctx, bool up);

SHOAL_MUST_CHECK int mqtt_open(struct mqtt **out, const struct mqtt_opts *o, struct err *e);
/* on_link: may be NULL. */
void mqtt_set_link(struct mqtt *m, mqtt_link_fn on_link, void *ctx);
/* Calls fn for every message that an earlier process could not deliver; before the start. */
void mqtt_each_waiting(struct mqtt *m, mqtt_message_fn fn, void *ctx);
/* Begins to connect. */
SHOAL_MUST_CHECK int mqtt_start(struct mqtt *m, struct err *e);
/* Sends waiting messages if possible within wait_ms, publishes "offline", and ends the thread. */
void mqtt_stop(struct mqtt *m, uint32_t wait_ms);
void mqtt_close(struct mqtt *m);
/* filter may be shared ("$share/GROUP/..."). An existing filter gets the new handler in addition.
 * Before or after the start. */
SHOAL_MUST_CHECK int mqtt_subscribe(struct mqtt *m, const char *filter, uint8_t qos,
                                    enum mqtt_retained retained, mqtt_message_fn fn, void *ctx,
                                    struct err *e);
/* Copies the message. */
SHOAL_MUST_CHECK int mqtt_publish(struct mqtt *m, const struct mqtt_message *x, struct err *e);
bool mqtt_is_up(const struct mqtt *m);
void mqtt_get_status(struct mqtt *m, struct mqtt_status *out);
#endif
