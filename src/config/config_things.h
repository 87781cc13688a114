/* config_things.h - from the keys of the file to sensors, machines and subscriptions.
 *
 * Thread:    while a configuration is read.
 * Ownership: strings of an entry move into the configuration.
 * Failure:   as config_key.h. */
#ifndef SHOAL_CONFIG_CONFIG_THINGS_H
#define SHOAL_CONFIG_CONFIG_THINGS_H

#include <stdbool.h>
#include <stdint.h>

#include "wire/yaml_in.h"

struct things_machine_opts;
struct things_sensor_opts;

#define CONFIG_MAX_SENSORS 16384u
#define CONFIG_MAX_MACHINES 4096u
#define CONFIG_MAX_SUBSCRIPTIONS 256u

/* Messages that carry readings: an entry of mqtt.subscribe. */
struct config_subscription {
    char *topic, *sensor; /* a filter; a pattern with {1}, {2}, ... and {name} */
    char *value, *time;   /* as in struct payload_map */
    struct yaml_in_strs columns;
    uint32_t qos, payload; /* enum payload_kind */
};

/* Sensors with such names are made for models (site/things/model_watch.h). */
#define CONFIG_THINGS_CONFIDENCE "confidence/"

struct config_things {
    struct things_machine_opts *machines; /* strings belong to the configuration */
    char **learned; /* [n_machines] files of `shoal anomaly fit`; NULL: none */
    struct things_sensor_opts *sensors;
    struct config_subscription *subscriptions;
    uint32_t n_machines, n_sensors, n_subscriptions;
};

struct config_things_policy { /* as struct things_policy */
    double false_alarms;
    uint32_t delay_ms, clear_ms, hold_off_ms;
};

struct config_things_machine { /* an entry of machines */
    char *name, *title, *learned;
    struct config_things_policy policy;
    bool joint, cascade;
};

struct config_things_sensor { /* an entry of sensors */
    char *name, *title, *unit, *machine, *normal, *limits;
    double max_rate;
    uint32_t interval_ms, lost_ms, learn;
    struct config_things_policy policy;
    bool statistics, cascade;
};

int config_things_take_machine(struct yaml_in *r, yaml_node_t *at, void *item,
                               struct config_things *c);
int config_things_take_sensor(struct yaml_in *r, yaml_node_t *at, void *item,
                              struct config_things *c);
int config_things_take_subscription(struct yaml_in *r, yaml_node_t *at, void *item,
                                    struct config_things *c);
void config_things_fini(struct config_things *c);
/* "2.5..7", "..7", "2.5.."; a missing side becomes NaN. False: not a range. */
bool config_things_range(const char *text, double *low, double *high);

#endif
