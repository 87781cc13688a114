/* mqtt_site.c - see mqtt_site.h. */
#include "site/mqtt/mqtt_site.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/file/state_file.h"
#include "base/mem.h"
#include "config/config.h"
#include "host/prometheus.h"
#include "mqtt/mqtt.h"
#include "mqtt/mqtt_topic.h"
#include "site/mqtt/mqtt_announce.h"
#include "site/mqtt/mqtt_feed.h"

#define FLUSH_MS 2000u /* at the end, for answers that wait */

struct mqtt_site {
    struct config *config; /* held: a reload replaces the server's */
    struct mqtt *client;
    struct mqtt_feed *feed; /* NULL: no sensors */
    bool assistant;         /* there is /v1/process, and requests over MQTT are on */
    char node[MQTT_ANNOUNCE_NODE];
};

/* "mqtt://HOST:PORT" or "mqtts://..."; without a port the usual one. */
static int read_broker(const char *url, char host[256], struct mqtt_opts *o, struct err *e)
{
    bool tls = strncmp(url, "mqtts://", 8) == 0;
    const char *at = strstr(url, "://"), *colon;
    unsigned long port = tls ? 8883 : 1883;
    size_t n;
    if (!tls && strncmp(url, "mqtt://", 7) != 0)
        return err_set(e, SHOAL_EINVAL,
                       "mqtt.broker: '%.100s' is not mqtt://HOST:PORT or mqtts://HOST:PORT", url);
    at += 3;
    if (*at == '[') { /* an IPv6 address */
        const char *close = strchr(at, ']');
        n = close ? (size_t)(close - at) - 1 : 0;
        colon = close && close[1] == ':' ? close + 1 : NULL;
        at++;
    } else {
        colon = strchr(at, ':');
        n = strcspn(at, ":/");
    }
    char *end = NULL;
    if (colon)
        port = strtoul(colon + 1, &end, 10);
    if (n == 0 || n > 255 || strchr(at, '@') || port == 0 || port > 65535 ||
        (end && *end && strcmp(end, "/") != 0))
        return err_set(
            e, SHOAL_EINVAL,
            "mqtt.broker: '%.100s' is not mqtt://HOST:PORT or mqtts://HOST:PORT; user and "
            "password have keys of their own",
            url);
    snprintf(host, 256, "%.*s", (int)n, at);
    o->host = host;
    o->port = (uint16_t)port;
    o->tls = tls;
    return 0;
}

static void name_client(char out[64], const struct config *c)
{
    char host[40] = "server";
    if (gethostname(host, sizeof(host) - 1) < 0)
        snprintf(host, sizeof(host), "server");
    snprintf(out, 64, "shoal-%.40s", c->cluster.name ? c->cluster.name : host);
}

/* The file of the queue; its folder is made. */
static int find_file(char out[PATH_MAX], const struct mqtt_site_opts *o, struct err *e)
{
    const char *file = o->config->mqtt.queue_file;
    if (file)
        snprintf(out, PATH_MAX, "%s", file);
    else if (!state_file_find(out, PATH_MAX, "mqtt-queue", o->cache_dir))
        return err_set(e, SHOAL_EINVAL, "there is no state folder: set mqtt.queue.file");
    return 0;
}

static int check_topic(const struct config_mqtt *k, struct err *e)
{
    if (!mqtt_topic_is_name(k->topic) || strlen(k->topic) > 200)
        return err_set(e, SHOAL_EINVAL, "mqtt.topic: '%.100s' cannot begin a topic", k->topic);
    for (uint32_t i = 0; i < k->responses.n; i++)
        if (!mqtt_topic_is_filter(k->responses.v[i]))
            return err_set(e, SHOAL_EINVAL,
                           "mqtt.requests.responses: '%.100s' is not a filter of topics",
                           k->responses.v[i]);
    return 0;
}

static void on_link(void *ctx, bool up)
{
    struct mqtt_site *s = ctx;
    if (up)
        mqtt_announce(s->client, s->config, s->node, s->assistant);
}

