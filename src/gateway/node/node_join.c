/* node_join.c - see node_join.h. */
#include "gateway/node/node_join.h"

#include <stdio.h>

#include "base/log.h"
#include "base/mem.h"
#include "cluster/trust/cert.h"
#include "cluster/deployed.h"
#include "cluster/join.h"
#include "cluster/members.h"
#include "gateway/gw.h"
#include "gateway/node/node_models.h"
#include "gateway/node/node_self.h"
#include "gateway/node/node_shard.h"

/* On its way to a loop. */
struct news {
    struct executor_task task;
    struct gw_loop *gl;
    bool gone;
    char address[256], name[128];
};

static void on_news(struct executor_task *t)
{
    struct news *n = EXECUTOR_OF(t, struct news, task);
    struct members *m = n->gl->members; /* NULL: the process ends */
    if (m && n->gone)
        members_remove(m, n->address);
    else if (m)
        members_add(m, n->address, n->name);
    mem_free(n);
}

static void tell_loops(struct gw *gw, bool gone, const char *address, const char *name)
{
    for (uint32_t i = 0; i < gw->n_loops; i++) {
        struct news *n = mem_zalloc(sizeof(*n));
        if (!n) {
            log_warn("cluster", "out of memory: node %s is not used by loop %u", address, i);
            continue;
        }
        n->task.fn = on_news;
        n->gl = &gw->loops[i];
        n->gone = gone;
        snprintf(n->address, sizeof(n->address), "%s", address);
        snprintf(n->name, sizeof(n->name), "%s", name);
        loop_post(n->gl->loop, &n->task);
    }
}

static void on_found(void *ctx, const char *address, const char *name)
{
    log_info("cluster", "found node %s at %s", name, address);
    node_shard_found(ctx, address);
    tell_loops(ctx, false, address, name);
}

static void on_gone(void *ctx, const char *address)
{
    node_shard_gone(ctx, address);
    tell_loops(ctx, true, address, "");
}

static void on_heard(void *ctx, const struct node_state *s)
{
    struct gw *gw = ctx;
    node_models_hear(gw->models, s);
    node_shard_found(gw, s->address);
}

static void on_damaged(void *ctx, const uint8_t sha256[SHA256_BYTES])
{
    struct gw *gw = ctx;
    if (gw->join) /* NULL: the process ends */
        join_damaged(gw->join, sha256);
}

static bool listens(void *ctx)
{
    struct gw *gw = ctx;
    return gw->models && node_models_listens(gw->models);
}

static int put_state(void *ctx, struct buf *out)
{
    struct gw *gw = ctx;
    return node_self_put(out, &gw->loops[0], NULL);
}

/* Before the loops' members: they query it for models that no node has. */
int node_join_prepare(struct gw *gw, struct err *e)
{
    return gw->config->cluster.nats.n > 0 ? deployed_create(&gw->deployed, e) : 0;
}

int node_join_open(struct gw *gw, struct err *e)
{
    const struct config_cluster *k = &gw->config->cluster;
    struct cert_files f;
    bool relays = !k->no_relay, is_node = k->listen.n > 0;
    if (k->nats.n == 0)
        return 0;
    int rc = k->certs ? cert_files_in(&f, k->certs, e) : 0;
    if (rc == 0 && is_node)
        rc = node_models_open(&gw->models, gw->config, gw->store, e);
    const struct join_opts o = {.cluster = k->shoal ? k->shoal : "shoal",
                                .name = k->name ? k->name : "",
                                .urls = (const char *const *)k->nats.v,
                                .n_urls = k->nats.n,
                                .ca_file = k->certs ? f.ca : NULL,
                                .cert_file = k->certs ? f.cert : NULL,
                                .key_file = k->certs ? f.key : NULL,
                                .snapshot = k->snapshot,
                                .cache_dir = gw->config->cache_dir,
                                .heartbeat_ms = k->heartbeat_ms,
                                .forget_ms = k->forget_ms,
                                .lease_ms = k->lease_ms,
                                .may_control = config_may_control(gw->config),
                                .may_change = config_may_change(gw->config),
                                .state = put_state,
                                .found = relays ? on_found : NULL,
                                .gone = relays ? on_gone : NULL,
                                .heard = is_node ? on_heard : NULL,
                                .listens = listens,
                                .ctx = gw,
                                .registry = is_node ? gw->registry : NULL,
                                .source = is_node ? node_models_source(gw->models) : NULL,
                                .deployed = gw->deployed,
                                .quota = gw->shared_quota,
                                .once = gw->shared_once};
    if (rc == 0)
        rc = join_open(&gw->join, loop_executor(gw->loops[0].loop), &o, e);
    if (rc == 0 && is_node)
        rc = node_models_scrub(gw->models, loop_executor(gw->loops[0].loop), k->scrub_ms,
                               on_damaged, gw, e);
    return rc;
}

void node_join_close(struct gw *gw)
{
    join_close(gw->join);
    gw->join = NULL;
    node_models_close(gw->models);
    gw->models = NULL;
    deployed_destroy(gw->deployed);
    gw->deployed = NULL;
}
