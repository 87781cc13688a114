/* mqtt_feed.c - see mqtt_feed.h. */
#include "site/mqtt/mqtt_feed.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "mqtt/mqtt.h"
#include "mqtt/mqtt_topic.h"
#include "mqtt/sparkplug.h"
#include "site/mqtt/mqtt_announce.h"
#include "site/things/plant.h"
#include "wire/json_out.h"

#define COMPLAIN_NS 60000000000ull
#define MAX_EVENT_BYTES ((size_t)64 << 10)
#define REBIRTH_NS 10000000000ull /* between two requests for a birth message */

struct source { /* one subscription */
    struct mqtt_feed *feed;
    const struct config_subscription *config;
    struct payload_map map;
    const char *filter; /* without $share */
    uint64_t complained_ns;
};

struct machine_state { /* content of the retained topic */
    struct machine_state *next;
    uint64_t ids[16]; /* open alarms */
    uint32_t severities[16];
    uint32_t n;
    char name[];
};

struct mqtt_feed {
    struct mqtt *client;
    struct plant *plant;
    char topic[MQTT_TOPIC_MAX_BYTES]; /* of alarms */
    struct source *sources;
    struct sparkplug *sparkplug;
    uint64_t rebirth_ns;
    /* used by the listener, which is called by one thread at a time */
    struct machine_state *machines;
    _Atomic uint64_t n_messages, n_readings, n_bad, n_unknown, n_alarms;
};

/* ---- readings ---- */

struct delivery {
    struct source *source;
    struct str wild[MQTT_TOPIC_MAX_LEVELS];
    size_t n_wild;
    bool failed;
};

/* The sensor's name: the pattern with wildcards and {name} filled in. */
static bool name_sensor(char out[256], const struct delivery *d, struct str name)
{
    char pattern[256];
    const char *p = d->source->config->sensor, *at = strstr(p, "{name}");
    if (at && snprintf(pattern, sizeof(pattern), "%.*s%.*s%s", (int)(at - p), p, (int)name.n,
                       name.p, at + 6) >= (int)sizeof(pattern))
        return false;
    return mqtt_topic_fill(out, 256, at ? pattern : p, d->wild, d->n_wild);
}

static void on_reading(void *ctx, const struct payload_reading *from)
{
    struct delivery *d = ctx;
    struct mqtt_feed *f = d->source->feed;
    char name[256];
    uint32_t sensor = name_sensor(name, d, from->name) ? plant_find(f->plant, name) : THINGS_NONE;
    if (sensor == THINGS_NONE) {
        atomic_fetch_add(&f->n_unknown, 1);
        return;
    }
    atomic_fetch_add(&f->n_readings, 1);
    const struct reading r = {.sensor = sensor, .time_ms = from->time_ms, .value = from->value};
    plant_reading(f->plant, &r);
}

/* Asks an edge node for its metric names. */
static void ask_rebirth(struct mqtt_feed *f, const struct sparkplug_topic *t)
{
    char topic[MQTT_TOPIC_MAX_BYTES];
    struct buf b;
    struct err e = {0};
    uint64_t now = clock_ns();
    if (f->rebirth_ns && now - f->rebirth_ns < REBIRTH_NS)
        return;
    f->rebirth_ns = now;
    snprintf(topic, sizeof(topic), "spBv1.0/%.*s/NCMD/%.*s", (int)t->group.n, t->group.p,
             (int)t->node.n, t->node.p);
    buf_init(&b, 1024);
    sparkplug_put_rebirth(&b, clock_unix_ms());
    const struct mqtt_message m = {.topic = topic, .payload = b.data, .n = b.len};
    if (b.rc < 0 || mqtt_publish(f->client, &m, &e) < 0)
        log_warn("mqtt", "cannot ask %s for its birth message: %s", topic, e.msg);
    buf_fini(&b);
}

static void complain(struct source *s, const char *topic, const char *why)
{
    uint64_t now = clock_ns();
    atomic_fetch_add(&s->feed->n_bad, 1);
    if (s->complained_ns && now - s->complained_ns < COMPLAIN_NS)
        return;
    s->complained_ns = now;
    log_warn("mqtt", "a message on '%.100s' is not a reading: %s", topic, why);
}

