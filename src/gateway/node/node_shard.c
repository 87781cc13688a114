/* node_shard.c - see node_shard.h. */
#include "gateway/node/node_shard.h"

#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "cluster/agent/shelf.h"
#include "cluster/machine/node_measure.h"
#include "cluster/messages/node_state.h"
#include "cluster/shard/shard_site.h"
#include "depot/store/model_store.h"
#include "gateway/gw.h"
#include "gateway/node/node_store.h"
#include "host/pack.h"
#include "host/prometheus.h"
#include "supply/trust_policy.h"

#define MAX_PLACES (CONFIG_MAX_MODEL_DIRS + CONFIG_MAX_MODELS + 1)
#define LOOK_NS 120000000000u /* the shelf may have to read large files first */
#define LOOK_US 50000u

struct node_shard {
    struct shard_site *site;
    struct shelf *shelf; /* NULL until a part is asked for: it reads all models once */
    pthread_mutex_t lock;
    struct pack *pack; /* the models included with Shoal; NULL: none */
};

/* ---- models by their hash ---- */

static int open_shelf(struct gw *gw, struct err *e)
{
    struct node_shard *n = gw->shard;
    const struct config *c = gw->config;
    const char *places[MAX_PLACES];
    struct err none = {0};
    size_t k = 0;
    if (n->shelf)
        return 0;
    if (pack_open(&n->pack, NULL, &none) < 0)
        n->pack = NULL;
    for (uint32_t i = 0; i < c->model_dirs.n; i++)
        places[k++] = c->model_dirs.v[i];
    for (uint32_t i = 0; i < c->n_models; i++)
        places[k++] = c->models[i].path;
    if (n->pack)
        places[k++] = n->pack->dir;
    const struct shelf_opts so = {.places = places, .n_places = k, .cache_dir = c->cache_dir};
    return shelf_open(&n->shelf, &so, e);
}

/* Layers are believed as a whole model is.  Its name is not known here: the node with the engine
 * has checked whether the signer may sign it. */
static int check_trust(const struct gw *gw, const char *path, struct err *e)
{
    const struct pack *pack = gw->shard->pack;
    const struct trust_policy_model m = {
        .path = path, .included = pack && strncmp(path, pack->dir, strlen(pack->dir)) == 0};
    struct signed_by by;
    return gw->trust ? trust_policy_check(gw->trust, &m, &gw->draining, &by, NULL, e) : 0;
}

static int look(struct gw *gw, const uint8_t sha256[SHA256_BYTES], char *path, size_t cap,
                struct err *e)
{
    char hex[2 * SHA256_BYTES + 1];
    const uint64_t until = clock_ns() + LOOK_NS;
    enum shelf_found found = SHELF_LOOKING;
    if (gw->store && gw->store->store &&
        model_store_find(gw->store->store, sha256, path, NULL) == 0)
        return 0;
    pthread_mutex_lock(&gw->shard->lock);
    int rc = open_shelf(gw, e);
    pthread_mutex_unlock(&gw->shard->lock);
    if (rc < 0)
        return rc;
    while (clock_ns() < until && !atomic_load(&gw->draining)) {
        found = shelf_find(gw->shard->shelf, sha256, path, cap);
        if (found != SHELF_LOOKING)
            break;
        usleep(LOOK_US);
    }
    sha256_hex(hex, sha256);
    return found == SHELF_HERE
               ? 0
               : err_set(e, SHOAL_ENOTFOUND,
                         "no file of this node has the SHA-256 %.12s: put the model into a folder "
                         "of 'model_dirs', or pull it",
                         hex);
}

static int find(void *ctx, const uint8_t sha256[SHA256_BYTES], char *path, size_t cap,
                struct err *e)
{
    struct gw *gw = ctx;
    int rc = look(gw, sha256, path, cap, e);
    return rc < 0 ? rc : check_trust(gw, path, e);
}

/* ---- what this machine can do ---- */

static uint64_t memory(void *ctx)
{
    const struct gw *gw = ctx;
    return gw->registry ? registry_memory_left(gw->registry) : 0;
}

static void take_memory(void *ctx, int64_t n)
{
    const struct gw *gw = ctx;
    registry_take_memory(gw->registry, n);
}

