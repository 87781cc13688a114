/* place_improve.c - see place_improve.h. */
#include "cluster/placement/place_improve.h"

#include <stdlib.h>

#define MAX_ROUNDS 64u
#define NEW_GAIN 1e-3 /* a replica that is not loaded yet moves for any real gain */

struct item {
    double relief;
    uint32_t replica, node;
};

static int by_relief(const void *a, const void *b)
{
    const struct item *x = a, *y = b;
    if (x->relief != y->relief)
        return x->relief > y->relief ? -1 : 1;
    return x->node < y->node ? -1 : x->node > y->node;
}

/* Whether the replica, which costs `relief` where it is, gains enough by moving to `to`. */
static bool worth(const struct place_fit *f, const struct place_replica *r, double relief,
                  const struct place_spot *to)
{
    const struct place_core *c = f->c;
    const struct place_model *m = &c->models[r->model];
    uint32_t zone = c->nodes[r->node].zone;
    if (m->in->spread)
        relief += c->in->policy.zone_weight * (m->in_zone[zone] - 1);
    double share = r->home == PLACEMENT_NONE ? NEW_GAIN : c->in->policy.min_gain;
    double need = share * (relief > 0 ? relief : -relief);
    if (relief - to->cost < (need > 1e-9 ? need : 1e-9))
        return false;
    if (m->in->want_tokens_per_s > 0) { /* not at the cost of too few tokens per second */
        double before = m->rate;
        double after =
            before - place_core_rate(c, r->model, r->node) + place_core_rate(c, r->model, to->node);
        if (after < before && place_core_served(m, after, m->n) < m->in->want_tokens_per_s)
            return false;
    }
    return true;
}

static bool improve_model(struct place_fit *f, uint32_t model, struct item *items,
                          uint32_t *n_moves)
{
    struct place_core *c = f->c;
    const struct place_model *m = &c->models[model];
    uint32_t n = 0;
    bool moved = false;
    for (uint32_t i = m->first; i != PLACEMENT_NONE; i = c->replicas[i].next_of_model) {
        const struct place_replica *r = &c->replicas[i];
        if (!r->pinned && !r->settled && !r->stale && !r->leaves)
            items[n++] = (struct item){place_core_relief(c, r), i, r->node};
    }
    if (n == 0)
        return false;
    qsort(items, n, sizeof(*items), by_relief);
    place_pick_build(&f->pick, model);
    for (uint32_t k = 0; k < n && !c->failed; k++) {
        struct place_replica *r = &c->replicas[items[k].replica];
        struct place_spot to;
        bool running = r->home != PLACEMENT_NONE && r->home == r->node;
        if (running && *n_moves >= c->in->policy.max_moves)
            continue;
        if (!place_fit_target(f, r, &to) || !worth(f, r, items[k].relief, &to))
            continue;
        uint32_t zone = c->nodes[r->node].zone;
        place_core_move(c, items[k].replica, to.node);
        place_pick_take(&f->pick, to.node);
        place_pick_update(&f->pick, zone);
        if (running && r->why.cause == PLACE_CAUSE_NONE)
            r->why.cause = PLACE_CAUSE_BETTER;
        *n_moves += running;
        moved = true;
    }
    return moved;
}

void place_improve_run(struct place_fit *f, uint32_t *n_moves)
{
    struct place_core *c = f->c;
    struct item *items = arena_zalloc_n(&c->arena, c->n_nodes + 1, sizeof(*items));
    if (!items) {
        c->failed = true;
        return;
    }
    bool moved = true;
    for (uint32_t round = 0; round < MAX_ROUNDS && moved && !c->failed; round++) {
        moved = false;
        for (uint32_t i = 0; i < c->n_models; i++)
            moved |= improve_model(f, f->order[i], items, n_moves);
    }
}
