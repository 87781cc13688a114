/* placement_check.c - see placement_check.h.  Slow and simple on purpose. */
#include "cluster/placement/placement_check.h"

#include <string.h>

#include "base/arena.h"
#include "base/strmap.h"

struct cell { /* one model on one node */
    bool there, ready, stale, was;
};

struct check {
    const struct placement_input *in;
    const struct placement_plan *plan;
    struct arena arena;
    struct strmap nodes, models, zones;
    uint32_t *zone;     /* [n_nodes]: the first node of the same zone */
    struct cell *cells; /* [n_models, n_nodes] */
    uint64_t *used;     /* [n_nodes] */
    uint32_t *ready;    /* [n_models] */
    uint32_t *floor;    /* [n_models] */
    uint64_t *held;     /* [n_current]: bytes */
    struct err *e;
};

static struct cell *cell(const struct check *k, uint32_t model, uint32_t node)
{
    return &k->cells[(size_t)model * k->in->n_nodes + node];
}

static bool contains(const struct placement_strs *s, const char *word)
{
    for (uint32_t i = 0; i < s->n; i++)
        if (strcmp(s->v[i], word) == 0)
            return true;
    return false;
}

/* NULL, or why the node must not have the model. */
static const char *forbidden(const struct check *k, uint32_t model, uint32_t node, bool is_new)
{
    const struct placement_node *n = &k->in->nodes[node];
    const struct placement_model *m = &k->in->models[model];
    double lowest = k->in->policy.battery_min + (is_new ? k->in->policy.battery_margin : 0);
    if (n->drained)
        return "is drained";
    if (n->on_battery && n->battery < lowest)
        return "has a low battery";
    if (m->zones.n && !contains(&m->zones, n->zone ? n->zone : ""))
        return "is in another zone";
    for (uint32_t i = 0; i < m->labels.n; i++)
        if (!contains(&n->labels, m->labels.v[i]))
            return "lacks a label";
    for (uint32_t i = 0; i < m->not_labels.n; i++)
        if (contains(&n->labels, m->not_labels.v[i]))
            return "has an excluded label";
    return NULL;
}

static int start(struct check *k)
{
    const struct placement_input *in = k->in;
    size_t n_cells = in->n_nodes * in->n_models;
    k->cells = arena_zalloc_n(&k->arena, n_cells + 1, sizeof(*k->cells));
    k->used = arena_zalloc_n(&k->arena, in->n_nodes + 1, sizeof(*k->used));
    k->ready = arena_zalloc_n(&k->arena, in->n_models + 1, sizeof(*k->ready));
    k->floor = arena_zalloc_n(&k->arena, in->n_models + 1, sizeof(*k->floor));
    k->zone = arena_zalloc_n(&k->arena, in->n_nodes + 1, sizeof(*k->zone));
    k->held = arena_zalloc_n(&k->arena, in->n_current + 1, sizeof(*k->held));
    if (k->arena.rc < 0 || strmap_init(&k->nodes, in->n_nodes) < 0 ||
        strmap_init(&k->models, in->n_models) < 0 || strmap_init(&k->zones, 16) < 0)
        return err_set(k->e, SHOAL_ENOMEM, "placement check");
    for (uint32_t i = 0; i < in->n_nodes; i++) {
        const char *name = in->nodes[i].name, *zone = in->nodes[i].zone ? in->nodes[i].zone : "";
        if (strmap_put(&k->nodes, name, strlen(name), i) < 0 ||
            strmap_put(&k->zones, zone, strlen(zone), i) < 0)
            return err_set(k->e, SHOAL_ENOMEM, "placement check");
        strmap_get(&k->zones, zone, strlen(zone), &k->zone[i]);
    }
    for (uint32_t i = 0; i < in->n_models; i++)
        if (strmap_put(&k->models, in->models[i].name, strlen(in->models[i].name), i) < 0)
            return err_set(k->e, SHOAL_ENOMEM, "placement check");
    for (size_t i = 0; i < in->n_current; i++) {
        const struct placement_replica *r = &in->current[i];
        uint32_t node, model;
        if (r->state == PLACEMENT_FAILED || !strmap_get(&k->nodes, r->node, strlen(r->node), &node))
            continue;
        k->held[i] = placement_replica_bytes(r);
        if (strmap_get(&k->models, r->model, strlen(r->model), &model)) {
            const struct placement_model *m = &in->models[model];
            bool stale = r->sha256 && m->sha256 && strcmp(r->sha256, m->sha256) != 0;
            bool ready = r->state == PLACEMENT_READY;
            *cell(k, model, node) = (struct cell){true, ready, stale, true};
            k->ready[model] += ready;
            if (!stale || !k->held[i])
                k->held[i] = m->memory_bytes;
        }
        k->used[node] += k->held[i];
    }
    for (uint32_t i = 0; i < in->n_models; i++) {
        uint32_t min = in->models[i].min_replicas;
        k->floor[i] = k->ready[i] < min ? k->ready[i] : min;
    }
    return 0;
}

