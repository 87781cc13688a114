/* router.c - see router.h. */
#include "router/router.h"

#include <string.h>
#include <strings.h>

#include "base/hash.h"
#include "base/mem.h"

/* Two scores that differ by less are equal: figures of a file have few digits. */
#define SAME 1e-9

/* A decision in progress: `left` has the indices of the remaining candidates. */
struct deciding {
    const struct router_route *route;
    const struct router_request *q;
    const struct router_candidate *c;
    struct router_decision *out;
    uint16_t left[ROUTER_MAX_CANDIDATES];
    uint32_t n_left;
};

const struct router_model *router_model_named(const struct router_model *list, uint32_t n,
                                              const char *name)
{
    for (uint32_t i = 0; i < n; i++)
        if (strcmp(list[i].name, name) == 0)
            return &list[i];
    return NULL;
}

/* ---- filters: a candidate that fails is out ---- */

typedef bool (*keep_fn)(const struct deciding *d, uint32_t i);

static void filter(struct deciding *d, keep_fn keep, enum router_verdict why)
{
    uint32_t n = 0;
    for (uint32_t k = 0; k < d->n_left; k++) {
        uint32_t i = d->left[k];
        if (keep(d, i))
            d->left[n++] = (uint16_t)i;
        else
            d->out->verdicts[i] = why;
    }
    if (n == 0 && d->n_left > 0)
        d->out->why = why;
    d->n_left = n;
}

/* The same, but keeps all if none would be left. */
static void prefer(struct deciding *d, keep_fn keep, enum router_verdict why)
{
    bool any = false;
    for (uint32_t k = 0; k < d->n_left && !any; k++)
        any = keep(d, d->left[k]);
    if (any)
        filter(d, keep, why);
}

static bool is_there(const struct deciding *d, uint32_t i)
{
    return d->c[i].state != ROUTER_GONE;
}

static bool is_loaded(const struct deciding *d, uint32_t i)
{
    return d->c[i].state == ROUTER_READY;
}

static bool has_room(const struct deciding *d, uint32_t i)
{
    return d->c[i].context == 0 || d->q->work.prompt_tokens < d->c[i].context;
}

static bool is_used(const struct deciding *d, uint32_t i)
{
    return router_rule_uses(&d->route->rules[d->out->rule], d->c[i].model->name);
}

static bool has_name(const struct router_names *n, const char *name)
{
    for (uint32_t i = 0; i < n->n; i++)
        if (strcasecmp(n->v[i], name) == 0)
            return true;
    return false;
}

static bool speaks(const struct deciding *d, uint32_t i)
{
    const struct router_names *l = &d->c[i].model->languages;
    return l->n == 0 || has_name(l, d->q->facts.language);
}

/* A text without a domain goes to models without domains. */
static bool knows(const struct deciding *d, uint32_t i)
{
    const struct router_names *l = &d->c[i].model->domains;
    return d->q->domain ? has_name(l, d->q->domain) : l->n == 0;
}

static double least_quality(const struct deciding *d)
{
    return d->q->min_quality > 0 ? d->q->min_quality : d->route->min_quality;
}

static bool is_good(const struct deciding *d, uint32_t i)
{
    return d->c[i].model->quality + SAME >= least_quality(d);
}

static void find_rule(struct deciding *d)
{
    d->out->rule = -1;
    for (uint32_t i = 0; i < d->route->n_rules; i++)
        if (router_rule_matches(&d->route->rules[i], &d->q->facts)) {
            d->out->rule = (int32_t)i;
            return;
        }
}

static void narrow(struct deciding *d)
{
    filter(d, is_there, ROUTER_NOT_READY);
    filter(d, has_room, ROUTER_TOO_LONG);
    if (d->out->rule >= 0)
        filter(d, is_used, ROUTER_BY_RULE);
    if (d->q->facts.language && d->q->facts.language[0])
        prefer(d, speaks, ROUTER_LANGUAGE);
    if (d->route->classifier)
        prefer(d, knows, ROUTER_DOMAIN);
    if (least_quality(d) > 0) {
        uint32_t before = d->n_left;
        prefer(d, is_good, ROUTER_LOW_QUALITY);
        /* none is good enough: the best one, marked degraded */
        if (before > 0 && !is_good(d, d->left[0]))
            d->out->degraded = true;
    }
    prefer(d, is_loaded, ROUTER_NOT_READY);
}

/* ---- steps of a policy: the best remain ---- */

/* Lower is better. */
typedef double (*score_fn)(const struct deciding *d, uint32_t i);

static double by_latency(const struct deciding *d, uint32_t i)
{
    return d->out->estimates[i].total_ns;
}

static double by_quality(const struct deciding *d, uint32_t i)
{
    return -d->c[i].model->quality;
}

static double by_cost(const struct deciding *d, uint32_t i)
{
    return d->c[i].model->cost * d->out->estimates[i].tokens;
}

