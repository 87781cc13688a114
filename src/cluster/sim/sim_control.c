/* sim_control.c - see sim_control.h. */
#include "cluster/sim/sim_control.h"

#include <stdio.h>
#include <time.h>

#include "base/mem.h"
#include "cluster/placement/placement_check.h"

#define SMOOTHING 0.25 /* weight of a new sample */
#define MIN_P95 10u    /* fewer requests have no meaningful p95 */

int sim_control_init(struct sim_control *k, struct sim_world *w, struct err *e)
{
    *k = (struct sim_control){.w = w, .due = true};
    k->nodes = mem_zalloc_n(w->cap_nodes, sizeof(*k->nodes));
    k->node_ids = mem_zalloc_n(w->cap_nodes, sizeof(*k->node_ids));
    k->models = mem_zalloc_n(w->n_models, sizeof(*k->models));
    if (!k->nodes || !k->node_ids || !k->models)
        return err_set(e, SHOAL_ENOMEM, "simulation");
    for (uint32_t i = 0; i < w->n_models; i++)
        autoscale_start(&w->models[i].scaling, w->models[i].wanted, 0);
    return 0;
}

void sim_control_fini(struct sim_control *k)
{
    mem_free(k->nodes);
    mem_free(k->node_ids);
    mem_free(k->models);
    mem_free(k->current);
    mem_free(k->replica_ids);
    mem_free(k->steps);
    *k = (struct sim_control){0};
}

/* ---- planning ---- */

static int reserve(struct sim_control *k, struct err *e)
{
    size_t n = k->w->n_replicas + 1;
    if (n <= k->cap_current)
        return 0;
    n *= 2;
    void *a = mem_realloc(k->current, n * sizeof(*k->current));
    k->current = a ? a : k->current;
    void *b = mem_realloc(k->replica_ids, n * sizeof(*k->replica_ids));
    k->replica_ids = b ? b : k->replica_ids;
    if (!a || !b)
        return err_set(e, SHOAL_ENOMEM, "simulation");
    k->cap_current = n;
    return 0;
}

static struct placement_input describe(struct sim_control *k)
{
    struct sim_world *w = k->w;
    struct placement_input in = {.nodes = k->nodes,
                                 .models = k->models,
                                 .n_models = w->n_models,
                                 .current = k->current,
                                 .policy = w->in->policy,
                                 .now_ms = w->now_us / 1000};
    for (uint32_t i = 0; i < w->n_nodes; i++)
        if (w->nodes[i].known) {
            k->node_ids[in.n_nodes] = i;
            k->nodes[in.n_nodes++] = sim_world_node(w, &w->nodes[i]);
        }
    for (uint32_t i = 0; i < w->n_models; i++)
        k->models[i] = sim_world_model(&w->models[i]);
    for (uint32_t i = 0; i < w->n_replicas; i++) {
        struct sim_replica *r = &w->replicas[i];
        /* The controller still sees the replicas of a node that ended but is not yet detected. */
        if (!r->there || (r->lost && w->nodes[r->node].known && w->nodes[r->node].up))
            continue;
        k->replica_ids[in.n_current] = i;
        k->current[in.n_current++] = (struct placement_replica){
            .node = w->nodes[r->node].name,
            .model = w->models[r->model].name,
            .state = r->ready || r->lost ? PLACEMENT_READY : PLACEMENT_LOADING,
            .since_ms = r->since_ms};
    }
    return in;
}

/* The planner was told of them. */
static void forget_lost(struct sim_world *w)
{
    for (uint32_t i = 0; i < w->n_replicas; i++)
        if (w->replicas[i].there && w->replicas[i].lost &&
            (!w->nodes[w->replicas[i].node].known || w->nodes[w->replicas[i].node].up))
            sim_world_unload(w, i);
}

