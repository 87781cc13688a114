/* mqtt_site.h - the server's use of MQTT: the client of the configured broker, and its users.
 *
 * Thread:    main's: open, start, stop, close.
 * Ownership: open gives, close takes back (NULL is fine).
 * Failure:   open and start report errors in the configuration. An unreachable broker is not an
 *            error. */
#ifndef SHOAL_SITE_MQTT_MQTT_SITE_H
#define SHOAL_SITE_MQTT_MQTT_SITE_H

#include <stdbool.h>

#include "base/err.h"

struct buf;
struct config;
struct mqtt;
struct mqtt_site;
struct plant;

struct mqtt_site_opts {
    struct config *config; /* held until close */
    const char *cache_dir; /* for the queue's file, where there is no state folder */
    struct plant *plant;   /* gets readings; NULL: no sensors */
    bool assistant;        /* commands are answered: announced if requests over MQTT are on */
};

/* *out is NULL without a broker in the configuration; after a failure it must be closed. */
SHOAL_MUST_CHECK int mqtt_site_open(struct mqtt_site **out, const struct mqtt_site_opts *so,
                                    struct err *e);
/* NULL: no broker is configured. */
struct mqtt *mqtt_site_client(struct mqtt_site *s);
/* The configuration that it holds. */
const struct config *mqtt_site_config(const struct mqtt_site *s);
/* The level of our own entities in discovery topics. */
const char *mqtt_site_node(const struct mqtt_site *s);
/* Begins to connect: everything that subscribes has done so. */
SHOAL_MUST_CHECK int mqtt_site_start(struct mqtt_site *s, struct err *e);
/* Nothing publishes any more: what was published is sent, and the client's thread ends. */
void mqtt_site_stop(struct mqtt_site *s);
void mqtt_site_close(struct mqtt_site *s);
/* Metrics as Prometheus text; nothing without a broker. */
void mqtt_site_metrics(struct mqtt_site *site, struct buf *b);

#endif
