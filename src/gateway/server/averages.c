/* averages.c - see averages.h. */
#include "gateway/server/averages.h"

#include <stdio.h>
#include <string.h>

#include "base/hash.h"

static const struct registry_spec *find_model(const struct config *c, const char *name)
{
    for (uint32_t i = 0; i < c->n_models; i++)
        if (strcmp(c->models[i].name, name) == 0)
            return &c->models[i];
    return NULL;
}

/* Borrows from the configuration and points into itself: it cannot be copied. */
struct average {
    struct registry_spec spec;
    struct registry_part parts[SHOAL_MAX_AVERAGE];
    char path[128];
};

/* False: the route is not an average. */
static bool describe(struct average *out, const struct config *c, const struct router_route *route)
{
    const struct ensemble *x = &route->ensemble;
    uint64_t sum = 0;
    if (x->kind != ENSEMBLE_AVERAGE)
        return false;
    *out = (struct average){.path = ""};
    for (uint32_t i = 0; i < x->n_models; i++) {
        const struct registry_spec *m = find_model(c, x->models[i]);
        const char *path = m ? m->path : "";
        if (m && i == 0)
            out->spec = (struct registry_spec){.n_ctx = m->n_ctx,
                                               .max_tasks = m->max_tasks,
                                               .max_queue = m->max_queue,
                                               .n_threads = m->n_threads,
                                               .kv_bytes = m->kv_bytes,
                                               .kv_q8 = m->kv_q8,
                                               .pinned = m->pinned,
                                               .priority = m->priority};
        out->parts[i] = (struct registry_part){x->models[i], x->weights[i]};
        sum = hash_bytes(x->models[i], strlen(x->models[i]), sum);
        sum = hash_bytes(path, strlen(path), sum);
        sum = hash_bytes(&x->weights[i], sizeof(x->weights[i]), sum);
    }
    /* another path for other models: a reload then replaces it */
    snprintf(out->path, sizeof(out->path), "average:%.80s:%016llx", route->name,
             (unsigned long long)sum);
    out->spec.name = route->name;
    out->spec.path = out->path;
    out->spec.parts = out->parts;
    out->spec.n_parts = x->n_models;
    return true;
}

bool averages_has(const struct config *c, const char *name, const char *path)
{
    struct average a;
    for (uint32_t i = 0; i < c->router.n_routes; i++)
        if (strcmp(c->router.routes[i].name, name) == 0)
            return describe(&a, c, &c->router.routes[i]) && strcmp(a.path, path) == 0;
    return false;
}

int averages_add(struct registry *r, const struct config *c, struct err *e)
{
    struct average a;
    for (uint32_t i = 0; i < c->router.n_routes; i++) {
        const struct router_route *route = &c->router.routes[i];
        enum registry_state state;
        if (describe(&a, c, route) && !registry_state(r, route->name, &state)) {
            int rc = registry_add(r, &a.spec, e);
            if (rc < 0)
                return rc;
        }
    }
    return 0;
}
