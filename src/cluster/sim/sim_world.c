/* sim_world.c - see sim_world.h. */
#include "cluster/sim/sim_world.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"

enum { RAND_NODE = 1, RAND_MODEL };

/* ---- histogram ---- */

static void histogram_add(struct sim_histogram *h, uint64_t us)
{
    unsigned log = us < 8 ? 3 : 63 - (unsigned)__builtin_clzll(us);
    unsigned i = us < 8 ? (unsigned)us : (log - 2) * 8 + (unsigned)(us >> (log - 3) & 7);
    h->n[i < SIM_BUCKETS ? i : SIM_BUCKETS - 1]++;
    h->total++;
}

double sim_histogram_ms(const struct sim_histogram *h, double q)
{
    uint64_t rank = (uint64_t)(q * (double)h->total), sum = 0;
    if (h->total == 0)
        return 0;
    rank = rank >= h->total ? h->total - 1 : rank;
    for (unsigned i = 0; i < SIM_BUCKETS; i++) {
        sum += h->n[i];
        if (sum > rank) { /* the upper end of the bucket */
            unsigned log = i / 8 + 2;
            double us = i < 8 ? i + 1 : (double)((uint64_t)1 << (log - 3)) * (8 + i % 8 + 1);
            return us / 1000;
        }
    }
    return 0;
}

/* ---- start and end ---- */

static int add_models(struct sim_world *w, uint32_t seed, struct err *e)
{
    const struct sim_scenario *in = w->in;
    uint32_t n = 0;
    for (uint32_t i = 0; i < in->n_models; i++)
        n += in->models[i].copies;
    w->models = mem_zalloc_n(n, sizeof(*w->models));
    if (!w->models)
        return err_set(e, SHOAL_ENOMEM, "simulation");
    for (uint32_t i = 0; i < in->n_models; i++)
        for (uint32_t k = 0; k < in->models[i].copies; k++) {
            struct sim_service *s = &w->models[w->n_models];
            const struct sim_model *m = &in->models[i];
            snprintf(s->name, sizeof(s->name), m->copies > 1 ? "%.40s-%u" : "%.40s", m->name,
                     k + 1);
            s->in = m;
            s->waiting = s->last_waiting = SIM_NONE;
            s->spike = 1;
            s->wanted = m->min;
            s->rand = sim_rand_make(seed, RAND_MODEL, w->n_models);
            w->n_models++;
        }
    return 0;
}

int sim_world_init(struct sim_world *w, const struct sim_scenario *in, uint32_t seed, struct err *e)
{
    *w = (struct sim_world){.in = in, .free_replica = SIM_NONE, .free_request = SIM_NONE};
    w->counted_from_us = (uint64_t)in->warmup_ms * 1000;
    w->cap_nodes = (uint32_t)sim_scenario_nodes(in);
    w->nodes = mem_zalloc_n(w->cap_nodes, sizeof(*w->nodes));
    if (!w->nodes)
        return err_set(e, SHOAL_ENOMEM, "simulation");
    for (uint32_t i = 0; i < in->n_classes; i++)
        for (uint32_t k = 0; k < in->classes[i].count; k++)
            sim_world_add_node(w, i, seed);
    return add_models(w, seed, e);
}

void sim_world_fini(struct sim_world *w)
{
    for (uint32_t i = 0; i < w->n_models; i++)
        mem_free(w->models[i].ready);
    mem_free(w->nodes);
    mem_free(w->models);
    mem_free(w->replicas);
    mem_free(w->requests);
    sim_queue_fini(&w->queue);
    *w = (struct sim_world){0};
}

/* Makes room in an array of uint32_t-numbered entries. */
static bool grow(struct sim_world *w, void **array, uint32_t *cap, uint32_t n, size_t size)
{
    if (n < *cap)
        return true;
    uint32_t bigger = *cap ? *cap * 2 : 64;
    void *p = bigger > *cap ? mem_realloc(*array, bigger * size) : NULL;
    if (!p) {
        w->failed = true;
        return false;
    }
    *array = p;
    *cap = bigger;
    return true;
}

