/* config_needs.h - what a flow of the configuration needs to run in one process: the models, the
 * collections and the home of its steps, also those of the flows and routes that they name.
 *
 * Thread:    any; the configuration is constant.
 * Ownership: names live as long as the configuration.
 * Failure:   what a visitor returns, unless it is 0: nothing else is visited then. */
#ifndef SHOAL_CONFIG_CONFIG_NEEDS_H
#define SHOAL_CONFIG_CONFIG_NEEDS_H

struct graph;
struct graph_step;
struct config;

struct config_needs { /* called once for each place that names it */
    int (*model)(void *ctx, const char *name);
    int (*collection)(void *ctx, const char *name);
    int (*home)(void *ctx);
    int (*call)(void *ctx, const struct graph_step *step); /* NULL: calls are fine */
    void *ctx;
};

int config_needs_visit(const struct config *c, const struct graph *g, const struct config_needs *v);

#endif
