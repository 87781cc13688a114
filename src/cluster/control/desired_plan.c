/* desired_plan.c - see desired_plan.h. */
#include "cluster/control/desired_plan.h"

#include <string.h>

#include "base/arena.h"
#include "base/mem.h"
#include "base/strmap.h"
#include "cluster/control/desired.h"
#include "cluster/placement/placement.h"
#include "shoal/shoal.h"

#define MAX_KEY_BYTES (64u << 20)

/* What limits its speed. */
static enum placement_kind kind_of(uint32_t kinds)
{
    if (kinds & SHOAL_KIND_SCORE)
        return PLACEMENT_SCORER;
    return !kinds || (kinds & SHOAL_KIND_GENERATE) ? PLACEMENT_DECODER : PLACEMENT_ENCODER;
}

static struct placement_strs strs(const struct desired_names *l)
{
    return (struct placement_strs){l->items, l->n};
}

int desired_plan_models(struct placement_model **out, const struct desired *d, struct arena *a,
                        struct err *e)
{
    struct placement_model *models = arena_zalloc_n(a, d->n_models, sizeof(*models));
    *out = models;
    for (uint32_t i = 0; models && i < d->n_models; i++) {
        const struct desired_model *m = &d->models[i];
        char *hex = arena_zalloc(a, 2 * SHA256_BYTES + 1);
        if (!hex)
            break;
        sha256_hex(hex, m->sha256);
        models[i] = (struct placement_model){.name = m->name,
                                             .sha256 = hex,
                                             .kind = kind_of(m->kinds),
                                             .bytes = m->weight_bytes,
                                             .memory_bytes = m->memory_bytes,
                                             .min_replicas = m->replicas_min,
                                             .max_replicas = m->replicas_max,
                                             .want_replicas = m->replicas_want,
                                             .standby = m->standby,
                                             .want_tokens_per_s = m->want_tokens_per_s,
                                             .pins = strs(&m->pins),
                                             .labels = strs(&m->labels),
                                             .not_labels = strs(&m->not_labels),
                                             .zones = strs(&m->zones),
                                             .max_per_zone = m->max_per_zone,
                                             .spread = m->spread,
                                             .apart = m->apart[0] ? m->apart : NULL,
                                             .priority = m->priority};
    }
    return a->rc < 0 ? err_set(e, a->rc, "models of the plan") : 0;
}

/* The model is being changed from one version to another. */
static bool in_rollout(const struct desired *d, const char *model)
{
    for (uint32_t i = 0; i < d->n_rollouts; i++) {
        const struct desired_rollout *r = &d->rollouts[i];
        if (r->state != DESIRED_DONE && r->state != DESIRED_UNDONE && r->state != DESIRED_FAILED &&
            strcmp(r->model, model) == 0)
            return true;
    }
    return false;
}

/* A node and a model in one string, separated by a byte that no name has. */
static int put_key(struct strmap *m, struct arena *a, const char *node, const char *model,
                   uint32_t value)
{
    const char *key = arena_printf(a, "%s\n%s", node, model);
    return a->rc < 0 ? a->rc : strmap_put(m, key, strlen(key), value);
}

/* Fills list with the assignments after the plan; n: how many. */
static int fill(struct desired_assignment *list, uint32_t *n, struct strmap *had, struct arena *a,
                const struct desired *d, const struct placement_input *in,
                const struct placement_plan *plan, uint64_t now_ms)
{
    int rc = 0;
    for (uint32_t i = 0; rc >= 0 && i < d->n_assignments; i++) {
        const struct desired_assignment *old = &d->assignments[i];
        const struct desired_model *m = desired_find_model(d, old->model);
        if (m && memcmp(m->sha256, old->sha256, SHA256_BYTES) == 0)
            rc = put_key(had, a, old->node, old->model, i);
        else if (m && in_rollout(d, old->model))
            list[(*n)++] = *old;
    }
    for (size_t i = 0; rc >= 0 && i < plan->n_places; i++) {
        const char *node = in->nodes[plan->places[i].node].name;
        const struct desired_model *m =
            desired_find_model(d, in->models[plan->places[i].model].name);
        const char *key = arena_printf(a, "%s\n%s", node, m ? m->name : "");
        uint32_t at;
        if (a->rc < 0)
            return a->rc;
        if (!m) /* removed since the plan was made */
            continue;
        if (strmap_get(had, key, strlen(key), &at)) {
            list[(*n)++] = d->assignments[at];
            continue;
        }
        list[*n] = (struct desired_assignment){
            .node = node, .model = m->name, .duty = DESIRED_SERVE, .since_ms = now_ms};
        memcpy(list[(*n)++].sha256, m->sha256, SHA256_BYTES);
    }
    return rc < 0 ? rc : 0;
}

int desired_plan_apply(struct desired *d, const struct placement_input *in,
                       const struct placement_plan *plan, uint64_t now_ms, struct err *e)
{
    struct desired_assignment *list = NULL;
    struct strmap had = {0};
    struct arena keys;
    uint32_t n = 0;
    arena_init(&keys, MAX_KEY_BYTES);
    int rc = strmap_init(&had, d->n_assignments);
    if (rc == 0 && !(list = mem_zalloc_n(d->n_assignments + plan->n_places + 1, sizeof(*list))))
        rc = SHOAL_ENOMEM;
    if (rc == 0)
        rc = fill(list, &n, &had, &keys, d, in, plan, now_ms);
    if (rc == 0)
        rc = desired_set_assignments(d, list, n);
    mem_free(list);
    strmap_fini(&had);
    arena_fini(&keys);
    return rc < 0 ? err_set(e, rc, "assignments of the plan") : 0;
}