static void on_message(void *ctx, const struct mqtt_message *m)
{
    struct source *s = ctx;
    struct delivery d = {.source = s};
    struct sparkplug_topic t;
    struct err e = {0};
    int rc;
    atomic_fetch_add(&s->feed->n_messages, 1);
    mqtt_topic_matches(s->filter, m->topic, d.wild, &d.n_wild);
    if (s->map.kind == PAYLOAD_SPARKPLUG) {
        rc = sparkplug_topic_read(&t, m->topic)
                 ? sparkplug_read(s->feed->sparkplug, &t, m->payload, m->n, on_reading, &d, &e)
                 : err_set(&e, SHOAL_EFORMAT, "it is not a topic of Sparkplug B");
        if (rc == SHOAL_ENOTFOUND)
            ask_rebirth(s->feed, &t);
    } else {
        rc = payload_read(&s->map, m->payload, m->n, on_reading, &d, &e);
    }
    if (rc < 0)
        complain(s, m->topic, e.msg);
}

/* ---- alarms ---- */

static struct machine_state *find_machine(struct mqtt_feed *f, const char *name)
{
    struct machine_state *s = f->machines;
    while (s && strcmp(s->name, name) != 0)
        s = s->next;
    if (s)
        return s;
    s = mem_zalloc(sizeof(*s) + strlen(name) + 1);
    if (!s)
        return NULL;
    memcpy(s->name, name, strlen(name) + 1);
    s->next = f->machines;
    f->machines = s;
    return s;
}

static void note(struct machine_state *s, const struct alarm_event *e)
{
    uint32_t i = 0;
    while (i < s->n && s->ids[i] != e->id)
        i++;
    if (e->change == ALARM_CLEARED && i < s->n) {
        s->n--;
        s->ids[i] = s->ids[s->n];
        s->severities[i] = s->severities[s->n];
    } else if (e->change != ALARM_CLEARED && i < sizeof(s->ids) / sizeof(s->ids[0])) {
        s->ids[i] = e->id;
        s->severities[i] = (uint32_t)e->severity;
        s->n += i == s->n;
    }
}

static void publish(struct mqtt_feed *f, const char *kind, const char *level, const struct buf *b,
                    bool retain)
{
    char topic[2 * MQTT_TOPIC_MAX_BYTES];
    struct err e = {0};
    snprintf(topic, sizeof(topic), "%s/%s/%s", f->topic, kind, level);
    const struct mqtt_message m = {.topic = topic,
                                   .payload = buf_str(b),
                                   .n = b->len,
                                   .qos = 1,
                                   .retain = retain,
                                   .durable = true,
                                   .content_type = "application/json"};
    if (b->rc < 0 || mqtt_publish(f->client, &m, &e) < 0)
        log_error("mqtt", "alarm lost topic=%s: %s", topic, e.msg);
}

/* The owner of the changed state: the machine, or a sensor without one. */
static const char *whose(const struct alarm_event *e)
{
    return e->machine[0] ? e->machine : e->n_channels ? e->channels[0].sensor : "";
}

/* An alarm reported by an earlier process: its state is retained, and merged with the next. */
static void on_restored(void *ctx, const struct alarm_event *e)
{
    struct machine_state *s = find_machine(ctx, whose(e));
    if (s)
        note(s, e);
}

/* Events arrive one at a time, in order. */
static void on_alarm(void *ctx, const struct alarm_event *e)
{
    struct mqtt_feed *f = ctx;
    char level[256];
    struct buf b;
    const char *who = whose(e);
    mqtt_announce_level(level, sizeof(level), who);
    buf_init(&b, MAX_EVENT_BYTES);
    struct json_out j = json_out_make(&b);
    json_out_object(&j);
    alarm_json(&j, e);
    json_out_object_end(&j);
    publish(f, "event", level, &b, false);
    atomic_fetch_add(&f->n_alarms, 1);
    struct machine_state *s = find_machine(f, who);
    if (s)
        note(s, e);
    buf_clear(&b);
    j = json_out_make(&b);
    json_out_object(&j);
    uint32_t worst = 0, n = s ? s->n : 0;
    for (uint32_t i = 0; i < n; i++)
        worst = s->severities[i] > worst ? s->severities[i] : worst;
    json_out_member_str(&j, "state", n ? alarm_severity_name((enum alarm_severity)worst) : "ok");
    json_out_member_uint(&j, "open", n);
    json_out_member_object(&j, "last");
    alarm_json(&j, e);
    json_out_object_end(&j);
    json_out_object_end(&j);
    publish(f, "state", level, &b, true);
    buf_fini(&b);
}

/* Publishes "ok" for every machine, so that a subscriber always finds a state. Before start.
 */
