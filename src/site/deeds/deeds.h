/* deeds.h - carries out actions of the home flow with MQTT messages, HTTP calls, commands and set
 * points of controllers, and receives the states of things.
 *
 * The result of a deed is DONE only if the thing's state topic reports the new value in time.
 * Without a state topic it is SENT: the broker, the server or the program has accepted it. A set
 * point is read back, so it is DONE. FAILED: it was refused, or not confirmed even after the
 * retries. NOT_CONNECTED: the broker or the server is unreachable, or nothing is configured for the
 * thing.
 *
 * Thread:    carry: any. Messages come on the client's thread; a thread "deeds" enforces the
 *            timeouts; HTTP calls and commands have a thread each, at most DEEDS_MAX_RUNNING.
 * Ownership: create/destroy (NULL is fine); the client's thread has ended and no ask runs any more
 *            when it is destroyed.  Configuration, client and home are borrowed.
 * Failure:   create says which entry is wrong. */
#ifndef SHOAL_SITE_DEEDS_DEEDS_H
#define SHOAL_SITE_DEEDS_DEEDS_H

#include "apps/home/site/home_sink.h"
#include "config/config_deeds.h"

struct deeds;
struct home_things;
struct modbus_site;
struct mqtt;

#define DEEDS_MAX_WAITING 1024u
#define DEEDS_MAX_RUNNING 16u
#define DEEDS_MAX_FOUND 4096u

struct deeds_counts {
    uint64_t n_done, n_sent, n_failed, n_not_connected, n_reports;
};

/* A way to set one thing over MQTT, discovered at run time. */
struct deeds_way {
    const char *id, *ability, *topic, *payload, *state, *state_value, *unit;
    const char *const *values, *const *state_values; /* [n_values] "on=ON" */
    uint32_t n_values;
};

/* client: NULL if no broker is configured; modbus: NULL if no controllers are. */
SHOAL_MUST_CHECK int deeds_create(struct deeds **out, const struct config_deeds *config,
                                  struct mqtt *client, struct modbus_site *modbus,
                                  struct home_things *home, struct err *e);
/* Any thread; the newest way to a thing is used. Ways of the configuration take precedence.
 * Copies. */
SHOAL_MUST_CHECK int deeds_add(struct deeds *d, const struct deeds_way *w, struct err *e);
/* Fails everything that waits; there are no reports afterwards. */
void deeds_stop(struct deeds *d); /* NULL is fine */
void deeds_destroy(struct deeds *d);
struct home_sink *deeds_sink(struct deeds *d);
void deeds_count(const struct deeds *d, struct deeds_counts *out);

#endif
