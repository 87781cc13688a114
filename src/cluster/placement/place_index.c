/* place_index.c - see place_index.h. */
#include "cluster/placement/place_index.h"

#include <stdlib.h>
#include <string.h>

#include "base/strmap.h"

#define IDLE_BETA 0.1 /* how busy a model keeps a mean node without a target */
#define MAX_BYTES ((size_t)4 << 30)

struct index {
    struct place_core *c;
    struct strmap nodes, models, zones, labels, aparts;
    uint32_t n_labels, n_aparts, label_words;
    uint64_t *node_labels; /* [n_nodes, label_words] */
    struct err *e;
};

/* ---- nodes ---- */

static int by_node_name(const void *a, const void *b)
{
    const struct place_node *x = a, *y = b;
    return strcmp(x->in->name, y->in->name);
}

static const char *zone_of(const struct placement_node *n)
{
    return n->zone ? n->zone : "";
}

static int number_nodes(struct index *x)
{
    struct place_core *c = x->c;
    const struct placement_policy *p = &c->in->policy;
    for (uint32_t i = 0; i < c->n_nodes; i++) {
        int rc = placement_valid_node(&c->in->nodes[i], x->e);
        if (rc < 0)
            return rc;
        c->nodes[i] =
            (struct place_node){.in = &c->in->nodes[i], .input = i, .first = PLACEMENT_NONE};
    }
    qsort(c->nodes, c->n_nodes, sizeof(*c->nodes), by_node_name);
    for (uint32_t i = 0; i < c->n_nodes; i++) {
        struct place_node *n = &c->nodes[i];
        const struct placement_node *in = n->in;
        int rc = strmap_put(&x->nodes, in->name, strlen(in->name), i);
        if (rc == 1)
            return err_set(x->e, SHOAL_EINVAL, "two nodes are named %s", in->name);
        const char *zone = zone_of(in);
        int rz = rc < 0 ? rc : strmap_put(&x->zones, zone, strlen(zone), c->n_zones);
        if (rc < 0 || rz < 0)
            return err_set(x->e, SHOAL_ENOMEM, "placement");
        if (rz == 0)
            c->zone_names[c->n_zones++] = zone;
        strmap_get(&x->zones, zone, strlen(zone), &n->zone);
        n->idle = in->load < 0.95 ? 1 - in->load : 0.05;
        c->closed[i] = in->on_battery && in->battery < p->battery_min + p->battery_margin;
        c->free_bytes[i] = (int64_t)in->memory_bytes;
        c->busy[i] = in->load;
        c->inv_memory[i] = in->memory_bytes ? 1 / (double)in->memory_bytes : 0;
        c->fixed[i] = p->cost_weight * in->cost +
                      (in->on_battery ? p->battery_weight * (1 - in->battery) : 0);
    }
    return 0;
}

/* ---- labels: only those that a model names get a number ---- */

static int number_label(struct index *x, const char *label)
{
    int rc = strmap_put(&x->labels, label, strlen(label), x->n_labels);
    if (rc < 0)
        return err_set(x->e, SHOAL_ENOMEM, "placement");
    x->n_labels += rc == 0;
    if (x->n_labels > PLACEMENT_MAX_LABELS)
        return err_set(x->e, SHOAL_ELIMIT, "the models name more than %u labels",
                       PLACEMENT_MAX_LABELS);
    return 0;
}

static int number_labels(struct index *x)
{
    struct place_core *c = x->c;
    int rc = 0;
    for (uint32_t i = 0; i < c->n_models && rc == 0; i++) {
        const struct placement_model *m = c->models[i].in;
        for (uint32_t k = 0; k < m->labels.n && rc == 0; k++)
            rc = number_label(x, m->labels.v[k]);
        for (uint32_t k = 0; k < m->not_labels.n && rc == 0; k++)
            rc = number_label(x, m->not_labels.v[k]);
    }
    if (rc < 0)
        return rc;
    x->label_words = (x->n_labels + 63) / 64;
    x->node_labels = arena_zalloc_n(&c->arena, (size_t)c->n_nodes * x->label_words + 1, 8);
    if (!x->node_labels)
        return err_set(x->e, c->arena.rc, "placement");
    for (uint32_t i = 0; i < c->n_nodes; i++)
        for (uint32_t k = 0; k < c->nodes[i].in->labels.n; k++) {
            const char *label = c->nodes[i].in->labels.v[k];
            uint32_t id;
            if (strmap_get(&x->labels, label, strlen(label), &id))
                x->node_labels[(size_t)i * x->label_words + id / 64] |= (uint64_t)1 << id % 64;
        }
    return 0;
}