/* ---- what the planner sees ---- */

struct placement_node sim_world_node(const struct sim_world *w, const struct sim_box *b)
{
    const struct sim_class *c = &w->in->classes[b->class_id];
    struct placement_node n = {.name = b->name,
                               .zone = b->zone_name,
                               .labels = {(const char *const *)c->labels.v, c->labels.n},
                               .memory_bytes = c->memory_bytes,
                               .load = c->busy,
                               .cost = c->cost,
                               .on_battery = c->battery >= 0,
                               .battery = c->battery >= 0 ? c->battery : 0,
                               .drained = b->drained};
    for (int k = 0; k < PLACEMENT_N_KINDS; k++)
        n.speed[k] = (struct placement_speed){c->bandwidth * b->speed / b->slow,
                                              c->tokens * b->speed / b->slow};
    return n;
}

static struct placement_strs strs(const struct yaml_in_strs *s)
{
    return (struct placement_strs){(const char *const *)s->v, s->n};
}

struct placement_model sim_world_model(const struct sim_service *s)
{
    const struct sim_model *m = s->in;
    return (struct placement_model){.name = s->name,
                                    .kind = m->kind,
                                    .bytes = m->bytes,
                                    .memory_bytes = m->memory_bytes,
                                    .min_replicas = s->wanted < m->min ? s->wanted : m->min,
                                    .max_replicas = m->max,
                                    .want_replicas = s->wanted,
                                    .standby = s->wanted ? m->standby : 0,
                                    .pins = strs(&m->pins),
                                    .labels = strs(&m->labels),
                                    .not_labels = strs(&m->not_labels),
                                    .zones = strs(&m->zones),
                                    .max_per_zone = m->max_per_zone,
                                    .spread = m->spread,
                                    .apart = m->apart,
                                    .priority = m->priority};
}

/* Microseconds for a number of tokens. */
static double service_us(const struct sim_world *w, uint32_t model, uint32_t node, double tokens)
{
    struct placement_node n = sim_world_node(w, &w->nodes[node]);
    struct placement_model m = sim_world_model(&w->models[model]);
    double idle = n.load < 0.95 ? 1 - n.load : 0.05;
    return tokens * 1e6 / (placement_rate(&n, &m) * idle);
}

/* ---- nodes ---- */

uint32_t sim_world_add_node(struct sim_world *w, uint32_t class_id, uint64_t seed)
{
    const struct sim_class *c = &w->in->classes[class_id];
    uint32_t id = w->n_nodes, number = 1;
    assert(id < w->cap_nodes); /* sim_scenario_nodes counts those that join */
    for (uint32_t i = 0; i < id; i++)
        number += w->nodes[i].class_id == class_id;
    struct sim_box *b = &w->nodes[w->n_nodes++];
    *b = (struct sim_box){.class_id = class_id,
                          .up = true,
                          .known = true,
                          .slow = 1,
                          .requests = SIM_NONE,
                          .replicas = SIM_NONE,
                          .zone_name = "",
                          .rand = sim_rand_make(seed, RAND_NODE, id)};
    snprintf(b->name, sizeof(b->name), "%.30s-%u", c->name, number);
    if (c->zones.n > 0)
        b->zone_name = c->zones.v[(number - 1) % c->zones.n];
    b->speed = 1 + c->variation * (2 * sim_rand_unit(&b->rand) - 1);
    b->speed = b->speed > 0.05 ? b->speed : 0.05;
    return id;
}

/* ---- replicas ---- */

/* Keeps the time below the minimum. */
static void count_ready(struct sim_world *w, struct sim_service *s)
{
    uint32_t min = s->in->min && s->wanted < s->in->min ? s->wanted : s->in->min;
    bool below = s->n_ready < min;
    if (!below)
        s->reached = true;
    if (below && s->reached && s->below_since_us == 0) {
        s->below_since_us = w->now_us;
    } else if (!below && s->below_since_us > 0) {
        s->below_us += w->now_us - s->below_since_us;
        s->below_since_us = 0;
    }
}