/* Decoding reads every weight once, so memory bandwidth is its speed. */
static uint64_t rate(void *ctx)
{
    struct gw *gw = ctx;
    struct node_state s = {.bandwidth = 0};
    struct node_measure *m = atomic_load(&gw->measure);
    if (m)
        node_measure_fill(m, &s);
    return (uint64_t)s.bandwidth;
}

/* ---- open and close ---- */

int node_shard_open(struct gw *gw, struct err *e)
{
    const struct config_cluster *k = &gw->config->cluster;
    if (!k->certs || k->listen.n == 0)
        return 0;
    struct node_shard *n = gw->shard = mem_zalloc(sizeof(*n));
    if (!n)
        return err_set(e, SHOAL_ENOMEM, "parts of models");
    pthread_mutex_init(&n->lock, NULL);
    const struct shard_site_opts o = {.name = k->name ? k->name : "",
                                      .certs = k->certs,
                                      .cache_dir = gw->config->cache_dir,
                                      .silent_ms = 2 * k->silent_ms,
                                      .wait_ms = k->wait_ms,
                                      .find = find,
                                      .memory = memory,
                                      .take_memory = take_memory,
                                      .rate = rate,
                                      .ctx = gw};
    int rc = shard_site_open(&n->site, &o, e);
    for (uint32_t i = 0; rc == 0 && i < k->nodes.n; i++)
        shard_site_add(n->site, k->nodes.v[i]);
    for (uint32_t i = 0; rc == 0 && i < gw->n_loops; i++)
        http_server_set_shard(gw->loops[i].node_http, shard_site_take, n->site);
    return rc;
}

void node_shard_stop(struct gw *gw)
{
    if (gw->shard)
        shard_site_stop(gw->shard->site);
}

void node_shard_close(struct gw *gw)
{
    struct node_shard *n = gw->shard;
    if (!n)
        return;
    shard_site_close(n->site);
    shelf_close(n->shelf);
    pack_close(n->pack);
    pthread_mutex_destroy(&n->lock);
    mem_free(n);
    gw->shard = NULL;
}

int node_shard_chain(void *ctx, const char *path, const char *shard, struct chain *out,
                     struct err *e)
{
    struct gw *gw = ctx;
    struct shard_want want;
    int rc = shard_want_read(&want, shard, e);
    if (rc == 0 && !gw->shard)
        rc = err_set(e, SHOAL_EUNSUPPORTED,
                     "%s: only a node of a shoal can shard a model: it needs cluster.certs and "
                     "cluster.listen",
                     path);
    return rc < 0 ? rc : shard_site_chain(gw->shard->site, out, path, want, e);
}

void node_shard_found(struct gw *gw, const char *address)
{
    if (gw->shard && address[0])
        shard_site_add(gw->shard->site, address);
}

void node_shard_gone(struct gw *gw, const char *address)
{
    if (gw->shard)
        shard_site_remove(gw->shard->site, address);
}

static void fill_chain(struct node_chain *to, struct arena *a, const struct shard_chain_facts *f)
{
    const double steps = f->n_steps ? (double)f->n_steps * 1e6 : 1e6;
    const uint32_t others = f->plan.rows && f->plan.n_parts > 1 ? f->plan.n_parts - 1 : 1;
    struct node_chain_part *parts = arena_zalloc_n(a, f->plan.n_parts, sizeof(*parts));
    for (uint32_t i = 0; parts && i < f->plan.n_parts; i++)
        parts[i] = (struct node_chain_part){.node = arena_printf(a, "%s", f->nodes[i]),
                                            .first = f->plan.parts[i].first,
                                            .end = f->plan.parts[i].end,
                                            .share = f->plan.parts[i].share};
    *to = (struct node_chain){.model = arena_printf(a, "%s", f->model),
                              .parts = parts,
                              .n_parts = parts ? f->plan.n_parts : 0,
                              .n_rebuilt = f->n_rebuilt,
                              .lost = arena_printf(a, "%s", f->lost),
                              .predicted_ms = f->plan.token_s * 1e3,
                              .step_ms = (double)f->step_ns / steps,
                              .remote_ms = (double)f->remote_ns / steps / others,
                              .wait_ms = (double)f->wait_ns / steps,
                              .q8 = f->q8,
                              .step_bytes = (double)f->n_bytes * 1e6 / steps};
}

