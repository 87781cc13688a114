/* place_core.c - see place_core.h. */
#include "cluster/placement/place_core.h"

#include <assert.h>

#include "base/mem.h"

void place_core_fini(struct place_core *c)
{
    arena_fini(&c->arena);
    mem_free(c->replicas);
    mem_free(c->ops);
    *c = (struct place_core){0};
}

/* ---- costs ---- */

/* A node with slowness S and busy time U costs S * (1 + U): its models wait for each other. */
double place_core_add_cost(const struct place_core *c, uint32_t model, uint32_t node)
{
    const struct place_model *m = &c->models[model];
    double s = (double)m->slow[node], b = m->beta * s, inv = c->inv_memory[node];
    double bytes = (double)m->in->memory_bytes * inv;
    double used = 1 - (double)c->free_bytes[node] * inv;
    return s * (1 + c->busy[node] + b) + c->slow_sum[node] * b + c->fixed[node] -
           c->in->policy.pack_weight * bytes * (2 * used + bytes);
}

double place_core_relief(const struct place_core *c, const struct place_replica *r)
{
    const struct place_model *m = &c->models[r->model];
    uint32_t node = r->node;
    if (m->slow[node] < 0) /* it has to leave, so there is nothing to compare */
        return 1e9;
    double s = (double)m->slow[node], b = m->beta * s, inv = c->inv_memory[node];
    double bytes = (double)r->bytes * inv;
    double used = 1 - (double)c->free_bytes[node] * inv;
    return s * (1 + c->busy[node]) + (c->slow_sum[node] - s) * b + c->fixed[node] -
           c->in->policy.pack_weight * bytes * (2 * used - bytes);
}

double place_core_zone_cost(const struct place_core *c, uint32_t model, uint32_t zone)
{
    const struct place_model *m = &c->models[model];
    return m->in->spread ? c->in->policy.zone_weight * m->in_zone[zone] : 0;
}

double place_core_rate(const struct place_core *c, uint32_t model, uint32_t node)
{
    const struct place_model *m = &c->models[model];
    return m->slow[node] > 0 ? m->mean / (double)m->slow[node] * c->nodes[node].idle : 0;
}

double place_core_served(const struct place_model *m, double rate, uint32_t n)
{
    return n > m->in->standby ? rate * (n - m->in->standby) / n : 0;
}

double place_core_total(const struct place_core *c)
{
    double sum = 0;
    for (uint32_t i = 0; i < c->n_nodes; i++) {
        double used = 1 - (double)c->free_bytes[i] * c->inv_memory[i];
        sum += c->slow_sum[i] * (1 + c->busy[i]) - c->in->policy.pack_weight * used * used;
        for (uint32_t r = c->nodes[i].first; r != PLACEMENT_NONE; r = c->replicas[r].next_on_node)
            sum += c->fixed[i];
    }
    for (uint32_t i = 0; i < c->n_models; i++)
        for (uint32_t z = 0; c->models[i].in->spread && z < c->n_zones; z++) {
            double n = c->models[i].in_zone[z];
            sum += c->in->policy.zone_weight * n * (n - 1) / 2;
        }
    return sum;
}

/* ---- what is allowed ---- */

uint32_t place_core_on(const struct place_core *c, uint32_t model, uint32_t node)
{
    uint32_t r = c->nodes[node].first;
    while (r != PLACEMENT_NONE && (c->replicas[r].model != model || c->replicas[r].stale))
        r = c->replicas[r].next_on_node;
    return r;
}

bool place_core_allowed(const struct place_core *c, uint32_t model, uint32_t node)
{
    const struct place_model *m = &c->models[model];
    if (m->slow[node] < 0 || c->closed[node])
        return false;
    for (uint32_t r = c->nodes[node].first; r != PLACEMENT_NONE; r = c->replicas[r].next_on_node) {
        uint32_t there = c->replicas[r].model;
        /* Two versions of a model have one name on a node: the old one leaves first. */
        if (there == model || (m->apart != PLACEMENT_NONE && there != PLACEMENT_NONE &&
                               c->models[there].apart == m->apart))
            return false;
    }
    return true;
}