static void make_ready(struct sim_world *w, uint32_t replica)
{
    struct sim_replica *r = &w->replicas[replica];
    struct sim_service *s = &w->models[r->model];
    if (!grow(w, (void **)&s->ready, &s->cap_ready, s->n_ready, sizeof(uint32_t)))
        return;
    r->at = s->n_ready;
    s->ready[s->n_ready++] = replica;
    count_ready(w, s);
}

static void make_unready(struct sim_world *w, uint32_t replica)
{
    struct sim_replica *r = &w->replicas[replica];
    struct sim_service *s = &w->models[r->model];
    if (r->at == SIM_NONE)
        return;
    uint32_t last = s->ready[--s->n_ready];
    s->ready[r->at] = last;
    w->replicas[last].at = r->at;
    r->at = SIM_NONE;
    count_ready(w, s);
}

uint32_t sim_world_find(const struct sim_world *w, uint32_t model, uint32_t node)
{
    uint32_t i = w->nodes[node].replicas;
    while (i != SIM_NONE && w->replicas[i].model != model)
        i = w->replicas[i].next_on_node;
    return i;
}

uint32_t sim_world_load(struct sim_world *w, uint32_t model, uint32_t node)
{
    struct sim_box *b = &w->nodes[node];
    const struct sim_model *m = w->models[model].in;
    uint32_t id = w->free_replica;
    if (id != SIM_NONE) {
        w->free_replica = w->replicas[id].next_on_node;
    } else {
        if (!grow(w, (void **)&w->replicas, &w->cap_replicas, w->n_replicas, sizeof(*w->replicas)))
            return SIM_NONE;
        id = w->n_replicas++;
    }
    w->replicas[id] = (struct sim_replica){.model = model,
                                           .node = node,
                                           .there = true,
                                           .since_ms = w->now_us / 1000,
                                           .stamp = ++w->stamp,
                                           .at = SIM_NONE,
                                           .next_on_node = b->replicas};
    b->replicas = id;
    b->used_bytes += m->memory_bytes;
    double us =
        1e6 + (double)m->memory_bytes / w->in->classes[b->class_id].load_bytes * 1e6 * b->slow;
    sim_queue_push(&w->queue, w->now_us + (uint64_t)us, SIM_AT_LOADED, id, w->stamp);
    return id;
}

static void take_off_node(struct sim_world *w, uint32_t replica)
{
    const struct sim_replica *r = &w->replicas[replica];
    struct sim_box *b = &w->nodes[r->node];
    uint32_t *at = &b->replicas;
    while (*at != replica)
        at = &w->replicas[*at].next_on_node;
    *at = r->next_on_node;
    b->used_bytes -= w->models[r->model].in->memory_bytes;
}

void sim_world_unload(struct sim_world *w, uint32_t replica)
{
    struct sim_replica *r = &w->replicas[replica];
    make_unready(w, replica); /* its current work is finished first */
    if (!r->lost)
        take_off_node(w, replica);
    *r = (struct sim_replica){.next_on_node = w->free_replica, .at = SIM_NONE};
    w->free_replica = replica;
}

/* ---- requests ---- */

static void detach(struct sim_world *w, uint32_t id)
{
    struct sim_request *q = &w->requests[id];
    if (q->prev == SIM_NONE)
        w->nodes[q->node].requests = q->next;
    else
        w->requests[q->prev].next = q->next;
    if (q->next != SIM_NONE)
        w->requests[q->next].prev = q->prev;
    q->node = SIM_NONE;
    w->models[q->model].n_running--;
}

static void wait_for_replica(struct sim_world *w, uint32_t id)
{
    struct sim_service *s = &w->models[w->requests[id].model];
    w->requests[id].next = SIM_NONE;
    if (s->last_waiting == SIM_NONE)
        s->waiting = id;
    else
        w->requests[s->last_waiting].next = id;
    s->last_waiting = id;
    s->n_waiting++;
}

