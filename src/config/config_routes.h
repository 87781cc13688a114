/* config_routes.h - from the keys of the file to the router's table.
 *
 * Thread:    while a configuration is read.
 * Ownership: the table owns copies.
 * Failure:   as config_key.h; config_routes_finish names the file and the route. */
#ifndef SHOAL_CONFIG_CONFIG_ROUTES_H
#define SHOAL_CONFIG_CONFIG_ROUTES_H

#include "config/config_ensemble.h"
#include "router/router.h"
#include "wire/yaml_in.h"

struct config_where;
struct config_routes_model { /* an entry of routes[].models */
    char *name;
    double quality, cost, watts;
    struct yaml_in_strs domains, languages;
};

struct config_routes_rule { /* an entry of routes[].rules */
    uint32_t when;
    char *name, *matches;
    struct yaml_in_strs is, use;
    double above, below;
    bool negate;
};

struct config_routes_privacy { /* privacy, and routes[].privacy */
    uint32_t action, zone;
    struct yaml_in_strs find;
    char *model;
};

enum { CONFIG_ROUTES_CACHE_ON, CONFIG_ROUTES_CACHE_OFF, CONFIG_ROUTES_CACHE_SHARED };

struct config_routes_route { /* an entry of routes */
    char *name, *classifier, *labels, *flow;
    struct yaml_in_strs callers, policy;
    uint32_t budget_ms, max_budget_ms, least_battery;
    int32_t priority;
    uint32_t cache; /* which choice */
    double similar;
    double min_quality, threshold;
    struct config_routes_privacy privacy;
    struct config_ensemble ensemble;
    struct router_route route; /* its models and rules read so far */
};

SHOAL_MUST_CHECK int config_routes_take(struct yaml_in *r, const yaml_node_t *at,
                                        struct config_routes_route *k, struct router_table *t);
void config_routes_drop(void *item);
int config_routes_take_model(struct yaml_in *r, yaml_node_t *at, void *item, void *route);
int config_routes_take_rule(struct yaml_in *r, yaml_node_t *at, void *item, void *route);
/* Adds the data of one entry of `models`. */
SHOAL_MUST_CHECK int config_routes_know(struct router_table *t, const char *name,
                                        const struct config_routes_model *facts, struct err *e);
/* Adds a model without data, unless it is known. */
SHOAL_MUST_CHECK int config_routes_meet(struct router_table *t, const char *name, struct err *e);
/* After the whole file was read: routes get the data of `models`, and names are checked. privacy:
 * the global settings. */
SHOAL_MUST_CHECK int config_routes_finish(struct router_table *t,
                                          const struct config_routes_privacy *privacy,
                                          const struct config_where *w);

#endif
