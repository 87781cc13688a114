/* config_names.c - see config_names.h. */
#include "config/config_names.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/nearest.h"
#include "config/config.h"
#include "things/things.h"

#define MAX_NAME 256u

enum names_kind {
    NAMES_MODEL,    /* a model or a route */
    NAMES_ANSWERER, /* of a step: a model, a route or a flow */
    NAMES_VOTER,    /* a model that labels */
    NAMES_KEY,
    NAMES_MACHINE,
    NAMES_COLLECTION,
    NAMES_LABELS,
};

static const struct {
    const char *key;
    enum names_kind kind;
    const char *model; /* of labels: the key beside it that names the model, ... */
    const char *usual; /* ... and the model without it */
} references[] = {
    {"models[].labels", NAMES_LABELS, "name", NULL},
    {"routes[].models[].name", NAMES_MODEL, NULL, NULL},
    {"routes[].cascade.models", NAMES_MODEL, NULL, NULL},
    {"routes[].average.models", NAMES_MODEL, NULL, NULL},
    {"routes[].vote.models", NAMES_VOTER, NULL, NULL},
    {"routes[].consensus.model", NAMES_MODEL, NULL, NULL},
    {"routes[].refine.model", NAMES_MODEL, NULL, NULL},
    {"routes[].refine.better", NAMES_MODEL, NULL, NULL},
    {"routes[].rerank.model", NAMES_MODEL, NULL, NULL},
    {"routes[].rerank.judge", NAMES_MODEL, NULL, NULL},
    {"routes[].classifier.model", NAMES_MODEL, NULL, NULL},
    {"routes[].classifier.labels", NAMES_LABELS, "model", NULL},
    {"routes[].privacy.model", NAMES_MODEL, NULL, NULL},
    {"routes[].callers", NAMES_KEY, NULL, NULL},
    {"privacy.model", NAMES_MODEL, NULL, NULL},
    {"cache.similar_model", NAMES_MODEL, NULL, NULL},
    {"sessions.summary", NAMES_MODEL, NULL, NULL},
    {"cluster.hedge_models", NAMES_MODEL, NULL, NULL},
    {"flows[].steps[].model", NAMES_ANSWERER, NULL, NULL},
    {"flows[].steps[].reranker", NAMES_MODEL, NULL, NULL},
    {"flows[].steps[].labels", NAMES_LABELS, "model", "intent"},
    {"flows[].steps[].collection", NAMES_COLLECTION, NULL, NULL},
    {"alarms.manuals", NAMES_COLLECTION, NULL, NULL},
    {"process.documents", NAMES_COLLECTION, NULL, NULL},
    {"sensors[].machine", NAMES_MACHINE, NULL, NULL},
};

struct checking {
    const struct config *config;
    const struct config_names_world *world;
    const char *file;
    struct err *e;
    const char **known; /* scratch: the names of a kind, ends with NULL */
    uint32_t n_known;
};

bool config_names_use_pack(const struct config *c)
{
    return c->pack;
}

/* ---- what there is ---- */

static void know(struct checking *x, const char *name)
{
    if (name)
        x->known[x->n_known++] = name;
    x->known[x->n_known] = NULL;
}

static void know_all(struct checking *x, const char *const *names)
{
    for (; names && *names; names++)
        know(x, *names);
}

static size_t count(const char *const *names)
{
    size_t n = 0;
    while (names && names[n])
        n++;
    return n;
}

static void know_models(struct checking *x)
{
    const struct config *c = x->config;
    for (uint32_t i = 0; i < c->n_models; i++)
        know(x, c->models[i].name);
    know_all(x, x->world->models);
    for (uint32_t i = 0; i < c->router.n_routes; i++)
        know(x, c->router.routes[i].name);
}

/* false: nothing can be said about this kind. */
static bool gather(struct checking *x, enum names_kind kind)
{
    const struct config *c = x->config;
    x->n_known = 0;
    know(x, NULL);
    switch (kind) {
    case NAMES_MODEL:
    case NAMES_VOTER:
        know_models(x);
        return !x->world->elsewhere;
    case NAMES_ANSWERER:
        know_models(x);
        for (uint32_t i = 0; i < c->flows.n; i++)
            know(x, c->flows.v[i]->name);
        return !x->world->elsewhere;
    case NAMES_KEY:
        for (uint32_t i = 0; i < c->n_keys; i++)
            know(x, c->keys[i].name);
        return !x->world->elsewhere;
    case NAMES_MACHINE:
        for (uint32_t i = 0; i < c->things.n_machines; i++)
            know(x, c->things.machines[i].name);
        return true;
    case NAMES_COLLECTION:
        know_all(x, x->world->collections);
        return x->world->collections != NULL;
    case NAMES_LABELS:
        break;
    }
    return false;
}

/* ---- one name ---- */

static const char *kind_name(enum names_kind k)
{
    static const char *const names[] = {
        [NAMES_MODEL] = "model",     [NAMES_ANSWERER] = "model, route or flow",
        [NAMES_VOTER] = "model",     [NAMES_KEY] = "key",
        [NAMES_MACHINE] = "machine", [NAMES_COLLECTION] = "collection",
        [NAMES_LABELS] = "label set"};
    return names[k];
}

static bool is_known(const struct checking *x, const char *name)
{
    for (uint32_t i = 0; i < x->n_known; i++)
        if (strcmp(x->known[i], name) == 0)
            return true;
    return false;
}

SHOAL_PRINTF(3, 4)
static int wrong(struct checking *x, const struct config_setting *s, const char *fmt, ...)
{
    char text[300];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    return err_set(x->e, SHOAL_EFORMAT, "%s:%u:%u: %s", x->file, s->line, s->column, text);
}

