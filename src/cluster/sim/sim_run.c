/* sim_run.c - see sim_run.h. */
#include "cluster/sim/sim_run.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "cluster/sim/sim_control.h"

#define PROGRESS_EVERY 4096u /* events */

enum { RAND_EVENTS = 3 };

struct run {
    struct sim_world w;
    struct sim_control k;
    const struct sim_scenario *in;
    uint32_t seed;
    uint64_t n_churn[SIM_N_ACTIONS];
    uint64_t n_events; /* after the warm-up, spikes apart */
    struct sim_rand rand;
    uint64_t planned_us;
    bool plan_queued;
};

static void count(struct run *r, enum sim_action action)
{
    r->n_churn[action]++;
    r->n_events += action != SIM_SPIKE && r->w.now_us >= r->w.counted_from_us;
}

static uint64_t after(const struct run *r, double ms)
{
    return r->w.now_us + (uint64_t)(ms * 1000) + 1;
}

/* A plan soon, since something changed. */
static void want_plan(struct run *r)
{
    r->k.due = true;
    if (r->plan_queued)
        return;
    uint64_t at = r->planned_us + (uint64_t)r->in->pause_ms * 1000;
    sim_queue_push(&r->w.queue, at > r->w.now_us ? at : r->w.now_us, SIM_AT_PLAN, 0, 1);
    r->plan_queued = true;
}

/* ---- nodes that come and go ---- */

static void schedule_churn(struct run *r, uint32_t node, uint32_t kind, const struct sim_churn *c)
{
    struct sim_box *b = &r->w.nodes[node];
    if (c->every_ms > 0)
        sim_queue_push(&r->w.queue, after(r, c->every_ms * sim_rand_exp(&b->rand)), kind, node,
                       b->life);
}

static void start_life(struct run *r, uint32_t node)
{
    const struct sim_class *c = &r->in->classes[r->w.nodes[node].class_id];
    schedule_churn(r, node, SIM_AT_CRASH, &c->crash);
    schedule_churn(r, node, SIM_AT_LEAVE, &c->leave);
    schedule_churn(r, node, SIM_AT_SLOW, &c->slow);
}

/* back_ms 0: it does not come back. */
static void end_node(struct run *r, uint32_t node, bool crash, double back_ms)
{
    struct sim_box *b = &r->w.nodes[node];
    if (!b->up)
        return;
    count(r, crash ? SIM_CRASH : SIM_LEAVE);
    sim_world_end_node(&r->w, node, crash ? r->in->failover_ms : 0);
    if (crash) {
        sim_queue_push(&r->w.queue, after(r, r->in->detect_ms), SIM_AT_DETECT, node, b->life);
    } else {
        sim_world_notice(&r->w, node, false);
        want_plan(r);
    }
    if (back_ms > 0)
        sim_queue_push(&r->w.queue, after(r, back_ms), SIM_AT_BACK, node, b->life);
}

static void come_back(struct run *r, uint32_t node)
{
    sim_world_restart_node(&r->w, node);
    count(r, SIM_JOIN);
    start_life(r, node);
    want_plan(r);
}

static void slow_down(struct run *r, uint32_t node, double factor, double for_ms)
{
    struct sim_box *b = &r->w.nodes[node];
    if (!b->up)
        return;
    count(r, SIM_SLOW);
    b->slow = factor;
    if (for_ms > 0)
        sim_queue_push(&r->w.queue, after(r, for_ms), SIM_AT_SLOW_END, node, b->life);
    want_plan(r);
}

static void churn(struct run *r, const struct sim_item *it)
{
    struct sim_box *b = &r->w.nodes[it->what];
    const struct sim_class *c = &r->in->classes[b->class_id];
    if (it->stamp != b->life)
        return; /* the event belongs to an earlier life of the node */
    if (it->kind == SIM_AT_CRASH) {
        end_node(r, it->what, true, c->crash.for_ms * sim_rand_exp(&b->rand));
    } else if (it->kind == SIM_AT_LEAVE) {
        end_node(r, it->what, false, c->leave.for_ms * sim_rand_exp(&b->rand));
    } else if (it->kind == SIM_AT_BACK) {
        come_back(r, it->what);
    } else if (it->kind == SIM_AT_SLOW) {
        slow_down(r, it->what, c->slow.factor, c->slow.for_ms * sim_rand_exp(&b->rand));
        schedule_churn(r, it->what, SIM_AT_SLOW, &c->slow);
    } else if (it->kind == SIM_AT_SLOW_END) {
        b->slow = 1;
        want_plan(r);
    } else if (it->kind == SIM_AT_DETECT && (!b->up || b->cut)) {
        sim_world_notice(&r->w, it->what, false);
        want_plan(r);
    }
}