/* Joules; for models without data the time counts. */
static double by_energy(const struct deciding *d, uint32_t i)
{
    const struct router_estimate *x = &d->out->estimates[i];
    double watts = d->c[i].model->watts > 0 ? d->c[i].model->watts : 1;
    return watts * (x->prefill_ns + x->decode_ns);
}

/* Mains power first; then batteries above the route's limit, all alike; then the fullest. */
static double by_battery(const struct deciding *d, uint32_t i)
{
    const struct router_candidate *c = &d->c[i];
    if (!c->on_battery)
        return 0;
    return c->battery >= d->route->least_battery ? 1 : 1 + (100.0 - c->battery);
}

static double by_load(const struct deciding *d, uint32_t i)
{
    const struct router_speed *s = &d->c[i].speed;
    return (double)s->in_flight / (s->parallel ? s->parallel : 1);
}

static void keep_best(struct deciding *d, score_fn score, enum router_verdict why)
{
    double scores[ROUTER_MAX_CANDIDATES], best = 0;
    uint32_t n = 0;
    for (uint32_t k = 0; k < d->n_left; k++) {
        scores[k] = score(d, d->left[k]);
        if (k == 0 || scores[k] < best)
            best = scores[k];
    }
    double most = best + SAME * (best < 0 ? -best : best) + SAME;
    for (uint32_t k = 0; k < d->n_left; k++) {
        uint32_t i = d->left[k];
        if (scores[k] <= most)
            d->left[n++] = (uint16_t)i;
        else
            d->out->verdicts[i] = why;
    }
    d->n_left = n;
}

static bool in_time(const struct deciding *d, uint32_t i)
{
    return d->out->estimates[i].sure_ns <= d->q->budget_ns;
}

static void keep_in_time(struct deciding *d)
{
    bool any = false;
    if (d->q->budget_ns <= 0)
        return;
    for (uint32_t k = 0; k < d->n_left && !any; k++)
        any = in_time(d, d->left[k]);
    if (any) {
        filter(d, in_time, ROUTER_LATE);
        return;
    }
    d->out->degraded = true;
    keep_best(d, by_latency, ROUTER_LATE);
}

static void keep_one(struct deciding *d, uint32_t at, enum router_verdict why)
{
    for (uint32_t k = 0; k < d->n_left; k++)
        if (k != at)
            d->out->verdicts[d->left[k]] = why;
    d->left[0] = d->left[at];
    d->n_left = 1;
}

/* Rendezvous hashing: adding or removing a replica moves only its own share. */
static uint32_t find_hash(const struct deciding *d)
{
    uint64_t most = 0;
    uint32_t at = 0;
    for (uint32_t k = 0; k < d->n_left; k++) {
        const struct router_candidate *c = &d->c[d->left[k]];
        uint64_t h = hash_bytes(c->model->name, strlen(c->model->name), d->q->key);
        if (c->node)
            h = hash_bytes(c->node, strlen(c->node), h);
        if (k == 0 || h > most) {
            most = h;
            at = k;
        }
    }
    return at;
}

static void take_step(struct deciding *d, enum router_step step)
{
    switch (step) {
    case ROUTER_FIT:
        keep_in_time(d);
        break;
    case ROUTER_QUALITY:
        keep_best(d, by_quality, ROUTER_WORSE);
        break;
    case ROUTER_COST:
        keep_best(d, by_cost, ROUTER_DEARER);
        break;
    case ROUTER_ENERGY:
        keep_best(d, by_energy, ROUTER_MORE_ENERGY);
        break;
    case ROUTER_SPARE:
        keep_best(d, by_battery, ROUTER_BATTERY);
        break;
    case ROUTER_LATENCY:
        keep_best(d, by_latency, ROUTER_SLOWER);
        break;
    case ROUTER_LEAST_LOADED:
        keep_best(d, by_load, ROUTER_BUSIER);
        break;
    case ROUTER_ROUND_ROBIN:
        keep_one(d, (uint32_t)(d->q->turn % d->n_left), ROUTER_NOT_ITS_TURN);
        break;
    case ROUTER_HASH:
        keep_one(d, find_hash(d), ROUTER_OTHER_HASH);
        break;
    case ROUTER_N_STEPS:
        break;
    }
}

void router_decide(struct router_decision *out, const struct router_route *route,
                   const struct router_request *q, const struct router_candidate *c, uint32_t n)
{
    struct deciding d = {.route = route, .q = q, .c = c, .out = out};
    d.n_left = n < ROUTER_MAX_CANDIDATES ? n : ROUTER_MAX_CANDIDATES;
    out->chosen = -1;
    out->degraded = false;
    out->why = ROUTER_NOT_READY;
    out->n = d.n_left;
    for (uint32_t i = 0; i < d.n_left; i++) {
        d.left[i] = (uint16_t)i;
        out->verdicts[i] = ROUTER_NEXT;
        out->estimates[i] = router_estimate(&c[i].speed, &q->work);
    }
    find_rule(&d);
    narrow(&d);
    for (uint32_t i = 0; i < route->policy.n && d.n_left > 1; i++)
        take_step(&d, route->policy.steps[i]);
    if (d.n_left == 0)
        return;
    out->chosen = d.left[0];
    out->verdicts[d.left[0]] = ROUTER_CHOSEN;
    /* One candidate needs no steps, but the client is told that it will be late. */
    for (uint32_t i = 0; i < route->policy.n && q->budget_ns > 0; i++)
        if (route->policy.steps[i] == ROUTER_FIT && !in_time(&d, d.left[0]))
            out->degraded = true;
}

