/* place_words.c - see place_words.h. */
#include "cluster/placement/place_words.h"

#include <stdio.h>
#include <string.h>

#include "base/bytes_text.h"
#include "base/plural.h"

static const char *node_name(const struct place_core *c, uint32_t node)
{
    return c->nodes[node].in->name;
}

static const char *zone_name(const struct place_core *c, uint32_t node)
{
    const char *name = c->zone_names[c->nodes[node].zone];
    return name[0] ? name : "(none)";
}

/* The first label that the node should have and lacks, or has and should not. */
static const char *wrong_label(const struct placement_model *m, const struct placement_node *n,
                               bool has)
{
    const struct placement_strs *l = has ? &m->not_labels : &m->labels;
    for (uint32_t i = 0; i < l->n; i++) {
        bool there = false;
        for (uint32_t k = 0; k < n->labels.n && !there; k++)
            there = strcmp(l->v[i], n->labels.v[k]) == 0;
        if (there == has)
            return l->v[i];
    }
    return "";
}

static const char *bar_words(struct arena *a, const struct place_core *c, uint32_t model,
                             uint32_t node, enum place_bar bar)
{
    const struct placement_node *n = c->nodes[node].in;
    const struct placement_model *m = c->models[model].in;
    char x[32], y[32];
    switch (bar) {
    case PLACE_BAR_DRAINED:
        return arena_printf(a, "node %s is drained", n->name);
    case PLACE_BAR_BATTERY:
        return arena_printf(a, "battery of %s is at %.0f %%", n->name, n->battery * 100);
    case PLACE_BAR_ZONE:
        return arena_printf(a, "zone %s is not one of the model's", zone_name(c, node));
    case PLACE_BAR_LABEL:
        return arena_printf(a, "node %s lacks label %s", n->name, wrong_label(m, n, false));
    case PLACE_BAR_NOT_LABEL:
        return arena_printf(a, "node %s has label %s", n->name, wrong_label(m, n, true));
    case PLACE_BAR_SMALL:
        return arena_printf(a, "needs %s, node %s has %s", bytes_text(x, (double)m->memory_bytes),
                            n->name, bytes_text(y, (double)n->memory_bytes));
    case PLACE_BAR_FAILED:
        return arena_printf(a, "could not be loaded on %s", n->name);
    case PLACE_BAR_NONE:
    case PLACE_BAR_N:
        break;
    }
    return "";
}

/* The reason for a move: the largest of its gains. */
static const char *better_words(struct arena *a, const struct place_core *c, uint32_t model,
                                uint32_t from, uint32_t to)
{
    const struct place_model *m = &c->models[model];
    const struct placement_node *f = c->nodes[from].in, *t = c->nodes[to].in;
    uint32_t zf = c->nodes[from].zone, zt = c->nodes[to].zone;
    double speed = m->slow[from] > 0 && m->slow[to] > 0 ? (double)(m->slow[from] - m->slow[to]) : 0;
    double zone = m->in->spread && zf != zt
                      ? c->in->policy.zone_weight * (m->in_zone[zf] + 1.0 - m->in_zone[zt])
                      : 0;
    double price = c->fixed[from] - c->fixed[to];
    if (zone > 0 && zone >= speed && zone >= price) {
        if (m->in_zone[zt] == 1)
            return arena_printf(a, "zone %s has no replica", zone_name(c, to));
        return arena_printf(a, "zone %s has more replicas than %s", zone_name(c, from),
                            zone_name(c, to));
    }
    if (price > 0 && price >= speed && f->on_battery && !t->on_battery)
        return arena_printf(a, "node %s runs on battery, at %.0f %%", f->name, f->battery * 100);
    if (price > 0 && price >= speed)
        return arena_printf(a, "cheaper node: cost %.3g instead of %.3g", t->cost, f->cost);
    if (speed > 0 && m->slow[from] >= 1.1f * m->slow[to])
        return arena_printf(a, "faster node: %.1fx", (double)(m->slow[from] / m->slow[to]));
    return arena_printf(a, "node %s is busier than %s", f->name, t->name);
}

static const char *leave_words(struct arena *a, const struct place_core *c,
                               const struct place_replica *r, uint32_t from)
{
    const struct place_model *m = &c->models[r->model];
    switch (r->why.cause) {
    case PLACE_CAUSE_BAR:
        return bar_words(a, c, r->model, from, r->why.bar);
    case PLACE_CAUSE_ZONE_FULL:
        return arena_printf(a, "zone %s has more than %u", zone_name(c, from), m->in->max_per_zone);
    case PLACE_CAUSE_APART:
        return arena_printf(a, "must not share node %s with %s", node_name(c, from),
                            c->models[r->why.other].in->name);
    case PLACE_CAUSE_MEMORY:
        return arena_printf(a, "node %s has less memory now", node_name(c, from));
    case PLACE_CAUSE_ROOM:
        return arena_printf(a, "makes room on %s for %s", node_name(c, from),
                            c->models[r->why.other].in->name);
    default:
        return NULL;
    }
}