static void label_bits(const struct index *x, uint64_t *bits, const struct placement_strs *labels)
{
    memset(bits, 0, x->label_words * sizeof(*bits));
    for (uint32_t k = 0; k < labels->n; k++) {
        uint32_t id = 0;
        strmap_get(&x->labels, labels->v[k], strlen(labels->v[k]), &id);
        bits[id / 64] |= (uint64_t)1 << id % 64;
    }
}

/* ---- models ---- */

static int check_model(const struct placement_model *m, struct err *e)
{
    if (!m->name || !m->name[0])
        return err_set(e, SHOAL_EINVAL, "a model has no name");
    if (m->memory_bytes == 0 || m->memory_bytes > PLACEMENT_MAX_MODEL_BYTES)
        return err_set(e, SHOAL_EINVAL, "model %s: its memory must be known", m->name);
    if (m->max_replicas > 0 && m->min_replicas > m->max_replicas)
        return err_set(e, SHOAL_EINVAL, "model %s: min_replicas %u is above max_replicas %u",
                       m->name, m->min_replicas, m->max_replicas);
    if (m->max_replicas > 0 && m->pins.n > m->max_replicas)
        return err_set(e, SHOAL_EINVAL, "model %s: pinned to %u nodes, but max_replicas is %u",
                       m->name, m->pins.n, m->max_replicas);
    if ((unsigned)m->kind >= PLACEMENT_N_KINDS ||
        !(m->want_tokens_per_s >= 0 && m->want_tokens_per_s <= 1e18) ||
        m->min_replicas > PLACEMENT_MAX_NODES || m->standby > PLACEMENT_MAX_NODES)
        return err_set(e, SHOAL_EINVAL, "model %s: its kind, tokens per second or counts are wrong",
                       m->name);
    return 0;
}

static int by_model_name(const void *a, const void *b)
{
    const struct place_model *x = a, *y = b;
    return strcmp(x->in->name, y->in->name);
}

static uint32_t max_u32(uint32_t a, uint32_t b)
{
    return a > b ? a : b;
}