static void tell_ok(struct mqtt_feed *f, const struct config_things *things)
{
    static const struct buf ok = {.data = (char *)(uintptr_t) "{\"state\":\"ok\",\"open\":0}",
                                  .len = 23};
    char level[256];
    if (plant_open_alarms(f->plant) > 0)
        return; /* their states are retained */
    for (uint32_t i = 0; i < things->n_machines; i++) {
        mqtt_announce_level(level, sizeof(level), things->machines[i].name);
        publish(f, "state", level, &ok, true);
    }
    for (uint32_t i = 0; i < things->n_sensors; i++)
        if (!things->sensors[i].machine) {
            mqtt_announce_level(level, sizeof(level), things->sensors[i].name);
            publish(f, "state", level, &ok, true);
        }
}

/* An undelivered event of an earlier process. */
static void on_waiting(void *ctx, const struct mqtt_message *m)
{
    struct mqtt_feed *f = ctx;
    size_t n = strlen(f->topic);
    if (strncmp(m->topic, f->topic, n) == 0 && strncmp(m->topic + n, "/event/", 7) == 0)
        plant_recall(f->plant, m->payload, m->n);
}

/* ---- life ---- */

static int subscribe(struct mqtt_feed *f, struct source *s, const struct config_subscription *k,
                     struct err *e)
{
    *s = (struct source){.feed = f, .config = k, .filter = mqtt_topic_unshared(k->topic)};
    s->map = (struct payload_map){.kind = (enum payload_kind)k->payload,
                                  .value = k->value,
                                  .time = k->time,
                                  .columns = (const char *const *)k->columns.v,
                                  .n_columns = k->columns.n};
    int rc = 0;
    if (s->map.kind == PAYLOAD_SPARKPLUG && !f->sparkplug)
        rc = sparkplug_create(&f->sparkplug, e);
    /* A retained value has an unknown age: it counts as a reading only if it has its own time. */
    enum mqtt_retained retained =
        k->time || k->payload == PAYLOAD_SPARKPLUG ? MQTT_RETAINED_ALWAYS : MQTT_RETAINED_NEVER;
    if (rc == 0)
        rc = mqtt_subscribe(f->client, k->topic, (uint8_t)k->qos, retained, on_message, s, e);
    return rc;
}

int mqtt_feed_create(struct mqtt_feed **out, const struct config *all, struct mqtt *client,
                     struct plant *plant, struct err *e)
{
    const struct config_mqtt *config = &all->mqtt;
    const struct config_things *things = &all->things;
    struct mqtt_feed *f = mem_zalloc(sizeof(*f));
    int rc = 0;
    *out = NULL;
    if (f)
        f->sources = mem_zalloc_n(things->n_subscriptions + 1, sizeof(*f->sources));
    if (!f || !f->sources) {
        mem_free(f);
        return err_set(e, SHOAL_ENOMEM, "MQTT");
    }
    f->client = client;
    f->plant = plant;
    if (config->alarm_topic)
        snprintf(f->topic, sizeof(f->topic), "%s", config->alarm_topic);
    else
        snprintf(f->topic, sizeof(f->topic), "%.200s/alarm", config->topic);
    if (!mqtt_topic_is_name(f->topic) || strlen(f->topic) > 200)
        rc = err_set(e, SHOAL_EINVAL, "mqtt.alarms: '%.100s' cannot begin a topic", f->topic);
    for (uint32_t i = 0; i < things->n_subscriptions && rc == 0; i++)
        rc = subscribe(f, &f->sources[i], &things->subscriptions[i], e);
    if (rc == 0)
        rc = plant_listen(plant, on_alarm, on_restored, f, e);
    if (rc == 0)
        mqtt_each_waiting(client, on_waiting, f);
    if (rc == 0 && config->discovery)
        tell_ok(f, things);
    if (rc < 0) {
        mqtt_feed_destroy(f);
        return rc;
    }
    *out = f;
    return 0;
}

void mqtt_feed_destroy(struct mqtt_feed *f)
{
    if (!f)
        return;
    while (f->machines) {
        struct machine_state *s = f->machines;
        f->machines = s->next;
        mem_free(s);
    }
    sparkplug_destroy(f->sparkplug);
    mem_free(f->sources);
    mem_free(f);
}

void mqtt_feed_count(const struct mqtt_feed *f, struct mqtt_feed_counts *out)
{
    *out = (struct mqtt_feed_counts){atomic_load(&f->n_messages), atomic_load(&f->n_readings),
                                     atomic_load(&f->n_bad), atomic_load(&f->n_unknown),
                                     atomic_load(&f->n_alarms)};
}
