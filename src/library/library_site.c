/* library_site.c - see library_site.h. */
#include "library/library_site.h"

#include <limits.h>
#include <string.h>

#include "apps/home/ask/ask_pack.h"
#include "apps/home/site/home_open.h"
#include "apps/home/site/home_things.h"
#include "apps/home/table/home_table.h"
#include "base/log.h"
#include "base/thread/thread.h"
#include "config/config_needs.h"
#include "host/registry.h"
#include "shoal/shoal_engine.h"
#include "store/collections.h"

/* ---- what the flow needs: visitors of config_needs.h ---- */

static int open_model(struct library_site *s, const char *model, struct shoal_engine **engine)
{
    const struct shoal_flow_opts *o = s->opts;
    const struct registry_spec *spec = NULL;
    struct model_name name;
    for (uint32_t i = 0; i < s->config->n_models; i++)
        if (strcmp(s->config->models[i].name, model) == 0)
            spec = &s->config->models[i];
    int rc = model_name_find(&name, o->models, spec ? spec->path : model, s->e);
    if (rc < 0)
        return rc;
    struct shoal_engine_opts eo = {.size = sizeof(eo),
                                   .n_threads = o->n_threads,
                                   .int8 = name.int8 || (spec && spec->int8),
                                   .cache_dir = o->cache_dir,
                                   .progress = o->progress,
                                   .progress_ctx = o->progress_ctx};
    struct shoal_engine_info info = {.size = sizeof(info)};
    rc = shoal_engine_open(engine, name.path, &eo, s->e);
    if (rc == 0)
        rc = registry_lend(s->flow.registry, model, spec ? spec->labels : name.labels, *engine,
                           s->e);
    if (rc == 0)
        rc = shoal_engine_info(*engine, &info);
    struct err unknown = {0};
    /* its vectors are compared with those of collections, which name the version they are of */
    if (rc == 0 && (info.kinds & SHOAL_KIND_EMBED) &&
        registry_identify(s->flow.registry, model, name.path, &unknown) < 0)
        log_warn("library", "the version of %s is not known: %s", name.path, unknown.msg);
    model_name_fini(&name);
    return rc;
}

static int lend_model(void *ctx, const char *model)
{
    struct library_site *s = ctx;
    const uint32_t i = s->n_engines;
    for (uint32_t k = 0; k < i; k++)
        if (strcmp(s->lent[k], model) == 0)
            return 0;
    if (i == LIBRARY_SITE_MODELS)
        return err_set(s->e, SHOAL_ELIMIT, "the flow needs more than %u models: use a server",
                       LIBRARY_SITE_MODELS);
    s->lent[i] = model;
    s->n_engines++;
    return open_model(s, model, &s->engines[i]);
}

static int lend_collection(void *ctx, const char *collection)
{
    struct library_site *s = ctx;
    struct collection *c = NULL;
    struct collection_info info;
    if (!s->collections)
        return err_set(s->e, SHOAL_ENOTFOUND,
                       "there is no folder for the collection '%s': set collections in "
                       "shoal_flow_opts",
                       collection);
    int rc = collections_hold(s->collections, collection, &c, s->e);
    if (rc == 0)
        rc = collection_info(c, &info, s->e);
    collections_release(s->collections, c);
    if (rc < 0)
        return rc;
    /* the name lives as long as the graph */
    const char *name = arena_copy(&s->graph->arena, info.model, strlen(info.model) + 1);
    return name ? lend_model(s, name) : err_set(s->e, SHOAL_ENOMEM, "out of memory for a flow");
}

static int lend_home(void *ctx)
{
    struct library_site *s = ctx;
    const struct home_open_opts ho = {.path = s->config->home, .models = s->opts->models};
    if (s->home.table)
        return 0;
    int rc =
        ask_pack_table(&s->home.table, s->opts->models, s->config->table, s->config->home, s->e);
    if (rc == 0)
        rc = home_open(&s->home.things, s->home.table, &ho, s->e);
    if (rc < 0)
        return rc;
    s->flow.app = &s->home.app;
    const char *models[] = {s->home.table->reader, s->home.table->reply};
    for (int i = 0; i < 2 && rc == 0 && models[i]; i++)
        rc = lend_model(s, models[i]);
    return rc;
}

