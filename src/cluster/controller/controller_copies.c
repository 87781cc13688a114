/* controller_copies.c - see controller_copies.h. */
#include "cluster/controller/controller_copies.h"

#include <string.h>

#include "base/arena.h"
#include "cluster/control/desired.h"
#include "cluster/control/desired_plan.h"
#include "cluster/controller/controller_input.h"
#include "cluster/controller/controller_view.h"
#include "cluster/messages/node_state.h"
#include "cluster/placement/placement.h"

/* A node that serves the model. */
struct host {
    struct desired_assignment *at;
    const struct node_state *node;
    uint32_t in_plan; /* index of the planner's input */
    uint32_t most;    /* copies that it may have */
    uint32_t copies;  /* that it shall have */
};

struct copying {
    struct desired *d;
    const struct controller_snapshot *s;
    const struct placement_input *in;
    const struct placement_plan *plan;
    uint64_t *used; /* [in->n_nodes]: memory after the plan, with the copies so far */
    struct host *hosts;
    uint32_t n_hosts;
};

static uint32_t larger(uint32_t a, uint32_t b)
{
    return a > b ? a : b;
}

static uint32_t smaller(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

/* Replicas without a place. */
static uint32_t missing(const struct copying *k, uint32_t model)
{
    for (size_t i = 0; i < k->plan->n_gaps; i++)
        if (k->plan->gaps[i].model == model)
            return k->plan->gaps[i].n_missing;
    return 0;
}

/* Those that serve this version; how many of them are ready. */
static uint32_t find_hosts(struct copying *k, const struct desired_model *m)
{
    uint32_t ready = 0;
    k->n_hosts = 0;
    for (uint32_t i = 0; i < k->d->n_assignments; i++) {
        struct desired_assignment *a = &k->d->assignments[i];
        const struct node_state *n = controller_snapshot_node(k->s, a->node);
        if (!n || a->duty != DESIRED_SERVE || strcmp(a->model, m->name) != 0 ||
            memcmp(a->sha256, m->sha256, SHA256_BYTES) != 0)
            continue;
        const struct node_model *held = controller_input_held(n, m->name, m->sha256);
        const bool is_ready = held && held->state == REGISTRY_READY && held->duty == DESIRED_SERVE;
        struct host *h = &k->hosts[k->n_hosts++];
        *h = (struct host){.at = a, .node = n, .in_plan = PLACEMENT_NONE, .copies = 1};
        for (uint32_t p = 0; p < k->in->n_nodes; p++)
            if (strcmp(k->in->nodes[p].name, a->node) == 0)
                h->in_plan = p;
        if (h->in_plan != PLACEMENT_NONE && !k->in->nodes[h->in_plan].drained)
            h->most = n->n_cores ? smaller(m->per_node, n->n_cores) : m->per_node;
        if (!is_ready) /* it loads its first: it keeps what it has, and gets no more */
            h->most = smaller(h->most, desired_copies(a));
        ready += is_ready;
    }
    return ready;
}

static uint64_t bytes_of(const struct copying *k, uint32_t model)
{
    return k->in->models[model].memory_bytes;
}

static bool has_room(const struct copying *k, const struct host *h, uint32_t model)
{
    const uint64_t all = k->in->nodes[h->in_plan].memory_bytes, used = k->used[h->in_plan];
    return h->copies < h->most && used <= all && bytes_of(k, model) <= all - used;
}

static bool is_better(const struct copying *k, const struct host *a, const struct host *b)
{
    if (a->copies != b->copies)
        return a->copies < b->copies;
    const uint64_t free_a = k->in->nodes[a->in_plan].memory_bytes - k->used[a->in_plan];
    const uint64_t free_b = k->in->nodes[b->in_plan].memory_bytes - k->used[b->in_plan];
    return free_a > free_b;
}

static void give(struct copying *k, struct host *h, uint32_t model)
{
    h->copies++;
    k->used[h->in_plan] += bytes_of(k, model);
}

/* Existing copies stay where they are, as far as they are needed. */
static void place(struct copying *k, uint32_t model, uint32_t extra)
{
    for (uint32_t round = 1; round < DESIRED_MAX_PER_NODE && extra > 0; round++)
        for (uint32_t i = 0; i < k->n_hosts && extra > 0; i++)
            if (desired_copies(k->hosts[i].at) > round && has_room(k, &k->hosts[i], model)) {
                give(k, &k->hosts[i], model);
                extra--;
            }
    for (; extra > 0; extra--) {
        struct host *best = NULL;
        for (uint32_t i = 0; i < k->n_hosts; i++)
            if (has_room(k, &k->hosts[i], model) && (!best || is_better(k, &k->hosts[i], best)))
                best = &k->hosts[i];
        if (!best)
            return;
        give(k, best, model);
    }
}

static uint32_t extra_now(const struct copying *k)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < k->n_hosts; i++)
        n += desired_copies(k->hosts[i].at) - 1;
    return n;
}