/* ---- events of the scenario ---- */

/* A node of the event's class that is up and not drained; SIM_NONE: none. */
static uint32_t choose_node(struct run *r, const struct sim_event *ev)
{
    uint32_t n = 0, pick;
    for (uint32_t pass = 0; pass < 2; pass++) {
        pick = pass ? sim_rand_below(&r->rand, n) : 0;
        for (uint32_t i = 0; i < r->w.n_nodes; i++) {
            const struct sim_box *b = &r->w.nodes[i];
            if (!b->up || b->drained || b->cut ||
                (ev->class_id != UINT32_MAX && b->class_id != ev->class_id) ||
                (ev->zone && strcmp(ev->zone, b->zone_name) != 0))
                continue;
            if (!pass)
                n++;
            else if (pick-- == 0)
                return i;
        }
        if (n == 0)
            return SIM_NONE;
    }
    return SIM_NONE;
}

static void cut_zone(struct run *r, const char *zone, bool cut)
{
    for (uint32_t i = 0; i < r->w.n_nodes; i++) {
        struct sim_box *b = &r->w.nodes[i];
        if (strcmp(b->zone_name, zone) != 0 || b->cut == cut)
            continue;
        sim_world_cut_node(&r->w, i, cut);
        if (!b->up)
            continue;
        if (cut)
            sim_queue_push(&r->w.queue, after(r, r->in->detect_ms), SIM_AT_DETECT, i, b->life);
        else
            sim_world_notice(&r->w, i, true);
    }
    if (!cut)
        want_plan(r);
}

static void spike(struct run *r, uint32_t model, double factor)
{
    for (uint32_t i = 0; i < r->w.n_models; i++)
        if (r->w.models[i].in == &r->in->models[model])
            r->w.models[i].spike = factor;
}

static void drain_one(struct run *r, const struct sim_event *ev, uint32_t index)
{
    uint32_t node = choose_node(r, ev);
    if (node == SIM_NONE)
        return;
    r->w.nodes[node].drained = true;
    count(r, SIM_DRAIN);
    if (ev->for_ms > 0)
        sim_queue_push(&r->w.queue, after(r, ev->for_ms), SIM_AT_EVENT_END, index, node);
    want_plan(r);
}

static void begin_event(struct run *r, uint32_t index)
{
    const struct sim_event *ev = &r->in->events[index];
    uint32_t node;
    if (ev->action == SIM_PARTITION) {
        count(r, SIM_PARTITION);
        cut_zone(r, ev->zone, true);
    } else if (ev->action == SIM_SPIKE) {
        count(r, SIM_SPIKE);
        spike(r, ev->model_id, ev->factor);
    }
    if ((ev->action == SIM_PARTITION || ev->action == SIM_SPIKE) && ev->for_ms > 0)
        sim_queue_push(&r->w.queue, after(r, ev->for_ms), SIM_AT_EVENT_END, index, 0);
    for (uint32_t i = 0; i < ev->count; i++) {
        if (ev->action == SIM_JOIN) {
            node = sim_world_add_node(&r->w, ev->class_id, r->seed);
            count(r, SIM_JOIN);
            start_life(r, node);
            want_plan(r);
        } else if (ev->action == SIM_DRAIN) {
            drain_one(r, ev, index);
        } else if (ev->action == SIM_CRASH || ev->action == SIM_LEAVE || ev->action == SIM_SLOW) {
            node = choose_node(r, ev);
            if (node == SIM_NONE)
                return;
            if (ev->action == SIM_SLOW)
                slow_down(r, node, ev->factor, ev->for_ms);
            else
                end_node(r, node, ev->action == SIM_CRASH, ev->for_ms);
        }
    }
}

static void end_event(struct run *r, const struct sim_item *it)
{
    const struct sim_event *ev = &r->in->events[it->what];
    if (ev->action == SIM_PARTITION) {
        cut_zone(r, ev->zone, false);
    } else if (ev->action == SIM_SPIKE) {
        spike(r, ev->model_id, 1);
    } else if (ev->action == SIM_DRAIN) {
        r->w.nodes[it->stamp].drained = false;
        want_plan(r);
    }
}

/* ---- the loop ---- */