const char *place_words_load(struct arena *a, const struct place_core *c,
                             const struct place_replica *r, uint32_t from, uint32_t to)
{
    const struct place_why *w = &r->why;
    const char *leave = from == PLACEMENT_NONE ? NULL : leave_words(a, c, r, from);
    if (leave)
        return leave;
    switch (w->cause) {
    case PLACE_CAUSE_LOST:
        return arena_printf(a, "node %s left", w->name);
    case PLACE_CAUSE_PIN:
        return arena_printf(a, "pinned to %s", node_name(c, to));
    case PLACE_CAUSE_NEW:
        return arena_printf(a, "new model: replica %.0f of %.0f", w->have + 1, w->want);
    case PLACE_CAUSE_TOKENS:
        return arena_printf(a, "%.0f tokens/s wanted, %.0f there", w->want, w->have);
    case PLACE_CAUSE_STANDBY:
    case PLACE_CAUSE_COUNT:
        if (w->zone_first)
            return arena_printf(a, "zone %s has no replica; %.0f wanted, %.0f there",
                                zone_name(c, to), w->want, w->have);
        if (w->cause == PLACE_CAUSE_STANDBY)
            return "hot standby";
        return arena_printf(a, "%.0f replica%s wanted, %.0f there", w->want,
                            plural((uint64_t)w->want), w->have);
    default:
        return from == PLACEMENT_NONE ? "wanted" : better_words(a, c, r->model, from, to);
    }
}

const char *place_words_unload(struct arena *a, const struct place_core *c,
                               const struct place_replica *r, uint32_t from, uint32_t to)
{
    const struct place_why *w = &r->why;
    if (to != PLACEMENT_NONE)
        return arena_printf(a, "moved to %s: %s", node_name(c, to),
                            place_words_load(a, c, r, from, to));
    switch (w->cause) {
    case PLACE_CAUSE_UNWANTED:
        return "not wanted any more";
    case PLACE_CAUSE_VERSION:
        return "another version is wanted";
    case PLACE_CAUSE_TOKENS:
        return arena_printf(a, "%.0f tokens/s there, %.0f wanted", w->have, w->want);
    case PLACE_CAUSE_COUNT:
        return arena_printf(a, "%.0f replica%s there, %.0f wanted", w->have,
                            plural((uint64_t)w->have), w->want);
    default: {
        const char *leave = leave_words(a, c, r, from);
        return leave ? leave : "not wanted here";
    }
    }
}

/* ---- gaps ---- */

struct tally {
    uint32_t bars[PLACE_BAR_N];
    uint32_t closed, there, apart, zone, full, free;
    int64_t most_free;
    uint32_t most_free_node;
    uint64_t largest; /* memory of the largest node of the right kind */
};

static void count_nodes(struct tally *t, struct place_core *c, uint32_t model)
{
    const struct place_model *m = &c->models[model];
    place_core_mark(c, model);
    *t = (struct tally){.most_free = INT64_MIN, .most_free_node = PLACEMENT_NONE};
    for (uint32_t i = 0; i < c->n_nodes; i++) {
        bool barred = m->slow[i] < 0;
        enum place_bar bar = barred ? (enum place_bar)(int)-m->slow[i] : PLACE_BAR_NONE;
        if (!barred || bar == PLACE_BAR_SMALL)
            t->largest = c->nodes[i].in->memory_bytes > t->largest ? c->nodes[i].in->memory_bytes
                                                                   : t->largest;
        if (barred)
            t->bars[bar]++;
        else if (c->mark[i] == c->stamp && place_core_on(c, model, i) != PLACEMENT_NONE)
            t->there++;
        else if (c->closed[i])
            t->closed++;
        else if (!place_core_open(c, model, i))
            t->apart++;
        else if (place_core_zone_full(c, model, c->nodes[i].zone))
            t->zone++;
        else if (c->free_bytes[i] < (int64_t)m->in->memory_bytes)
            t->full++;
        else
            t->free++;
        if (!barred && c->free_bytes[i] > t->most_free && c->mark[i] != c->stamp) {
            t->most_free = c->free_bytes[i];
            t->most_free_node = i;
        }
    }
}

