/* place_order.c - see place_order.h. */
#include "cluster/placement/place_order.h"

#include <assert.h>
#include <string.h>

#include "cluster/placement/place_words.h"

struct net { /* remaining move of a replica */
    uint32_t home, input;
    bool home_ready;
    bool loaded, left; /* done in an earlier wave */
    uint32_t load_step;
    uint32_t next_there; /* list of a node's replicas: those at home, then loaded ones */
};

struct order {
    struct place_core *c;
    struct placement_plan *plan;
    struct arena *arena;
    struct net *net;        /* [n_replicas] */
    int64_t *free_bytes;    /* [n_nodes] */
    uint32_t *ready;        /* [n_models] */
    uint32_t *homes;        /* [n_nodes]: first of the list of replicas at home there */
    uint32_t *arrived;      /* [n_nodes]: first of the list of loaded ones */
    uint32_t *next_arrived; /* [n_replicas] */
    uint32_t *todo;         /* replicas that are not in their final place */
    size_t n_todo, n_steps;
};

static bool stays(const struct order *o, uint32_t i)
{
    return o->c->replicas[i].node == o->net[i].home;
}

/* Replica y moves to the place that x of the same model leaves: they swap identities, so only one
 * moves. */
static void exchange(struct order *o, uint32_t *leaver, uint32_t y)
{
    uint32_t node = o->c->replicas[y].node, x = leaver[node];
    struct net was = o->net[y];
    o->net[y].home = o->net[x].home;
    o->net[y].input = o->net[x].input;
    o->net[y].home_ready = o->net[x].home_ready;
    o->net[x].home = was.home;
    o->net[x].input = was.input;
    o->net[x].home_ready = was.home_ready;
    o->c->replicas[x].why = o->c->replicas[y].why; /* the reason belongs to the step */
    leaver[node] = PLACEMENT_NONE;
    if (was.home != PLACEMENT_NONE)
        leaver[was.home] = x;
}

/* Lists the replicas model by model. */
static uint32_t *group_by_model(struct order *o, uint32_t *start)
{
    struct place_core *c = o->c;
    uint32_t *list = arena_zalloc_n(&c->arena, c->n_replicas + 1, sizeof(*list));
    if (!list)
        return NULL;
    for (size_t i = 0; i < c->n_replicas; i++)
        if (c->replicas[i].model != PLACEMENT_NONE)
            start[c->replicas[i].model + 1]++;
    for (uint32_t m = 0; m < c->n_models; m++)
        start[m + 1] += start[m];
    uint32_t *at = arena_zalloc_n(&c->arena, c->n_models + 1, sizeof(*at));
    if (!at)
        return NULL;
    memcpy(at, start, c->n_models * sizeof(*at));
    for (size_t i = 0; i < c->n_replicas; i++)
        if (c->replicas[i].model != PLACEMENT_NONE)
            list[at[c->replicas[i].model]++] = (uint32_t)i;
    return list;
}

static int cancel_exchanges(struct order *o, struct err *e)
{
    struct place_core *c = o->c;
    uint32_t *start = arena_zalloc_n(&c->arena, c->n_models + 2, sizeof(*start));
    uint32_t *list = start ? group_by_model(o, start) : NULL;
    uint32_t *leaver = arena_zalloc_n(&c->arena, c->n_nodes + 1, sizeof(*leaver));
    if (!list || !leaver)
        return err_set(e, SHOAL_ENOMEM, "placement");
    memset(leaver, 0xff, (c->n_nodes + 1) * sizeof(*leaver));
    for (uint32_t m = 0; m < c->n_models; m++) {
        for (uint32_t k = start[m]; k < start[m + 1]; k++) {
            uint32_t i = list[k];
            if (!c->replicas[i].stale && o->net[i].home != PLACEMENT_NONE && !stays(o, i))
                leaver[o->net[i].home] = i;
        }
        for (uint32_t k = start[m]; k < start[m + 1]; k++) {
            uint32_t i = list[k], node = c->replicas[i].node;
            if (node != PLACEMENT_NONE && !stays(o, i) && leaver[node] != PLACEMENT_NONE)
                exchange(o, leaver, i);
        }
        for (uint32_t k = start[m]; k < start[m + 1]; k++)
            if (o->net[list[k]].home != PLACEMENT_NONE)
                leaver[o->net[list[k]].home] = PLACEMENT_NONE;
    }
    return 0;
}

/* ---- the state at the start ---- */

