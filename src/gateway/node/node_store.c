/* node_store.c - see node_store.h. */
#include "gateway/node/node_store.h"

#include <stdio.h>

#include "base/log.h"
#include "base/mem.h"
#include "cluster/store/model_fetch.h"
#include "depot/store/model_store.h"
#include "flow/pool.h"
#include "gateway/gw.h"
#include "supply/trust_policy.h"

#define MAX_READS 256u

/* On a fetch thread. */
static int is_trusted(void *ctx, const char *name, const char *path, const _Atomic bool *stop,
                      struct err *e)
{
    const struct gw *gw = ctx;
    const struct trust_policy_model m = {.names = &name, .n_names = 1, .path = path};
    struct signed_by by;
    return trust_policy_check(gw->trust, &m, stop, &by, NULL, e);
}

static int open_store(struct gw *gw, struct node_store *n, struct err *e)
{
    const struct config_cluster *k = &gw->config->cluster;
    const struct model_store_opts so = {.dir = k->store,
                                        .max_bytes = k->store_limit,
                                        .memo_dir = n->memo_dir[0] ? n->memo_dir : NULL};
    int rc = model_store_open(&n->store, &so, e);
    if (rc == 0 && k->store)
        rc = model_store_make(n->store, e);
    if (rc < 0 && !k->store) {
        log_warn("store", "no models can be assigned to this node: %s", e->msg);
        *e = (struct err){0};
        return 0;
    }
    const struct model_fetcher_opts fo = {.store = n->store,
                                          .executor = loop_executor(gw->loops[0].loop),
                                          .tls = gw->link_tls,
                                          .ca = k->fetch_ca,
                                          .folders = (const char *const *)gw->config->model_dirs.v,
                                          .n_folders = gw->config->model_dirs.n,
                                          .trusted = gw->trust ? is_trusted : NULL,
                                          .ctx = gw,
                                          .bytes_per_s = k->fetch_rate};
    return rc < 0 ? rc : model_fetcher_create(&n->fetcher, &fo, e);
}

int node_store_open(struct gw *gw, struct err *e)
{
    const struct config_cluster *k = &gw->config->cluster;
    if (k->listen.n == 0)
        return 0;
    struct node_store *n = gw->store = mem_zalloc(sizeof(*n));
    if (!n)
        return err_set(e, SHOAL_ENOMEM, "store of models");
    const char *memo = registry_memo_dir(gw->registry);
    snprintf(n->memo_dir, sizeof(n->memo_dir), "%s", memo ? memo : "");
    byte_rate_init(&n->rate, k->share_rate);
    int rc = pool_create(&n->readers, 1, MAX_READS, e);
    return rc < 0 ? rc : open_store(gw, n, e);
}

void node_store_stop(struct gw *gw)
{
    struct node_store *n = gw->store;
    if (!n)
        return;
    n->stop = true;
    pool_destroy(n->readers);
    n->readers = NULL;
    model_fetcher_destroy(n->fetcher);
    n->fetcher = NULL;
}

void node_store_close(struct gw *gw)
{
    if (!gw->store)
        return;
    model_store_close(gw->store->store);
    mem_free(gw->store);
    gw->store = NULL;
}