static void begin(struct run *r)
{
    struct sim_world *w = &r->w;
    for (uint32_t i = 0; i < w->n_nodes; i++)
        start_life(r, i);
    for (uint32_t i = 0; i < w->n_models; i++)
        if (w->models[i].in->rate > 0)
            sim_queue_push(&w->queue, w->counted_from_us, SIM_AT_ARRIVAL, i, 0);
    for (uint32_t i = 0; i < r->in->n_events; i++)
        sim_queue_push(&w->queue, (uint64_t)r->in->events[i].at_ms * 1000, SIM_AT_EVENT, i, 0);
    sim_queue_push(&w->queue, 0, SIM_AT_PLAN, 0, 0);
    sim_queue_push(&w->queue, 0, SIM_AT_SCALE, 0, 0);
}

/* stamp 0: the regular plan; 1: a requested one. */
static int plan(struct run *r, const struct sim_item *it, struct err *e)
{
    if (it->stamp)
        r->plan_queued = false;
    else
        sim_queue_push(&r->w.queue, after(r, r->in->plan_ms), SIM_AT_PLAN, 0, 0);
    if (it->stamp && !r->k.due)
        return 0;
    r->planned_us = r->w.now_us;
    return sim_control_plan(&r->k, e);
}

static void wake(struct run *r, uint32_t model)
{
    sim_control_wake(&r->k, model);
    if (r->k.due)
        want_plan(r);
}

static int handle(struct run *r, const struct sim_item *it, struct err *e)
{
    struct sim_world *w = &r->w;
    switch ((enum sim_kind)it->kind) {
    case SIM_AT_ARRIVAL:
        if (it->stamp)
            sim_world_arrival(w, it->what);
        if (w->models[it->what].wanted == 0 && it->stamp)
            wake(r, it->what);
        sim_world_schedule_arrival(w, it->what);
        break;
    case SIM_AT_DONE:
        sim_world_done(w, it->what, it->stamp);
        break;
    case SIM_AT_RETRY:
        sim_world_retry(w, it->what, it->stamp);
        break;
    case SIM_AT_LOADED: {
        bool loads = w->replicas[it->what].stamp == it->stamp;
        sim_world_loaded(w, it->what, it->stamp);
        if (loads)
            sim_control_progress(&r->k, it->what);
        break;
    }
    case SIM_AT_EVENT:
        begin_event(r, it->what);
        break;
    case SIM_AT_EVENT_END:
        end_event(r, it);
        break;
    case SIM_AT_PLAN:
        return plan(r, it, e);
    case SIM_AT_SCALE:
        sim_control_scale(&r->k);
        if (r->k.due)
            want_plan(r);
        sim_queue_push(&w->queue, after(r, r->in->scale_ms), SIM_AT_SCALE, 0, 0);
        break;
    default:
        churn(r, it);
    }
    return 0;
}

static int loop(struct run *r, const struct sim_opts *o, struct err *e)
{
    uint64_t end_us = (uint64_t)r->in->duration_ms * 1000, n = 0;
    struct sim_item it;
    while (sim_queue_pop(&r->w.queue, &it) && it.at_us <= end_us) {
        r->w.now_us = it.at_us;
        int rc = handle(r, &it, e);
        if (rc < 0)
            return rc;
        if (r->w.failed || r->w.queue.failed)
            return err_set(e, SHOAL_ENOMEM, "simulation");
        if ((n++ % PROGRESS_EVERY == 0 || it.kind == SIM_AT_PLAN) && o->progress &&
            o->progress(o->progress_ctx, (double)it.at_us / (double)end_us, r->w.n_nodes,
                        r->k.n_plans))
            return err_set(e, SHOAL_ECANCELLED, "interrupted");
    }
    r->w.now_us = end_us;
    return 0;
}

/* ---- the result ---- */

static void add_row(struct sim_row *all, const struct sim_row *m)
{
    all->n_requests += m->n_requests;
    all->n_available += m->n_available;
    all->n_on_time += m->n_on_time;
    all->n_open += m->n_open;
    all->n_moved += m->n_moved;
    all->below_min_s += m->below_min_s;
    all->n_up += m->n_up;
    all->n_down += m->n_down;
    all->n_ready += m->n_ready;
}

static void add_histogram(struct sim_histogram *all, const struct sim_histogram *h)
{
    for (unsigned i = 0; i < SIM_BUCKETS; i++)
        all->n[i] += h->n[i];
    all->total += h->total;
}

static void quantiles(struct sim_row *row, const struct sim_histogram *h)
{
    row->p50_ms = sim_histogram_ms(h, 0.5);
    row->p95_ms = sim_histogram_ms(h, 0.95);
    row->p99_ms = sim_histogram_ms(h, 0.99);
}