void place_core_mark(struct place_core *c, uint32_t model)
{
    c->stamp++;
    for (uint32_t r = c->models[model].first; r != PLACEMENT_NONE; r = c->replicas[r].next_of_model)
        c->mark[c->replicas[r].node] = c->stamp;
}

bool place_core_zone_full(const struct place_core *c, uint32_t model, uint32_t zone)
{
    const struct place_model *m = &c->models[model];
    return m->in->max_per_zone > 0 && m->in_zone[zone] >= m->in->max_per_zone;
}

bool place_core_may_unload(const struct place_core *c, uint32_t replica)
{
    const struct place_replica *r = &c->replicas[replica];
    if (r->model == PLACEMENT_NONE || !r->ready)
        return true;
    return c->models[r->model].n_ready > c->models[r->model].floor;
}

/* ---- changes ---- */

static void enter_node(struct place_core *c, uint32_t replica, uint32_t node)
{
    struct place_replica *r = &c->replicas[replica];
    uint32_t *at = &c->nodes[node].first;
    r->node = node;
    while (*at != PLACEMENT_NONE && *at > replica) /* canonical order, independent of the history */
        at = &c->replicas[*at].next_on_node;
    r->next_on_node = *at;
    *at = replica;
    c->free_bytes[node] -= (int64_t)r->bytes;
    if (r->model == PLACEMENT_NONE || r->stale)
        return;
    struct place_model *m = &c->models[r->model];
    if (m->slow[node] > 0) {
        c->slow_sum[node] += (double)m->slow[node];
        c->busy[node] += m->beta * (double)m->slow[node];
        m->rate += place_core_rate(c, r->model, node);
    }
    if (m->zoned)
        m->in_zone[c->nodes[node].zone]++;
}

/* Recomputes the sums of a node: adding and subtracting doubles would leave a remainder, and the
 * plan would depend on its history. */
static void sum_node(struct place_core *c, uint32_t node)
{
    double slow = 0, busy = c->nodes[node].in->load;
    for (uint32_t i = c->nodes[node].first; i != PLACEMENT_NONE; i = c->replicas[i].next_on_node) {
        const struct place_replica *r = &c->replicas[i];
        if (r->model == PLACEMENT_NONE || r->stale || c->models[r->model].slow[node] < 0)
            continue;
        slow += (double)c->models[r->model].slow[node];
        busy += c->models[r->model].beta * (double)c->models[r->model].slow[node];
    }
    c->slow_sum[node] = slow;
    c->busy[node] = busy;
}

static void leave_node(struct place_core *c, uint32_t replica)
{
    struct place_replica *r = &c->replicas[replica];
    uint32_t node = r->node, *at = &c->nodes[node].first;
    while (*at != replica)
        at = &c->replicas[*at].next_on_node;
    *at = r->next_on_node;
    c->free_bytes[node] += (int64_t)r->bytes;
    r->node = PLACEMENT_NONE;
    if (r->model == PLACEMENT_NONE || r->stale)
        return;
    struct place_model *m = &c->models[r->model];
    m->rate -= place_core_rate(c, r->model, node);
    if (m->zoned)
        m->in_zone[c->nodes[node].zone]--;
    sum_node(c, node);
}

static void join_model(struct place_core *c, uint32_t replica)
{
    struct place_replica *r = &c->replicas[replica];
    struct place_model *m = &c->models[r->model];
    r->next_of_model = PLACEMENT_NONE;
    r->prev_of_model = m->last;
    if (m->last == PLACEMENT_NONE)
        m->first = replica;
    else
        c->replicas[m->last].next_of_model = replica;
    m->last = replica;
    m->n += !r->stale;
    m->n_ready += r->ready;
}

