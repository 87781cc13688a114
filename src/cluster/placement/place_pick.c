/* place_pick.c - see place_pick.h. */
#include "cluster/placement/place_pick.h"

#include <assert.h>
#include <string.h>

#define WAYS 4u

int place_pick_init(struct place_pick *p, struct place_core *c, struct err *e)
{
    size_t n = (size_t)c->n_nodes + 1, z = (size_t)c->n_zones + 2;
    *p = (struct place_pick){.c = c};
    p->spots = arena_zalloc_n(&c->arena, n, sizeof(*p->spots));
    p->scratch = arena_zalloc_n(&c->arena, n, sizeof(*p->scratch));
    p->start = arena_zalloc_n(&c->arena, z, sizeof(uint32_t));
    p->len = arena_zalloc_n(&c->arena, z, sizeof(uint32_t));
    p->key = arena_zalloc_n(&c->arena, z, sizeof(double));
    p->heap = arena_zalloc_n(&c->arena, z, sizeof(uint32_t));
    p->position = arena_zalloc_n(&c->arena, z, sizeof(uint32_t));
    return c->arena.rc < 0 ? err_set(e, c->arena.rc, "placement") : 0;
}

/* Models without a rule for zones have one group for all nodes. */
static uint32_t group_of(const struct place_pick *p, uint32_t node)
{
    return p->n_groups == 1 ? 0 : p->c->nodes[node].zone;
}

static bool before(struct place_spot a, struct place_spot b)
{
    return a.cost < b.cost || (a.cost == b.cost && a.node < b.node);
}

/* A 4-ary heap: children share a cache line, and it is half as deep. */
static void sift_spot(struct place_spot *h, uint32_t n, uint32_t i)
{
    struct place_spot v = h[i];
    for (;;) {
        uint32_t k = WAYS * i + 1, end = k + WAYS < n ? k + WAYS : n;
        if (k >= n)
            break;
        for (uint32_t x = k + 1; x < end; x++)
            k = before(h[x], h[k]) ? x : k;
        if (!before(h[k], v))
            break;
        h[i] = h[k];
        i = k;
    }
    h[i] = v;
}

/* ---- the heap of zones ---- */

static bool zone_before(const struct place_pick *p, uint32_t a, uint32_t b)
{
    if (p->key[a] != p->key[b])
        return p->key[a] < p->key[b];
    return p->spots[p->start[a]].node < p->spots[p->start[b]].node;
}

static void put_zone(struct place_pick *p, uint32_t at, uint32_t zone)
{
    p->heap[at] = zone;
    p->position[zone] = at;
}

static void sift_zone(struct place_pick *p, uint32_t i)
{
    uint32_t v = p->heap[i];
    while (i > 0 && zone_before(p, v, p->heap[(i - 1) / 2])) {
        put_zone(p, i, p->heap[(i - 1) / 2]);
        i = (i - 1) / 2;
    }
    for (;;) {
        uint32_t k = 2 * i + 1;
        if (k >= p->n_heap)
            break;
        if (k + 1 < p->n_heap && zone_before(p, p->heap[k + 1], p->heap[k]))
            k++;
        if (!zone_before(p, p->heap[k], v))
            break;
        put_zone(p, i, p->heap[k]);
        i = k;
    }
    put_zone(p, i, v);
}

/* Inserts, moves or removes a group, according to its spots and its zone. */
static void refresh(struct place_pick *p, uint32_t group)
{
    const struct place_core *c = p->c;
    bool zoned = c->models[p->model].zoned;
    bool in = p->len[group] > 0 && !(zoned && place_core_zone_full(c, p->model, group));
    uint32_t at = p->position[group];
    if (in) {
        p->key[group] =
            p->spots[p->start[group]].cost + (zoned ? place_core_zone_cost(c, p->model, group) : 0);
        if (at == PLACEMENT_NONE)
            put_zone(p, at = p->n_heap++, group);
        sift_zone(p, at);
    } else if (at != PLACEMENT_NONE) {
        p->position[group] = PLACEMENT_NONE;
        uint32_t last = p->heap[--p->n_heap];
        if (last != group) {
            put_zone(p, at, last);
            sift_zone(p, at);
        }
    }
}

void place_pick_build(struct place_pick *p, uint32_t model)
{
    struct place_core *c = p->c;
    const struct place_model *m = &c->models[model];
    int64_t bytes = (int64_t)m->in->memory_bytes;
    uint32_t n = 0;
    p->model = model;
    p->n_groups = m->zoned ? c->n_zones : 1;
    memset(p->len, 0, p->n_groups * sizeof(*p->len));
    place_core_mark(c, model);
    for (uint32_t i = 0; i < c->n_nodes; i++) {
        if (m->slow[i] < 0 || c->free_bytes[i] < bytes || !place_core_open(c, model, i))
            continue;
        p->scratch[n++] = (struct place_spot){place_core_add_cost(c, model, i), i};
        p->len[group_of(p, i)]++;
    }
    for (uint32_t g = 0, at = 0; g < p->n_groups; g++) {
        p->start[g] = at;
        at += p->len[g];
        p->len[g] = 0;
    }
    for (uint32_t i = 0; i < n; i++) {
        uint32_t g = group_of(p, p->scratch[i].node);
        p->spots[p->start[g] + p->len[g]++] = p->scratch[i];
    }
    p->n_heap = 0;
    for (uint32_t g = 0; g < p->n_groups; g++) {
        for (uint32_t i = p->len[g] / WAYS + 1; i-- > 0;)
            if (i < p->len[g])
                sift_spot(p->spots + p->start[g], p->len[g], i);
        p->position[g] = PLACEMENT_NONE;
        refresh(p, g);
    }
}

bool place_pick_best(const struct place_pick *p, struct place_spot *out)
{
    if (p->n_heap == 0)
        return false;
    uint32_t g = p->heap[0];
    *out = (struct place_spot){p->key[g], p->spots[p->start[g]].node};
    return true;
}

bool place_pick_best_outside(const struct place_pick *p, uint32_t zone, struct place_spot *out)
{
    if (p->n_groups == 1)
        return false;
    uint32_t at = 0;
    /* if the root is the excluded zone, the better of its two children is the best outside */
    if (p->n_heap > 0 && p->heap[0] == zone) {
        at = p->n_heap > 2 && zone_before(p, p->heap[2], p->heap[1]) ? 2 : 1;
    }
    if (at >= p->n_heap)
        return false;
    uint32_t g = p->heap[at];
    *out = (struct place_spot){p->key[g], p->spots[p->start[g]].node};
    return true;
}

bool place_pick_best_inside(const struct place_pick *p, uint32_t zone, struct place_spot *out)
{
    uint32_t g = p->n_groups == 1 ? 0 : zone;
    if (p->len[g] == 0)
        return false;
    *out = p->spots[p->start[g]];
    return true;
}

void place_pick_take(struct place_pick *p, uint32_t node)
{
    uint32_t g = group_of(p, node);
    struct place_spot *h = p->spots + p->start[g];
    assert(p->len[g] > 0 && h[0].node == node);
    h[0] = h[--p->len[g]];
    if (p->len[g] > 0)
        sift_spot(h, p->len[g], 0);
    refresh(p, g);
}

void place_pick_update(struct place_pick *p, uint32_t zone)
{
    refresh(p, p->n_groups == 1 ? 0 : zone);
}