static int begin(struct order *o, struct err *e)
{
    struct place_core *c = o->c;
    size_t n = c->n_replicas + 1;
    o->net = arena_zalloc_n(&c->arena, n, sizeof(*o->net));
    o->next_arrived = arena_zalloc_n(&c->arena, n, sizeof(uint32_t));
    o->todo = arena_zalloc_n(&c->arena, n, sizeof(uint32_t));
    o->free_bytes = arena_zalloc_n(&c->arena, c->n_nodes + 1, sizeof(*o->free_bytes));
    o->homes = arena_zalloc_n(&c->arena, c->n_nodes + 1, sizeof(uint32_t));
    o->arrived = arena_zalloc_n(&c->arena, c->n_nodes + 1, sizeof(uint32_t));
    o->ready = arena_zalloc_n(&c->arena, c->n_models + 1, sizeof(uint32_t));
    if (c->arena.rc < 0)
        return err_set(e, c->arena.rc, "placement");
    memset(o->homes, 0xff, (c->n_nodes + 1) * sizeof(uint32_t));
    memset(o->arrived, 0xff, (c->n_nodes + 1) * sizeof(uint32_t));
    for (size_t i = 0; i < c->n_replicas; i++)
        o->net[i] = (struct net){.home = c->replicas[i].home,
                                 .input = c->replicas[i].input,
                                 .home_ready = c->replicas[i].home_ready,
                                 .load_step = PLACEMENT_NONE};
    int rc = cancel_exchanges(o, e);
    if (rc < 0)
        return rc;
    for (uint32_t i = 0; i < c->n_nodes; i++)
        o->free_bytes[i] = (int64_t)c->nodes[i].in->memory_bytes;
    for (uint32_t i = 0; i < c->n_replicas; i++) {
        struct net *t = &o->net[i];
        const struct place_replica *r = &c->replicas[i];
        if (t->home != PLACEMENT_NONE) {
            o->free_bytes[t->home] -= (int64_t)r->bytes;
            t->next_there = o->homes[t->home];
            o->homes[t->home] = i;
            if (r->model != PLACEMENT_NONE)
                o->ready[r->model] += t->home_ready;
        }
        if (!stays(o, i))
            o->todo[o->n_todo++] = i;
    }
    return 0;
}

/* Whether something on the node now forbids the model there. */
static bool blocked(const struct order *o, uint32_t model, uint32_t node)
{
    const struct place_core *c = o->c;
    uint32_t apart = c->models[model].apart;
    for (uint32_t i = o->homes[node]; i != PLACEMENT_NONE; i = o->net[i].next_there) {
        uint32_t there = c->replicas[i].model;
        if (!o->net[i].left &&
            (there == model || (apart != PLACEMENT_NONE && there != PLACEMENT_NONE &&
                                c->models[there].apart == apart)))
            return true;
    }
    for (uint32_t i = o->arrived[node]; i != PLACEMENT_NONE; i = o->next_arrived[i])
        if (apart != PLACEMENT_NONE && c->models[c->replicas[i].model].apart == apart)
            return true;
    return false;
}

static bool may_leave(const struct order *o, uint32_t i)
{
    const struct place_replica *r = &o->c->replicas[i];
    if (r->node != PLACEMENT_NONE && !o->net[i].loaded)
        return false; /* first it is ready elsewhere */
    if (r->model == PLACEMENT_NONE || !o->net[i].home_ready)
        return true;
    return o->ready[r->model] > o->c->models[r->model].floor;
}

static struct placement_step *new_step(struct order *o, enum placement_action action, uint32_t i,
                                       uint32_t node, uint32_t wave)
{
    const struct place_core *c = o->c;
    uint32_t model = c->replicas[i].model;
    struct placement_step *s = &o->plan->steps[o->n_steps++];
    *s = (struct placement_step){
        .action = action,
        .node = c->nodes[node].input,
        .model = model == PLACEMENT_NONE ? PLACEMENT_NONE : c->models[model].input,
        .replica = PLACEMENT_NONE,
        .pair = PLACEMENT_NONE,
        .wave = wave,
        .node_name = c->nodes[node].in->name,
        .model_name = model == PLACEMENT_NONE ? c->in->current[c->replicas[i].input].model
                                              : c->models[model].in->name};
    return s;
}

static void step_load(struct order *o, uint32_t i, uint32_t wave)
{
    const struct place_replica *r = &o->c->replicas[i];
    struct placement_step *s = new_step(o, PLACEMENT_LOAD, i, r->node, wave);
    s->reason = place_words_load(o->arena, o->c, r, o->net[i].home, r->node);
    o->net[i].load_step = (uint32_t)(o->n_steps - 1);
    o->free_bytes[r->node] -= (int64_t)r->bytes;
    o->next_arrived[i] = o->arrived[r->node];
    o->arrived[r->node] = i;
}

