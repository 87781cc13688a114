/* flow_site.c - see flow_site.h. */
#include "cmd/flow/flow_site.h"

#include <limits.h>
#include <string.h>

#include "apps/home/ask/ask_pack.h"
#include "apps/home/site/home_open.h"
#include "apps/home/site/home_things.h"
#include "apps/home/table/home_table.h"
#include "cmd/cli/term.h"
#include "cmd/cmd.h"
#include "cmd/local/model_opts.h"
#include "config/config_needs.h"
#include "flow/stages.h"
#include "site/deeds/deed_call.h"
#include "store/collections.h"

/* ---- the file ---- */

int flow_site_load(struct config **c, const struct opts *o, const char *file)
{
    struct err e = {0};
    int rc = config_create(c, &e);
    if (rc == 0)
        rc = config_load(*c, file, &e);
    if (rc == 0 && (*c)->flows.n == 0)
        rc = err_set(&e, SHOAL_ENOTFOUND, "%s has no flows", file);
    if (rc == 0)
        return CMD_OK;
    config_unref(*c);
    *c = NULL;
    return cmd_fail(o->page, "%s", e.msg);
}

int flow_site_choose(const struct opts *o, const struct config *c, struct graph **out)
{
    const char *name = opts_text(o, "flow");
    *out = NULL;
    if (!name && c->flows.n > 1)
        return opts_usage(o->page, "the file has %u flows: choose one with --flow NAME",
                          c->flows.n);
    *out = name ? config_flows_find(&c->flows, name) : c->flows.v[0];
    return *out ? CMD_OK : cmd_fail(o->page, "the file has no flow '%s'", name);
}

/* ---- models ---- */

static const struct registry_spec *spec_of(const struct config *c, const char *model)
{
    for (uint32_t i = 0; i < c->n_models; i++)
        if (strcmp(c->models[i].name, model) == 0)
            return &c->models[i];
    return NULL;
}

static int lend_model(void *ctx, const char *model)
{
    struct flow_site *s = ctx;
    const struct registry_spec *spec = spec_of(s->config, model);
    struct err e = {0};
    uint32_t i = s->n_engines;
    for (uint32_t k = 0; k < i; k++)
        if (strcmp(s->lent[k], model) == 0)
            return CMD_OK;
    if (i == FLOW_SITE_MODELS)
        return cmd_fail(s->o->page, "the flow needs more than %u models: use a server",
                        FLOW_SITE_MODELS);
    int rc = model_opts_specialist_open_as(s->o, spec ? spec->path : model, s->interrupt_fd,
                                           &s->engines[i], &s->names[i]);
    s->lent[i] = model;
    s->n_engines++;
    const char *labels = spec ? spec->labels : s->names[i].labels;
    if (rc == CMD_OK && local_lend(&s->local, model, labels, s->engines[i], &e) < 0)
        rc = cmd_fail(s->o->page, "%s", e.msg);
    struct shoal_engine_info info = {.size = sizeof(info)};
    if (rc == CMD_OK)
        shoal_engine_info(s->engines[i], &info);
    if (info.kinds & SHOAL_KIND_EMBED) /* its vectors are compared with those of collections */
        local_identify(&s->local, model, s->names[i].path);
    return rc;
}

static int lend_collection(void *ctx, const char *collection)
{
    struct flow_site *s = ctx;
    struct collection *c = NULL;
    struct collection_info info;
    struct err e = {0};
    if (!s->collections)
        return cmd_fail(s->o->page, "there is no folder for the collection '%s': use --dir FOLDER",
                        collection);
    int rc = collections_hold(s->collections, collection, &c, &e);
    if (rc == 0)
        rc = collection_info(c, &info, &e);
    collections_release(s->collections, c);
    if (rc < 0)
        return cmd_fail(s->o->page, "%s", e.msg);
    for (uint32_t i = 0; i < s->n_engines; i++)
        if (strcmp(s->lent[i], info.model) == 0)
            return CMD_OK;
    /* the name lives as long as the graph */
    char *name = arena_copy(&s->graph->arena, info.model, strlen(info.model) + 1);
    return name ? lend_model(s, name) : cmd_fail(s->o->page, "out of memory");
}

static int lend_home(void *ctx)
{
    struct flow_site *s = ctx;
    const struct home_open_opts ho = {.path = s->config->home};
    struct err e = {0};
    if (s->home.table)
        return CMD_OK;
    int rc = ask_pack_table(&s->home.table, NULL, s->config->table, s->config->home, &e);
    if (rc == 0)
        rc = home_open(&s->home.things, s->home.table, &ho, &e);
    if (rc < 0)
        return cmd_fail(s->o->page, "%s", e.msg);
    s->local.flow.app = &s->home.app;
    const char *models[] = {s->home.table->reader, s->home.table->reply};
    for (int i = 0; i < 2 && models[i]; i++)
        if ((rc = lend_model(s, models[i])) != CMD_OK)
            return rc;
    return CMD_OK;
}

int flow_site_lend(struct flow_site *s)
{
    const struct config_needs v = {
        .model = lend_model, .collection = lend_collection, .home = lend_home, .ctx = s};
    return config_needs_visit(s->config, s->graph, &v);
}

/* ---- life ---- */

int flow_site_open(struct flow_site *s, const struct opts *o, const char *file)
{
    char usual[PATH_MAX];
    struct err e = {0};
    *s = (struct flow_site){.o = o, .interrupt_fd = term_catch_interrupt()};
    ask_app_init(&s->home);
    int rc = flow_site_load(&s->config, o, file);
    if (rc == CMD_OK)
        rc = flow_site_choose(o, s->config, &s->graph);
    if (rc != CMD_OK)
        return rc;
    const char *dir = opts_text(o, "dir");
    if (!dir)
        dir = s->config->collections_dir;
    if (!dir && collections_default_dir(usual, sizeof(usual)))
        dir = usual;
    if ((dir && collections_open(&s->collections, dir, 0, &e) < 0) ||
        local_open(&s->local, &e) < 0 ||
        deed_calls_create(&s->calls, NULL, s->config->flows.ca, s->config->flows.plugin_memory,
                          &e) < 0)
        return cmd_fail(o->page, "%s", e.msg);
    pipeline_site_init(&s->site, s->collections, deed_calls_outside(s->calls));
    s->site.graphs = s->config->flows.v;
    s->site.n = s->config->flows.n;
    s->local.owner.routes = &s->config->router;
    s->local.owner.flows = &s->site.dispatch;
    return CMD_OK;
}

void flow_site_close(struct flow_site *s)
{
    deed_calls_destroy(s->calls);
    local_close(&s->local);
    for (uint32_t i = 0; i < s->n_engines; i++) {
        shoal_engine_close(s->engines[i]);
        model_name_fini(&s->names[i]);
    }
    collections_close(s->collections);
    home_things_destroy(s->home.things);
    home_table_close(s->home.table);
    config_unref(s->config);
    term_release_interrupt(s->interrupt_fd);
}

bool flow_site_run(struct flow_site *s, struct request *r, struct sink *sink, const bool *closed)
{
    bool interrupted = false;
    stages_run(&s->local.owner, r, sink);
    while (!*closed)
        if (local_turn(&s->local, s->interrupt_fd)) {
            interrupted = true;
            flow_cancel(sink);
        }
    return interrupted;
}