static uint64_t finish_on(const struct sim_world *w, const struct sim_request *q, uint32_t node,
                          uint64_t *began)
{
    uint64_t free_us = w->nodes[node].free_us;
    *began = free_us > w->now_us ? free_us : w->now_us;
    return *began + (uint64_t)service_us(w, q->model, node, q->tokens) + 1;
}

/* Sends a request to the better of two replicas. */
static void dispatch(struct sim_world *w, uint32_t id)
{
    struct sim_request *q = &w->requests[id];
    struct sim_service *s = &w->models[q->model];
    if (s->n_ready == 0) {
        wait_for_replica(w, id);
        return;
    }
    uint32_t a = w->replicas[s->ready[sim_rand_below(&s->rand, s->n_ready)]].node;
    uint32_t b = w->replicas[s->ready[sim_rand_below(&s->rand, s->n_ready)]].node;
    uint64_t began, other, finish = finish_on(w, q, a, &began);
    if (a != b) {
        uint64_t f = finish_on(w, q, b, &other);
        if (f < finish) {
            finish = f;
            began = other;
            a = b;
        }
    }
    struct sim_box *node = &w->nodes[a];
    q->stamp = ++w->stamp;
    if (!node->up || node->cut) { /* silent, but not yet noticed */
        sim_queue_push(&w->queue, w->now_us + (uint64_t)w->in->stall_ms * 1000, SIM_AT_RETRY, id,
                       q->stamp);
        s->n_moved++;
        return;
    }
    q->counted |= w->now_us - q->start_us <= (uint64_t)s->in->budget_ms * 1000;
    s->busy_us += (double)(finish - began);
    node->free_us = q->finish_us = finish;
    q->began_us = began;
    q->node = a;
    q->prev = SIM_NONE;
    q->next = node->requests;
    if (q->next != SIM_NONE)
        w->requests[q->next].prev = id;
    node->requests = id;
    s->n_running++;
    sim_queue_push(&w->queue, finish, SIM_AT_DONE, id, q->stamp);
}

static void wake(struct sim_world *w, struct sim_service *s)
{
    while (s->waiting != SIM_NONE && s->n_ready > 0 && !w->failed) {
        uint32_t id = s->waiting;
        s->waiting = w->requests[id].next;
        if (s->waiting == SIM_NONE)
            s->last_waiting = SIM_NONE;
        s->n_waiting--;
        dispatch(w, id);
    }
}

void sim_world_loaded(struct sim_world *w, uint32_t replica, uint32_t stamp)
{
    struct sim_replica *r = &w->replicas[replica];
    if (!r->there || r->stamp != stamp || r->lost)
        return;
    r->ready = true;
    if (w->nodes[r->node].known)
        make_ready(w, replica);
    wake(w, &w->models[r->model]);
}

void sim_world_schedule_arrival(struct sim_world *w, uint32_t model)
{
    struct sim_service *s = &w->models[model];
    const struct sim_model *m = s->in;
    /* The rate rises and falls in a straight line; half a period up, half down. */
    uint64_t period = (uint64_t)m->period_ms * 1000;
    double phase = (double)(w->now_us % period) / (double)period;
    double wave = phase < 0.5 ? 4 * phase - 1 : 3 - 4 * phase;
    double rate = m->rate * s->spike * (1 + m->swing * wave);
    double gap = m->steady ? 1 : sim_rand_exp(&s->rand);
    /* A rate near zero is looked at again later. */
    uint64_t us = rate > 1e-4 ? (uint64_t)(gap / rate * 1e6) + 1 : 10000000;
    sim_queue_push(&w->queue, w->now_us + us, SIM_AT_ARRIVAL, model, rate > 1e-4);
}

