/* gw_names.c - see gw_names.h. */
#include "gateway/gw_names.h"

#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "config/config.h"
#include "config/config_names.h"
#include "gateway/gw.h"
#include "depot/store/model_refs.h"
#include "depot/store/model_store.h"
#include "host/pack.h"
#include "shoal/shoal.h"
#include "store/collections.h"

#define MAX_BYTES ((size_t)1 << 20)
#define MAX_SETS 64u

struct names {
    const struct config *config;
    struct registry *registry; /* NULL: before a start */
    struct pack *pack;         /* NULL: not offered */
    struct arena arena;
    const char **models;
    uint32_t n_models;
    const char *sets[2 * MAX_SETS + 1]; /* of the model asked last */
};

/* ---- label sets ---- */

/* The sets of an engine, which are copied: it may be closed. */
static const char *const *read_sets(struct names *n, const struct shoal_engine *en)
{
    static const enum shoal_kind kinds[] = {SHOAL_KIND_CLASSIFY, SHOAL_KIND_TAG};
    uint32_t k = 0;
    for (size_t i = 0; i < 2; i++) {
        const char *name;
        for (uint32_t s = 0; s < MAX_SETS && (name = shoal_label_set(en, kinds[i], s)); s++)
            if ((n->sets[k] = arena_copy(&n->arena, name, strlen(name) + 1)))
                k++;
    }
    n->sets[k] = NULL;
    return k > 0 ? n->sets : NULL;
}

/* ---- before a start ---- */

static const char *path_of(const struct names *n, const char *model)
{
    const struct pack_model *m = n->pack ? pack_find(n->pack, model) : NULL;
    for (uint32_t i = 0; i < n->config->n_models; i++)
        if (strcmp(n->config->models[i].name, model) == 0)
            return n->config->models[i].path;
    return m ? m->open : NULL;
}

static bool generates(void *ctx, const char *model)
{
    const char *path = path_of(ctx, model);
    return path && registry_generates(path);
}

static const char *const *label_sets(void *ctx, const char *model)
{
    struct names *n = ctx;
    const char *path = path_of(n, model);
    const struct shoal_engine_opts o = {.size = sizeof(o), .n_threads = 1};
    struct shoal_engine *en = NULL;
    struct err e = {0};
    if (!path || registry_generates(path) || shoal_engine_open(&en, path, &o, &e) < 0)
        return NULL; /* what is wrong with the model is said elsewhere */
    const char *const *sets = read_sets(n, en);
    shoal_engine_close(en);
    return sets;
}

/* ---- in the running server ---- */

struct seeking {
    struct names *names;
    const char *model;
    unsigned kinds;
    const char *const *sets;
};

static void seek(void *ctx, const struct registry_model *m)
{
    struct seeking *s = ctx;
    if (strcmp(m->name, s->model) != 0)
        return;
    s->kinds = m->slot->kinds;
    s->sets = m->slot->engine ? read_sets(s->names, m->slot->engine) : NULL;
}

static struct seeking find(struct names *n, const char *model)
{
    struct seeking s = {.names = n, .model = model};
    registry_each(n->registry, seek, &s);
    return s;
}

static bool generates_now(void *ctx, const char *model)
{
    const unsigned kinds = find(ctx, model).kinds;
    return (kinds & SHOAL_KIND_GENERATE) && !(kinds & SHOAL_KIND_CLASSIFY);
}

static const char *const *label_sets_now(void *ctx, const char *model)
{
    return find(ctx, model).sets;
}

/* ---- both ---- */

static void add_model(struct names *n, const char *name)
{
    const char **more = arena_zalloc_n(&n->arena, n->n_models + 2u, sizeof(*more));
    const char *copy = arena_copy(&n->arena, name, strlen(name) + 1);
    if (!more || !copy)
        return;
    if (n->n_models > 0)
        memcpy(more, n->models, n->n_models * sizeof(*more));
    more[n->n_models++] = copy;
    n->models = more;
}

static void add_now(void *ctx, const struct registry_model *m)
{
    add_model(ctx, m->name);
}

/* NULL: there is no folder. */
static const char *const *list_collections(struct names *n, struct collections *cs)
{
    const char **names = NULL, **list;
    uint32_t count = 0;
    struct err e = {0};
    if (!cs || collections_list(cs, &n->arena, &names, &count, &e) < 0 ||
        !(list = arena_zalloc_n(&n->arena, count + 1u, sizeof(*list))))
        return NULL;
    for (uint32_t i = 0; i < count; i++)
        list[i] = names[i];
    return list;
}

static int check(struct names *n, struct collections *cs, struct err *e)
{
    const struct config_cluster *k = &n->config->cluster;
    const struct config_names_world w = {.models = n->models,
                                         .runs = n->registry != NULL,
                                         .collections = list_collections(n, cs),
                                         .elsewhere = k->nats.n + k->nodes.n + k->listen.n > 0,
                                         .ctx = n,
                                         .generates = n->registry ? generates_now : generates,
                                         .label_sets = n->registry ? label_sets_now : label_sets};
    return config_names_check(n->config, &w, n->config->file ? n->config->file : "configuration",
                              e);
}

/* A name of the store, and the same without its tag. */
static void add_stored(void *ctx, const struct model_ref *ref)
{
    struct names *n = ctx;
    const char *tag = strchr(ref->name, ':');
    add_model(n, ref->name);
    if (tag)
        add_model(n, arena_printf(&n->arena, "%.*s", (int)(tag - ref->name), ref->name));
}

static void add_store(struct names *n)
{
    const struct config *c = n->config;
    const struct model_store_opts o = {.dir = c->ollama_dir ? c->ollama_dir : c->store_dir};
    struct model_store *s = NULL;
    struct model_refs *refs = NULL;
    struct err ignored = {0};
    if (c->store_offer && model_store_open(&s, &o, &ignored) == 0 &&
        model_refs_open(&refs, model_store_dir(s), &ignored) == 0)
        model_refs_each(refs, add_stored, n);
    model_refs_close(refs);
    model_store_close(s);
}

int gw_names_check(const struct config *c, struct err *e)
{
    struct names n = {.config = c};
    struct collections *cs = NULL;
    struct err ignored = {0};
    char usual[PATH_MAX];
    const char *dir = c->collections_dir                              ? c->collections_dir
                      : collections_default_dir(usual, sizeof(usual)) ? usual
                                                                      : NULL;
    arena_init(&n.arena, MAX_BYTES);
    if (config_names_use_pack(c) && pack_open(&n.pack, NULL, &ignored) == 0)
        for (uint32_t i = 0; i < n.pack->n_models; i++)
            add_model(&n, n.pack->models[i].name);
    add_store(&n);
    if (dir && collections_open(&cs, dir, c->collections_exact_passages, &ignored) < 0)
        cs = NULL;
    const int rc = check(&n, cs, e);
    if (cs)
        collections_close(cs);
    pack_close(n.pack);
    arena_fini(&n.arena);
    return rc;
}

int gw_names_check_now(struct gw *gw, const struct config *c, struct err *e)
{
    struct names n = {.config = c, .registry = gw->registry};
    arena_init(&n.arena, MAX_BYTES);
    registry_each(gw->registry, add_now, &n);
    const int rc = check(&n, gw->collections, e);
    arena_fini(&n.arena);
    return rc;
}
