/* mqtt_announce.c - see mqtt_announce.h. */
#include "site/mqtt/mqtt_announce.h"

#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/log.h"
#include "config/config.h"
#include "mqtt/mqtt.h"
#include "mqtt/mqtt_topic.h"
#include "things/things.h"
#include "wire/json_out.h"

#define MAX_BYTES ((size_t)16 << 10)

void mqtt_announce_level(char *out, unsigned long cap, const char *name)
{
    size_t n = 0;
    for (const char *p = name; *p && n + 1 < cap; p++)
        out[n++] = strchr("/+#", *p) || (unsigned char)*p < 0x20 ? '_' : *p;
    out[n] = '\0';
}

void mqtt_announce_node(char out[MQTT_ANNOUNCE_NODE], const char *client_id)
{
    size_t n = 0;
    for (; *client_id && n + 1 < MQTT_ANNOUNCE_NODE; client_id++)
        out[n++] =
            strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-", *client_id)
                ? *client_id
                : '_';
    out[n] = '\0';
}

/* Home Assistant allows letters, digits, "_" and "-" in an object's id. */
static void object_id(char *out, size_t cap, const char *name)
{
    char node[MQTT_ANNOUNCE_NODE];
    mqtt_announce_node(node, name);
    snprintf(out, cap, "%s", node);
}

static void publish(struct mqtt *client, const struct config *c, const char *kind, const char *node,
                    const char *object, const struct buf *b)
{
    char topic[MQTT_TOPIC_MAX_BYTES];
    struct err e = {0};
    snprintf(topic, sizeof(topic), "%.120s/%s/%.64s/%.64s/config", c->mqtt.discovery, kind, node,
             object);
    const struct mqtt_message m = {
        .topic = topic, .payload = buf_str(b), .n = b->len, .qos = 1, .retain = true};
    if (b->rc < 0 || mqtt_publish(client, &m, &e) < 0)
        log_warn("mqtt", "cannot announce %s to Home Assistant: %s", topic, e.msg);
}

static struct json_out begin(struct buf *b, const struct config *c, const char *node,
                             const char *object, const char *name)
{
    char text[MQTT_TOPIC_MAX_BYTES];
    buf_clear(b);
    struct json_out j = json_out_make(b);
    json_out_object(&j);
    json_out_member_str(&j, "name", name);
    snprintf(text, sizeof(text), "shoal_%s_%s", node, object);
    json_out_member_str(&j, "unique_id", text);
    snprintf(text, sizeof(text), "%.200s/status", c->mqtt.topic);
    json_out_member_str(&j, "availability_topic", text);
    json_out_member_object(&j, "device");
    json_out_member_array(&j, "identifiers");
    snprintf(text, sizeof(text), "shoal_%s", node);
    json_out_str(&j, text);
    json_out_array_end(&j);
    json_out_member_str(&j, "name", "Shoal");
    json_out_member_str(&j, "manufacturer", "Shoal");
    json_out_object_end(&j);
    return j;
}

static void announce_alarms(struct mqtt *client, const struct config *c, const char *node,
                            const char *who, const char *title, struct buf *b)
{
    char object[MQTT_ANNOUNCE_NODE], level[256], topic[MQTT_TOPIC_MAX_BYTES];
    object_id(object, sizeof(object), who);
    mqtt_announce_level(level, sizeof(level), who);
    if (c->mqtt.alarm_topic)
        snprintf(topic, sizeof(topic), "%.200s/state/%s", c->mqtt.alarm_topic, level);
    else
        snprintf(topic, sizeof(topic), "%.200s/alarm/state/%s", c->mqtt.topic, level);
    struct json_out j = begin(b, c, node, object, title ? title : who);
    json_out_member_str(&j, "state_topic", topic);
    json_out_member_str(&j, "json_attributes_topic", topic);
    json_out_member_str(&j, "json_attributes_template", "{{ value_json.last | tojson }}");
    json_out_member_str(&j, "value_template", "{{ 'ON' if value_json.open > 0 else 'OFF' }}");
    json_out_member_str(&j, "device_class", "problem");
    json_out_object_end(&j);
    publish(client, c, "binary_sensor", node, object, b);
}

static void announce_assistant(struct mqtt *client, const struct config *c, const char *node,
                               struct buf *b)
{
    char topic[MQTT_TOPIC_MAX_BYTES];
    struct json_out j = begin(b, c, node, "assistant", "Assistant");
    snprintf(topic, sizeof(topic), "%.200s/request/process", c->mqtt.topic);
    json_out_member_str(&j, "command_topic", topic);
    snprintf(topic, sizeof(topic), "%.200s/response/process", c->mqtt.topic);
    json_out_member_str(&j, "state_topic", topic);
    json_out_member_str(&j, "value_template", "{{ value_json.reply[:255] }}");
    json_out_object_end(&j);
    publish(client, c, "text", node, "assistant", b);
}

void mqtt_announce(struct mqtt *client, const struct config *config, const char *node,
                   bool assistant)
{
    const struct config_things *t = &config->things;
    struct buf b;
    buf_init(&b, MAX_BYTES);
    for (uint32_t i = 0; i < t->n_machines; i++)
        announce_alarms(client, config, node, t->machines[i].name, t->machines[i].title, &b);
    for (uint32_t i = 0; i < t->n_sensors; i++)
        if (!t->sensors[i].machine)
            announce_alarms(client, config, node, t->sensors[i].name, t->sensors[i].title, &b);
    if (assistant)
        announce_assistant(client, config, node, &b);
    buf_fini(&b);
}