/* Copies above one for each node. */
static uint32_t extra_of(const struct copying *k, const struct desired_model *m, uint32_t model,
                         uint32_t ready)
{
    const uint32_t gap = missing(k, model);
    uint32_t want = larger(m->replicas_want, m->replicas_min);
    want = smaller(want, larger(m->replicas_max, m->replicas_min));
    uint32_t extra = want > k->n_hosts ? smaller(gap, want - k->n_hosts) : 0;
    if (want > ready) /* until a new place is ready, the copies stay */
        extra = larger(extra, smaller(extra_now(k), want - ready));
    return extra;
}

/* Memory of what is assigned to the node, and how much of it is copies. */
static uint64_t assigned(const struct desired *d, const struct placement_input *in,
                         const char *node, uint64_t *copies)
{
    uint64_t used = 0;
    *copies = 0;
    for (uint32_t i = 0; i < d->n_assignments; i++) {
        const struct desired_assignment *a = &d->assignments[i];
        for (size_t m = 0; strcmp(a->node, node) == 0 && m < in->n_models; m++)
            if (strcmp(in->models[m].name, a->model) == 0) {
                used += in->models[m].memory_bytes * desired_copies(a);
                *copies += in->models[m].memory_bytes * (desired_copies(a) - 1);
            }
    }
    return used;
}

void controller_copies_hold(const struct desired *d, const struct placement_input *in,
                            struct placement_plan *plan)
{
    for (size_t i = 0; i < plan->n_steps; i++) {
        struct placement_step *s = &plan->steps[i];
        uint64_t copies;
        if (s->action != PLACEMENT_LOAD || s->wave != 0)
            continue;
        const uint64_t used = assigned(d, in, s->node_name, &copies);
        if (copies > 0 &&
            used + in->models[s->model].memory_bytes > in->nodes[s->node].memory_bytes)
            s->wave = 1;
    }
}

int controller_copies(struct desired *d, const struct controller_snapshot *s,
                      const struct placement_input *in, const struct placement_plan *plan,
                      struct arena *a, controller_copies_fn changed, void *ctx, struct err *e)
{
    struct copying k = {.d = d,
                        .s = s,
                        .in = in,
                        .plan = plan,
                        .used = arena_zalloc_n(a, in->n_nodes + 1, sizeof(*k.used)),
                        .hosts = arena_zalloc_n(a, d->n_assignments + 1u, sizeof(*k.hosts))};
    if (!k.used || !k.hosts)
        return err_set(e, SHOAL_ENOMEM, "copies of models");
    for (size_t i = 0; i < plan->n_places; i++)
        k.used[plan->places[i].node] += bytes_of(&k, plan->places[i].model);
    for (uint32_t i = 0; i < d->n_models; i++) {
        const struct desired_model *m = &d->models[i]; /* the i-th of the input, too */
        if (desired_plan_in_rollout(d, m->name))
            continue;
        uint32_t ready = find_hosts(&k, m);
        if (m->per_node > 1)
            place(&k, i, extra_of(&k, m, i, ready));
        for (uint32_t h = 0; h < k.n_hosts; h++) {
            struct desired_assignment *at = k.hosts[h].at;
            uint32_t was = desired_copies(at), now = k.hosts[h].copies;
            if (was == now)
                continue;
            at->copies = now > 1 ? now : 0;
            changed(ctx, at->node, at->model, was, now);
        }
    }
    return 0;
}