void sim_world_arrival(struct sim_world *w, uint32_t model)
{
    struct sim_service *s = &w->models[model];
    uint32_t id = w->free_request;
    if (id != SIM_NONE) {
        w->free_request = w->requests[id].next;
    } else {
        if (!grow(w, (void **)&w->requests, &w->cap_requests, w->n_requests, sizeof(*w->requests)))
            return;
        id = w->n_requests++;
    }
    double tokens = s->in->tokens * (0.5 + sim_rand_unit(&s->rand));
    w->requests[id] = (struct sim_request){
        .model = model, .node = SIM_NONE, .start_us = w->now_us, .tokens = tokens};
    s->arrived++;
    s->n_requests++;
    dispatch(w, id);
}

void sim_world_done(struct sim_world *w, uint32_t request, uint32_t stamp)
{
    struct sim_request *q = &w->requests[request];
    struct sim_service *s = &w->models[q->model];
    if (q->stamp != stamp || q->node == SIM_NONE)
        return; /* the request went elsewhere */
    uint64_t us = w->now_us - q->start_us;
    detach(w, request);
    histogram_add(&s->latency, us);
    histogram_add(&s->recent, us);
    s->n_done++;
    s->n_available += q->counted;
    s->n_on_time += us <= (uint64_t)s->in->budget_ms * 1000;
    q->stamp = ++w->stamp;
    q->next = w->free_request;
    w->free_request = request;
}

void sim_world_retry(struct sim_world *w, uint32_t request, uint32_t stamp)
{
    if (w->requests[request].stamp == stamp)
        dispatch(w, request);
}

/* ---- nodes that end ---- */

/* Moves its requests elsewhere, with their remaining tokens. */
static void move_requests(struct sim_world *w, uint32_t node, uint32_t delay_ms)
{
    while (w->nodes[node].requests != SIM_NONE) {
        uint32_t id = w->nodes[node].requests;
        struct sim_request *q = &w->requests[id];
        if (w->now_us > q->began_us && q->finish_us > q->began_us)
            q->tokens *= (double)(q->finish_us - w->now_us) / (double)(q->finish_us - q->began_us);
        w->models[q->model].n_moved++;
        detach(w, id);
        q->stamp = ++w->stamp;
        sim_queue_push(&w->queue, w->now_us + (uint64_t)delay_ms * 1000, SIM_AT_RETRY, id,
                       q->stamp);
    }
    w->nodes[node].free_us = w->now_us;
}

void sim_world_notice(struct sim_world *w, uint32_t node, bool there)
{
    struct sim_box *b = &w->nodes[node];
    if (b->known == there)
        return;
    b->known = there;
    for (uint32_t i = b->replicas; i != SIM_NONE; i = w->replicas[i].next_on_node) {
        if (there && w->replicas[i].ready)
            make_ready(w, i);
        else if (!there)
            make_unready(w, i);
        if (there)
            wake(w, &w->models[w->replicas[i].model]);
    }
    if (!there)
        move_requests(w, node, 0);
}

void sim_world_cut_node(struct sim_world *w, uint32_t node, bool cut)
{
    w->nodes[node].cut = cut;
    if (cut)
        move_requests(w, node, w->in->stall_ms);
}

void sim_world_end_node(struct sim_world *w, uint32_t node, uint32_t delay_ms)
{
    struct sim_box *b = &w->nodes[node];
    b->up = false;
    b->life++;
    for (uint32_t i = b->replicas, next; i != SIM_NONE; i = next) {
        struct sim_replica *r = &w->replicas[i];
        next = r->next_on_node;
        make_unready(w, i); /* connections to it break */
        r->lost = true;
        r->ready = false;
        r->stamp = ++w->stamp;
        b->used_bytes -= w->models[r->model].in->memory_bytes;
        r->next_on_node = SIM_NONE;
    }
    b->replicas = SIM_NONE;
    move_requests(w, node, delay_ms);
}

void sim_world_restart_node(struct sim_world *w, uint32_t node)
{
    struct sim_box *b = &w->nodes[node];
    b->up = true;
    b->known = !b->cut;
    b->slow = 1;
    b->free_us = w->now_us;
}
