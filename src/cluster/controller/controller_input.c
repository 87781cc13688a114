/* controller_input.c - see controller_input.h. */
#include "cluster/controller/controller_input.h"

#include <string.h>

#include "base/arena.h"
#include "base/strmap.h"
#include "cluster/control/desired.h"
#include "cluster/control/desired_plan.h"
#include "cluster/controller/controller_memory.h"
#include "cluster/controller/controller_view.h"
#include "cluster/messages/node_state.h"

#define MODELS_SHARE 0.8 /* share of a machine's memory for models, if no limit is set */

#define UNKNOWN_BYTES ((uint64_t)64 << 20) /* default for a model that no node has loaded yet */

/* Shared by the functions below. */
struct making {
    const struct desired *d;
    const struct controller_snapshot *s;
    const struct controller_memory *mem; /* or NULL */
    struct arena *a;
    struct strmap assigned; /* node, model and version to an index of d->assignments */
};

const struct node_model *controller_input_held(const struct node_state *s, const char *model,
                                               const uint8_t *sha256)
{
    for (const struct node_model *m = NULL; (m = node_state_next(s, m, model, 0));)
        if (m->sum && memcmp(m->sum, sha256, SHA256_BYTES) == 0)
            return m;
    return NULL;
}

static const char *key_of(struct arena *a, const char *node, const char *model, const uint8_t *sum)
{
    char hex[2 * SHA256_BYTES + 1];
    sha256_hex(hex, sum);
    return arena_printf(a, "%s\n%s\n%s", node, model, hex);
}

static int index_assignments(struct making *k)
{
    int rc = strmap_init(&k->assigned, k->d->n_assignments);
    for (uint32_t i = 0; rc >= 0 && i < k->d->n_assignments; i++) {
        const struct desired_assignment *x = &k->d->assignments[i];
        const char *key = key_of(k->a, x->node, x->model, x->sha256);
        rc = k->a->rc < 0 ? k->a->rc : strmap_put(&k->assigned, key, strlen(key), i);
    }
    return rc < 0 ? rc : 0;
}

static const struct desired_assignment *assignment_of(const struct making *k, const char *node,
                                                      const char *model, const uint8_t *sum)
{
    const char *key = key_of(k->a, node, model, sum);
    uint32_t i;
    return strmap_get(&k->assigned, key, strlen(key), &i) ? &k->d->assignments[i] : NULL;
}

/* An assignment that the plan decides about: it does not leave, and is not one of a rollout. */
static bool is_planned(const struct making *k, const struct desired_assignment *a)
{
    const struct desired_model *m = desired_find_model(k->d, a->model);
    return m && a->duty != DESIRED_LEAVE &&
           (memcmp(m->sha256, a->sha256, SHA256_BYTES) == 0 ||
            !desired_plan_in_rollout(k->d, a->model));
}

/* Whether the node has a model of the desired state from its own configuration. */
static bool is_own(const struct making *k, const struct node_model *m)
{
    const struct desired_model *w =
        m->duty == 0 && m->sum ? desired_find_model(k->d, m->name) : NULL;
    return w && memcmp(w->sha256, m->sum, SHA256_BYTES) == 0 &&
           (m->state == REGISTRY_READY || m->state == REGISTRY_LOADING);
}

/* Memory available to the planner: without what the node holds outside the plan. */
static uint64_t memory_of(const struct making *k, const struct node_state *s)
{
    double all = s->models_limit ? (double)s->models_limit : MODELS_SHARE * (double)s->memory_bytes;
    for (uint32_t i = 0; i < s->n_models; i++) {
        const struct node_model *m = &s->models[i];
        const struct desired_assignment *a =
            m->sum && m->duty ? assignment_of(k, s->name, m->name, m->sum) : NULL;
        if (!is_own(k, m) && !(a && is_planned(k, a)))
            all -= (double)m->bytes * node_model_replicas(m);
    }
    const double most = (double)PLACEMENT_MAX_NODE_BYTES;
    return all <= 0 ? 0 : all > most ? PLACEMENT_MAX_NODE_BYTES : (uint64_t)all;
}

static double positive(double v)
{
    return v > 0 && v < 1e15 ? v : 0;
}

static struct placement_node node_of(const struct making *k, const struct node_state *s)
{
    /* measured with a decoder; others are faster or slower, but on the same nodes */
    const struct placement_speed speed = {positive(s->bandwidth), positive(s->probe_tokens)};
    return (struct placement_node){
        .name = s->name,
        .zone = s->zone,
        .labels = {s->labels, s->n_labels},
        .memory_bytes = memory_of(k, s),
        .speed =
            {[PLACEMENT_DECODER] = speed, [PLACEMENT_ENCODER] = speed, [PLACEMENT_SCORER] = speed},
        .cost = 1,
        .on_battery = s->on_battery,
        .battery = s->battery_percent < 100 ? s->battery_percent / 100.0 : 1,
        .drained = s->draining || desired_is_drained(k->d, s->name)};
}

static void add_nodes(struct making *k, struct placement_input *in)
{
    struct placement_node *nodes = arena_zalloc_n(k->a, k->s->n_nodes, sizeof(*nodes));
    for (uint32_t i = 0; nodes && i < k->s->n_nodes; i++) {
        nodes[in->n_nodes] = node_of(k, &k->s->nodes[i]);
        in->n_nodes += placement_valid_node(&nodes[in->n_nodes], NULL) == 0;
    }
    in->nodes = nodes;
}

static bool has_own(const struct making *k, const struct node_state *s, const char *model)
{
    for (const struct node_model *m = NULL; (m = node_state_next(s, m, model, 0));)
        if (is_own(k, m))
            return true;
    return false;
}

