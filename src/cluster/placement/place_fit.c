/* place_fit.c - see place_fit.h. */
#include "cluster/placement/place_fit.h"

#include <stdlib.h>

#define ROOM_VISITS 40000000u /* limit of node visits per plan when making room */
#define MAX_ROOMS 16u         /* nodes that are tried to make room for one replica */
#define MAX_THERE 64u         /* replicas on such a node */

enum tier { TIER_MIN, TIER_WANT, TIER_STANDBY };

struct ranked {
    uint32_t model;
    int32_t priority;
    uint64_t bytes;
};

static int by_rank(const void *a, const void *b)
{
    const struct ranked *x = a, *y = b;
    if (x->priority != y->priority)
        return x->priority > y->priority ? -1 : 1;
    if (x->bytes != y->bytes)
        return x->bytes > y->bytes ? -1 : 1;
    return x->model < y->model ? -1 : 1;
}

int place_fit_init(struct place_fit *f, struct place_core *c, struct err *e)
{
    *f = (struct place_fit){.c = c, .budget = ROOM_VISITS};
    struct ranked *all = arena_zalloc_n(&c->arena, c->n_models + 1, sizeof(*all));
    f->order = arena_zalloc_n(&c->arena, c->n_models + 1, sizeof(*f->order));
    if (!all || !f->order)
        return err_set(e, c->arena.rc, "placement");
    for (uint32_t i = 0; i < c->n_models; i++)
        all[i] = (struct ranked){i, c->models[i].in->priority, c->models[i].in->memory_bytes};
    qsort(all, c->n_models, sizeof(*all), by_rank);
    for (uint32_t i = 0; i < c->n_models; i++)
        f->order[i] = all[i].model;
    return place_pick_init(&f->pick, c, e);
}

static bool lacks_tokens(const struct place_model *m)
{
    return m->in->want_tokens_per_s > 0 &&
           place_core_served(m, m->rate, m->n) < m->in->want_tokens_per_s * (1 - 1e-9);
}

bool place_fit_target(const struct place_fit *f, const struct place_replica *r,
                      struct place_spot *out)
{
    const struct place_core *c = f->c;
    const struct place_model *m = &c->models[r->model];
    uint32_t zone = c->nodes[r->node].zone;
    struct place_spot in, far;
    bool has_in = place_pick_best_inside(&f->pick, zone, &in);
    bool has_far = place_pick_best_outside(&f->pick, zone, &far);
    if (has_in && m->in->spread) /* the replica itself is counted in its zone */
        in.cost += c->in->policy.zone_weight * (m->in_zone[zone] - 1);
    if (has_in && (!has_far || in.cost <= far.cost))
        *out = in;
    else if (has_far)
        *out = far;
    return has_in || has_far;
}

/* ---- making room ---- */

struct want { /* the replica that needs room */
    uint32_t model;
    enum tier tier;
    uint32_t replica; /* the replica that moves there, or PLACEMENT_NONE: a new one */
};

/* The cheapest node for a replica that must move away. */
static uint32_t other_place(struct place_fit *f, const struct place_replica *r)
{
    struct place_core *c = f->c;
    const struct place_model *m = &c->models[r->model];
    uint32_t best = PLACEMENT_NONE, home_zone = c->nodes[r->node].zone;
    double best_cost = 0;
    if (f->budget < c->n_nodes)
        return PLACEMENT_NONE;
    f->budget -= c->n_nodes;
    place_core_mark(c, r->model);
    for (uint32_t i = 0; i < c->n_nodes; i++) {
        if (c->free_bytes[i] < (int64_t)r->bytes || m->slow[i] < 0 ||
            !place_core_open(c, r->model, i))
            continue;
        uint32_t zone = c->nodes[i].zone;
        if (zone != home_zone && place_core_zone_full(c, r->model, zone))
            continue;
        double cost = place_core_add_cost(c, r->model, i);
        if (m->in->spread)
            cost += c->in->policy.zone_weight * (m->in_zone[zone] - (zone == home_zone));
        if (best == PLACEMENT_NONE || cost < best_cost) {
            best = i;
            best_cost = cost;
        }
    }
    return best;
}

static bool droppable(const struct place_core *c, uint32_t replica, const struct want *w)
{
    const struct place_replica *r = &c->replicas[replica];
    const struct place_model *m = &c->models[r->model];
    return m->n > m->in->min_replicas && place_core_may_unload(c, replica) &&
           (w->tier == TIER_MIN || m->in->priority < c->models[w->model].in->priority);
}

