/* mqtt_code.c - see mqtt_code.h. */
#include "mqtt/mqtt_code.h"

#include <mosquitto.h>
#include <mqtt_protocol.h>
#include <stdlib.h>
#include <string.h>

#include "base/rd.h"

#define CODE_VERSION 1u

/* ---- bytes ---- */

static void put_u32(struct buf *b, uint32_t v)
{
    buf_put(b, &v, sizeof(v));
}

static void put_text(struct buf *b, const char *s) /* with its NUL; length 0: NULL */
{
    put_u32(b, s ? (uint32_t)strlen(s) + 1 : 0);
    if (s)
        buf_put(b, s, strlen(s) + 1);
}

static void put_bytes(struct buf *b, const void *p, size_t n)
{
    put_u32(b, (uint32_t)n);
    buf_put(b, p, n);
}

void mqtt_code_put(struct buf *out, const struct mqtt_message *m)
{
    put_u32(out, CODE_VERSION);
    put_u32(out, m->qos | (m->retain ? 4u : 0));
    put_u32(out, m->expiry_s);
    put_text(out, m->topic);
    put_text(out, m->response_topic);
    put_text(out, m->content_type);
    put_bytes(out, m->correlation, m->n_correlation);
    put_u32(out, (uint32_t)m->n_properties);
    for (size_t i = 0; i < m->n_properties; i++) {
        put_text(out, m->properties[i].name);
        put_text(out, m->properties[i].value);
    }
    put_bytes(out, m->payload, m->n);
}

static const char *get_text(struct rd *r)
{
    uint32_t n = rd_u32(r);
    const char *p = n ? (const char *)rd_take(r, n) : NULL;
    if (p && (p[n - 1] != '\0' || memchr(p, '\0', n - 1)))
        r->bad = true;
    return r->bad ? NULL : p;
}

static const void *get_bytes(struct rd *r, size_t *n)
{
    *n = rd_u32(r);
    const void *p = *n ? rd_take(r, *n) : NULL;
    if (r->bad)
        *n = 0;
    return p;
}

int mqtt_code_get(struct mqtt_message *m, struct mqtt_property *properties, const void *bytes,
                  size_t n)
{
    struct rd r = rd_make(bytes, n);
    *m = (struct mqtt_message){.durable = true, .properties = properties};
    bool known = rd_u32(&r) == CODE_VERSION;
    uint32_t flags = rd_u32(&r);
    m->qos = flags & 3;
    m->retain = flags & 4;
    m->expiry_s = rd_u32(&r);
    m->topic = get_text(&r);
    m->response_topic = get_text(&r);
    m->content_type = get_text(&r);
    m->correlation = get_bytes(&r, &m->n_correlation);
    m->n_properties = rd_u32(&r);
    if (m->n_properties > MQTT_MAX_PROPERTIES)
        return SHOAL_EFORMAT;
    for (size_t i = 0; i < m->n_properties; i++) {
        properties[i] = (struct mqtt_property){get_text(&r), get_text(&r)};
        if (!properties[i].name || !properties[i].value)
            return SHOAL_EFORMAT;
    }
    m->payload = get_bytes(&r, &m->n);
    return r.bad || !known || !m->topic || m->qos > 2 || rd_left(&r) > 0 ? SHOAL_EFORMAT : 0;
}

/* ---- properties ---- */

int mqtt_code_properties(mosquitto_property **out, const struct mqtt_message *m, const char *id)
{
    int rc = MOSQ_ERR_SUCCESS;
    *out = NULL;
    if (m->content_type)
        rc = mosquitto_property_add_string(out, MQTT_PROP_CONTENT_TYPE, m->content_type);
    if (rc == MOSQ_ERR_SUCCESS && m->response_topic)
        rc = mosquitto_property_add_string(out, MQTT_PROP_RESPONSE_TOPIC, m->response_topic);
    if (rc == MOSQ_ERR_SUCCESS && m->n_correlation > 0)
        rc = mosquitto_property_add_binary(out, MQTT_PROP_CORRELATION_DATA, m->correlation,
                                           (uint16_t)m->n_correlation);
    if (rc == MOSQ_ERR_SUCCESS && m->expiry_s)
        rc = mosquitto_property_add_int32(out, MQTT_PROP_MESSAGE_EXPIRY_INTERVAL, m->expiry_s);
    if (rc == MOSQ_ERR_SUCCESS && id[0])
        rc = mosquitto_property_add_string_pair(out, MQTT_PROP_USER_PROPERTY, "id", id);
    for (size_t i = 0; rc == MOSQ_ERR_SUCCESS && i < m->n_properties; i++)
        rc = mosquitto_property_add_string_pair(out, MQTT_PROP_USER_PROPERTY, m->properties[i].name,
                                                m->properties[i].value);
    if (rc == MOSQ_ERR_SUCCESS)
        return 0;
    mosquitto_property_free_all(out);
    return rc == MOSQ_ERR_NOMEM ? SHOAL_ENOMEM : SHOAL_EINVAL;
}

static void read_binary(struct mqtt_code_received *r, const mosquitto_property *p)
{
    uint16_t n = 0;
    free(r->correlation); /* libmosquitto's own memory */
    r->correlation = NULL;
    if (mosquitto_property_read_binary(p, MQTT_PROP_CORRELATION_DATA, &r->correlation, &n, false))
        r->n_correlation = n;
}

void mqtt_code_read(struct mqtt_code_received *r, const mosquitto_property *list)
{
    memset(r, 0, sizeof(*r));
    for (const mosquitto_property *p = list; p; p = mosquitto_property_next(p)) {
        char *name = NULL, *value = NULL;
        uint32_t id = 0;
        switch (mosquitto_property_identifier(p)) {
        case MQTT_PROP_RESPONSE_TOPIC:
            if (!r->response_topic)
                mosquitto_property_read_string(p, MQTT_PROP_RESPONSE_TOPIC, &r->response_topic,
                                               false);
            break;
        case MQTT_PROP_CONTENT_TYPE:
            if (!r->content_type)
                mosquitto_property_read_string(p, MQTT_PROP_CONTENT_TYPE, &r->content_type, false);
            break;
        case MQTT_PROP_CORRELATION_DATA:
            read_binary(r, p);
            break;
        case MQTT_PROP_MESSAGE_EXPIRY_INTERVAL:
            mosquitto_property_read_int32(p, MQTT_PROP_MESSAGE_EXPIRY_INTERVAL, &r->expiry_s,
                                          false);
            break;
        case MQTT_PROP_SUBSCRIPTION_IDENTIFIER:
            if (r->n_subscriptions < sizeof(r->subscriptions) / sizeof(r->subscriptions[0]) &&
                mosquitto_property_read_varint(p, MQTT_PROP_SUBSCRIPTION_IDENTIFIER, &id, false))
                r->subscriptions[r->n_subscriptions++] = id;
            break;
        case MQTT_PROP_USER_PROPERTY:
            if (r->n_properties < MQTT_MAX_PROPERTIES &&
                mosquitto_property_read_string_pair(p, MQTT_PROP_USER_PROPERTY, &name, &value,
                                                    false))
                r->properties[r->n_properties++] = (struct mqtt_property){name, value};
            break;
        default:
            break;
        }
    }
}

void mqtt_code_fini(struct mqtt_code_received *r)
{
    for (size_t i = 0; i < r->n_properties; i++) {
        free((void *)(uintptr_t)r->properties[i].name);
        free((void *)(uintptr_t)r->properties[i].value);
    }
    free(r->response_topic);
    free(r->content_type);
    free(r->correlation);
}