int mqtt_site_open(struct mqtt_site **out, const struct mqtt_site_opts *so, struct err *e)
{
    const struct config_mqtt *k = &so->config->mqtt; /* held by s->config */
    char host[256], id[64], status[MQTT_TOPIC_MAX_BYTES], file[PATH_MAX];
    *out = NULL;
    if (!k->broker)
        return 0;
    struct mqtt_site *s = *out = mem_zalloc(sizeof(*s));
    if (!s)
        return err_set(e, SHOAL_ENOMEM, "MQTT");
    s->config = config_ref(so->config);
    name_client(id, so->config);
    snprintf(status, sizeof(status), "%s/status", k->topic);
    struct mqtt_opts o = {.ca = k->ca,
                          .cert = k->cert,
                          .key = k->key,
                          .user = k->user,
                          .password_file = k->password_file,
                          .client_id = k->client_id ? k->client_id : id,
                          .status_topic = status,
                          .keepalive_s = (k->keepalive_ms + 999) / 1000,
                          .session_s = k->session_ms / 1000,
                          .reconnect_max_ms = k->reconnect_max_ms,
                          .spool_path = file,
                          .spool_bytes = k->queue_bytes,
                          .queue_bytes = k->queue_bytes};
    s->assistant = so->assistant && k->requests;
    mqtt_announce_node(s->node, o.client_id);
    int rc = check_topic(k, e);
    if (rc == 0)
        rc = read_broker(k->broker, host, &o, e);
    if (rc == 0)
        rc = find_file(file, so, e);
    if (rc == 0)
        rc = mqtt_open(&s->client, &o, e);
    if (rc == 0 && so->config->things.n_subscriptions > 0 && !so->plant)
        rc = err_set(e, SHOAL_EINVAL, "mqtt.subscribe delivers readings, but there are no sensors");
    if (rc == 0 && so->plant)
        rc = mqtt_feed_create(&s->feed, s->config, s->client, so->plant, e);
    if (rc == 0 && k->discovery)
        mqtt_set_link(s->client, on_link, s);
    return rc;
}

const char *mqtt_site_node(const struct mqtt_site *s)
{
    return s ? s->node : "";
}

struct mqtt *mqtt_site_client(struct mqtt_site *s)
{
    return s ? s->client : NULL;
}

const struct config *mqtt_site_config(const struct mqtt_site *s)
{
    return s->config;
}

int mqtt_site_start(struct mqtt_site *s, struct err *e)
{
    return s ? mqtt_start(s->client, e) : 0;
}

void mqtt_site_stop(struct mqtt_site *s)
{
    if (s)
        mqtt_stop(s->client, FLUSH_MS);
}

void mqtt_site_close(struct mqtt_site *s)
{
    if (!s)
        return;
    mqtt_close(s->client);
    mqtt_feed_destroy(s->feed);
    config_unref(s->config);
    mem_free(s);
}

static void put(struct buf *b, const char *name, const char *type, const char *help, uint64_t v)
{
    prometheus_help(b, name, type, help);
    buf_printf(b, "%s %" PRIu64 "\n", name, v);
}

void mqtt_site_metrics(struct mqtt_site *site, struct buf *b)
{
    struct mqtt_status s;
    if (!site)
        return;
    mqtt_get_status(site->client, &s);
    put(b, "shoal_mqtt_up", "gauge", "Whether the MQTT broker is connected.", s.link == MQTT_UP);
    put(b, "shoal_mqtt_unconfirmed", "gauge",
        "Subscriptions that the MQTT broker has not answered yet.", s.n_unconfirmed);
    put(b, "shoal_mqtt_losses_total", "counter", "Connections to the MQTT broker that were lost.",
        s.n_losses);
    put(b, "shoal_mqtt_received_total", "counter", "MQTT messages received.", s.n_received);
    put(b, "shoal_mqtt_repeated_total", "counter",
        "MQTT messages that the broker sent again, and that were dropped.", s.n_again);
    put(b, "shoal_mqtt_sent_total", "counter", "MQTT messages sent and acknowledged.", s.n_sent);
    put(b, "shoal_mqtt_refused_total", "counter",
        "MQTT messages that found no room, or that the broker refused.",
        s.n_refused + s.n_rejected);
    put(b, "shoal_mqtt_queued", "gauge", "MQTT messages that wait for the broker.", s.n_queued);
    put(b, "shoal_mqtt_kept", "gauge", "Of them, kept on disk.", s.n_kept);
    if (site->feed) {
        struct mqtt_feed_counts f;
        mqtt_feed_count(site->feed, &f);
        put(b, "shoal_mqtt_readings_total", "counter", "Readings of sensors from MQTT.",
            f.n_readings);
        put(b, "shoal_mqtt_bad_payloads_total", "counter",
            "MQTT messages for sensors that could not be read.", f.n_bad);
        put(b, "shoal_mqtt_unknown_sensors_total", "counter",
            "Readings from MQTT of sensors that are not configured.", f.n_unknown);
        put(b, "shoal_mqtt_alarms_total", "counter", "Changes of alarms published over MQTT.",
            f.n_alarms);
    }
}