/* Whether the model could be on the node if there were room. */
static bool could_have(const struct place_core *c, const struct want *w, uint32_t node)
{
    const struct place_model *m = &c->models[w->model];
    uint32_t zone = c->nodes[node].zone;
    bool same_zone =
        w->replica != PLACEMENT_NONE && c->nodes[c->replicas[w->replica].node].zone == zone;
    if (m->slow[node] < 0 || c->closed[node] ||
        (!same_zone && place_core_zone_full(c, w->model, zone)))
        return false;
    for (uint32_t i = c->nodes[node].first; i != PLACEMENT_NONE; i = c->replicas[i].next_on_node) {
        const struct place_replica *r = &c->replicas[i];
        if (r->model == w->model ? !r->stale || !place_core_may_unload(c, i)
                                 : m->apart != PLACEMENT_NONE && r->model != PLACEMENT_NONE &&
                                       c->models[r->model].apart == m->apart)
            return false;
    }
    return true;
}

/* Missing bytes on the node, and whether its other replicas hold that much. */
static bool could_clear(const struct place_core *c, const struct want *w, uint32_t node,
                        int64_t *missing)
{
    int64_t held = 0;
    *missing = (int64_t)c->models[w->model].in->memory_bytes - c->free_bytes[node];
    for (uint32_t i = c->nodes[node].first; i != PLACEMENT_NONE; i = c->replicas[i].next_on_node) {
        const struct place_replica *r = &c->replicas[i];
        if (r->model == w->model)
            *missing -= (int64_t)r->bytes; /* an older version */
        else if (!r->pinned && !r->stale)
            held += (int64_t)r->bytes;
    }
    return held >= *missing;
}

/* The node's replicas in the order of trying: the smallest one that is enough alone, larger ones,
 * then smaller ones, largest first. */
static uint32_t list_there(const struct place_core *c, const struct want *w, uint32_t node,
                           int64_t missing, uint32_t out[MAX_THERE])
{
    uint32_t n = 0;
    for (uint32_t i = c->nodes[node].first; i != PLACEMENT_NONE && n < MAX_THERE;
         i = c->replicas[i].next_on_node) {
        const struct place_replica *r = &c->replicas[i];
        if (r->pinned || r->stale || r->model == w->model || r->model == PLACEMENT_NONE)
            continue;
        uint32_t k = n++;
        for (; k > 0; k--) {
            const struct place_replica *q = &c->replicas[out[k - 1]];
            bool enough = (int64_t)r->bytes >= missing, q_enough = (int64_t)q->bytes >= missing;
            if (enough != q_enough ? q_enough
                                   : (enough ? q->bytes <= r->bytes : q->bytes >= r->bytes))
                break;
            out[k] = out[k - 1];
        }
        out[k] = i;
    }
    return n;
}

/* Makes room on one node and places the replica there; on failure nothing has changed. */
static bool clear_node(struct place_fit *f, const struct want *w, uint32_t node,
                       struct place_why why)
{
    struct place_core *c = f->c;
    uint32_t there[MAX_THERE], drops[MAX_THERE], n_drops = 0;
    struct place_why room = {.cause = PLACE_CAUSE_ROOM, .other = w->model};
    size_t n_ops = c->n_ops;
    int64_t missing;
    if (!could_have(c, w, node) || !could_clear(c, w, node, &missing))
        return false;
    uint32_t n = list_there(c, w, node, missing, there);
    for (uint32_t i = 0; i < n && missing > 0; i++) {
        uint32_t id = there[i], to = other_place(f, &c->replicas[id]);
        if (to == PLACEMENT_NONE && !droppable(c, id, w))
            continue;
        missing -= (int64_t)c->replicas[id].bytes;
        if (to == PLACEMENT_NONE)
            drops[n_drops++] = id;
        else
            place_core_move(c, id, to);
        if (to != PLACEMENT_NONE && c->replicas[id].why.cause == PLACE_CAUSE_NONE)
            c->replicas[id].why = room;
    }
    if (missing > 0 || c->failed) {
        place_core_undo_moves(c, n_ops);
        return false;
    }
    for (uint32_t i = 0; i < n_drops; i++)
        place_core_unload(c, drops[i], room);
    for (uint32_t i = c->nodes[node].first; i != PLACEMENT_NONE; i = c->replicas[i].next_on_node)
        if (c->replicas[i].model == w->model) {
            place_core_unload(c, i, (struct place_why){.cause = PLACE_CAUSE_VERSION});
            break;
        }
    if (w->replica == PLACEMENT_NONE)
        place_core_load(c, w->model, node, why);
    else
        place_core_move(c, w->replica, node);
    return true;
}