static int check_load(struct check *k, const struct placement_step *s)
{
    const struct placement_input *in = k->in;
    if (s->model == PLACEMENT_NONE || s->node >= in->n_nodes || s->model >= in->n_models)
        return err_set(k->e, SHOAL_EINTERNAL, "a load of nothing on %s", s->node_name);
    const struct placement_model *m = &in->models[s->model];
    const char *why = forbidden(k, s->model, s->node, true);
    if (why)
        return err_set(k->e, SHOAL_EINTERNAL, "load of %s on %s, which %s", m->name, s->node_name,
                       why);
    if (cell(k, s->model, s->node)->there)
        return err_set(k->e, SHOAL_EINTERNAL, "%s is loaded twice on %s", m->name, s->node_name);
    for (uint32_t i = 0; m->apart && m->apart[0] && i < in->n_models; i++)
        if (cell(k, i, s->node)->there && in->models[i].apart &&
            strcmp(in->models[i].apart, m->apart) == 0)
            return err_set(k->e, SHOAL_EINTERNAL, "%s and %s share %s", m->name, in->models[i].name,
                           s->node_name);
    k->used[s->node] += m->memory_bytes;
    if (k->used[s->node] > in->nodes[s->node].memory_bytes)
        return err_set(k->e, SHOAL_EINTERNAL, "%s holds more than its memory with %s", s->node_name,
                       m->name);
    *cell(k, s->model, s->node) = (struct cell){true, true, false, false};
    return 0;
}

/* ready: counts without the loads of this wave. */
static int check_unload(struct check *k, const struct placement_step *s)
{
    if (s->model == PLACEMENT_NONE)
        return 0;
    struct cell *c = cell(k, s->model, s->node);
    if (!c->there)
        return err_set(k->e, SHOAL_EINTERNAL, "%s is unloaded from %s, where it is not",
                       s->model_name, s->node_name);
    k->ready[s->model] -= c->ready;
    if (c->ready && k->ready[s->model] < k->floor[s->model])
        return err_set(k->e, SHOAL_EINTERNAL, "%s falls to %u ready replicas", s->model_name,
                       k->ready[s->model]);
    *c = (struct cell){0};
    return 0;
}

static void free_memory(struct check *k, const struct placement_step *s)
{
    if (s->replica != PLACEMENT_NONE)
        k->used[s->node] -= k->held[s->replica];
    else if (s->model != PLACEMENT_NONE)
        k->used[s->node] -= k->in->models[s->model].memory_bytes;
}

static int check_steps(struct check *k)
{
    const struct placement_plan *p = k->plan;
    int rc = 0;
    for (size_t i = 0, end; i < p->n_steps && rc == 0; i = end) {
        end = i;
        while (end < p->n_steps && p->steps[end].wave == p->steps[i].wave)
            end++;
        if (end < p->n_steps && p->steps[end].wave < p->steps[i].wave)
            return err_set(k->e, SHOAL_EINTERNAL, "waves are out of order");
        for (size_t s = i; s < end && rc == 0; s++)
            if (p->steps[s].action == PLACEMENT_LOAD)
                rc = check_load(k, &p->steps[s]);
        for (size_t s = i; s < end && rc == 0; s++)
            if (p->steps[s].action == PLACEMENT_UNLOAD)
                rc = check_unload(k, &p->steps[s]);
        for (size_t s = i; s < end && rc == 0; s++) {
            if (p->steps[s].action == PLACEMENT_UNLOAD)
                free_memory(k, &p->steps[s]);
            else
                k->ready[p->steps[s].model]++;
            if (!p->steps[s].reason || !p->steps[s].reason[0])
                return err_set(k->e, SHOAL_EINTERNAL, "step %zu has no reason", s);
        }
    }
    return rc;
}

