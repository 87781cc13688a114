/* controller_scale.c - see controller_scale.h. */
#include "cluster/controller/controller_scale.h"

#include <stdio.h>
#include <string.h>

#include "cluster/control/desired.h"
#include "cluster/controller/controller_input.h"
#include "cluster/controller/controller_memory.h"
#include "cluster/controller/controller_view.h"
#include "cluster/messages/node_state.h"

#define RUNNING 1.0 /* requests of a replica that do not count as waiting */

/* Sums of the reports of a model's replicas. */
struct load {
    uint32_t ready;
    double cpu; /* sum over replicas that report it */
    uint32_t n_cpu;
    double in_flight, waiting;
    double p95_ms;
    uint64_t requests;
    bool wanted;
};

static struct load load_of(const struct desired_model *m, const struct controller_snapshot *s)
{
    struct load l = {.ready = 0};
    for (uint32_t i = 0; i < s->n_nodes; i++) {
        const struct node_state *n = &s->nodes[i];
        const struct node_model *h = controller_input_held(n, m->name, m->sha256);
        if (!h || h->state != REGISTRY_READY)
            continue;
        l.requests += h->requests;
        if (h->duty == DESIRED_LEAVE || h->duty == DESIRED_STAGE)
            continue;
        l.ready += node_model_replicas(h);
        if (n->cpu >= 0 && n->cpu <= 1) {
            l.cpu += n->cpu;
            l.n_cpu++;
        }
        l.in_flight += h->in_flight;
        const double runs = RUNNING * node_model_replicas(h);
        l.waiting += h->in_flight > runs ? h->in_flight - runs : 0;
        double p95 = (double)h->recent_p95_us / 1000;
        l.p95_ms = p95 > l.p95_ms ? p95 : l.p95_ms;
    }
    for (uint32_t i = 0; i < s->n_wanted; i++)
        l.wanted |= strcmp(s->wanted[i], m->name) == 0;
    return l;
}

static struct autoscale_signal signal_of(const struct desired_model *m, const struct load *l,
                                         struct controller_scaling *c, uint64_t now_ms)
{
    double seconds = c->at_ms ? (double)(now_ms - c->at_ms) / 1000 : 0;
    /* A lost node takes its count with it. */
    double n = c->at_ms && l->requests > c->requests ? (double)(l->requests - c->requests) : 0;
    struct autoscale_signal in = {.now_ms = now_ms,
                                  .ready = l->ready,
                                  .cpu = l->n_cpu ? l->cpu / l->n_cpu : -1,
                                  .queue = l->waiting,
                                  .p95_ms = l->p95_ms,
                                  .budget_ms = m->budget_ms,
                                  .arrivals_per_s = seconds > 0 ? n / seconds : 0};
    if (l->wanted && l->ready == 0) {
        in.queue = in.queue > 1 ? in.queue : 1;
        in.arrivals_per_s = in.arrivals_per_s > 1 ? in.arrivals_per_s : 1;
    }
    /* Requests in flight are work, however long they take. */
    if (l->in_flight > 0 && in.arrivals_per_s <= 0)
        in.arrivals_per_s = 0.001;
    c->requests = l->requests;
    c->at_ms = now_ms;
    return in;
}

static uint32_t clamp(uint32_t n, uint32_t low, uint32_t high)
{
    return n < low ? low : n > high ? high : n;
}

bool controller_scale(struct desired_model *model, const struct controller_snapshot *s,
                      struct controller_memory *m, char *text, size_t cap)
{
    uint32_t was = model->replicas_want;
    uint32_t now = clamp(was, model->replicas_min, model->replicas_max);
    if (model->replicas_max <= model->replicas_min) {
        model->replicas_want = now;
        snprintf(text, cap, "%u replicas, as wanted", now);
        return now != was;
    }
    struct controller_scaling *c = controller_memory_scaling(m, model->name, now, s->clock_ms);
    if (!c)
        return false;
    if (c->state.wanted != now) /* it was not this controller that changed it last */
        autoscale_start(&c->state, now, s->clock_ms);
    struct autoscale_policy p = autoscale_policy_default();
    p.min = model->replicas_min;
    p.max = model->replicas_max;
    p.idle_ms = model->idle_ms;
    struct load l = load_of(model, s);
    struct autoscale_signal in = signal_of(model, &l, c, s->clock_ms);
    struct autoscale_decision decision = autoscale_decide(&c->state, &p, &in);
    model->replicas_want = decision.replicas;
    if (decision.replicas != was)
        snprintf(text, cap, "%u replicas instead of %u: %s", decision.replicas, was,
                 decision.reason);
    return decision.replicas != was;
}
