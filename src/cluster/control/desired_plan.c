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

/* The bottleneck of its speed. */
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

bool desired_plan_in_rollout(const struct desired *d, const char *model)
{
    for (uint32_t i = 0; i < d->n_rollouts; i++) {
        const struct desired_rollout *r = &d->rollouts[i];
        if (r->state != DESIRED_DONE && r->state != DESIRED_UNDONE && r->state != DESIRED_FAILED &&
            strcmp(r->model, model) == 0)
            return true;
    }
    return false;
}

/* Node, model and version in one string, separated by a byte that no name has. */
static const char *key_of(struct arena *a, const char *node, const char *model, const char *hex)
{
    return arena_printf(a, "%s\n%s\n%s", node, model, hex);
}

static int index_all(struct strmap *had, struct arena *a, const struct desired *d)
{
    int rc = strmap_init(had, d->n_assignments);
    for (uint32_t i = 0; rc >= 0 && i < d->n_assignments; i++) {
        const struct desired_assignment *x = &d->assignments[i];
        char hex[2 * SHA256_BYTES + 1];
        sha256_hex(hex, x->sha256);
        const char *key = key_of(a, x->node, x->model, hex);
        rc = a->rc < 0 ? a->rc : strmap_put(had, key, strlen(key), i);
    }
    return rc < 0 ? rc : 0;
}

static struct desired_assignment *find(struct desired_assignment *list, const struct strmap *had,
                                       const char *key)
{
    uint32_t at;
    return strmap_get(had, key, strlen(key), &at) ? &list[at] : NULL;
}

/* What a step means for the list; n: how long the list is. */
static void take_step(struct desired_assignment *list, uint32_t *n, const struct strmap *had,
                      struct arena *a, const struct desired *d, const struct placement_input *in,
                      const struct placement_step *s, uint64_t now_ms)
{
    const struct placement_replica *r =
        s->replica == PLACEMENT_NONE ? NULL : &in->current[s->replica];
    const struct desired_model *m = desired_find_model(d, s->model_name);
    char hex[2 * SHA256_BYTES + 1] = "";
    if (m)
        sha256_hex(hex, m->sha256);
    struct desired_assignment *x =
        find(list, had, key_of(a, s->node_name, s->model_name, r && r->sha256 ? r->sha256 : hex));
    enum desired_duty duty = s->action == PLACEMENT_LOAD ? DESIRED_SERVE : DESIRED_LEAVE;
    if (x && (duty == DESIRED_LEAVE) != (x->duty == DESIRED_LEAVE)) {
        x->duty = duty;
        x->since_ms = now_ms;
    } else if (!x && m && s->action == PLACEMENT_LOAD) {
        x = &list[(*n)++];
        *x = (struct desired_assignment){
            .node = s->node_name, .model = m->name, .duty = duty, .since_ms = now_ms};
        memcpy(x->sha256, m->sha256, SHA256_BYTES);
    }
}

int desired_plan_apply(struct desired *d, const struct placement_input *in,
                       const struct placement_plan *plan, uint64_t now_ms, struct err *e)
{
    struct desired_assignment *list = NULL;
    struct strmap had = {0};
    struct arena keys;
    uint32_t n = d->n_assignments;
    arena_init(&keys, MAX_KEY_BYTES);
    int rc = index_all(&had, &keys, d);
    if (rc == 0 && !(list = mem_zalloc_n(n + plan->n_steps + 1, sizeof(*list))))
        rc = SHOAL_ENOMEM;
    if (rc == 0 && n > 0)
        memcpy(list, d->assignments, n * sizeof(*list));
    for (size_t i = 0; rc == 0 && i < plan->n_steps; i++) {
        if (plan->steps[i].wave == 0)
            take_step(list, &n, &had, &keys, d, in, &plan->steps[i], now_ms);
        rc = keys.rc;
    }
    if (rc == 0)
        rc = desired_set_assignments(d, list, n);
    mem_free(list);
    strmap_fini(&had);
    arena_fini(&keys);
    return rc < 0 ? err_set(e, rc, "assignments of the plan") : 0;
}