/* Tries the nodes where the fewest bytes are missing. */
static bool make_room(struct place_fit *f, const struct want *w, struct place_why why)
{
    const struct place_core *c = f->c;
    struct {
        int64_t missing;
        uint32_t node;
    } best[MAX_ROOMS];
    uint32_t n = 0;
    if (w->tier == TIER_STANDBY || f->budget < c->n_nodes)
        return false;
    f->budget -= c->n_nodes;
    int64_t bytes = (int64_t)c->models[w->model].in->memory_bytes;
    for (uint32_t i = 0; i < c->n_nodes; i++) {
        int64_t missing = bytes - c->free_bytes[i];
        if (c->models[w->model].slow[i] < 0 || (n == MAX_ROOMS && missing >= best[n - 1].missing) ||
            !could_have(c, w, i))
            continue;
        uint32_t k = n < MAX_ROOMS ? n++ : n - 1;
        for (; k > 0 && best[k - 1].missing > missing; k--)
            best[k] = best[k - 1];
        best[k].missing = missing;
        best[k].node = i;
    }
    for (uint32_t k = 0; k < n; k++)
        if (clear_node(f, w, best[k].node, why))
            return true;
    return false;
}

/* ---- replicas that must leave ---- */

static void unload_unwanted(struct place_core *c)
{
    for (size_t i = 0; i < c->n_replicas; i++)
        if (c->replicas[i].model == PLACEMENT_NONE && c->replicas[i].node != PLACEMENT_NONE)
            place_core_unload(c, (uint32_t)i, (struct place_why){.cause = PLACE_CAUSE_UNWANTED});
}

static void fit_leaving(struct place_fit *f, uint32_t model)
{
    struct place_core *c = f->c;
    const struct place_model *m = &c->models[model];
    bool built = false, stuck = false;
    for (uint32_t i = m->first, next; i != PLACEMENT_NONE && !c->failed; i = next) {
        struct place_replica *r = &c->replicas[i];
        struct place_spot to;
        next = r->next_of_model;
        if (!r->leaves)
            continue;
        if (m->n > m->low && place_core_may_unload(c, i)) {
            place_core_unload(c, i, r->why);
            continue;
        }
        if (!built)
            place_pick_build(&f->pick, model);
        built = true;
        uint32_t zone = c->nodes[r->node].zone;
        if (place_fit_target(f, r, &to)) {
            place_core_move(c, i, to.node);
            place_pick_take(&f->pick, to.node);
            place_pick_update(&f->pick, zone);
        } else if (!stuck) {
            stuck = !make_room(f, &(struct want){model, TIER_MIN, i}, r->why);
            built = stuck;
        }
    }
}

/* ---- replicas that are missing ---- */

static struct place_why why_new(struct place_core *c, struct place_model *m, enum tier tier)
{
    struct place_why w = {.have = m->n, .want = m->low};
    if (m->lost != PLACEMENT_NONE) {
        w.cause = PLACE_CAUSE_LOST;
        w.name = c->lost[m->lost].node;
    } else if (m->n_start == 0 && tier != TIER_STANDBY) {
        w.cause = PLACE_CAUSE_NEW;
    } else if (tier == TIER_STANDBY) {
        w.cause = PLACE_CAUSE_STANDBY;
    } else if (m->n >= m->low) {
        w = (struct place_why){.cause = PLACE_CAUSE_TOKENS,
                               .have = place_core_served(m, m->rate, m->n),
                               .want = m->in->want_tokens_per_s};
    } else {
        w.cause = PLACE_CAUSE_COUNT;
    }
    return w;
}

/* A lost replica is replaced. */
static void found(struct place_core *c, struct place_model *m)
{
    if (m->lost != PLACEMENT_NONE)
        m->lost = c->lost[m->lost].next;
}

static void fit_missing(struct place_fit *f, uint32_t model, enum tier tier)
{
    struct place_core *c = f->c;
    struct place_model *m = &c->models[model];
    bool built = false;
    for (; !c->failed; found(c, m)) {
        uint32_t base = m->low - m->in->standby;
        bool need = tier == TIER_MIN    ? m->n < m->in->min_replicas
                    : tier == TIER_WANT ? m->n < base || (lacks_tokens(m) && m->n < m->high)
                                        : m->n < m->low;
        struct place_spot to;
        if (!need)
            return;
        if (!built)
            place_pick_build(&f->pick, model);
        built = true;
        struct place_why why = why_new(c, m, tier);
        if (place_pick_best(&f->pick, &to)) {
            uint32_t zone = c->nodes[to.node].zone;
            why.zone_first = m->in->spread && m->n > 0 && m->in_zone[zone] == 0;
            if (place_core_load(c, model, to.node, why) == PLACEMENT_NONE)
                return;
            place_pick_take(&f->pick, to.node);
        } else if (!make_room(f, &(struct want){model, tier, PLACEMENT_NONE}, why)) {
            return; /* make_room also finds nodes that have become free */
        }
    }
}