/* ---- the rest ---- */

bool router_may_call(const struct router_route *r, const char *client)
{
    for (uint32_t i = 0; i < r->callers.n; i++)
        if (strcmp(r->callers.v[i], client) == 0)
            return true;
    return r->callers.n == 0;
}

static const struct {
    const char *name, *text;
} verdicts[ROUTER_N_VERDICTS] = {
    [ROUTER_CHOSEN] = {"chosen", "chosen"},
    [ROUTER_NOT_READY] = {"not_ready", "it is not ready"},
    [ROUTER_TOO_LONG] = {"too_long", "the request is longer than its context"},
    [ROUTER_BY_RULE] = {"rule", "a rule names other models"},
    [ROUTER_LANGUAGE] = {"language", "it does not know the language"},
    [ROUTER_DOMAIN] = {"domain", "the text is of another domain"},
    [ROUTER_LOW_QUALITY] = {"low_quality", "its quality is below the required one"},
    [ROUTER_LATE] = {"late", "it would miss the deadline"},
    [ROUTER_WORSE] = {"worse", "another one has a higher quality"},
    [ROUTER_DEARER] = {"dearer", "another one costs less"},
    [ROUTER_MORE_ENERGY] = {"more_energy", "another one needs less energy"},
    [ROUTER_BATTERY] = {"battery", "its node runs on a battery"},
    [ROUTER_SLOWER] = {"slower", "another one is faster"},
    [ROUTER_BUSIER] = {"busier", "another one is less busy"},
    [ROUTER_NOT_ITS_TURN] = {"not_its_turn", "it is another one's turn"},
    [ROUTER_OTHER_HASH] = {"other_hash", "the session is bound to another one"},
    [ROUTER_NEXT] = {"next", "as good as the chosen one, which comes first"},
};

const char *router_verdict_text(enum router_verdict v)
{
    return verdicts[v].text;
}

const char *router_verdict_name(enum router_verdict v)
{
    return verdicts[v].name;
}

static void names_fini(struct router_names *n)
{
    for (uint32_t i = 0; i < n->n; i++)
        mem_free(n->v[i]);
    mem_free(n->v);
    *n = (struct router_names){0};
}

static void model_fini(struct router_model *m)
{
    mem_free(m->name);
    names_fini(&m->domains);
    names_fini(&m->languages);
}

void router_route_fini(struct router_route *r)
{
    mem_free(r->name);
    names_fini(&r->callers);
    for (uint32_t i = 0; i < r->n_models; i++)
        model_fini(&r->models[i]);
    mem_free(r->models);
    for (uint32_t i = 0; i < r->n_rules; i++)
        router_rule_fini(&r->rules[i]);
    mem_free(r->rules);
    mem_free(r->classifier);
    mem_free(r->labels);
    mem_free(r->privacy.tagger);
    mem_free(r->flow);
    ensemble_fini(&r->ensemble);
    *r = (struct router_route){.name = NULL};
}

const struct router_route *router_table_find(const struct router_table *t, const char *name)
{
    static char auto_name[] = "auto";
    static const struct router_route any = {
        .name = auto_name,
        .policy = {{ROUTER_FIT, ROUTER_QUALITY, ROUTER_LATENCY}, 3},
        .least_battery = ROUTER_LEAST_BATTERY};
    for (uint32_t i = 0; i < t->n_routes; i++)
        if (strcmp(t->routes[i].name, name) == 0)
            return &t->routes[i];
    if (strcmp(name, auto_name) != 0)
        return NULL;
    for (uint32_t i = 0; i < t->n_known; i++)
        if (strcmp(t->known[i].name, name) == 0)
            return NULL;
    return &any;
}

const struct router_route *router_table_find_for(const struct router_table *t, const char *name,
                                                 const char *client)
{
    const struct router_route *r = router_table_find(t, name);
    return r && router_may_call(r, client) ? r : NULL;
}

void router_table_fini(struct router_table *t)
{
    for (uint32_t i = 0; i < t->n_routes; i++)
        router_route_fini(&t->routes[i]);
    mem_free(t->routes);
    for (uint32_t i = 0; i < t->n_known; i++)
        model_fini(&t->known[i]);
    mem_free(t->known);
    mem_free(t->privacy.tagger);
    *t = (struct router_table){.routes = NULL};
}