/* The pins of a model, and the nodes that have it from their configuration. */
static void add_pins(struct making *k, struct placement_model *m)
{
    uint32_t n = m->pins.n;
    const char **v = arena_zalloc_n(k->a, n + k->s->n_nodes, sizeof(*v));
    if (!v)
        return;
    for (uint32_t i = 0; i < n; i++)
        v[i] = m->pins.v[i];
    for (uint32_t i = 0; i < k->s->n_nodes; i++) {
        const char *name = k->s->nodes[i].name;
        bool add = has_own(k, &k->s->nodes[i], m->name);
        for (uint32_t p = 0; add && p < m->pins.n; p++)
            add = strcmp(v[p], name) != 0;
        if (add)
            v[n++] = name;
    }
    m->pins = (struct placement_strs){v, n};
    if (m->max_replicas && m->max_replicas < n) /* they exist regardless of the limit */
        m->max_replicas = n;
}

/* Corrects one model's values that would make the planner reject everything. */
static int add_models(struct making *k, struct placement_input *in, struct err *e)
{
    struct placement_model *models;
    int rc = desired_plan_models(&models, k->d, k->a, e);
    for (uint32_t i = 0; rc == 0 && i < k->d->n_models; i++) {
        add_pins(k, &models[i]);
        if (models[i].memory_bytes == 0)
            models[i].memory_bytes = UNKNOWN_BYTES;
        if (models[i].memory_bytes > PLACEMENT_MAX_MODEL_BYTES)
            models[i].memory_bytes = PLACEMENT_MAX_MODEL_BYTES;
    }
    in->models = models;
    in->n_models = k->d->n_models;
    return rc;
}

static const char *hex_of(struct arena *a, const uint8_t *sum)
{
    char hex[2 * SHA256_BYTES + 1];
    sha256_hex(hex, sum);
    return arena_printf(a, "%s", hex);
}

/* As reported by the node; an absent node has lost it. */
static enum placement_state state_of(const struct making *k, const struct desired_assignment *x)
{
    const struct node_state *node = controller_snapshot_node(k->s, x->node);
    const struct node_model *m = node ? controller_input_held(node, x->model, x->sha256) : NULL;
    return m && m->state == REGISTRY_READY && m->duty != DESIRED_LEAVE ? PLACEMENT_READY
                                                                       : PLACEMENT_LOADING;
}

static void add_assigned(struct making *k, struct placement_replica *list, size_t *n)
{
    for (uint32_t i = 0; i < k->d->n_assignments; i++) {
        const struct desired_assignment *x = &k->d->assignments[i];
        if (is_planned(k, x))
            list[(*n)++] = (struct placement_replica){.node = x->node,
                                                      .model = x->model,
                                                      .sha256 = hex_of(k->a, x->sha256),
                                                      .state = state_of(k, x),
                                                      .since_ms = x->since_ms};
    }
}

static void add_own(struct making *k, struct placement_replica *list, size_t *n)
{
    for (uint32_t i = 0; i < k->s->n_nodes; i++) {
        const struct node_state *s = &k->s->nodes[i];
        for (uint32_t j = 0; j < s->n_models; j++) {
            const struct node_model *m = &s->models[j];
            const struct desired_assignment *x =
                is_own(k, m) ? assignment_of(k, s->name, m->name, m->sum) : NULL;
            if (is_own(k, m) && !(x && is_planned(k, x)))
                list[(*n)++] = (struct placement_replica){
                    .node = s->name,
                    .model = m->name,
                    .sha256 = hex_of(k->a, m->sum),
                    .state = m->state == REGISTRY_READY ? PLACEMENT_READY : PLACEMENT_LOADING};
        }
    }
}

static void add_failed(struct making *k, struct placement_replica *list, size_t *n)
{
    for (uint32_t i = 0; k->mem && i < k->mem->n_failures; i++) {
        const struct controller_failure *f = &k->mem->failures[i];
        if (k->s->clock_ms < f->retry_ms && !assignment_of(k, f->node, f->model, f->sha256))
            list[(*n)++] = (struct placement_replica){.node = f->node,
                                                      .model = f->model,
                                                      .sha256 = hex_of(k->a, f->sha256),
                                                      .state = PLACEMENT_FAILED};
    }
}

static void add_replicas(struct making *k, struct placement_input *in)
{
    size_t n = k->d->n_assignments + (k->mem ? k->mem->n_failures : 0);
    for (uint32_t i = 0; i < k->s->n_nodes; i++)
        n += k->s->nodes[i].n_models;
    struct placement_replica *list = arena_zalloc_n(k->a, n, sizeof(*list));
    if (!list)
        return;
    add_assigned(k, list, &in->n_current);
    add_own(k, list, &in->n_current);
    add_failed(k, list, &in->n_current);
    in->current = list;
}

int controller_input_make(struct placement_input *out, const struct desired *d,
                          const struct controller_snapshot *s, const struct controller_memory *m,
                          struct arena *a, struct err *e)
{
    struct making k = {.d = d, .s = s, .mem = m, .a = a};
    *out = (struct placement_input){.policy = d->policy.placement, .now_ms = s->now_ms};
    int rc = index_assignments(&k);
    if (rc == 0)
        rc = add_models(&k, out, e);
    if (rc == 0) {
        add_nodes(&k, out);
        add_replicas(&k, out);
        rc = a->rc;
    }
    strmap_fini(&k.assigned);
    return rc < 0 ? err_set(e, rc, "input of the plan") : 0;
}