/* ---- pins ---- */

static uint32_t worst_replica(const struct place_core *c, uint32_t model)
{
    const struct place_model *m = &c->models[model];
    uint32_t worst = PLACEMENT_NONE;
    double worst_cost = 0;
    for (uint32_t i = m->first; i != PLACEMENT_NONE; i = c->replicas[i].next_of_model) {
        const struct place_replica *r = &c->replicas[i];
        if (r->pinned || r->stale)
            continue;
        double cost = r->leaves ? 1e12 : place_core_relief(c, r);
        if (m->in->spread)
            cost += c->in->policy.zone_weight * (m->in_zone[c->nodes[r->node].zone] - 1);
        /* Of equal ones the last by name is removed. */
        if (worst == PLACEMENT_NONE || cost > worst_cost ||
            (cost == worst_cost && r->node > c->replicas[worst].node)) {
            worst = i;
            worst_cost = cost;
        }
    }
    return worst;
}

static void fit_pins(struct place_fit *f, uint32_t model)
{
    struct place_core *c = f->c;
    struct place_model *m = &c->models[model];
    for (uint32_t k = 0; k < m->in->pins.n && !c->failed; k++) {
        uint32_t node = m->pins[k], id;
        if (node == PLACEMENT_NONE)
            continue;
        id = place_core_on(c, model, node);
        if (id == PLACEMENT_NONE) {
            struct want w = {model, TIER_MIN, PLACEMENT_NONE};
            if (m->n >= m->high) /* another one moves here */
                w.replica = worst_replica(c, model);
            clear_node(f, &w, node, (struct place_why){.cause = PLACE_CAUSE_PIN});
            id = place_core_on(c, model, node);
            if (id != PLACEMENT_NONE && w.replica != PLACEMENT_NONE)
                c->replicas[id].why.cause = PLACE_CAUSE_PIN;
            else if (id != PLACEMENT_NONE)
                found(c, m);
        }
        if (id != PLACEMENT_NONE)
            c->replicas[id].pinned = true;
    }
}

/* ---- surplus ---- */

static void release(struct place_core *c, uint32_t model)
{
    struct place_model *m = &c->models[model];
    double gain = 1 + c->in->policy.min_gain;
    while (m->n > m->low && !c->failed) {
        uint32_t worst = worst_replica(c, model);
        if (worst == PLACEMENT_NONE || !place_core_may_unload(c, worst))
            break; /* a better one must be ready first */
        struct place_why why = {.cause = PLACE_CAUSE_COUNT, .have = m->n, .want = m->low};
        double left = m->rate - place_core_rate(c, model, c->replicas[worst].node);
        if (m->in->want_tokens_per_s > 0 && m->n <= m->high) {
            if (place_core_served(m, left, m->n - 1) < m->in->want_tokens_per_s * gain)
                break;
            why = (struct place_why){.cause = PLACE_CAUSE_TOKENS,
                                     .have = place_core_served(m, m->rate, m->n),
                                     .want = m->in->want_tokens_per_s};
        }
        place_core_unload(c, worst, c->replicas[worst].leaves ? c->replicas[worst].why : why);
    }
    if (m->n < m->low)
        return;
    for (uint32_t i = m->first, next; i != PLACEMENT_NONE && !c->failed; i = next) {
        next = c->replicas[i].next_of_model;
        if (c->replicas[i].stale && place_core_may_unload(c, i))
            place_core_unload(c, i, (struct place_why){.cause = PLACE_CAUSE_VERSION});
    }
}

void place_fit_run(struct place_fit *f)
{
    struct place_core *c = f->c;
    unload_unwanted(c);
    for (uint32_t i = 0; i < c->n_models; i++)
        release(c, f->order[i]);
    for (uint32_t i = 0; i < c->n_models; i++)
        fit_leaving(f, f->order[i]);
    for (uint32_t i = 0; i < c->n_models; i++)
        fit_pins(f, f->order[i]);
    for (enum tier tier = TIER_MIN; tier <= TIER_STANDBY; tier++)
        for (uint32_t i = 0; i < c->n_models; i++)
            fit_missing(f, f->order[i], tier);
    for (uint32_t i = 0; i < c->n_models; i++)
        release(c, f->order[i]);
}
