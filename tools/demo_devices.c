/* demo_devices.c - the plant and the house of `make run`, as devices that speak MQTT.
 *
 * The plant sends ten readings a second for each sensor to plant/NAME; "on" at demo/fault/bearing
 * breaks its bearing, "off" repairs it.  Every device of the house accepts a value at
 * house/ID/ABILITY/set and publishes it at house/ID/ABILITY, retained.
 * Usage: demo_devices HOST PORT    until SIGTERM */
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "site/things/demo.h"
#include "mqtt/mqtt.h"
#include "mqtt/mqtt_topic.h"
#include "things/demo_plant.h"

struct devices {
    struct mqtt *client;
    _Atomic bool broken;
};

static volatile sig_atomic_t ended;

static void on_signal(int signal)
{
    (void)signal;
    ended = 1;
}

static void publish(struct mqtt *client, const char *topic, const void *text, size_t n, uint8_t qos,
                    bool retain)
{
    struct err e = {0};
    const struct mqtt_message m = {
        .topic = topic, .payload = text, .n = n, .qos = qos, .retain = retain};
    if (mqtt_publish(client, &m, &e) < 0 && qos > 0)
        fprintf(stderr, "demo_devices: %s: %s\n", topic, e.msg);
}

static void on_fault(void *ctx, const struct mqtt_message *m)
{
    struct devices *d = ctx;
    atomic_store(&d->broken, m->n == 2 && memcmp(m->payload, "on", 2) == 0);
}

/* A device applies the value and publishes it as its state. */
static void on_set(void *ctx, const struct mqtt_message *m)
{
    struct devices *d = ctx;
    char topic[MQTT_TOPIC_MAX_BYTES];
    size_t n = strlen(m->topic);
    if (n < 5 || n >= sizeof(topic) || m->n > 200)
        return;
    snprintf(topic, sizeof(topic), "%.*s", (int)(n - 4), m->topic); /* without "/set" */
    publish(d->client, topic, m->payload, m->n, 1, true);
}

static void run(struct devices *d)
{
    struct demo_plant sim = {.seed = 1};
    struct timespec now, next;
    clock_gettime(CLOCK_MONOTONIC, &next);
    while (!ended) {
        double values[DEMO_PLANT_SENSORS];
        char topic[64], text[32];
        clock_gettime(CLOCK_REALTIME, &now);
        sim.broken = atomic_load(&d->broken);
        demo_plant_step(&sim, (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000, values);
        for (uint32_t i = 0; i < DEMO_PLANT_SENSORS; i++) {
            snprintf(topic, sizeof(topic), "plant/%s", demo_plant_sensors[i]);
            int n = snprintf(text, sizeof(text), "%.3f", values[i]);
            publish(d->client, topic, text, (size_t)n, 0, false);
        }
        next.tv_nsec += DEMO_PLANT_STEP_MS * 1000000L;
        next.tv_sec += next.tv_nsec / 1000000000;
        next.tv_nsec %= 1000000000;
        clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &next, NULL);
    }
}

int main(int argc, char **argv)
{
    struct devices d = {.client = NULL};
    struct err e = {0};
    unsigned long port = argc == 3 ? strtoul(argv[2], NULL, 10) : 0;
    if (port == 0 || port > 65535) {
        fprintf(stderr, "usage: demo_devices HOST PORT\n");
        return 2;
    }
    const struct sigaction action = {.sa_handler = on_signal};
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGINT, &action, NULL);
    const struct mqtt_opts o = {.host = argv[1],
                                .port = (uint16_t)port,
                                .client_id = "demo-devices",
                                .status_topic = "demo/devices"};
    int rc = mqtt_open(&d.client, &o, &e);
    if (rc == 0)
        rc = mqtt_subscribe(d.client, DEMO_FAULT_TOPIC, 1, MQTT_RETAINED_ALWAYS, on_fault, &d, &e);
    if (rc == 0)
        rc = mqtt_subscribe(d.client, "house/+/+/set", 1, MQTT_RETAINED_NEVER, on_set, &d, &e);
    if (rc == 0)
        rc = mqtt_start(d.client, &e);
    if (rc < 0) {
        fprintf(stderr, "demo_devices: %s\n", e.msg);
        mqtt_close(d.client);
        return 1;
    }
    run(&d);
    mqtt_stop(d.client, 200);
    mqtt_close(d.client);
    return 0;
}