static int refuse_call(void *ctx, const struct graph_step *step)
{
    struct library_site *s = ctx;
    return err_set(s->e, SHOAL_EUNSUPPORTED,
                   "the step '%s' is a call: the library makes none, run this flow with 'shoal "
                   "serve' or 'shoal flow run'",
                   step->spec.name);
}

/* ---- life ---- */

static int choose(struct library_site *s, const char *path, const char *name, struct err *e)
{
    const struct config_flows *f = &s->config->flows;
    if (f->n == 0)
        return err_set(e, SHOAL_ENOTFOUND, "%s has no flows", path);
    if (!name && f->n > 1)
        return err_set(e, SHOAL_EINVAL, "%s has %u flows: choose one in shoal_flow_opts", path,
                       f->n);
    s->graph = name ? config_flows_find(f, name) : f->v[0];
    return s->graph ? 0 : err_set(e, SHOAL_ENOTFOUND, "%s has no flow '%s'", path, name);
}

static int open_owner(struct library_site *s, struct err *e)
{
    const struct registry_opts ro = {.lent_only = true};
    int rc = executor_queue_init(&s->queue, e);
    if (rc < 0)
        return rc;
    s->has_queue = true;
    rc = registry_create(&s->flow.registry, &ro, e);
    if (rc < 0)
        return rc;
    flow_owner_init(&s->owner, &s->flow, &s->queue.executor);
    s->has_owner = true;
    return 0;
}

static int open_collections(struct library_site *s, const char *dir, struct err *e)
{
    char usual[PATH_MAX];
    if (!dir)
        dir = s->config->collections_dir;
    if (!dir && collections_default_dir(usual, sizeof(usual)))
        dir = usual;
    return dir ? collections_open(&s->collections, dir, 0, e) : 0;
}

static void *run_site(void *arg)
{
    struct library_site *s = arg;
    while (!s->stop || s->n_running > 0)
        (void)executor_queue_turn(&s->queue, -1);
    return NULL;
}

int library_site_open(struct library_site *s, const char *path, const struct shoal_flow_opts *o,
                      struct err *e)
{
    *s = (struct library_site){.opts = o, .e = e};
    ask_app_init(&s->home);
    const struct config_needs needs = {.model = lend_model,
                                       .collection = lend_collection,
                                       .home = lend_home,
                                       .call = refuse_call,
                                       .ctx = s};
    int rc = config_create(&s->config, e);
    if (rc == 0)
        rc = config_load(s->config, path, e);
    if (rc == 0)
        rc = choose(s, path, o->flow, e);
    if (rc == 0)
        rc = open_owner(s, e);
    if (rc == 0)
        rc = open_collections(s, o->collections, e);
    if (rc == 0)
        rc = config_needs_visit(s->config, s->graph, &needs);
    if (rc < 0)
        return rc;
    pipeline_site_init(&s->pipeline, s->collections, NULL);
    s->pipeline.graphs = s->config->flows.v;
    s->pipeline.n = s->config->flows.n;
    s->owner.routes = &s->config->router;
    s->owner.flows = &s->pipeline.dispatch;
    s->opts = NULL;
    s->e = NULL;
    rc = thread_create(&s->thread, "flow", run_site, s, e);
    s->has_thread = rc == 0;
    return rc;
}

static void stop(struct executor_task *t)
{
    EXECUTOR_OF(t, struct library_site, stop_later)->stop = true;
}

void library_site_close(struct library_site *s)
{
    if (s->has_thread) {
        s->stop_later.fn = stop;
        executor_post(&s->queue.executor, &s->stop_later);
        pthread_join(s->thread, NULL);
    }
    if (s->has_owner)
        flow_wake(&s->owner); /* gives its references back */
    registry_destroy(s->flow.registry);
    if (s->has_owner)
        flow_owner_fini(&s->owner);
    if (s->has_queue)
        executor_queue_fini(&s->queue);
    for (uint32_t i = 0; i < s->n_engines; i++)
        shoal_engine_close(s->engines[i]);
    collections_close(s->collections);
    home_things_destroy(s->home.things);
    home_table_close(s->home.table);
    config_unref(s->config);
}
