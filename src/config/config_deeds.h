/* config_deeds.h - how actions are carried out: entries of `deeds`.
 *
 * Thread:    while a configuration is read; constant afterwards.
 * Ownership: strings of an entry move into the configuration.
 * Failure:   as config_key.h. */
#ifndef SHOAL_CONFIG_CONFIG_DEEDS_H
#define SHOAL_CONFIG_CONFIG_DEEDS_H

#include <stdbool.h>
#include <stdint.h>

#include "wire/yaml_in.h"

struct config_where;
struct config_modbuses;

#define CONFIG_MAX_DEEDS 256u
#define CONFIG_MAX_ARGUMENTS 32u

enum config_deed_via {
    CONFIG_DEED_MQTT,
    CONFIG_DEED_HTTP,
    CONFIG_DEED_COMMAND,
    CONFIG_DEED_MODBUS
};

struct config_deed { /* an entry of deeds */
    struct yaml_in_strs things;
    char *ability; /* NULL: all */
    uint32_t via;  /* enum config_deed_via */
    char *topic, *payload;
    char *tag; /* modbus: "CONTROLLER.TAG" */
    char *url;
    char *server, *path; /* of the URL: "http[s]://HOST:PORT", "/..." */
    uint32_t method;     /* POST, PUT, GET */
    struct yaml_in_strs command, values, state_values;
    char *state, *state_value, *unit;
    uint32_t qos, timeout_ms, retry;
    bool retain;
};

struct config_deeds {
    struct config_deed *v;
    uint32_t n;
    struct yaml_in_strs commands, hosts; /* allowlists */
    char *ca;                            /* CA file for https servers; NULL: the system's CAs */
};

int config_deeds_take(struct yaml_in *r, yaml_node_t *at, void *item, struct config_deeds *c);
/* After the whole file was read: checks programs and hosts against the allowlists, and tags. */
SHOAL_MUST_CHECK int config_deeds_finish(const struct config_deeds *c,
                                         const struct config_modbuses *modbus,
                                         const struct config_where *w);
void config_deeds_fini(struct config_deeds *c); /* the allowlists are freed by their keys */

#endif