static void step_unload(struct order *o, uint32_t i, uint32_t wave)
{
    const struct place_replica *r = &o->c->replicas[i];
    struct net *t = &o->net[i];
    struct placement_step *s = new_step(o, PLACEMENT_UNLOAD, i, t->home, wave);
    s->replica = t->input;
    s->reason = place_words_unload(o->arena, o->c, r, t->home, r->node);
    if (t->load_step != PLACEMENT_NONE) {
        s->pair = t->load_step;
        o->plan->steps[t->load_step].pair = (uint32_t)(o->n_steps - 1);
    }
    t->left = true;
    if (r->model != PLACEMENT_NONE)
        o->ready[r->model] -= t->home_ready;
}

/* One wave: all steps that are possible now. Returns their number. */
static size_t run_wave(struct order *o, uint32_t wave)
{
    const struct place_core *c = o->c;
    size_t before = o->n_steps, n_left = 0;
    for (size_t k = 0; k < o->n_todo; k++) {
        uint32_t i = o->todo[k];
        const struct place_replica *r = &c->replicas[i];
        if (r->node != PLACEMENT_NONE && !o->net[i].loaded &&
            o->free_bytes[r->node] >= (int64_t)r->bytes && !blocked(o, r->model, r->node))
            step_load(o, i, wave);
    }
    for (size_t k = 0; k < o->n_todo; k++)
        if (o->net[o->todo[k]].home != PLACEMENT_NONE && may_leave(o, o->todo[k]))
            step_unload(o, o->todo[k], wave);
    /* The loads of this wave are ready, and the memory is free, for the next wave. */
    for (size_t k = 0; k < o->n_todo; k++) {
        uint32_t i = o->todo[k];
        struct net *t = &o->net[i];
        const struct place_replica *r = &c->replicas[i];
        if (!t->loaded && t->load_step != PLACEMENT_NONE) {
            t->loaded = true;
            o->ready[r->model]++;
        }
        if (t->left)
            o->free_bytes[t->home] += (int64_t)r->bytes;
        bool done =
            (r->node == PLACEMENT_NONE || t->loaded) && (t->home == PLACEMENT_NONE || t->left);
        if (!done)
            o->todo[n_left++] = i;
    }
    o->n_todo = n_left;
    return o->n_steps - before;
}

/* The steps as they were planned; every one of them was possible when it was. */
static void as_planned(struct order *o)
{
    const struct place_core *c = o->c;
    uint32_t wave = 0;
    o->n_steps = 0;
    for (size_t k = 0; k < c->n_ops; k++) {
        const struct place_op *op = &c->ops[k];
        const struct place_replica *r = &c->replicas[op->replica];
        const struct place_op *last = k ? op - 1 : NULL, *next = k + 1 < c->n_ops ? op + 1 : NULL;
        if (last && last->action != op->action)
            wave++;
        struct placement_step *s = new_step(o, op->action, op->replica, op->node, wave);
        if (op->action == PLACEMENT_LOAD) {
            bool move = next && next->action == PLACEMENT_UNLOAD && next->replica == op->replica;
            s->reason =
                place_words_load(o->arena, c, r, move ? next->node : PLACEMENT_NONE, op->node);
            s->pair = move ? (uint32_t)k + 1 : PLACEMENT_NONE;
        } else {
            bool move = last && last->action == PLACEMENT_LOAD && last->replica == op->replica;
            s->reason =
                place_words_unload(o->arena, c, r, op->node, move ? last->node : PLACEMENT_NONE);
            s->pair = move ? (uint32_t)k - 1 : PLACEMENT_NONE;
            s->replica = op->node == r->home ? r->input : PLACEMENT_NONE;
        }
    }
}

int place_order_steps(struct placement_plan *plan, struct arena *a, struct place_core *c,
                      struct err *e)
{
    struct order o = {.c = c, .plan = plan, .arena = a};
    int rc = begin(&o, e);
    if (rc < 0)
        return rc;
    size_t most = 2 * o.n_todo > c->n_ops ? 2 * o.n_todo : c->n_ops;
    plan->steps = arena_zalloc_n(a, most + 1, sizeof(*plan->steps));
    if (!plan->steps)
        return err_set(e, SHOAL_ENOMEM, "placement");
    for (uint32_t wave = 0; o.n_todo > 0; wave++)
        if (run_wave(&o, wave) == 0)
            break;
    if (o.n_todo > 0)
        as_planned(&o);
    plan->n_steps = o.n_steps;
    for (size_t i = 0; i < plan->n_steps; i++) {
        const struct placement_step *s = &plan->steps[i];
        plan->n_loads += s->action == PLACEMENT_LOAD;
        plan->n_unloads += s->action == PLACEMENT_UNLOAD;
        plan->n_moves += s->action == PLACEMENT_LOAD && s->pair != PLACEMENT_NONE;
    }
    return 0;
}