static void put_figures(struct buf *b, const struct shard_chain_facts *f, uint32_t n)
{
    static const struct {
        const char *name, *help;
        size_t at;
        double unit;
    } rows[] = {
#define ROW(name, member, unit, help) {name, help, offsetof(struct shard_chain_facts, member), unit}
        ROW("shoal_shard_steps_total", n_steps, 1, "steps that were computed with other nodes"),
        ROW("shoal_shard_tokens_total", n_tokens, 1, "tokens of these steps"),
        ROW("shoal_shard_bytes_total", n_bytes, 1, "bytes to and from the other nodes"),
        ROW("shoal_shard_step_seconds_total", step_ns, 1e-9, "time of these steps"),
        ROW("shoal_shard_remote_seconds_total", remote_ns, 1e-9, "computing by the other nodes"),
        ROW("shoal_shard_wait_seconds_total", wait_ns, 1e-9,
            "that this node waited for the other nodes"),
#undef ROW
    };
    for (size_t r = 0; r < sizeof(rows) / sizeof(rows[0]); r++) {
        prometheus_help(b, rows[r].name, "counter", rows[r].help);
        for (uint32_t i = 0; i < n; i++) {
            uint64_t v;
            memcpy(&v, (const char *)&f[i] + rows[r].at, sizeof(v));
            buf_printf(b, "%s{model=\"%s\"} %.6g\n", rows[r].name, f[i].model,
                       (double)v * rows[r].unit);
        }
    }
}

/* Which node has which part. */
static void put_parts(struct buf *b, const struct shard_chain_facts *f)
{
    for (uint32_t i = 0; i < f->plan.n_parts; i++) {
        const struct shard_plan_part *p = &f->plan.parts[i];
        char node[PROMETHEUS_LABEL_BYTES];
        const double share =
            f->plan.rows ? p->share : (p->end - p->first) / (double)(f->n_layers ? f->n_layers : 1);
        buf_printf(b, "shoal_shard_share{model=\"%s\",%s,first=\"%u\",last=\"%u\"} %.4f\n",
                   f->model, prometheus_label(node, "node", f->nodes[i]), p->first, p->end - 1,
                   share);
    }
}

void node_shard_metrics(struct gw *gw, struct buf *b)
{
    uint32_t room = gw->shard ? shard_site_chains(gw->shard->site, NULL, 0) : 0;
    struct shard_chain_facts *f = room ? mem_zalloc_n(room, sizeof(*f)) : NULL;
    if (!f)
        return;
    uint32_t n = shard_site_chains(gw->shard->site, f, room); /* one may have come or gone */
    n = n < room ? n : room;
    put_figures(b, f, n);
    prometheus_help(b, "shoal_shard_rebuilt_total", "counter", "parts that another node took");
    for (uint32_t i = 0; i < n; i++)
        buf_printf(b, "shoal_shard_rebuilt_total{model=\"%s\"} %u\n", f[i].model, f[i].n_rebuilt);
    prometheus_help(b, "shoal_shard_share", "gauge",
                    "share of a model's layers, or by rows of each of them, that a node computes");
    for (uint32_t i = 0; i < n; i++)
        put_parts(b, &f[i]);
    mem_free(f);
}

void node_shard_fill(struct gw *gw, struct node_state *s, struct arena *a)
{
    uint32_t n = gw->shard ? shard_site_chains(gw->shard->site, NULL, 0) : 0;
    n = n < NODE_STATE_MAX_CHAINS ? n : NODE_STATE_MAX_CHAINS;
    struct shard_chain_facts *f = n ? arena_zalloc_n(a, n, sizeof(*f)) : NULL;
    struct node_chain *list = f ? arena_zalloc_n(a, n, sizeof(*list)) : NULL;
    if (!list)
        return;
    const uint32_t now = shard_site_chains(gw->shard->site, f, n); /* one may have gone */
    s->n_chains = now < n ? now : n;
    for (uint32_t i = 0; i < s->n_chains; i++)
        fill_chain(&list[i], a, &f[i]);
    s->chains = list;
}
