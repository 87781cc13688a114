/* pipeline_reserve.c - see pipeline_reserve.h. */
#include "pipeline/pipeline_reserve.h"

#include <string.h>

#include "engine/estimate.h"
#include "flow/flow.h"
#include "host/registry.h"
#include "router/router_estimate.h"

#define BYTES_PER_TOKEN 4u

struct steps_after {
    const struct pipeline_live *run;
    double after[GRAPH_MAX_STEPS]; /* ns; below 0: not computed yet */
};

struct looking {
    const char *model;
    struct fair_who who;
    struct router_speed speed;
};

static void look(void *ctx, const struct registry_model *m)
{
    struct looking *l = ctx;
    if (strcmp(m->name, l->model) != 0)
        return;
    const struct cost_telemetry t = registry_telemetry(m, &l->who);
    l->speed = (struct router_speed){.prefill_ns = t.prefill_ns,
                                     .token_ns = t.token_ns,
                                     .unit_ns = t.unit_ns,
                                     .queue_ns = t.queue_ns,
                                     .answer_tokens = t.answer_tokens,
                                     .error = t.error,
                                     .in_flight = t.in_flight,
                                     .parallel = t.parallel};
}

/* What a model needs for this step. The texts that it will read are not known yet: about as much as
 * the request has. */
static double model_ns(const struct pipeline_live *x, const struct graph_step *g)
{
    const bool text = g->spec.kind == GRAPH_GENERATE || g->spec.kind == GRAPH_ASK;
    const struct router_work w = {.prompt_tokens =
                                      (uint32_t)(x->request->input_bytes / BYTES_PER_TOKEN) + 1,
                                  .max_tokens = text ? g->spec.max_tokens : 0,
                                  .specialist = !text};
    struct looking l = {.model = g->spec.model, .who = request_who(x->request)};
    if (l.model && x->owner->flow->registry)
        registry_each(x->owner->flow->registry, look, &l);
    return router_estimate(&l.speed, &w).sure_ns;
}

/* What the step itself needs, at most as much as it may have. */
static double own_ns(const struct pipeline_live *x, uint32_t step)
{
    const struct graph_step *g = &x->graph->steps[step];
    double ns = 0.0;
    switch (g->spec.kind) {
    case GRAPH_CALL:
    case GRAPH_TEMPLATE:
    case GRAPH_MERGE:
        break;
    case GRAPH_SWITCH: /* the longest of those that it may start */
    case GRAPH_MAP:
        for (uint32_t k = 0; k < x->graph->n_steps; k++)
            if (g->leads & pipeline_live_bit(k)) {
                const double one = own_ns(x, k);
                ns = one > ns ? one : ns;
            }
        break;
    default:
        ns = model_ns(x, g);
        break;
    }
    if (g->spec.timeout_ms && ns > g->spec.timeout_ms * 1e6)
        ns = g->spec.timeout_ms * 1e6;
    if (g->spec.share > 0 && ns > g->spec.share * (double)(x->end_ns - x->start_ns))
        ns = g->spec.share * (double)(x->end_ns - x->start_ns);
    return ns;
}

static bool is_to_come(const struct pipeline_live *x, uint32_t step)
{
    const enum pipeline_state s = x->steps[step].state;
    return s == PIPELINE_WAITING || (s == PIPELINE_UNUSED && x->graph->steps[step].lazy);
}

/* The longest chain of steps that wait for this one. */
static double after_ns(struct steps_after *c, uint32_t step)
{
    const struct graph *g = c->run->graph;
    double most = 0.0;
    if (c->after[step] >= 0.0)
        return c->after[step];
    c->after[step] = 0.0; /* a graph has no circles: nobody asks before it is known */
    for (uint32_t k = 0; k < g->n_steps; k++)
        if ((g->steps[k].needs & pipeline_live_bit(step)) && is_to_come(c->run, k)) {
            const double ns = own_ns(c->run, k) + after_ns(c, k);
            most = ns > most ? ns : most;
        }
    return c->after[step] = most;
}

uint64_t pipeline_reserve_ns(const struct pipeline_live *x, uint32_t step)
{
    const int32_t other = x->graph->steps[step].fallback_step;
    struct steps_after c = {.run = x};
    for (uint32_t i = 0; i < GRAPH_MAX_STEPS; i++)
        c.after[i] = -1.0;
    double ns = after_ns(&c, step);
    for (uint32_t i = 0; i < x->graph->n_steps; i++) /* it may run in the place of another */
        if (x->steps[i].state == PIPELINE_PENDING && x->steps[i].waits_for == (int32_t)step) {
            const double one = after_ns(&c, i);
            ns = one > ns ? one : ns;
        }
    if (other >= 0 && is_to_come(x, (uint32_t)other))
        ns += own_ns(x, (uint32_t)other);
    return (uint64_t)ns;
}