static void run_load(struct sim_control *k, const struct sim_step *s)
{
    struct sim_world *w = k->w;
    const struct sim_box *b = &w->nodes[s->node];
    if (!b->up || b->cut || sim_world_find(w, s->model, s->node) != SIM_NONE ||
        b->used_bytes + w->models[s->model].in->memory_bytes >
            w->in->classes[b->class_id].memory_bytes)
        return; /* the node has ended since; the next plan sees it */
    uint32_t id = sim_world_load(w, s->model, s->node);
    if (id == SIM_NONE)
        return;
    w->replicas[id].plan = k->plan;
    k->n_loading++;
    k->n_loads += w->now_us >= w->counted_from_us;
    k->n_moves += s->move && w->now_us >= w->counted_from_us;
}

static void run_unload(struct sim_control *k, const struct sim_step *s)
{
    struct sim_world *w = k->w;
    uint32_t id = s->replica != SIM_NONE ? s->replica : sim_world_find(w, s->model, s->node);
    if (id == SIM_NONE || !w->replicas[id].there || w->replicas[id].lost ||
        (s->replica != SIM_NONE && w->replicas[id].stamp != s->stamp))
        return;
    sim_world_unload(w, id);
    k->n_unloads += w->now_us >= w->counted_from_us;
}

static void run_waves(struct sim_control *k)
{
    while (k->n_loading == 0 && k->next_step < k->n_steps && !k->w->failed) {
        uint32_t wave = k->steps[k->next_step].wave;
        for (; k->next_step < k->n_steps && k->steps[k->next_step].wave == wave; k->next_step++) {
            const struct sim_step *s = &k->steps[k->next_step];
            if (s->action == PLACEMENT_LOAD)
                run_load(k, s);
            else
                run_unload(k, s);
        }
    }
}

void sim_control_progress(struct sim_control *k, uint32_t replica)
{
    if (k->w->replicas[replica].plan == k->plan && k->n_loading > 0)
        k->n_loading--;
    run_waves(k);
}

static int take_steps(struct sim_control *k, const struct placement_plan *p, struct err *e)
{
    if (p->n_steps > k->cap_steps) {
        void *bigger = mem_realloc(k->steps, p->n_steps * sizeof(*k->steps));
        if (!bigger)
            return err_set(e, SHOAL_ENOMEM, "simulation");
        k->steps = bigger;
        k->cap_steps = p->n_steps;
    }
    for (size_t i = 0; i < p->n_steps; i++) {
        const struct placement_step *s = &p->steps[i];
        struct sim_step *t = &k->steps[i];
        *t = (struct sim_step){.action = s->action,
                               .node = k->node_ids[s->node],
                               .model = s->model,
                               .replica = SIM_NONE,
                               .wave = s->wave,
                               .move = s->pair != PLACEMENT_NONE};
        if (s->replica != PLACEMENT_NONE) {
            t->replica = k->replica_ids[s->replica];
            t->stamp = k->w->replicas[t->replica].stamp;
        }
    }
    k->n_steps = p->n_steps;
    k->next_step = 0;
    k->n_loading = 0;
    k->plan++;
    return 0;
}

static double processor_ms(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
    return (double)ts.tv_sec * 1e3 + (double)ts.tv_nsec / 1e6;
}

int sim_control_plan(struct sim_control *k, struct err *e)
{
    struct placement_plan *p = NULL;
    int rc = reserve(k, e);
    if (rc < 0)
        return rc;
    struct placement_input in = describe(k);
    double start = processor_ms();
    rc = placement_plan(&p, &in, e);
    double ms = processor_ms() - start;
    if (rc == 0)
        rc = placement_check(&in, p, e);
    if (rc == 0)
        rc = take_steps(k, p, e);
    if (rc == 0) {
        k->n_plans++;
        k->plan_ms += ms;
        k->max_plan_ms = ms > k->max_plan_ms ? ms : k->max_plan_ms;
        k->n_gaps += p->n_gaps > 0;
        if (p->n_gaps > 0)
            snprintf(k->last_gap, sizeof(k->last_gap), "%s: %s", in.models[p->gaps[0].model].name,
                     p->gaps[0].reason);
        if (k->on_plan)
            k->on_plan(k->on_plan_ctx, in.now_ms, p);
        forget_lost(k->w);
        k->due = false;
        run_waves(k);
    }
    placement_destroy(p);
    return rc;
}

