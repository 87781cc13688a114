/* mqtt_broker.h - a small MQTT 5 broker in a thread, for tests of what talks to one: it takes every
 * subscription and message, acknowledges them, and passes on what the test publishes.
 *
 * Include it after cmocka.h.
 *
 * Thread: the functions without `_on_`, `_run` and `_read`: the test's. */
#ifndef SHOAL_TESTS_MQTT_BROKER_H
#define SHOAL_TESTS_MQTT_BROKER_H

#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "mqtt/mqtt_topic.h"

#define MQTT_BROKER_MESSAGES 64u
#define MQTT_BROKER_FILTERS 64u

struct mqtt_broker_message {
    char topic[256], payload[4096], properties[1024];
    size_t n_properties;
    uint8_t qos;
    bool retain, taken;
};

struct mqtt_broker {
    int listener, fd; /* fd: of the one client; -1: none */
    uint16_t port;
    pthread_t thread;
    pthread_mutex_t lock; /* guards what follows, and fd */
    pthread_cond_t changed;
    char filters[MQTT_BROKER_FILTERS][256];
    uint32_t n_filters, n_acks, n_connects;
    struct mqtt_broker_message list[MQTT_BROKER_MESSAGES];
    uint32_t n;
};

static inline bool mqtt_broker_read(int fd, uint8_t *p, size_t n)
{
    for (size_t at = 0; at < n;) {
        ssize_t got = read(fd, p + at, n - at);
        if (got <= 0)
            return false;
        at += (size_t)got;
    }
    return true;
}

/* A number of one to four bytes at *at, which moves behind it. */
static inline size_t mqtt_broker_number(const uint8_t *p, size_t *at)
{
    size_t v = 0;
    for (unsigned shift = 0; shift < 28; shift += 7) {
        v |= (size_t)(p[*at] & 127) << shift;
        if (!(p[(*at)++] & 128))
            break;
    }
    return v;
}

static inline void mqtt_broker_send(int fd, const void *p, size_t n)
{
    ssize_t sent = send(fd, p, n, MSG_NOSIGNAL);
    (void)sent; /* the client may be gone */
}

static inline void mqtt_broker_on_subscribe(struct mqtt_broker *b, const uint8_t *p, size_t n)
{
    uint8_t out[128] = {0x90, 0, p[0], p[1], 0};
    size_t at = 2, n_out = 5;
    at += mqtt_broker_number(p, &at);
    while (at + 3 <= n) {
        const size_t len = (size_t)p[at] << 8 | p[at + 1];
        if (b->n_filters < MQTT_BROKER_FILTERS)
            snprintf(b->filters[b->n_filters++], sizeof(b->filters[0]), "%.*s", (int)len,
                     (const char *)p + at + 2);
        at += 2 + len;
        out[n_out++] = p[at++] & 3;
    }
    out[1] = (uint8_t)(n_out - 2);
    mqtt_broker_send(b->fd, out, n_out);
}

static inline void mqtt_broker_on_publish(struct mqtt_broker *b, uint8_t head, const uint8_t *p,
                                          size_t n)
{
    struct mqtt_broker_message m = {.qos = head >> 1 & 3, .retain = head & 1};
    const size_t len = (size_t)p[0] << 8 | p[1];
    size_t at = 2 + len;
    uint8_t ack[4] = {m.qos == 1 ? 0x40 : 0x50, 2};
    snprintf(m.topic, sizeof(m.topic), "%.*s", (int)len, (const char *)p + 2);
    if (m.qos > 0) {
        ack[2] = p[at++];
        ack[3] = p[at++];
    }
    m.n_properties = mqtt_broker_number(p, &at);
    if (m.n_properties > sizeof(m.properties))
        m.n_properties = sizeof(m.properties);
    memcpy(m.properties, p + at, m.n_properties);
    at += m.n_properties;
    snprintf(m.payload, sizeof(m.payload), "%.*s", (int)(n - at), (const char *)p + at);
    if (b->n < MQTT_BROKER_MESSAGES)
        b->list[b->n++] = m;
    if (m.qos > 0)
        mqtt_broker_send(b->fd, ack, sizeof(ack));
}

static inline bool mqtt_broker_on_packet(struct mqtt_broker *b)
{
    static uint8_t body[1 << 16];
    uint8_t head, byte;
    size_t n = 0;
    if (!mqtt_broker_read(b->fd, &head, 1))
        return false;
    for (unsigned shift = 0; shift < 28; shift += 7) {
        if (!mqtt_broker_read(b->fd, &byte, 1))
            return false;
        n |= (size_t)(byte & 127) << shift;
        if (!(byte & 128))
            break;
    }
    if (n > sizeof(body) || !mqtt_broker_read(b->fd, body, n))
        return false;
    pthread_mutex_lock(&b->lock);
    switch (head >> 4) {
    case 1:
        b->n_filters = 0;
        b->n_connects++;
        mqtt_broker_send(b->fd, "\x20\x03\x00\x00\x00", 5);
        break;
    case 3:
        mqtt_broker_on_publish(b, head, body, n);
        break;
    case 4: /* PUBACK, PUBCOMP */
    case 7:
        b->n_acks++;
        break;
    case 5: /* PUBREC, PUBREL: the next step */
    case 6:
        mqtt_broker_send(b->fd, (uint8_t[]){head >> 4 == 5 ? 0x62 : 0x70, 2, body[0], body[1]}, 4);
        break;
    case 8:
        mqtt_broker_on_subscribe(b, body, n);
        break;
    case 12:
        mqtt_broker_send(b->fd, "\xd0\x00", 2);
        break;
    default:
        break;
    }
    pthread_cond_broadcast(&b->changed);
    pthread_mutex_unlock(&b->lock);
    return head >> 4 != 14;
}