static bool has_gap(const struct check *k, uint32_t model)
{
    for (size_t i = 0; i < k->plan->n_gaps; i++)
        if (k->plan->gaps[i].model == model)
            return k->plan->gaps[i].n_missing > 0 && k->plan->gaps[i].reason[0];
    return false;
}

/* In the final state: every deviation must be a gap, or wait for a replica that is still
 * loading. */
static int check_model(struct check *k, uint32_t model, uint32_t *in_zone)
{
    const struct placement_input *in = k->in;
    const struct placement_model *m = &in->models[model];
    uint32_t n = 0, want = m->min_replicas;
    bool gap = has_gap(k, model), waits = k->ready[model] <= k->floor[model];
    memset(in_zone, 0, in->n_nodes * sizeof(*in_zone));
    for (uint32_t i = 0; i < in->n_nodes; i++) {
        const struct cell *c = cell(k, model, i);
        if (!c->there || c->stale)
            continue;
        n++;
        const char *why = forbidden(k, model, i, false);
        if (why && !gap && !waits)
            return err_set(k->e, SHOAL_EINTERNAL, "%s stays on %s, which %s", m->name,
                           in->nodes[i].name, why);
        uint32_t z = k->zone[i];
        if (++in_zone[z] > m->max_per_zone && m->max_per_zone && !gap && !waits)
            return err_set(k->e, SHOAL_EINTERNAL, "%s has %u replicas in a zone", m->name,
                           in_zone[z]);
    }
    want = m->want_replicas > want ? m->want_replicas : want;
    want = m->pins.n > want ? m->pins.n : want;
    uint32_t most = m->max_replicas ? m->max_replicas : want;
    want = (want < most ? want : most) + m->standby;
    if (n < want && !gap)
        return err_set(k->e, SHOAL_EINTERNAL, "%s has %u of %u replicas and no gap says so",
                       m->name, n, want);
    if (n > most + m->standby && !waits && !gap)
        return err_set(k->e, SHOAL_EINTERNAL, "%s has %u replicas, at most %u are allowed", m->name,
                       n, most + m->standby);
    for (uint32_t i = 0; i < m->pins.n; i++) {
        uint32_t node;
        bool on = strmap_get(&k->nodes, m->pins.v[i], strlen(m->pins.v[i]), &node) &&
                  cell(k, model, node)->there;
        if (!on && !gap)
            return err_set(k->e, SHOAL_EINTERNAL, "%s is not on %s, where it is pinned", m->name,
                           m->pins.v[i]);
    }
    return 0;
}

static int check_end(struct check *k)
{
    const struct placement_plan *p = k->plan;
    size_t n = 0;
    uint32_t *in_zone = arena_zalloc_n(&k->arena, k->in->n_nodes + 1, sizeof(*in_zone));
    if (!in_zone)
        return err_set(k->e, SHOAL_ENOMEM, "placement check");
    for (uint32_t i = 0; i < k->in->n_models; i++) {
        int rc = check_model(k, i, in_zone);
        if (rc < 0)
            return rc;
    }
    for (size_t i = 0; i < k->in->n_nodes * k->in->n_models; i++)
        n += k->cells[i].there && !k->cells[i].stale;
    if (n != p->n_places)
        return err_set(k->e, SHOAL_EINTERNAL, "the steps lead to %zu replicas, the plan lists %zu",
                       n, p->n_places);
    for (size_t i = 0; i < p->n_places; i++)
        if (!cell(k, p->places[i].model, p->places[i].node)->there)
            return err_set(k->e, SHOAL_EINTERNAL, "the steps do not lead to %s on %s",
                           k->in->models[p->places[i].model].name,
                           k->in->nodes[p->places[i].node].name);
    return 0;
}

int placement_check(const struct placement_input *in, const struct placement_plan *plan,
                    struct err *e)
{
    struct check k = {.in = in, .plan = plan, .e = e};
    arena_init(&k.arena, (size_t)1 << 31);
    int rc = start(&k);
    if (rc == 0)
        rc = check_steps(&k);
    if (rc == 0)
        rc = check_end(&k);
    strmap_fini(&k.nodes);
    strmap_fini(&k.models);
    strmap_fini(&k.zones);
    arena_fini(&k.arena);
    return rc;
}