/* ---- scaling ---- */

static double capacity(const struct sim_world *w, uint32_t model)
{
    const struct sim_service *s = &w->models[model];
    double sum = 0;
    struct placement_model m = sim_world_model(s);
    for (uint32_t i = 0; i < s->n_ready; i++) {
        struct placement_node n = sim_world_node(w, &w->nodes[w->replicas[s->ready[i]].node]);
        sum += placement_rate(&n, &m) * (n.load < 0.95 ? 1 - n.load : 0.05) / s->in->tokens;
    }
    return s->n_ready ? sum / s->n_ready : 0;
}

static struct autoscale_policy limits(const struct sim_service *s)
{
    struct autoscale_policy p = s->in->scaling;
    p.min = s->in->min;
    p.max = s->in->max ? s->in->max : s->in->min;
    return p;
}

static void apply(struct sim_control *k, struct sim_service *s, struct autoscale_decision d)
{
    uint32_t was = s->wanted;
    s->wanted = d.replicas;
    k->due |= d.change != AUTOSCALE_KEEP;
    k->n_up += d.change == AUTOSCALE_UP;
    k->n_down += d.change == AUTOSCALE_DOWN;
    k->n_grown += d.replicas > was ? d.replicas - was : 0;
    s->n_up += d.change == AUTOSCALE_UP;
    s->n_down += d.change == AUTOSCALE_DOWN;
    k->n_to_zero += was > 0 && d.replicas == 0;
    k->n_from_zero += was == 0 && d.replicas > 0;
}

static void scale_model(struct sim_control *k, uint32_t model)
{
    struct sim_world *w = k->w;
    struct sim_service *s = &w->models[model];
    double seconds = w->in->scale_ms / 1000.0;
    double open = (double)s->n_waiting + s->n_running;
    struct autoscale_policy p = limits(s);
    struct autoscale_signal in = {
        .now_ms = w->now_us / 1000,
        .ready = s->n_ready,
        .cpu = s->n_ready ? s->busy_us / (s->n_ready * seconds * 1e6) : -1,
        .queue = open > s->n_ready ? open - s->n_ready : 0,
        .p95_ms = s->recent.total >= MIN_P95 ? sim_histogram_ms(&s->recent, 0.95) : 0,
        .budget_ms = s->in->budget_ms,
        .arrivals_per_s = s->arrivals,
        .capacity_per_s = capacity(w, model)};
    s->arrived = 0;
    s->busy_us = 0;
    s->recent = (struct sim_histogram){.total = 0};
    if (!s->in->autoscale)
        return;
    apply(k, s, autoscale_decide(&s->scaling, &p, &in));
}

void sim_control_wake(struct sim_control *k, uint32_t model)
{
    struct sim_service *s = &k->w->models[model];
    if (!s->in->autoscale || s->wanted > 0)
        return;
    struct autoscale_signal in = {
        .now_ms = k->w->now_us / 1000, .cpu = -1, .queue = s->n_waiting, .arrivals_per_s = 1};
    struct autoscale_policy p = limits(s);
    apply(k, s, autoscale_decide(&s->scaling, &p, &in));
}

void sim_control_scale(struct sim_control *k)
{
    struct sim_world *w = k->w;
    double used = 0, there = 0;
    for (uint32_t i = 0; i < w->n_models; i++)
        scale_model(k, i);
    for (uint32_t i = 0; i < w->n_nodes; i++)
        if (w->nodes[i].up) {
            used += (double)w->nodes[i].used_bytes;
            there += (double)w->in->classes[w->nodes[i].class_id].memory_bytes;
        }
    if (there > 0 && w->now_us >= w->counted_from_us) {
        k->memory_sum += used / there;
        k->memory_max = used / there > k->memory_max ? used / there : k->memory_max;
        k->n_samples++;
    }
}
