/* config_routes.c - see config_routes.h. */
#include "config/config_routes.h"

#include <string.h>

#include "base/mem.h"
#include "config/config_where.h"
#include "privacy/pii.h"

/* ---- copies ---- */

static int copy_names(struct router_names *to, const struct yaml_in_strs *from)
{
    if (from->n == 0)
        return 0;
    to->v = mem_zalloc_n(from->n, sizeof(*to->v));
    if (!to->v)
        return SHOAL_ENOMEM;
    for (uint32_t i = 0; i < from->n; i++) {
        to->v[i] = mem_strdup(from->v[i]);
        if (!to->v[i])
            return SHOAL_ENOMEM;
        to->n++;
    }
    return 0;
}

static int copy_list(char ***to, uint32_t *n, const struct yaml_in_strs *from)
{
    struct router_names names = {0};
    int rc = copy_names(&names, from);
    *to = names.v;
    *n = names.n;
    return rc;
}

/* One more element of a list; NULL: out of memory. */
static void *grow(void *list, uint32_t *n, size_t bytes)
{
    char *v = mem_realloc(*(void **)list, (*n + 1) * bytes);
    if (!v)
        return NULL;
    *(void **)list = v;
    memset(v + *n * bytes, 0, bytes);
    return v + (*n)++ * bytes;
}

static int nomem(struct yaml_in *r)
{
    return err_set(r->e, SHOAL_ENOMEM, "%s: out of memory", r->name);
}

static int fill_model(struct router_model *m, const char *name, const struct config_routes_model *k)
{
    m->name = mem_strdup(name);
    m->quality = k->quality;
    m->cost = k->cost;
    m->watts = k->watts;
    if (!m->name || copy_names(&m->domains, &k->domains) < 0)
        return SHOAL_ENOMEM;
    return copy_names(&m->languages, &k->languages);
}

/* ---- entries ---- */

int config_routes_take_model(struct yaml_in *r, yaml_node_t *at, void *item, void *parent)
{
    struct config_routes_route *to = parent;
    const struct config_routes_model *k = item;
    if (router_model_named(to->route.models, to->route.n_models, k->name))
        return yaml_in_fail(r, at, "the route names the model '%.80s' twice", k->name);
    struct router_model *m = grow(&to->route.models, &to->route.n_models, sizeof(*m));
    return m && fill_model(m, k->name, k) == 0 ? 0 : nomem(r);
}

int config_routes_take_rule(struct yaml_in *r, yaml_node_t *at, void *item, void *parent)
{
    struct config_routes_route *to = parent;
    struct config_routes_rule *k = item;
    struct err inner = {0};
    struct router_rule *rule = grow(&to->route.rules, &to->route.n_rules, sizeof(*rule));
    if (!rule)
        return nomem(r);
    rule->field = (enum router_field)k->when;
    rule->name = k->name;
    k->name = NULL;
    rule->above_given = yaml_in_find(r, at, "above") != NULL;
    rule->below_given = yaml_in_find(r, at, "below") != NULL;
    rule->above = k->above;
    rule->below = k->below;
    rule->negate = k->negate;
    int rc = copy_list(&rule->is, &rule->n_is, &k->is);
    if (rc == 0)
        rc = copy_list(&rule->use, &rule->n_use, &k->use);
    if (rc < 0)
        return nomem(r);
    if (k->matches)
        rc = router_regex_create(&rule->regex, k->matches, &inner);
    if (rc == 0)
        rc = router_rule_check(rule, &inner);
    if (rc == SHOAL_ENOMEM)
        return nomem(r);
    return rc < 0 ? yaml_in_fail(r, at, "%.200s", inner.msg) : 0;
}

static int fill_privacy(struct privacy_policy *to, const struct config_routes_privacy *k,
                        struct err *e)
{
    to->action = (enum privacy_action)k->action;
    to->zone = (enum privacy_zone)k->zone;
    for (uint32_t i = 0; i < k->find.n; i++) {
        enum pii_kind kind;
        if (!pii_kind_read(&kind, k->find.v[i], strlen(k->find.v[i])))
            return err_set(e, SHOAL_EFORMAT,
                           "privacy cannot find '%.40s'; it can find email, phone, card, iban, ip, "
                           "id, birth, person and place",
                           k->find.v[i]);
        to->kinds |= PII_BIT(kind);
    }
    if (k->find.n == 0)
        to->kinds = PII_BY_RULES;
    to->tagger = mem_strdup(k->model ? k->model : "entities");
    return to->tagger ? 0 : err_set(e, SHOAL_ENOMEM, "configuration");
}

/* Rules leave models of the route. */
static int check_uses(struct yaml_in *r, const yaml_node_t *at, const struct router_route *route)
{
    for (uint32_t i = 0; i < route->n_rules && route->n_models > 0; i++)
        for (uint32_t k = 0; k < route->rules[i].n_use; k++)
            if (!router_model_named(route->models, route->n_models, route->rules[i].use[k]))
                return yaml_in_fail(r, at,
                                    "rule %u uses '%.80s', which is not one of the route's models",
                                    i + 1, route->rules[i].use[k]);
    return 0;
}