static void part_model(struct place_core *c, uint32_t replica)
{
    const struct place_replica *r = &c->replicas[replica];
    struct place_model *m = &c->models[r->model];
    if (r->prev_of_model == PLACEMENT_NONE)
        m->first = r->next_of_model;
    else
        c->replicas[r->prev_of_model].next_of_model = r->next_of_model;
    if (r->next_of_model == PLACEMENT_NONE)
        m->last = r->prev_of_model;
    else
        c->replicas[r->next_of_model].prev_of_model = r->prev_of_model;
    m->n -= !r->stale;
    m->n_ready -= r->ready;
}

static bool grow(struct place_core *c, void **array, size_t *cap, size_t n, size_t size)
{
    if (n < *cap)
        return true;
    size_t want = *cap ? *cap * 2 : 256, n_bytes;
    void *bigger = mem_mul(&n_bytes, want, size) ? mem_realloc(*array, n_bytes) : NULL;
    if (!bigger) {
        c->failed = true;
        return false;
    }
    *array = bigger;
    *cap = want;
    return true;
}

static bool room_for_op(struct place_core *c)
{
    /* A move writes two. */
    return grow(c, (void **)&c->ops, &c->cap_ops, c->n_ops + 1, sizeof(*c->ops));
}

uint32_t place_core_register(struct place_core *c, const struct place_replica *r)
{
    if (c->failed || !grow(c, (void **)&c->replicas, &c->cap_replicas, c->n_replicas, sizeof(*r)))
        return PLACEMENT_NONE;
    uint32_t id = (uint32_t)c->n_replicas++;
    c->replicas[id] = *r;
    enter_node(c, id, r->node);
    if (r->model != PLACEMENT_NONE)
        join_model(c, id);
    return id;
}

uint32_t place_core_load(struct place_core *c, uint32_t model, uint32_t node, struct place_why why)
{
    struct place_replica r = {.model = model,
                              .node = node,
                              .home = PLACEMENT_NONE,
                              .input = PLACEMENT_NONE,
                              .bytes = c->models[model].in->memory_bytes,
                              .ready = true, /* once the step is done */
                              .why = why};
    assert(c->free_bytes[node] >= (int64_t)r.bytes);
    if (c->failed || !room_for_op(c))
        return PLACEMENT_NONE;
    uint32_t id = place_core_register(c, &r);
    if (id != PLACEMENT_NONE)
        c->ops[c->n_ops++] = (struct place_op){PLACEMENT_LOAD, id, node, false, false};
    return id;
}

void place_core_unload(struct place_core *c, uint32_t replica, struct place_why why)
{
    assert(place_core_may_unload(c, replica));
    if (c->failed || !room_for_op(c))
        return;
    struct place_replica *r = &c->replicas[replica];
    c->ops[c->n_ops++] = (struct place_op){PLACEMENT_UNLOAD, replica, r->node, false, false};
    r->why = why;
    if (r->model != PLACEMENT_NONE)
        part_model(c, replica);
    leave_node(c, replica);
}

void place_core_move(struct place_core *c, uint32_t replica, uint32_t node)
{
    if (c->failed || !room_for_op(c))
        return;
    struct place_replica *r = &c->replicas[replica];
    assert(c->free_bytes[node] >= (int64_t)r->bytes && !r->stale);
    c->ops[c->n_ops++] = (struct place_op){PLACEMENT_LOAD, replica, node, r->ready, r->leaves};
    c->ops[c->n_ops++] = (struct place_op){PLACEMENT_UNLOAD, replica, r->node, false, false};
    c->models[r->model].n_ready += !r->ready;
    r->ready = true;
    r->leaves = r->pinned = false;
    leave_node(c, replica);
    enter_node(c, replica, node);
}

void place_core_undo_moves(struct place_core *c, size_t n_ops)
{
    while (c->n_ops > n_ops) {
        const struct place_op *from = &c->ops[c->n_ops - 1], *to = &c->ops[c->n_ops - 2];
        struct place_replica *r = &c->replicas[to->replica];
        leave_node(c, to->replica);
        enter_node(c, to->replica, from->node);
        r->ready = to->was_ready;
        r->leaves = to->was_leaving;
        c->models[r->model].n_ready -= !r->ready;
        c->n_ops -= 2;
    }
}