/* "there is no model 'repli' (did you mean 'reply'?)" */
static int unknown(struct checking *x, const struct config_setting *s, enum names_kind kind,
                   const char *name)
{
    const char *near = nearest_word(name, x->known);
    return wrong(x, s, "%.100s: there is no %s '%.80s'%s%s%s", s->path, kind_name(kind), name,
                 near ? " (did you mean '" : "", near ? near : "", near ? "'?)" : "");
}

static int check_name(struct checking *x, const struct config_setting *s, enum names_kind kind,
                      const char *name)
{
    const struct config_names_world *w = x->world;
    if (!is_known(x, name))
        return unknown(x, s, kind, name);
    if (kind == NAMES_VOTER && w->generates && w->generates(w->ctx, name))
        return wrong(x, s,
                     "%.100s: '%.80s' writes text and has no labels to vote for: name classifiers, "
                     "or use consensus",
                     s->path, name);
    return 0;
}

/* The value of the setting beside s whose last part is `other`. */
static const char *beside(const struct checking *x, const struct config_setting *s,
                          const char *other)
{
    char path[2 * MAX_NAME];
    const char *dot = strrchr(s->path, '.');
    const int n =
        dot ? snprintf(path, sizeof(path), "%.*s%s", (int)(dot + 1 - s->path), s->path, other) : 0;
    const struct config_setting *o =
        n > 0 && (size_t)n < sizeof(path) ? config_settings_find(&x->config->set, path) : NULL;
    return o ? o->value : NULL;
}

static int check_labels(struct checking *x, const struct config_setting *s, const char *key,
                        const char *usual)
{
    const struct config_names_world *w = x->world;
    const char *model = beside(x, s, key);
    if (!model)
        model = usual;
    if (model && strcmp(key, "name") == 0 && w->generates && w->generates(w->ctx, model))
        return wrong(x, s, "%.100s: '%.80s' writes text and has no label sets: leave it out",
                     s->path, model);
    const char *const *sets = model && w->label_sets ? w->label_sets(w->ctx, model) : NULL;
    if (!sets)
        return 0;
    x->n_known = 0;
    know(x, NULL);
    for (size_t i = 0; sets[i] && i < MAX_NAME; i++)
        know(x, sets[i]);
    return is_known(x, s->value) ? 0 : unknown(x, s, NAMES_LABELS, s->value);
}

/* A value, or each of a list: "a, b". */
static int check_setting(struct checking *x, const struct config_setting *s, enum names_kind kind)
{
    int rc = 0;
    if (!gather(x, kind))
        return 0;
    for (const char *p = s->value; *p && rc == 0;) {
        char name[MAX_NAME];
        const char *comma = strstr(p, ", ");
        const size_t n = comma ? (size_t)(comma - p) : strlen(p);
        snprintf(name, sizeof(name), "%.*s", (int)(n < MAX_NAME ? n : MAX_NAME - 1), p);
        rc = check_name(x, s, kind, name);
        p += comma ? n + 2 : n;
    }
    return rc;
}

/* ---- the whole file ---- */

/* A route with the name of a model would never be reached, or hide it. The models of the file are
 * compared while it is read. */
static int check_route_name(struct checking *x, const struct config_setting *s)
{
    const struct config *c = x->config;
    bool taken = false;
    for (uint32_t i = 0; i < c->n_models; i++)
        taken |= strcmp(c->models[i].name, s->value) == 0;
    /* with models of its own, a file may use the name of an included one for a route */
    for (const char *const *m = x->world->models; m && *m && c->n_models == 0 && !x->world->runs;
         m++)
        taken |= strcmp(*m, s->value) == 0;
    return taken ? wrong(x, s, "%.100s: '%.80s' is the name of a model: give the route another one",
                         s->path, s->value)
                 : 0;
}

static int check_broker(struct checking *x, const struct config_setting *s)
{
    static const struct {
        const char *key, *what;
    } need[] = {{"mqtt.subscribe[].topic", "a subscription"},
                {"deeds[].topic", "via: mqtt"},
                {"deeds[].state", "a state"}};
    for (size_t i = 0; i < sizeof(need) / sizeof(need[0]); i++)
        if (strcmp(s->key->path, need[i].key) == 0)
            return wrong(x, s, "%.100s: %s needs 'mqtt.broker'", s->path, need[i].what);
    return 0;
}

static int check_all(struct checking *x)
{
    const struct config_settings *set = &x->config->set;
    int rc = 0;
    for (uint32_t i = 0; i < set->n && rc == 0; i++) {
        const struct config_setting *s = &set->v[i];
        for (size_t k = 0; k < sizeof(references) / sizeof(references[0]) && rc == 0; k++) {
            if (strcmp(s->key->path, references[k].key) != 0)
                continue;
            rc = references[k].kind == NAMES_LABELS
                     ? check_labels(x, s, references[k].model, references[k].usual)
                     : check_setting(x, s, references[k].kind);
        }
        if (rc == 0 && strcmp(s->key->path, "routes[].name") == 0)
            rc = check_route_name(x, s);
        if (rc == 0 && !x->config->mqtt.broker)
            rc = check_broker(x, s);
    }
    return rc;
}

int config_names_check(const struct config *c, const struct config_names_world *w, const char *file,
                       struct err *e)
{
    const size_t most = (size_t)c->n_models + c->router.n_routes + c->flows.n + c->n_keys +
                        c->things.n_machines + count(w->models) + count(w->collections) + MAX_NAME;
    struct checking x = {.config = c, .world = w, .file = file, .e = e};
    x.known = mem_zalloc_n(most + 1, sizeof(*x.known));
    if (!x.known)
        return err_set(e, SHOAL_ENOMEM, "configuration");
    const int rc = check_all(&x);
    mem_free(x.known);
    return rc;
}
