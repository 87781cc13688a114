/* config_needs.c - see config_needs.h. */
#include "config/config_needs.h"

#include "config/config.h"
#include "pipeline/pipeline_run.h"

/* The included model that steps of a kind use if they name none. */
static const char *usual_model(enum graph_kind k)
{
    switch (k) {
    case GRAPH_CLASSIFY:
        return "intent";
    case GRAPH_TAG:
        return "entities";
    case GRAPH_EMBED:
    case GRAPH_VERIFY:
        return "embed";
    case GRAPH_GENERATE:
        return "reply";
    case GRAPH_SUMMARIZE:
        return "summary";
    default:
        return NULL;
    }
}

static int visit_graph(const struct config *c, const struct graph *g, const struct config_needs *v,
                       uint32_t depth);

/* A model, the models of a route, or those of another flow. */
static int visit_name(const struct config *c, const char *name, const struct config_needs *v,
                      uint32_t depth)
{
    const struct graph *g = config_flows_find(&c->flows, name);
    const struct router_route *r = router_table_find(&c->router, name);
    int rc = 0;
    if (g)
        return depth < PIPELINE_MAX_DEPTH ? visit_graph(c, g, v, depth + 1) : 0;
    if (!r)
        return v->model(v->ctx, name);
    if (r->flow)
        return visit_name(c, r->flow, v, depth);
    for (uint32_t i = 0; i < r->n_models && rc == 0; i++)
        rc = v->model(v->ctx, r->models[i].name);
    return rc;
}

static int visit_step(const struct config *c, const struct graph_step *s,
                      const struct config_needs *v, uint32_t depth)
{
    const struct graph_step_spec *k = &s->spec;
    const char *name = k->model ? k->model : usual_model(k->kind);
    int rc = name ? visit_name(c, name, v, depth) : 0;
    if (rc == 0 && k->reranker)
        rc = visit_name(c, k->reranker, v, depth);
    if (rc == 0 && k->kind == GRAPH_RETRIEVE)
        rc = v->collection(v->ctx, k->collection);
    if (rc == 0 && k->kind == GRAPH_ASK)
        rc = v->home(v->ctx);
    if (rc == 0 && k->kind == GRAPH_CALL && v->call)
        rc = v->call(v->ctx, s);
    return rc;
}

static int visit_graph(const struct config *c, const struct graph *g, const struct config_needs *v,
                       uint32_t depth)
{
    int rc = 0;
    for (uint32_t i = 0; i < g->n_steps && rc == 0; i++)
        rc = visit_step(c, &g->steps[i], v, depth);
    return rc;
}

int config_needs_visit(const struct config *c, const struct graph *g, const struct config_needs *v)
{
    return visit_graph(c, g, v, 0);
}
