/* config_things.c - see config_things.h. */
#include "config/config_things.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/plural.h"
#include "base/room.h"
#include "mqtt/mqtt_topic.h"
#include "mqtt/payload.h"
#include "things/things.h"

bool config_things_range(const char *text, double *low, double *high)
{
    const char *dots = strstr(text, "..");
    char *end;
    *low = *high = NAN;
    if (!dots || strlen(text) == 2)
        return false;
    if (dots > text) {
        *low = strtod(text, &end);
        if (end > dots) /* "1..2": strtod takes "1." */
            end = (char *)(uintptr_t)dots;
        if (end != dots)
            return false;
    }
    if (dots[2]) {
        *high = strtod(dots + 2, &end);
        if (end == dots + 2 || *end)
            return false;
    }
    return isnan(*low) || isnan(*high) || *low < *high;
}

static struct things_policy policy_of(const struct config_things_policy *p)
{
    return (struct things_policy){.false_alarms = p->false_alarms,
                                  .delay_ms = p->delay_ms,
                                  .clear_ms = p->clear_ms,
                                  .hold_off_ms = p->hold_off_ms};
}

static int no_memory(struct yaml_in *r)
{
    return err_set(r->e, SHOAL_ENOMEM, "%s", r->name);
}

int config_things_take_machine(struct yaml_in *r, yaml_node_t *at, void *item,
                               struct config_things *c)
{
    struct config_things_machine *k = item;
    for (uint32_t i = 0; i < c->n_machines; i++)
        if (strcmp(c->machines[i].name, k->name) == 0)
            return yaml_in_fail(r, at, "two machines are named '%.60s'", k->name);
    struct things_machine_opts *m = room_next(&c->machines, c->n_machines, sizeof(*m));
    char **learned = m ? room_next(&c->learned, c->n_machines, sizeof(*learned)) : NULL;
    if (!learned)
        return no_memory(r);
    *learned = k->learned;
    *m = (struct things_machine_opts){
        .name = k->name, .title = k->title, .policy = policy_of(&k->policy), .no_joint = !k->joint};
    m->policy.no_cascade = !k->cascade;
    k->name = k->title = k->learned = NULL;
    c->n_machines++;
    return 0;
}

int config_things_take_sensor(struct yaml_in *r, yaml_node_t *at, void *item,
                              struct config_things *c)
{
    struct config_things_sensor *k = item;
    struct things_sensor_opts o = things_sensor_defaults();
    if (strncmp(k->name, CONFIG_THINGS_CONFIDENCE, strlen(CONFIG_THINGS_CONFIDENCE)) == 0)
        return yaml_in_fail(r, at, "sensors named '%s...' are those of models",
                            CONFIG_THINGS_CONFIDENCE);
    if (k->normal && !config_things_range(k->normal, &o.normal_low, &o.normal_high))
        return yaml_in_fail(r, at, "normal must be a range such as 2.5..7, ..7 or 2.5..");
    if (k->limits && !config_things_range(k->limits, &o.limit_low, &o.limit_high))
        return yaml_in_fail(r, at, "limits must be a range such as 2.5..7, ..7 or 2.5..");
    for (uint32_t i = 0; i < c->n_sensors; i++)
        if (strcmp(c->sensors[i].name, k->name) == 0)
            return yaml_in_fail(r, at, "two sensors are named '%.60s'", k->name);
    struct things_sensor_opts *s = room_next(&c->sensors, c->n_sensors, sizeof(*s));
    if (!s)
        return no_memory(r);
    o.name = k->name;
    o.title = k->title;
    o.unit = k->unit;
    o.machine = k->machine;
    o.max_rate = k->max_rate > 0 ? k->max_rate : NAN;
    o.interval_ms = k->interval_ms;
    o.lost_ms = k->lost_ms;
    o.learn = k->learn;
    o.policy = policy_of(&k->policy);
    o.policy.no_statistics = !k->statistics;
    o.policy.no_cascade = !k->cascade;
    *s = o;
    k->name = k->title = k->unit = k->machine = NULL;
    c->n_sensors++;
    return 0;
}

static uint32_t count_wildcards(const char *filter)
{
    uint32_t n = 0;
    for (const char *p = mqtt_topic_unshared(filter); *p; p++)
        n += *p == '+' || *p == '#';
    return n;
}

/* The largest N of the {N} in a pattern of mqtt_topic_fill; 0: it has none. */
static uint32_t last_place(const char *pattern)
{
    uint32_t n = 0;
    for (const char *p = pattern; (p = strchr(p, '{')); p++)
        if (p[1] >= '1' && p[1] <= '9' && p[2] == '}' && (uint32_t)(p[1] - '0') > n)
            n = (uint32_t)(p[1] - '0');
    return n;
}

int config_things_take_subscription(struct yaml_in *r, yaml_node_t *at, void *item,
                                    struct config_things *c)
{
    struct config_subscription *k = item;
    if (!mqtt_topic_is_filter(k->topic))
        return yaml_in_fail(r, at, "'%.100s' is not an MQTT topic filter", k->topic);
    const uint32_t n_wild = count_wildcards(k->topic), used = last_place(k->sensor);
    if (used > n_wild)
        return yaml_in_fail(r, at, "the sensor '%.80s' uses {%u}, but '%.80s' has %u wildcard%s",
                            k->sensor, used, k->topic, n_wild, plural(n_wild));
    bool path = k->payload == PAYLOAD_JSON;
    if (k->value && (!path || !payload_path_ok(k->value)))
        return yaml_in_fail(r, at,
                            "value must be a path such as motor.bearings[1] of payload: json");
    if (k->time && path && !payload_path_ok(k->time))
        return yaml_in_fail(r, at, "time must be a path such as motor.time");
    if (k->columns.n > 0 && k->payload != PAYLOAD_CSV)
        return yaml_in_fail(r, at, "columns are for payload: csv");
    struct config_subscription *s = room_next(&c->subscriptions, c->n_subscriptions, sizeof(*s));
    if (!s)
        return no_memory(r);
    *s = *k;
    *k = (struct config_subscription){0};
    c->n_subscriptions++;
    return 0;
}

static void drop(const char *s)
{
    mem_free((char *)(uintptr_t)s);
}

void config_things_fini(struct config_things *c)
{
    for (uint32_t i = 0; i < c->n_machines; i++) {
        drop(c->machines[i].name);
        drop(c->machines[i].title);
        drop(c->learned[i]);
    }
    for (uint32_t i = 0; i < c->n_sensors; i++) {
        drop(c->sensors[i].name);
        drop(c->sensors[i].title);
        drop(c->sensors[i].unit);
        drop(c->sensors[i].machine);
    }
    for (uint32_t i = 0; i < c->n_subscriptions; i++) {
        struct config_subscription *s = &c->subscriptions[i];
        mem_free(s->topic);
        mem_free(s->sensor);
        mem_free(s->value);
        mem_free(s->time);
        yaml_in_strs_fini(&s->columns);
    }
    mem_free(c->learned);
    mem_free(c->machines);
    mem_free(c->sensors);
    mem_free(c->subscriptions);
}
