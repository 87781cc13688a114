/* node_models.c - see node_models.h. */
#include "gateway/node/node_models.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "cluster/agent/agent.h"
#include "cluster/agent/shelf.h"
#include "cluster/control/desired.h"
#include "cluster/store/model_scrub.h"
#include "cluster/store/model_supply.h"
#include "config/config.h"
#include "gateway/node/node_store.h"
#include "host/pack.h"

#define MAX_PLACES (CONFIG_MAX_MODEL_DIRS + CONFIG_MAX_MODELS + 1)

struct node_models {
    struct agent_source source;
    struct shelf *shelf;
    struct model_store *store;   /* NULL: this node has none */
    struct model_supply *supply; /* likewise */
    struct model_scrub *scrub;   /* or NULL */
    struct pack *pack;           /* the models included with Shoal; NULL: none */
    bool apart;                  /* a process for each replica */
};

/* From the store, another node or the model's source. */
static enum agent_found bring(const struct node_models *m, const struct desired_model *model,
                              const uint8_t sha256[SHA256_BYTES], char *path, size_t cap,
                              uint32_t *progress, struct err *e)
{
    switch (
        model_supply_find(m->supply, model->name, sha256, model->source, path, cap, progress, e)) {
    case MODEL_SUPPLY_HERE:
        return AGENT_HERE;
    case MODEL_SUPPLY_COMING:
        return AGENT_COMING;
    case MODEL_SUPPLY_NOWHERE:
        break;
    }
    return AGENT_NOWHERE;
}

static enum agent_found find(void *ctx, const struct desired_model *model,
                             const uint8_t sha256[SHA256_BYTES], char *path, size_t cap,
                             uint32_t *progress, struct err *e)
{
    const struct node_models *m = ctx;
    char hex[2 * SHA256_BYTES + 1];
    *progress = 0;
    switch (shelf_find(m->shelf, sha256, path, cap)) {
    case SHELF_HERE:
        return AGENT_HERE;
    case SHELF_LOOKING:
        return AGENT_COMING;
    case SHELF_NOWHERE:
        break;
    }
    if (m->supply)
        return bring(m, model, sha256, path, cap, progress, e);
    sha256_hex(hex, sha256);
    err_set(e, SHOAL_ENOTFOUND,
            "no file of this node has the SHA-256 %.12s of the model '%s': put it into a folder of "
            "'model_dirs'",
            hex, model->name);
    return AGENT_NOWHERE;
}

static bool doubt(void *ctx, const uint8_t sha256[SHA256_BYTES])
{
    const struct node_models *m = ctx;
    return m->supply && model_supply_doubt(m->supply, sha256);
}

static void release(void *ctx, const uint8_t sha256[SHA256_BYTES])
{
    const struct node_models *m = ctx;
    if (m->supply)
        model_supply_release(m->supply, sha256);
}

/* A model of the pack is loaded with the manifest's settings. Several names may share a file. */
static void describe(void *ctx, struct registry_spec *spec)
{
    const struct node_models *m = ctx;
    const struct pack_model *best = NULL;
    char a[PATH_MAX], b[PATH_MAX];
    spec->apart = m->apart;
    for (uint32_t i = 0; m->pack && i < m->pack->n_models; i++) {
        const struct pack_model *p = &m->pack->models[i];
        if (!realpath(p->open, a) || !realpath(spec->path, b) || strcmp(a, b) != 0)
            continue;
        if (!best || strcmp(p->name, spec->name) == 0)
            best = p;
    }
    if (!best)
        return;
    spec->task = best->task;
    spec->labels = best->labels;
    spec->int8 = best->int8;
}

static size_t places_of(const char **places, const struct config *c, const struct pack *pack)
{
    size_t n = 0;
    for (uint32_t i = 0; i < c->model_dirs.n; i++)
        places[n++] = c->model_dirs.v[i];
    for (uint32_t i = 0; i < c->n_models; i++)
        places[n++] = c->models[i].path;
    if (pack)
        places[n++] = pack->dir;
    return n;
}

int node_models_open(struct node_models **out, const struct config *c,
                     const struct node_store *store, struct err *e)
{
    struct node_models *m = mem_zalloc(sizeof(*m));
    const char *places[MAX_PLACES];
    struct err none = {0};
    *out = NULL;
    if (!m)
        return err_set(e, SHOAL_ENOMEM, "models of the node");
    m->apart = c->cluster.isolation == 1;
    m->source = (struct agent_source){
        .ctx = m, .find = find, .doubt = doubt, .release = release, .describe = describe};
    if (pack_open(&m->pack, NULL, &none) < 0)
        m->pack = NULL; /* optional for a node */
    const struct shelf_opts so = {
        .places = places, .n_places = places_of(places, c, m->pack), .cache_dir = c->cache_dir};
    int rc = shelf_open(&m->shelf, &so, e);
    if (store && store->fetcher)
        m->store = store->store;
    if (rc == 0 && m->store)
        rc = model_supply_create(&m->supply, store->store, store->fetcher, e);
    if (rc < 0) {
        node_models_close(m);
        return rc;
    }
    *out = m;
    return 0;
}

void node_models_close(struct node_models *m)
{
    if (!m)
        return;
    model_scrub_close(m->scrub);
    model_supply_destroy(m->supply);
    shelf_close(m->shelf);
    pack_close(m->pack);
    mem_free(m);
}

int node_models_scrub(struct node_models *m, struct executor *x, uint32_t every_ms,
                      void (*found)(void *ctx, const uint8_t sha256[SHA256_BYTES]), void *ctx,
                      struct err *e)
{
    const struct model_scrub_opts o = {
        .store = m->store, .executor = x, .every_ms = every_ms, .found = found, .ctx = ctx};
    return m->store && every_ms ? model_scrub_open(&m->scrub, &o, e) : 0;
}

const struct agent_source *node_models_source(const struct node_models *m)
{
    return &m->source;
}

bool node_models_listens(const struct node_models *m)
{
    return m->supply && model_supply_listens(m->supply);
}

void node_models_hear(struct node_models *m, const struct node_state *s)
{
    if (m->supply)
        model_supply_hear(m->supply, s);
}
