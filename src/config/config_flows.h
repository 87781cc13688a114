/* config_flows.h - from the keys of the file to graphs (pipeline/graph/graph.h): entries of
 * `flows`.
 *
 * Thread:    while a configuration is read; the graphs are constant afterwards.
 * Ownership: the configuration owns a reference of each graph.
 * Failure:   as config_key.h; an error inside an expression has its own column. */
#ifndef SHOAL_CONFIG_CONFIG_FLOWS_H
#define SHOAL_CONFIG_CONFIG_FLOWS_H

#include <stdbool.h>
#include <stdint.h>

#include "pipeline/graph/graph.h"
#include "wire/yaml_in.h"

#define CONFIG_MAX_FLOWS 64u

struct config_flow_case { /* an entry of flows[].steps[].cases */
    char *when, *value, *step;
    const yaml_node_t *at;
};

struct config_flow_step { /* an entry of flows[].steps */
    char *name, *model, *labels, *text, *system, *query, *collection, *reranker, *values, *passages;
    char *over, *step, *separator, *when, *fallback, *fallback_step, *on_timeout;
    char *url, *topic, *payload, *plugin;
    struct yaml_in_strs from, command;
    uint32_t kind, count, max_tokens, timeout_ms, how, via, method, qos, retry;
    double temperature, share;
    bool retain, json;
    struct config_flow_case cases[GRAPH_MAX_CASES];
    uint32_t n_cases;
};

struct config_flow_input { /* an entry of flows[].inputs */
    char *name, *fallback;
    uint32_t type;
};

struct config_flow_use { /* an external target that a flow calls */
    char *what;          /* HOST:PORT, a topic, a program, or a plug-in */
    uint32_t via;        /* enum graph_via */
    size_t line, column;
};

struct config_flow { /* an entry of flows */
    char *name, *text, *output, *fallback;
    uint32_t budget_ms;
    struct graph *graph; /* built so far, like the list of calls */
    struct config_flow_use *uses;
    uint32_t n_uses;
};

struct config_flows {
    struct graph *v[CONFIG_MAX_FLOWS];
    uint32_t n;
    struct config_flow_use *uses;
    uint32_t n_uses;
    struct yaml_in_strs hosts, topics, commands, plugins; /* allowlists */
    size_t plugin_memory;
    char *ca;      /* CA file for https servers; NULL: the system's CAs */
    char *process; /* flow of /v1/process; NULL: ask */
};

struct config_where;
struct router_table;

int config_flows_take_input(struct yaml_in *r, yaml_node_t *at, void *item, void *flow);
int config_flows_take_case(struct yaml_in *r, yaml_node_t *at, void *item, void *step);
void config_flows_drop_step(void *item);
void config_flows_drop(void *item);
int config_flows_take_step(struct yaml_in *r, yaml_node_t *at, void *item, void *flow);
SHOAL_MUST_CHECK int config_flows_take(struct yaml_in *r, yaml_node_t *at, struct config_flow *k,
                                       struct config_flows *c);
/* After the whole file was read: calls must be allowed, and names must be known and unique. */
SHOAL_MUST_CHECK int config_flows_finish(const struct config_flows *c, const struct router_table *t,
                                         const struct config_where *w);
void config_flows_fini(struct config_flows *c); /* strings of keys are freed by the keys */
/* NULL: there is none of this name. */
struct graph *config_flows_find(const struct config_flows *c, const char *name);

#endif