static inline void *mqtt_broker_run(void *arg)
{
    struct mqtt_broker *b = arg;
    for (;;) {
        int fd = accept(b->listener, NULL, NULL);
        if (fd < 0)
            return NULL;
        pthread_mutex_lock(&b->lock);
        b->fd = fd;
        pthread_mutex_unlock(&b->lock);
        while (mqtt_broker_on_packet(b))
            ;
        pthread_mutex_lock(&b->lock);
        b->fd = -1;
        pthread_cond_broadcast(&b->changed);
        pthread_mutex_unlock(&b->lock);
        close(fd);
    }
}

static inline void mqtt_broker_begin(struct mqtt_broker *b)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t n = sizeof(at);
    memset(b, 0, sizeof(*b));
    b->fd = -1;
    pthread_mutex_init(&b->lock, NULL);
    pthread_cond_init(&b->changed, NULL);
    b->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(b->listener >= 0);
    assert_int_equal(bind(b->listener, (struct sockaddr *)&at, sizeof(at)), 0);
    assert_int_equal(listen(b->listener, 4), 0);
    assert_int_equal(getsockname(b->listener, (struct sockaddr *)&at, &n), 0);
    b->port = ntohs(at.sin_port);
    assert_int_equal(pthread_create(&b->thread, NULL, mqtt_broker_run, b), 0);
}

/* After the client has gone. */
static inline void mqtt_broker_end(struct mqtt_broker *b)
{
    shutdown(b->listener, SHUT_RDWR);
    pthread_mutex_lock(&b->lock);
    if (b->fd >= 0)
        shutdown(b->fd, SHUT_RDWR);
    pthread_mutex_unlock(&b->lock);
    pthread_join(b->thread, NULL);
    close(b->listener);
    pthread_mutex_destroy(&b->lock);
    pthread_cond_destroy(&b->changed);
}

static inline bool mqtt_broker_wanted(const struct mqtt_broker *b, const char *topic)
{
    for (uint32_t i = 0; i < b->n_filters; i++) {
        const char *f = b->filters[i];
        if (strncmp(f, "$share/", 7) == 0) {
            f = strchr(f + 7, '/');
            f = f ? f + 1 : "";
        }
        if (mqtt_topic_matches(f, topic, NULL, NULL))
            return true;
    }
    return false;
}

/* Sends a message to the client, once it has subscribed, and waits until it has handled it. */
static inline void mqtt_broker_publish(struct mqtt_broker *b, const char *topic,
                                       const void *properties, size_t n_properties,
                                       const void *payload, size_t n)
{
    static uint16_t mid;
    uint8_t out[8192] = {0x32};
    const size_t len = strlen(topic);
    const size_t body = 2 + len + 2 + 1 + n_properties + n;
    size_t at = 3;
    assert_true(body < sizeof(out) - 8 && n_properties < 128);
    pthread_mutex_lock(&b->lock);
    while (b->fd < 0 || !mqtt_broker_wanted(b, topic))
        pthread_cond_wait(&b->changed, &b->lock);
    const uint32_t n_acks = b->n_acks;
    mid++;
    out[1] = (uint8_t)(body % 128 | 128);
    out[2] = (uint8_t)(body / 128);
    out[at++] = (uint8_t)(len >> 8);
    out[at++] = (uint8_t)len;
    memcpy(out + at, topic, len);
    at += len;
    out[at++] = (uint8_t)(mid >> 8);
    out[at++] = (uint8_t)mid;
    out[at++] = (uint8_t)n_properties;
    if (n_properties > 0)
        memcpy(out + at, properties, n_properties);
    at += n_properties;
    if (n > 0)
        memcpy(out + at, payload, n);
    mqtt_broker_send(b->fd, out, at + n);
    while (b->n_acks == n_acks)
        pthread_cond_wait(&b->changed, &b->lock);
    pthread_mutex_unlock(&b->lock);
}

/* The next message on a topic that contains the text; waits for it. */
static inline struct mqtt_broker_message mqtt_broker_take(struct mqtt_broker *b, const char *topic,
                                                          const char *text)
{
    struct mqtt_broker_message m;
    pthread_mutex_lock(&b->lock);
    for (;;) {
        for (uint32_t i = 0; i < b->n; i++)
            if (!b->list[i].taken && strcmp(b->list[i].topic, topic) == 0 &&
                strstr(b->list[i].payload, text)) {
                b->list[i].taken = true;
                m = b->list[i];
                pthread_mutex_unlock(&b->lock);
                return m;
            }
        pthread_cond_wait(&b->changed, &b->lock);
    }
}

#endif