static void add(char *out, size_t cap, uint32_t n, const char *words)
{
    size_t at = strlen(out);
    if (n > 0 && at < cap)
        snprintf(out + at, cap - at, "%s%u %s", at ? ", " : "", n, words);
}

static const char *explain(struct arena *a, struct place_core *c, uint32_t model)
{
    struct tally t;
    char list[512] = "", x[32], y[32];
    count_nodes(&t, c, model);
    if (c->n_nodes == 0)
        return "there are no nodes";
    add(list, sizeof(list), t.there, "have it already");
    add(list, sizeof(list), t.bars[PLACE_BAR_DRAINED], "drained");
    add(list, sizeof(list), t.bars[PLACE_BAR_BATTERY] + t.closed, "with a low battery");
    add(list, sizeof(list), t.bars[PLACE_BAR_ZONE], "in other zones");
    add(list, sizeof(list), t.bars[PLACE_BAR_LABEL], "lack a label");
    add(list, sizeof(list), t.bars[PLACE_BAR_NOT_LABEL], "have a label that is excluded");
    add(list, sizeof(list), t.bars[PLACE_BAR_FAILED], "failed to load it");
    add(list, sizeof(list), t.apart, "have a model that it must not share a node with");
    add(list, sizeof(list), t.zone, "in zones that have enough of it");
    add(list, sizeof(list), t.bars[PLACE_BAR_SMALL], "too small");
    add(list, sizeof(list), t.full, "full");
    add(list, sizeof(list), t.free, "free, but kept as they are");
    const char *need = bytes_text(x, (double)c->models[model].in->memory_bytes);
    if (t.full > 0 && t.most_free_node != PLACEMENT_NONE)
        return arena_printf(a, "needs %s, largest free %s on %s; nodes: %s", need,
                            bytes_text(y, t.most_free > 0 ? (double)t.most_free : 0),
                            node_name(c, t.most_free_node), list);
    if (t.bars[PLACE_BAR_SMALL] > 0)
        return arena_printf(a, "needs %s, largest node has %s; nodes: %s", need,
                            bytes_text(y, (double)t.largest), list);
    return arena_printf(a, "needs %s; nodes: %s", need, list);
}

const char *place_words_gap(struct arena *a, struct place_core *c, uint32_t model,
                            uint32_t *n_missing)
{
    const struct place_model *m = &c->models[model];
    const struct place_replica *stuck = NULL;
    *n_missing = m->n < m->low ? m->low - m->n : 0;
    for (uint32_t i = m->first; i != PLACEMENT_NONE; i = c->replicas[i].next_of_model)
        if (c->replicas[i].leaves) {
            stuck = stuck ? stuck : &c->replicas[i];
            ++*n_missing;
        }
    for (uint32_t k = 0; k < m->in->pins.n; k++) {
        uint32_t node = m->pins[k];
        if (node != PLACEMENT_NONE && place_core_on(c, model, node) != PLACEMENT_NONE)
            continue;
        *n_missing = *n_missing ? *n_missing : 1;
        if (node == PLACEMENT_NONE)
            return arena_printf(a, "pinned to %s, which is not there", m->in->pins.v[k]);
        if (m->slow[node] < 0)
            return arena_printf(a, "pinned to %s, but %s", node_name(c, node),
                                bar_words(a, c, model, node, (enum place_bar)(int)-m->slow[node]));
        return arena_printf(a, "pinned to %s, which has no room: %s", node_name(c, node),
                            explain(a, c, model));
    }
    if (m->n < m->low)
        return arena_printf(a, "%u of %u replicas: %s", m->n, m->low, explain(a, c, model));
    double served = place_core_served(m, m->rate, m->n);
    if (m->in->want_tokens_per_s > 0 && served < m->in->want_tokens_per_s * (1 - 1e-9)) {
        *n_missing = *n_missing ? *n_missing : 1;
        if (m->n >= m->high)
            return arena_printf(a,
                                "%.0f tokens/s wanted, %u replicas give %.0f and that is the "
                                "most that is allowed",
                                m->in->want_tokens_per_s, m->n - m->in->standby, served);
        return arena_printf(a, "%.0f tokens/s wanted, %u replicas give %.0f: %s",
                            m->in->want_tokens_per_s, m->n - m->in->standby, served,
                            explain(a, c, model));
    }
    if (stuck)
        return arena_printf(a, "stays on %s (%s): %s", node_name(c, stuck->node),
                            leave_words(a, c, stuck, stuck->node), explain(a, c, model));
    return NULL;
}