static uint32_t min_u32(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

static int number_models(struct index *x)
{
    struct place_core *c = x->c;
    for (uint32_t i = 0; i < c->n_models; i++) {
        int rc = check_model(&c->in->models[i], x->e);
        if (rc < 0)
            return rc;
        c->models[i] = (struct place_model){.in = &c->in->models[i],
                                            .input = i,
                                            .first = PLACEMENT_NONE,
                                            .last = PLACEMENT_NONE,
                                            .lost = PLACEMENT_NONE,
                                            .apart = PLACEMENT_NONE};
    }
    qsort(c->models, c->n_models, sizeof(*c->models), by_model_name);
    for (uint32_t i = 0; i < c->n_models; i++) {
        struct place_model *m = &c->models[i];
        const struct placement_model *in = m->in;
        int rc = strmap_put(&x->models, in->name, strlen(in->name), i);
        if (rc == 1)
            return err_set(x->e, SHOAL_EINVAL, "two models are named %s", in->name);
        if (rc == 0 && in->apart && in->apart[0]) {
            rc = strmap_put(&x->aparts, in->apart, strlen(in->apart), x->n_aparts);
            x->n_aparts += rc == 0;
            strmap_get(&x->aparts, in->apart, strlen(in->apart), &m->apart);
        }
        if (rc < 0)
            return err_set(x->e, SHOAL_ENOMEM, "placement");
        uint32_t want = max_u32(max_u32(in->min_replicas, in->want_replicas), in->pins.n);
        uint32_t most = in->max_replicas ? in->max_replicas : want;
        m->low = min_u32(want, most) + in->standby;
        m->high = min_u32(most, c->n_nodes) + in->standby;
        m->zoned = in->spread || in->max_per_zone > 0;
        m->slow = arena_zalloc_n(&c->arena, c->n_nodes + 1, sizeof(*m->slow));
        m->in_zone = m->zoned ? arena_zalloc_n(&c->arena, c->n_zones + 1, sizeof(uint32_t)) : NULL;
        m->pins = arena_zalloc_n(&c->arena, in->pins.n + 1, sizeof(uint32_t));
        if (c->arena.rc < 0)
            return err_set(x->e, c->arena.rc, "placement");
        for (uint32_t k = 0; k < in->pins.n; k++) {
            const char *pin = in->pins.v[k];
            if (!strmap_get(&x->nodes, pin, strlen(pin), &m->pins[k]))
                m->pins[k] = PLACEMENT_NONE;
        }
    }
    return 0;
}

struct needs { /* of one model */
    uint64_t *with, *without;
    uint8_t *zones; /* [n_zones] */
};

static enum place_bar bar_of(const struct index *x, const struct placement_model *m, uint32_t node,
                             const struct needs *needs)
{
    const struct place_node *n = &x->c->nodes[node];
    const uint64_t *has = x->node_labels + (size_t)node * x->label_words;
    if (n->in->drained)
        return PLACE_BAR_DRAINED;
    if (n->in->on_battery && n->in->battery < x->c->in->policy.battery_min)
        return PLACE_BAR_BATTERY;
    if (m->zones.n && !needs->zones[n->zone])
        return PLACE_BAR_ZONE;
    for (uint32_t w = 0; w < x->label_words; w++) {
        if (needs->with[w] & ~has[w])
            return PLACE_BAR_LABEL;
        if (needs->without[w] & has[w])
            return PLACE_BAR_NOT_LABEL;
    }
    return m->memory_bytes > n->in->memory_bytes ? PLACE_BAR_SMALL : PLACE_BAR_NONE;
}

/* Which nodes can have the model, and how slow it is there relative to a mean node. */
static void find_slowness(struct index *x, struct place_model *m, struct needs *needs,
                          double *rates)
{
    struct place_core *c = x->c;
    double sum = 0, least = 0;
    uint32_t n = 0;
    label_bits(x, needs->with, &m->in->labels);
    label_bits(x, needs->without, &m->in->not_labels);
    memset(needs->zones, 0, c->n_zones);
    for (uint32_t k = 0; k < m->in->zones.n; k++) {
        uint32_t z;
        if (strmap_get(&x->zones, m->in->zones.v[k], strlen(m->in->zones.v[k]), &z))
            needs->zones[z] = 1;
    }
    for (uint32_t i = 0; i < c->n_nodes; i++) {
        enum place_bar bar = bar_of(x, m->in, i, needs);
        m->slow[i] = -(float)bar;
        rates[i] = bar ? 0 : placement_rate(c->nodes[i].in, m->in);
        if (rates[i] > 0 && (least == 0 || rates[i] < least))
            least = rates[i];
    }
    least = least > 0 ? least : 1;
    for (uint32_t i = 0; i < c->n_nodes; i++) {
        if (m->slow[i] < 0)
            continue;
        rates[i] = rates[i] > 0 ? rates[i] : least;
        sum += rates[i];
        n++;
    }
    m->mean = n ? sum / n : 1;
    for (uint32_t i = 0; i < c->n_nodes; i++)
        if (m->slow[i] == 0) {
            double slow = m->mean / rates[i];
            m->slow[i] = (float)(slow < 1e-6 ? 1e-6 : slow > 1e6 ? 1e6 : slow);
        }
    m->beta = IDLE_BETA;
    if (m->in->want_tokens_per_s > 0) {
        double most = m->high - m->in->standby, k = m->low - m->in->standby;
        double by_rate = m->in->want_tokens_per_s / m->mean;
        k = k > by_rate ? k : by_rate;
        k = k < most ? k : most;
        m->beta = by_rate / (k > 1 ? k : 1);
    }
}

/* ---- current replicas ---- */

struct entry {
    const struct placement_replica *in;
    uint32_t node, model;
    int32_t priority;
};

static int by_place(const void *a, const void *b)
{
    const struct entry *x = a, *y = b;
    if (x->node != y->node)
        return x->node < y->node ? -1 : 1;
    if (x->priority != y->priority)
        return x->priority > y->priority ? -1 : 1;
    if (x->model != y->model)
        return x->model < y->model ? -1 : 1;
    if (x->model == PLACEMENT_NONE)
        return strcmp(x->in->model, y->in->model);
    int versions = strcmp(x->in->sha256 ? x->in->sha256 : "", y->in->sha256 ? y->in->sha256 : "");
    return versions ? versions : (x->in > y->in) - (x->in < y->in);
}

static int by_lost_name(const void *a, const void *b)
{
    const struct entry *x = a, *y = b;
    int order = strcmp(x->in->node, y->in->node);
    return order ? order : strcmp(x->in->model, y->in->model);
}

/* Why the replica cannot stay beside those already added. */
static struct place_why must_leave(const struct place_core *c, uint32_t model, uint32_t node)
{
    const struct place_model *m = &c->models[model];
    if (m->slow[node] < 0)
        return (struct place_why){.cause = PLACE_CAUSE_BAR,
                                  .bar = (enum place_bar)(int)-m->slow[node]};
    if (place_core_zone_full(c, model, c->nodes[node].zone))
        return (struct place_why){.cause = PLACE_CAUSE_ZONE_FULL};
    for (uint32_t r = c->nodes[node].first; m->apart != PLACEMENT_NONE && r != PLACEMENT_NONE;
         r = c->replicas[r].next_on_node) {
        uint32_t there = c->replicas[r].model;
        if (there != PLACEMENT_NONE && c->models[there].apart == m->apart)
            return (struct place_why){.cause = PLACE_CAUSE_APART, .other = there};
    }
    return (struct place_why){.cause = PLACE_CAUSE_NONE};
}

static bool is_pin(const struct placement_model *m, const char *node)
{
    for (uint32_t k = 0; k < m->pins.n; k++)
        if (strcmp(m->pins.v[k], node) == 0)
            return true;
    return false;
}

static bool other_version(const struct placement_replica *r, const struct placement_model *m)
{
    return r->sha256 && m->sha256 && strcmp(r->sha256, m->sha256) != 0;
}

static int enter(struct index *x, const struct entry *t)
{
    struct place_core *c = x->c;
    const struct placement_input *in = c->in;
    struct place_replica r = {.model = t->model,
                              .node = t->node,
                              .home = t->node,
                              .input = (uint32_t)(t->in - in->current),
                              .bytes = placement_replica_bytes(t->in),
                              .ready = t->in->state == PLACEMENT_READY};
    r.home_ready = r.ready;
    if (t->in->state == PLACEMENT_FAILED) {
        if (t->model != PLACEMENT_NONE && !other_version(t->in, c->models[t->model].in) &&
            c->models[t->model].slow[t->node] > 0)
            c->models[t->model].slow[t->node] = -(float)PLACE_BAR_FAILED;
        return 0;
    }
    if (t->model == PLACEMENT_NONE) {
        r.leaves = true;
    } else {
        struct place_model *m = &c->models[t->model];
        r.stale = other_version(t->in, m->in);
        r.bytes = r.bytes && r.stale ? r.bytes : m->in->memory_bytes;
        r.pinned = !r.stale && is_pin(m->in, c->nodes[t->node].in->name);
        r.settled = !r.ready || in->now_ms < t->in->since_ms ||
                    in->now_ms - t->in->since_ms < in->policy.cooldown_ms;
        if (!r.stale && place_core_on(c, t->model, t->node) != PLACEMENT_NONE)
            return err_set(x->e, SHOAL_EINVAL, "model %s is twice on node %s", m->in->name,
                           c->nodes[t->node].in->name);
        if (!r.stale) {
            r.why = must_leave(c, t->model, t->node);
            r.leaves = r.why.cause != PLACE_CAUSE_NONE;
            m->n_start++;
        }
    }
    return place_core_register(c, &r) == PLACEMENT_NONE ? err_set(x->e, SHOAL_ENOMEM, "placement")
                                                        : 0;
}

/* A node's memory shrank: the least important replicas that suffice must leave. */
static void shrink(struct place_core *c, uint32_t node)
{
    int64_t missing = -c->free_bytes[node];
    while (missing > 0) {
        uint32_t best = PLACEMENT_NONE;
        for (uint32_t i = c->nodes[node].first; i != PLACEMENT_NONE;
             i = c->replicas[i].next_on_node) {
            const struct place_replica *r = &c->replicas[i];
            const struct place_replica *b = best == PLACEMENT_NONE ? NULL : &c->replicas[best];
            if (r->leaves || r->stale || r->model == PLACEMENT_NONE)
                continue;
            /* Pinned ones only if nothing else is left. */
            int64_t pr = c->models[r->model].in->priority + ((int64_t)r->pinned << 33);
            int64_t pb = b ? c->models[b->model].in->priority + ((int64_t)b->pinned << 33) : 0;
            bool enough = (int64_t)r->bytes >= missing, was = b && (int64_t)b->bytes >= missing;
            if (!b || pr < pb ||
                (pr == pb && (enough > was || (enough == was && (enough ? r->bytes < b->bytes
                                                                        : r->bytes > b->bytes)))))
                best = i;
        }
        if (best == PLACEMENT_NONE)
            return; /* everything leaves already */
        c->replicas[best].leaves = true;
        c->replicas[best].why = (struct place_why){.cause = PLACE_CAUSE_MEMORY};
        missing -= (int64_t)c->replicas[best].bytes;
    }
}

static int enter_current(struct index *x)
{
    struct place_core *c = x->c;
    const struct placement_input *in = c->in;
    struct entry *all = arena_zalloc_n(&c->arena, 2 * in->n_current + 1, sizeof(*all));
    struct entry *gone = all ? all + in->n_current : NULL;
    c->lost = arena_zalloc_n(&c->arena, in->n_current + 1, sizeof(*c->lost));
    if (!all || !c->lost)
        return err_set(x->e, c->arena.rc, "placement");
    size_t n = 0, n_gone = 0;
    for (size_t i = 0; i < in->n_current; i++) {
        struct entry t = {&in->current[i], PLACEMENT_NONE, PLACEMENT_NONE, INT32_MIN};
        if (!t.in->node || !t.in->model)
            return err_set(x->e, SHOAL_EINVAL, "a current replica has no node or no model");
        if (strmap_get(&x->models, t.in->model, strlen(t.in->model), &t.model))
            t.priority = c->models[t.model].in->priority;
        if (strmap_get(&x->nodes, t.in->node, strlen(t.in->node), &t.node))
            all[n++] = t;
        else if (t.model != PLACEMENT_NONE && t.in->state != PLACEMENT_FAILED)
            gone[n_gone++] = t;
    }
    qsort(all, n, sizeof(*all), by_place);
    qsort(gone, n_gone, sizeof(*gone), by_lost_name);
    int rc = 0;
    for (size_t i = 0; i < n && rc == 0; i++)
        rc = enter(x, &all[i]);
    for (size_t i = n_gone; i-- > 0;) { /* the last one first, so that the list is in order */
        struct place_model *m = &c->models[gone[i].model];
        c->lost[c->n_lost] = (struct place_lost){gone[i].in->node, m->lost};
        m->lost = (uint32_t)c->n_lost++;
        m->n_start++;
    }
    for (uint32_t i = 0; i < c->n_nodes && rc == 0; i++)
        shrink(c, i);
    for (uint32_t i = 0; i < c->n_models; i++)
        c->models[i].floor = min_u32(c->models[i].in->min_replicas, c->models[i].n_ready);
    return rc;
}

/* ---- all ---- */

static int allocate(struct index *x)
{
    struct place_core *c = x->c;
    size_t n = c->n_nodes + 1;
    c->nodes = arena_zalloc_n(&c->arena, n, sizeof(*c->nodes));
    c->models = arena_zalloc_n(&c->arena, c->n_models + 1, sizeof(*c->models));
    c->zone_names = arena_zalloc_n(&c->arena, n, sizeof(*c->zone_names));
    c->free_bytes = arena_zalloc_n(&c->arena, n, sizeof(*c->free_bytes));
    c->slow_sum = arena_zalloc_n(&c->arena, n, sizeof(double));
    c->busy = arena_zalloc_n(&c->arena, n, sizeof(double));
    c->fixed = arena_zalloc_n(&c->arena, n, sizeof(double));
    c->mark = arena_zalloc_n(&c->arena, n, sizeof(*c->mark));
    c->closed = arena_zalloc_n(&c->arena, n, sizeof(*c->closed));
    c->inv_memory = arena_zalloc_n(&c->arena, n, sizeof(double));
    if (c->arena.rc < 0 || strmap_init(&x->nodes, c->n_nodes) < 0 ||
        strmap_init(&x->models, c->n_models) < 0 || strmap_init(&x->zones, 16) < 0 ||
        strmap_init(&x->labels, 16) < 0 || strmap_init(&x->aparts, 16) < 0)
        return err_set(x->e, SHOAL_ENOMEM, "placement");
    return 0;
}

static int find_speeds(struct index *x)
{
    struct place_core *c = x->c;
    struct needs needs = {.with = arena_zalloc_n(&c->arena, x->label_words + 1, sizeof(uint64_t)),
                          .without =
                              arena_zalloc_n(&c->arena, x->label_words + 1, sizeof(uint64_t)),
                          .zones = arena_zalloc_n(&c->arena, c->n_zones + 1, 1)};
    double *rates = arena_zalloc_n(&c->arena, c->n_nodes + 1, sizeof(*rates));
    if (c->arena.rc < 0)
        return err_set(x->e, c->arena.rc, "placement");
    for (uint32_t i = 0; i < c->n_models; i++)
        find_slowness(x, &c->models[i], &needs, rates);
    return 0;
}

int place_index_build(struct place_core *c, const struct placement_input *in, struct err *e)
{
    struct index x = {.c = c, .e = e};
    *c = (struct place_core){.in = in};
    arena_init(&c->arena, MAX_BYTES);
    if (in->n_nodes > PLACEMENT_MAX_NODES || in->n_models > PLACEMENT_MAX_MODELS ||
        in->n_nodes * in->n_models > PLACEMENT_MAX_CELLS)
        return err_set(e, SHOAL_ELIMIT, "%zu nodes and %zu models are too many for one plan",
                       in->n_nodes, in->n_models);
    if (in->n_current > PLACEMENT_MAX_REPLICAS)
        return err_set(e, SHOAL_ELIMIT, "%zu replicas are too many for one plan", in->n_current);
    c->n_nodes = (uint32_t)in->n_nodes;
    c->n_models = (uint32_t)in->n_models;
    int rc = allocate(&x);
    if (rc == 0)
        rc = number_nodes(&x);
    if (rc == 0)
        rc = number_models(&x);
    if (rc == 0)
        rc = number_labels(&x);
    if (rc == 0)
        rc = find_speeds(&x);
    if (rc == 0)
        rc = enter_current(&x);
    strmap_fini(&x.nodes);
    strmap_fini(&x.models);
    strmap_fini(&x.zones);
    strmap_fini(&x.labels);
    strmap_fini(&x.aparts);
    return rc;
}