static int fill_route(struct yaml_in *r, const yaml_node_t *at, struct config_routes_route *k)
{
    struct router_route *to = &k->route;
    struct err inner = {0};
    int rc = 0;
    for (uint32_t i = 0; i < k->policy.n && rc == 0; i++)
        rc = router_policy_add(&to->policy, k->policy.v[i], &inner);
    if (rc < 0)
        return yaml_in_fail(r, at, "%.200s", inner.msg);
    rc = fill_privacy(&to->privacy, &k->privacy, &inner);
    if (rc < 0)
        return yaml_in_fail(r, at, "%.200s", inner.msg);
    if (!k->classifier && k->labels)
        return yaml_in_fail(r, at, "a classifier needs its model");
    rc = config_ensemble_take(r, at, &k->ensemble, &to->ensemble);
    if (rc < 0)
        return rc;
    if (k->priority > 0 && k->callers.n == 0)
        return yaml_in_fail(r, at,
                            "a priority above 0 needs callers: otherwise every client could choose "
                            "to go first");
    to->budget_ms = k->budget_ms;
    to->max_budget_ms = k->max_budget_ms;
    to->priority = k->priority;
    to->no_cache = k->cache == CONFIG_ROUTES_CACHE_OFF;
    to->shares_cache = k->cache == CONFIG_ROUTES_CACHE_SHARED;
    to->similar = k->similar;
    to->min_quality = k->min_quality;
    to->least_battery = k->least_battery;
    to->threshold = k->threshold;
    if (copy_names(&to->callers, &k->callers) < 0)
        return nomem(r);
    to->name = k->name;
    to->classifier = k->classifier;
    to->labels = k->labels;
    to->flow = k->flow;
    k->name = k->classifier = k->labels = k->flow = NULL;
    return check_uses(r, at, to);
}

int config_routes_take(struct yaml_in *r, const yaml_node_t *at, struct config_routes_route *k,
                       struct router_table *t)
{
    int rc = 0;
    for (uint32_t i = 0; i < t->n_routes && rc == 0; i++)
        if (strcmp(t->routes[i].name, k->name) == 0)
            rc = yaml_in_fail(r, at, "two routes are named %.80s", k->name);
    if (rc == 0)
        rc = fill_route(r, at, k);
    struct router_route *to = rc == 0 ? grow(&t->routes, &t->n_routes, sizeof(*to)) : NULL;
    if (!to)
        return rc < 0 ? rc : nomem(r);
    *to = k->route;
    k->route = (struct router_route){.name = NULL};
    return 0;
}

void config_routes_drop(void *item)
{
    router_route_fini(&((struct config_routes_route *)item)->route);
}

int config_routes_know(struct router_table *t, const char *name,
                       const struct config_routes_model *facts, struct err *e)
{
    struct router_model *m = grow(&t->known, &t->n_known, sizeof(*m));
    if (!m || fill_model(m, name, facts) < 0)
        return err_set(e, SHOAL_ENOMEM, "configuration");
    return 0;
}

int config_routes_meet(struct router_table *t, const char *name, struct err *e)
{
    const struct config_routes_model nothing = {.name = NULL};
    return router_model_named(t->known, t->n_known, name)
               ? 0
               : config_routes_know(t, name, &nothing, e);
}

/* ---- the whole file ---- */

static int inherit_names(struct router_names *to, const struct router_names *from)
{
    const struct yaml_in_strs borrowed = {from->v, from->n};
    return to->n > 0 ? 0 : copy_names(to, &borrowed);
}

static int inherit(struct router_model *to, const struct router_model *from)
{
    if (to->quality <= 0)
        to->quality = from->quality;
    if (to->cost <= 0)
        to->cost = from->cost;
    if (to->watts <= 0)
        to->watts = from->watts;
    int rc = inherit_names(&to->domains, &from->domains);
    return rc < 0 ? rc : inherit_names(&to->languages, &from->languages);
}

static bool is_route(const struct router_table *t, const char *name)
{
    for (uint32_t i = 0; i < t->n_routes; i++)
        if (strcmp(t->routes[i].name, name) == 0)
            return true;
    return strcmp(name, "auto") == 0 && !router_model_named(t->known, t->n_known, name);
}

static bool does_something(const struct privacy_policy *p)
{
    return p->action != PRIVACY_DEFAULT && p->action != PRIVACY_NONE;
}

int config_routes_finish(struct router_table *t, const struct config_routes_privacy *privacy,
                         const struct config_where *w)
{
    struct err inner = {0};
    int rc = fill_privacy(&t->privacy, privacy, &inner);
    if (rc < 0)
        return err_set(w->e, rc, "%s: %s", w->file, inner.msg);
    t->private = does_something(&t->privacy);
    for (uint32_t i = 0; i < t->n_routes; i++) {
        struct router_route *r = &t->routes[i];
        t->private |= does_something(&r->privacy);
        if (router_model_named(t->known, t->n_known, r->name))
            return config_where_fail(w, "routes[].name", r->name,
                                     "'%.80s' is the name of a model and of a route", r->name);
        for (uint32_t k = 0; k < r->ensemble.n_models; k++)
            if (is_route(t, r->ensemble.models[k]))
                return config_where_fail(
                    w, "routes[].name", r->name,
                    "'%.80s' in the %s of the route '%.80s' is a route: name a model",
                    r->ensemble.models[k], ensemble_name(r->ensemble.kind), r->name);
        for (uint32_t k = 0; k < r->n_models; k++) {
            const struct router_model *m =
                router_model_named(t->known, t->n_known, r->models[k].name);
            if (m && inherit(&r->models[k], m) < 0)
                return err_set(w->e, SHOAL_ENOMEM, "%s: out of memory", w->file);
        }
    }
    return 0;
}