/* Unfinished requests: those within their budget are not counted, the others are late. */
static int count_open(const struct run *r, struct sim_row *rows, struct err *e)
{
    const struct sim_world *w = &r->w;
    for (uint32_t i = 0; i < w->n_models; i++)
        rows[i].n_open = 0;
    bool *idle = mem_zalloc_n(w->n_requests + 1, 1);
    if (!idle)
        return err_set(e, SHOAL_ENOMEM, "simulation");
    for (uint32_t i = w->free_request; i != SIM_NONE; i = w->requests[i].next)
        idle[i] = true;
    for (uint32_t i = 0; i < w->n_requests; i++) {
        const struct sim_request *q = &w->requests[i];
        if (idle[i])
            continue;
        rows[q->model].n_open +=
            w->now_us - q->start_us <= (uint64_t)w->models[q->model].in->budget_ms * 1000;
        rows[q->model].n_available +=
            q->counted &&
            w->now_us - q->start_us > (uint64_t)w->models[q->model].in->budget_ms * 1000;
    }
    mem_free(idle);
    return 0;
}

static int report(struct sim_result *out, struct run *r, struct err *e)
{
    struct sim_world *w = &r->w;
    const struct sim_control *k = &r->k;
    struct sim_histogram *all = mem_zalloc(sizeof(*all));
    out->models = mem_zalloc_n(w->n_models, sizeof(*out->models));
    if (!all || !out->models) {
        mem_free(all);
        return err_set(e, SHOAL_ENOMEM, "simulation");
    }
    out->n_models = w->n_models;
    for (uint32_t i = 0; i < w->n_models; i++) {
        struct sim_service *s = &w->models[i];
        struct sim_row *row = &out->models[i];
        if (s->below_since_us)
            s->below_us += w->now_us - s->below_since_us;
        *row = (struct sim_row){.n_requests = s->n_requests,
                                .n_available = s->n_available,
                                .n_on_time = s->n_on_time,
                                .n_moved = s->n_moved,
                                .below_min_s = (double)s->below_us / 1e6,
                                .n_up = s->n_up,
                                .n_down = s->n_down,
                                .n_ready = s->n_ready};
        memcpy(row->name, s->name, sizeof(row->name));
        quantiles(row, &s->latency);
        add_histogram(all, &s->latency);
    }
    int rc = count_open(r, out->models, e);
    for (uint32_t i = 0; i < w->n_models; i++)
        add_row(&out->all, &out->models[i]);
    quantiles(&out->all, all);
    mem_free(all);
    for (uint32_t i = 0; i < w->n_nodes; i++)
        out->n_nodes_end += w->nodes[i].up;
    out->seconds = r->in->duration_ms / 1000.0;
    memcpy(out->n_churn, r->n_churn, sizeof(out->n_churn));
    out->n_events = r->n_events;
    out->n_plans = k->n_plans;
    out->n_loads = k->n_loads;
    out->n_unloads = k->n_unloads;
    out->n_moves = k->n_moves;
    out->n_replaced = k->n_loads > k->n_grown ? k->n_loads - k->n_grown : 0;
    out->n_plans_with_gaps = k->n_gaps;
    out->replaced_per_event = out->n_events ? (double)out->n_replaced / (double)out->n_events : 0;
    out->memory_mean = k->n_samples ? k->memory_sum / (double)k->n_samples : 0;
    out->memory_max = k->memory_max;
    out->n_up = k->n_up;
    out->n_down = k->n_down;
    out->n_to_zero = k->n_to_zero;
    out->n_from_zero = k->n_from_zero;
    out->plan_mean_ms = k->n_plans ? k->plan_ms / (double)k->n_plans : 0;
    out->plan_max_ms = k->max_plan_ms;
    memcpy(out->last_gap, k->last_gap, sizeof(out->last_gap));
    return rc;
}

int sim_run(struct sim_result *out, const struct sim_scenario *s, const struct sim_opts *o,
            struct err *e)
{
    struct run r = {.in = s, .seed = o->seed, .rand = sim_rand_make(o->seed, RAND_EVENTS, 0)};
    *out = (struct sim_result){0};
    int rc = sim_world_init(&r.w, s, o->seed, e);
    out->n_nodes_start = r.w.n_nodes;
    if (rc == 0)
        rc = sim_control_init(&r.k, &r.w, e);
    if (rc == 0) {
        r.k.on_plan = o->on_plan;
        r.k.on_plan_ctx = o->on_plan_ctx;
        begin(&r);
        rc = loop(&r, o, e);
    }
    if (rc == 0)
        rc = report(out, &r, e);
    sim_control_fini(&r.k);
    sim_world_fini(&r.w);
    if (rc < 0)
        sim_result_fini(out);
    return rc;
}

void sim_result_fini(struct sim_result *r)
{
    mem_free(r->models);
    *r = (struct sim_result){0};
}
