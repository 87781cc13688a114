/* gateway.c - see gateway.h: threads, listeners, start, drain, reload. */
#include "gateway/server/gateway.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "apps/home/site/home_things.h"
#include "apps/home/table/home_table.h"
#include "base/clock.h"
#include "base/thread/cond.h"
#include "base/thread/crew.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/thread/thread.h"
#include "cluster/machine/node_measure.h"
#include "cluster/members.h"
#include "cluster/once/once.h"
#include "cluster/once/once_bucket.h"
#include "cluster/quota_bucket.h"
#include "cluster/trust/cert.h"
#include "cluster/worker/worker_links.h"
#include "cluster/worker/workers.h"
#include "config/config_paths.h"
#include "config/config_where.h"
#include "depot/store/model_store.h"
#include "flow/pool.h"
#include "flow/privacy/pseudonyms.h"
#include "gateway/api/llama/slot_store.h"
#include "gateway/api/model_profiles.h"
#include "gateway/api/ollama/ollama_manage.h"
#include "gateway/api/openai/response_store.h"
#include "gateway/api/recall.h"
#include "gateway/server/averages.h"
#include "gateway/server/deferred_door.h"
#include "gateway/call/door.h"
#include "gateway/server/folder_watch.h"
#include "gateway/grpc/health.h"
#include "gateway/gw_names.h"
#include "gateway/server/gw_parts.h"
#include "gateway/measured.h"
#include "gateway/mqtt/mqtt_door.h"
#include "gateway/mqtt/mqtt_voice.h"
#include "gateway/node/node_door.h"
#include "gateway/node/node_join.h"
#include "gateway/node/node_shard.h"
#include "gateway/node/node_store.h"
#include "gateway/server/routes.h"
#include "gateway/call/ticker.h"
#include "host/energy_ledger.h"
#include "host/prompt_cache.h"
#include "host/quota.h"
#include "knowledge/sessions.h"
#include "knowledge/similar.h"
#include "gateway/wyoming/wyoming_door.h"
#include "net/listen.h"
#include "net/peers.h"
#include "net/tls.h"
#include "site/deeds/deed_call.h"
#include "site/deeds/deeds.h"
#include "site/deeds/discovery.h"
#include "site/deferred/deferred.h"
#include "site/modbus/modbus_site.h"
#include "site/mqtt/mqtt_site.h"
#include "site/things/demo.h"
#include "site/things/explainer.h"
#include "site/things/later_site.h"
#include "site/things/model_watch.h"
#include "site/things/plant.h"
#include "site/things/webhooks.h"
#include "site/traces/otlp_export.h"
#include "trace/trace_ring.h"
#include "store/collections.h"
#include "voice/wake.h"
#include "supply/audit_log.h"
#include "supply/trust_policy.h"

#define MAX_ADDRESSES (2 * CONFIG_MAX_LISTEN)
#define CUT_MS 2000u /* for the last bytes to clients */

struct gateway {
    struct gw gw; /* first */
    char addresses[MAX_ADDRESSES][256];
    char unix_paths[MAX_ADDRESSES][256];
    size_t n_addresses, n_public; /* public: the first ones */
    pthread_mutex_t lock;
    pthread_cond_t changed;
    uint32_t n_running, n_reloading;
    char names[PATH_MAX]; /* of stored models */
};

static void *loop_main(void *arg)
{
    struct gw_loop *gl = arg;
    struct gateway *g = LOOP_OF(gl->gw, struct gateway, gw);
    loop_run(gl->loop);
    pthread_mutex_lock(&g->lock);
    g->n_running--;
    pthread_cond_broadcast(&g->changed);
    pthread_mutex_unlock(&g->lock);
    return NULL;
}

/* ---- drain ---- */

static void end_watchers(struct gw_loop *gl)
{
    health_end(gl);
    ticker_end(gl);
}

static void check_drained(struct executor_timer *t)
{
    struct gw_loop *gl = LOOP_OF(t, struct gw_loop, drain_timer);
    struct http_stats st;
    bool idle = gl->n_calls == atomic_load(&gl->n_watchers);
    atomic_store(&gl->idle, idle);
    for (uint32_t i = 0; i < gl->gw->n_loops; i++)
        idle &= atomic_load(&gl->gw->loops[i].idle);
    if (idle) /* health watchers stay until everything else has ended */
        end_watchers(gl);
    http_server_stats(gl->http, &st);
    uint32_t conns = st.conns;
    if (gl->node_http) {
        http_server_stats(gl->node_http, &st);
        conns += st.conns;
    }
    if (gl->n_calls == 0 && conns == 0)
        loop_stop(gl->loop);
    else
        loop_timer_set(gl->loop, t, loop_now(gl->loop) + 10000000u);
}

static void on_leave(struct executor_task *t)
{
    struct gw_loop *gl = LOOP_OF(t, struct gw_loop, leave);
    health_tell(gl);
    http_server_leave(gl->http);
}

static void on_drain(struct executor_task *t)
{
    struct gw_loop *gl = LOOP_OF(t, struct gw_loop, drain);
    health_tell(gl);
    ticker_tell(gl);
    http_server_drain(gl->http);
    if (gl->node_http)
        http_server_drain(gl->node_http);
    check_drained(&gl->drain_timer);
}

/* Time is up: fails the requests that are still running. */
static void on_cut(struct executor_task *t)
{
    struct gw_loop *gl = LOOP_OF(t, struct gw_loop, cut);
    call_fail_all(gl);
    health_end(gl);
}

/* Waits until no loop is running; false: ms have passed. */
static bool wait_stopped(struct gateway *g, uint32_t ms)
{
    struct timespec ts;
    int rc = 0;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    ts.tv_sec += (time_t)(ms / 1000);
    ts.tv_nsec += (long)(ms % 1000) * 1000000;
    if (ts.tv_nsec >= 1000000000) {
        ts.tv_sec++;
        ts.tv_nsec -= 1000000000;
    }
    pthread_mutex_lock(&g->lock);
    while (g->n_running > 0 && rc == 0)
        rc = pthread_cond_timedwait(&g->changed, &g->lock, &ts);
    bool stopped = g->n_running == 0;
    pthread_mutex_unlock(&g->lock);
    return stopped;
}

/* A load balancer keeps sending until it notices; its requests are answered. */
static void leave(struct gateway *g)
{
    uint32_t ms = g->gw.config->leave_ms;
    if (ms == 0)
        return;
    atomic_store(&g->gw.leaving, true);
    for (uint32_t i = 0; i < g->gw.n_loops; i++)
        loop_post(g->gw.loops[i].loop, &g->gw.loops[i].leave);
    (void)wait_stopped(g, ms); /* they do not stop yet */
}

void gateway_drain(struct gateway *g)
{
    leave(g);
    atomic_store(&g->gw.draining, true);
    for (uint32_t i = 0; i < g->gw.n_loops; i++)
        loop_post(g->gw.loops[i].loop, &g->gw.loops[i].drain);
    if (wait_stopped(g, g->gw.config->drain_ms))
        return;
    log_warn("gateway", "requests are still running after %u ms: cancelling them",
             g->gw.config->drain_ms);
    for (uint32_t i = 0; i < g->gw.n_loops; i++)
        loop_post(g->gw.loops[i].loop, &g->gw.loops[i].cut);
    (void)wait_stopped(g, CUT_MS); /* clients that do not read get no more time */
}

/* ---- reload ---- */

/* The routes and flows of the loop's configuration. */
static void use_config(struct gw_loop *gl)
{
    const struct config_flows *f = &gl->config->flows;
    gl->flow.load_wait_ms = gl->config->load_wait_ms;
    gl->flow.any_model = gl->config->any_model;
    gl->flow.routes = &gl->config->router;
    gl->flows.graphs = f->v;
    gl->flows.n = f->n;
    gl->flow.flows = f->n > 0 ? &gl->flows.dispatch : NULL;
}

static void on_reload(struct executor_task *t)
{
    struct gw_loop *gl = LOOP_OF(t, struct gw_loop, reload);
    struct gateway *g = LOOP_OF(gl->gw, struct gateway, gw);
    config_unref(gl->config);
    gl->config = config_ref(gl->gw->config);
    use_config(gl);
    http_server_set_limits(gl->http, &gl->config->limits);
    if (gl->tls) {
        http_server_set_tls(gl->http, gl->next_tls);
        tls_server_close(gl->tls); /* open connections hold their own references */
        gl->tls = gl->next_tls;
        gl->next_tls = NULL;
    }
    pthread_mutex_lock(&g->lock);
    g->n_reloading--;
    pthread_cond_broadcast(&g->changed);
    pthread_mutex_unlock(&g->lock);
}

static int open_tls(struct tls_server **out, const struct config *c, struct err *e)
{
    struct tls_opts o = {.cert = c->tls_cert, .key = c->tls_key, .ca = c->tls_client_ca};
    return tls_server_open(out, &o, e);
}

struct listed {
    const struct config *config;
    struct model_profiles *profiles;
    char gone[CONFIG_MAX_MODELS][128];
    size_t n_gone;
};

static void find_gone(void *ctx, const struct registry_model *m)
{
    struct listed *l = ctx;
    if (m->versioned) /* the cluster's */
        return;
    for (uint32_t i = 0; i < l->config->n_models; i++)
        if (strcmp(l->config->models[i].name, m->name) == 0 &&
            strcmp(l->config->models[i].path, m->slot->path) == 0)
            return;
    if (averages_has(l->config, m->name, m->slot->path))
        return;
    const struct model_profile *p = l->profiles ? model_profiles_get(l->profiles, m->name) : NULL;
    model_profiles_unref(l->profiles, p);
    if (p) /* the store's */
        return;
    if (l->n_gone < CONFIG_MAX_MODELS)
        snprintf(l->gone[l->n_gone++], sizeof(l->gone[0]), "%s", m->name);
}

static void update_models(struct gateway *g, const struct config *config)
{
    struct listed *l = mem_zalloc(sizeof(*l));
    struct err e = {0};
    if (!l)
        return;
    l->config = config;
    l->profiles = g->gw.profiles;
    registry_each_version(g->gw.registry, find_gone, l);
    for (size_t i = 0; i < l->n_gone; i++)
        if (registry_remove(g->gw.registry, l->gone[i], &e) < 0)
            log_warn("gateway", "%s", e.msg);
    mem_free(l);
    for (uint32_t i = 0; i < config->n_models; i++)
        if (registry_add(g->gw.registry, &config->models[i], &e) < 0 && e.code != SHOAL_EINVAL)
            log_warn("gateway", "%s", e.msg); /* EINVAL: it already exists */
    if (averages_add(g->gw.registry, config, &e) < 0)
        log_warn("gateway", "%s", e.msg);
}

/* A model moves into or out of the server only when the server starts. */
static int check_isolation(const struct gw *gw, const struct config *next, struct err *e)
{
    const struct config *now = gw->config;
    if (config_any_apart(next) && !gw->workers)
        return err_set(e, SHOAL_EINVAL,
                       "the first model with 'isolation: process' needs a restart of the server");
    for (uint32_t i = 0; i < next->n_models; i++)
        for (uint32_t k = 0; k < now->n_models; k++)
            if (strcmp(next->models[i].path, now->models[k].path) == 0 &&
                next->models[i].apart != now->models[k].apart)
                return err_set(e, SHOAL_EINVAL,
                               "the isolation of the model '%s' changed: restart the server",
                               next->models[i].name);
    return 0;
}

int gateway_reload(struct gateway *g, struct config *config, struct err *e)
{
    struct gw *gw = &g->gw;
    const struct admission_opts ao = config_admission(config);
    int rc = check_isolation(gw, config, e);
    for (uint32_t i = 0; i < gw->n_loops && rc == 0; i++)
        if (gw->loops[i].tls)
            rc = open_tls(&gw->loops[i].next_tls, config, e);
    if (rc == 0)
        rc = admission_reload(gw->admission, &ao, e);
    if (rc < 0) {
        for (uint32_t i = 0; i < gw->n_loops; i++) {
            tls_server_close(gw->loops[i].next_tls);
            gw->loops[i].next_tls = NULL;
        }
        return rc;
    }
    const struct peers_limits pl = http_peers_limits(&config->limits);
    peers_set_limits(gw->peers, &pl);
    struct config *old = gw->config;
    gw->config = config_ref(config);
    g->n_reloading = gw->n_loops;
    for (uint32_t i = 0; i < gw->n_loops; i++)
        loop_post(gw->loops[i].loop, &gw->loops[i].reload);
    pthread_mutex_lock(&g->lock);
    while (g->n_reloading > 0)
        pthread_cond_wait(&g->changed, &g->lock);
    pthread_mutex_unlock(&g->lock);
    config_unref(old);
    update_models(g, config);
    ollama_manage_refresh(gw, config);
    return 0;
}

const char *gateway_names_folder(struct gateway *g)
{
    struct err e = {0};
    struct model_store *s = g->gw.profiles ? model_profiles_store(g->gw.profiles) : NULL;
    if (!s || !g->gw.config->store_offer)
        return NULL;
    if (model_store_make(s, &e) < 0) {
        log_warn("gateway", "models that are pulled meanwhile are not offered: %s", e.msg);
        return NULL;
    }
    snprintf(g->names, sizeof(g->names), "%.*s/names", PATH_MAX - 8, model_store_dir(s));
    return g->names;
}

void gateway_refresh(struct gateway *g)
{
    ollama_manage_refresh(&g->gw, g->gw.config);
}

/* ---- start and end ---- */

static int open_loop(struct gw_loop *gl, struct gw *gw, struct err *e)
{
    gl->gw = gw;
    gl->config = config_ref(gw->config);
    gl->leave.fn = on_leave;
    gl->drain.fn = on_drain;
    gl->cut.fn = on_cut;
    gl->reload.fn = on_reload;
    gl->drain_timer.fn = check_drained;
    gl->health.fn = health_on_change;
    struct http_limits node_limits = gw->config->limits;
    node_limits.max_resets = 0; /* gateways cancel for many clients */
    int rc = loop_create(&gl->loop, e);
    if (rc < 0)
        return rc;
    flow_owner_init(&gl->flow, &gw->flow, loop_executor(gl->loop));
    gl->flow.once = gw->once ? once_dispatch(gw->once) : NULL;
    pipeline_site_init(&gl->flows, NULL, NULL);
    use_config(gl);
    if (getrandom(&gl->flow.next_seed, sizeof(gl->flow.next_seed), 0) < 0)
        gl->flow.next_seed = clock_ns();
    rc = recall_create(&gl->recall, e);
    if (rc == 0)
        rc = http_server_create(&gl->http, gl->loop, &gw->config->limits, door_handle, gl, e);
    if (rc == 0)
        http_server_share_peers(gl->http, gw->peers);
    if (rc == 0)
        http_server_set_early(gl->http, door_early);
    if (rc == 0)
        http_server_set_admit(gl->http, door_admit);
    if (rc == 0)
        http_server_set_refuse(gl->http, door_refuse);
    if (rc == 0 && gw->config->tls_cert)
        rc = open_tls(&gl->tls, gw->config, e);
    if (rc == 0 && gw->config->cluster.listen.n > 0)
        rc = http_server_create(&gl->node_http, gl->loop, &node_limits, node_door_handle, gl, e);
    return rc;
}

/* ---- the shoal ---- */

static int open_cluster_tls(struct gw *gw, struct err *e)
{
    const struct config_cluster *k = &gw->config->cluster;
    struct cert_files f;
    int rc = k->certs ? cert_files_in(&f, k->certs, e) : 0;
    if (rc == 0 && k->certs) {
        snprintf(gw->cert_file, sizeof(gw->cert_file), "%s", f.cert);
        gw->health.cert = gw->cert_file;
    }
    const struct tls_opts o = {
        .cert = f.cert, .key = f.key, .ca = f.ca, .crl = f.crl, .reload = true};
    if (rc == 0 && k->certs && k->listen.n > 0)
        rc = tls_server_open(&gw->node_tls, &o, e);
    if (rc == 0 && k->certs)
        rc = tls_client_open(&gw->link_tls, &o, e);
    return rc;
}

static int open_members(struct gw_loop *gl, struct err *e)
{
    const struct config_cluster *k = &gl->gw->config->cluster;
    const struct members_opts o = {.nodes = (const char *const *)k->nodes.v,
                                   .n_nodes = k->nodes.n,
                                   .tls = gl->gw->link_tls,
                                   .registry = gl->gw->registry,
                                   .deployed = gl->gw->deployed,
                                   .counts = &gl->gw->relayed,
                                   .ask_model =
                                       gl->gw->home.table ? gl->gw->home.table->reader : NULL,
                                   .wait_ms = k->wait_ms,
                                   .total_ms = k->patience_ms,
                                   .heartbeat_ms = k->heartbeat_ms,
                                   .silent_ms = k->silent_ms,
                                   .hedge_ms = k->hedge_ms,
                                   .hedge_models = (const char *const *)k->hedge_models.v,
                                   .n_hedge_models = k->hedge_models.n,
                                   .prefixes = gl->gw->prefixes,
                                   .sent = k->affinity ? &gl->gw->sent_prefixes : NULL,
                                   .split = (enum split_mode)k->split};
    int rc = 0;
    if (k->listen.n > 0 && k->affinity) { /* a node: gateways say who has read a prompt */
        rc = page_links_create(&gl->pages, gl->loop, gl->gw->link_tls, k->link, &gl->gw->paged, e);
        gl->flow.pages = rc == 0 ? page_links_source(gl->pages) : NULL;
    }
    if (rc < 0 || (k->nodes.n == 0 && (k->nats.n == 0 || k->no_relay)))
        return rc;
    rc = members_create(&gl->members, gl->loop, &o, e);
    if (rc == 0) {
        gl->flow.dispatch = members_dispatch(gl->members);
        routing_links_init(&gl->replicas, gl->members);
        gl->flow.replicas = &gl->replicas.source;
    }
    return rc;
}

/* The first loop finds the port; the others share it.  A unix socket is accepted from by all. */
static int listen_on(struct gateway *g, const char *wanted, bool for_nodes, struct err *e)
{
    struct gw *gw = &g->gw;
    size_t a = g->n_addresses;
    char address[256];
    bool is_unix = listen_is_unix(wanted);
    int first = -1;
    snprintf(address, sizeof(address), "%s", wanted);
    if (a == MAX_ADDRESSES)
        return err_set(e, SHOAL_ELIMIT, "more than %u addresses to listen on", MAX_ADDRESSES);
    for (uint32_t i = 0; i < gw->n_loops; i++) {
        struct gw_loop *gl = &gw->loops[i];
        struct http_server *http = for_nodes ? gl->node_http : gl->http;
        struct tls_server *tls = is_unix ? NULL : for_nodes ? gw->node_tls : gl->tls;
        int fd = -1, rc = 0;
        if (i > 0 && is_unix) {
            fd = dup(first);
            if (fd < 0)
                rc = err_set(e, SHOAL_EIO, "cannot listen on %s", address);
        } else {
            rc = listen_open(&fd, address,
                             gw->n_loops == 1 ? LISTEN_ALONE
                             : i == 0         ? LISTEN_FIRST
                                              : LISTEN_MORE,
                             e);
        }
        if (rc < 0)
            return rc;
        if (i == 0) {
            first = fd;
            listen_name(fd, tls != NULL, g->addresses[a], sizeof(g->addresses[a]));
            if (is_unix)
                snprintf(g->unix_paths[a], sizeof(g->unix_paths[a]), "%s", address + 5);
            else
                listen_address(fd, address, sizeof(address));
            if (for_nodes) /* as members write it: without https:// */
                snprintf(g->addresses[a], sizeof(g->addresses[a]), "%s", address);
            g->n_addresses = a + 1;
        }
        rc = http_server_listen(http, fd, tls, e);
        if (rc < 0)
            return rc;
    }
    return 0;
}

static int listen_all(struct gateway *g, struct err *e)
{
    const struct config *c = g->gw.config;
    int rc = 0;
    for (uint32_t i = 0; i < c->listen.n && rc == 0; i++)
        rc = listen_on(g, c->listen.v[i], false, e);
    g->n_public = g->n_addresses;
    for (uint32_t i = 0; i < c->cluster.listen.n && rc == 0; i++)
        rc = listen_on(g, c->cluster.listen.v[i], true, e);
    if (rc == 0 && c->wake)
        rc = wake_open_named(&g->gw.wake, c->wake, e);
    if (rc == 0 && c->wyoming)
        rc = wyoming_door_open(&g->gw.wyoming, &g->gw.loops[0], c->wyoming, e);
    return rc;
}

/* The address for other members: as configured, or the listen address. A wildcard address becomes
 * the host name. */
static void set_advertise(struct gateway *g)
{
    const char *wanted = g->gw.config->cluster.advertise;
    const char *bound = gateway_node_address(g, 0);
    char host[65] = "localhost";
    const char *port = bound ? strrchr(bound, ':') : NULL;
    bool any = bound && (strncmp(bound, "0.0.0.0:", 8) == 0 || strncmp(bound, "[::]:", 5) == 0);
    if (any)
        gethostname(host, sizeof(host) - 1);
    if (wanted || !any)
        snprintf(g->gw.advertise, sizeof(g->gw.advertise), "%s",
                 wanted  ? wanted
                 : bound ? bound
                         : "");
    else
        snprintf(g->gw.advertise, sizeof(g->gw.advertise), "%s%s", host, port);
}

static int check_listen(const char *address, struct err *e)
{
    struct sockaddr_un name;
    int fd = -1;
    if (listen_is_unix(address))
        return listen_unix(&name, address, e);
    int rc = listen_open(&fd, address, LISTEN_ALONE, e);
    if (rc == 0)
        close(fd);
    return rc == SHOAL_EBUSY ? 0 : rc;
}

/* Whether it could be loaded; an adapter, beside its base. */
static int check_model(const struct config *c, const struct registry_spec *m, struct err *e)
{
    if (!m->base)
        return registry_check_path(m->path, e);
    for (uint32_t i = 0; i < c->n_models; i++)
        if (strcmp(c->models[i].name, m->base) == 0)
            return registry_check_adapter(m->path, c->models[i].path, e);
    return 0; /* names are checked elsewhere */
}

int gateway_check(const struct config *c, struct err *e)
{
    const struct config_where at = {c->file ? c->file : "configuration", &c->set, e};
    struct tls_server *tls = NULL;
    struct err why = {0};
    int rc = 0;
    for (uint32_t i = 0; rc == 0 && i < c->listen.n; i++)
        if (check_listen(c->listen.v[i], &why) < 0)
            rc = config_where_fail(&at, "listen", c->listen.v[i], "%s", why.msg);
    if (rc == 0)
        rc = config_paths_check(&at);
    if (rc == 0 && c->tls_cert)
        rc = open_tls(&tls, c, e);
    tls_server_close(tls);
    for (uint32_t i = 0; rc == 0 && i < c->n_models; i++) {
        if (check_model(c, &c->models[i], &why) < 0)
            rc = config_where_fail(
                &at, c->models[i].base ? "models[].adapters[].path" : "models[].path",
                c->models[i].path, "the model '%.60s': %s", c->models[i].name, why.msg);
    }
    return rc < 0 ? rc : gw_names_check(c, e);
}

static uint32_t default_loops(void)
{
    const uint32_t n = crew_cores();
    return n >= 16 ? 4 : n >= 8 ? 2 : 1; /* the cores are for the models */
}

static int start_threads(struct gateway *g, struct err *e)
{
    for (uint32_t i = 0; i < g->gw.n_loops; i++) {
        struct gw_loop *gl = &g->gw.loops[i];
        pthread_mutex_lock(&g->lock);
        g->n_running++;
        pthread_mutex_unlock(&g->lock);
        int rc = thread_create_numbered(&gl->thread, "loop", i, loop_main, gl, e);
        if (rc < 0) {
            g->n_running--;
            return rc;
        }
        gl->has_thread = true;
    }
    return 0;
}

static int open_loops(struct gateway *g, struct err *e)
{
    struct gw *gw = &g->gw;
    uint32_t n = gw->config->threads ? gw->config->threads : default_loops();
    n = n < GW_MAX_LOOPS ? n : GW_MAX_LOOPS;
    int rc = open_cluster_tls(gw, e);
    for (uint32_t i = 0; i < n && rc == 0; i++) {
        gw->n_loops++;
        rc = open_loop(&gw->loops[i], gw, e);
    }
    return rc < 0 ? rc : listen_all(g, e);
}

static int open_cluster(struct gateway *g, struct err *e)
{
    struct gw *gw = &g->gw;
    int rc = node_join_prepare(gw, e);
    for (uint32_t i = 0; i < gw->n_loops && rc == 0; i++)
        rc = open_members(&gw->loops[i], e);
    set_advertise(g);
    gw->health.folders[0] = registry_memo_dir(gw->registry);
    gw->health.folders[1] =
        gw->config->cluster.store ? gw->config->cluster.store : gw->config->store_dir;
    if (rc == 0)
        rc = node_store_open(gw, e);
    if (rc == 0)
        rc = gw->config->cluster.listen.n > 0 ? measured_open(gw, 0, e) : 0;
    return rc < 0 ? rc : node_join_open(gw, e);
}

static int start_all(struct gateway *g, struct err *e)
{
    struct gw *gw = &g->gw;
    int rc = gw->plant ? plant_start(gw->plant, e) : 0;
    if (rc == 0)
        rc = deferred_door_create(gw, e);
    if (rc == 0)
        rc = folder_watch_create(gw, e);
    if (rc == 0)
        rc = webhooks_start(gw->webhooks, e);
    if (rc == 0)
        rc = explainer_start(gw->explainer, e);
    if (rc == 0)
        rc = demo_create(&gw->demo, (enum demo_mode)gw->config->demo, gw->plant,
                         mqtt_site_client(gw->mqtt), e);
    if (rc == 0)
        rc = modbus_site_start(gw->modbus, e);
    if (rc == 0)
        rc = start_threads(g, e);
    if (rc == 0)
        rc = mqtt_site_start(gw->mqtt, e);
    return rc < 0 ? rc : later_site_start(gw->later, e);
}

int gateway_start(struct gateway **out, struct config *config, struct err *e)
{
    struct gateway *g = mem_zalloc(sizeof(*g));
    struct timespec ts;
    *out = NULL;
    if (!g)
        return err_set(e, SHOAL_ENOMEM, "gateway");
    struct gw *gw = &g->gw;
    pthread_mutex_init(&g->lock, NULL);
    cond_init(&g->changed);
    gw->config = config_ref(config);
    node_health_init(&gw->health);
    routes_set(gw);
    gw->started_ns = clock_ns();
    clock_gettime(CLOCK_REALTIME, &ts);
    gw->started_s = (uint64_t)ts.tv_sec;
    if (getrandom(&gw->id_salt, sizeof(gw->id_salt), 0) < 0)
        gw->id_salt = gw->started_ns;
    int rc = gw_parts_limits(gw, e);
    if (rc == 0)
        rc = open_loops(g, e);
    if (rc == 0)
        rc = node_shard_open(gw, e);
    if (rc == 0)
        rc = gw_parts_models(gw, e);
    if (rc == 0)
        rc = gw_parts_state(gw, e);
    if (rc == 0)
        rc = open_cluster(g, e);
    if (rc == 0)
        rc = gw_parts_things(gw, e);
    if (rc == 0)
        rc = start_all(g, e);
    if (rc < 0) {
        gateway_destroy(g);
        return rc;
    }
    *out = g;
    return 0;
}

const char *gateway_address(const struct gateway *g, size_t i)
{
    return i < g->n_public ? g->addresses[i] : NULL;
}

const char *gateway_wyoming_address(const struct gateway *g)
{
    return g->gw.wyoming ? wyoming_door_address(g->gw.wyoming) : NULL;
}

const char *gateway_node_address(const struct gateway *g, size_t i)
{
    return g->n_public + i < g->n_addresses ? g->addresses[g->n_public + i] : NULL;
}

/* After its thread has ended, the loop belongs to us: closes connections (which cancels their
 * work), and runs what the engines still post. */
static void end_calls(struct gw_loop *gl)
{
    if (gl == &gl->gw->loops[0]) {
        wyoming_door_close(gl->gw->wyoming);
        gl->gw->wyoming = NULL;
    }
    http_server_destroy(gl->http);
    gl->http = NULL;
    http_server_destroy(gl->node_http);
    gl->node_http = NULL;
    mqtt_door_end(gl->gw->mqtt_door, gl);
    mqtt_voice_end(gl->gw->mqtt_voice, gl);
    deferred_door_end(gl);
    folder_watch_end(gl);
    once_leave(gl->gw->once, &gl->flow);
    gl->flow.dispatch = NULL;
    members_destroy(gl->members); /* requests at other nodes end */
    gl->members = NULL;
    gl->flow.apart = NULL;
    gl->flow.pages = NULL;
    page_links_stop(gl->pages);
    worker_links_destroy(gl->workers);
    gl->workers = NULL;
    for (int i = 0; i < 1000 && gl->flow.n_jobs > 0; i++) {
        struct timespec ms = {0, 5000000};
        loop_flush(gl->loop);
        if (gl->flow.n_jobs > 0)
            nanosleep(&ms, NULL);
    }
    page_links_destroy(gl->pages); /* its fetches have ended with their requests */
    gl->pages = NULL;
}

void gateway_destroy(struct gateway *g)
{
    if (!g)
        return;
    struct gw *gw = &g->gw;
    atomic_store(&gw->draining, true); /* transfers end */
    for (uint32_t i = 0; i < gw->n_loops; i++)
        if (gw->loops[i].has_thread) {
            loop_stop(gw->loops[i].loop);
            pthread_join(gw->loops[i].thread, NULL);
        }
    demo_destroy(gw->demo);
    explainer_stop(gw->explainer);
    plant_stop(gw->plant);
    later_site_stop(gw->later);
    deeds_stop(gw->deeds);        /* asks that wait for one end */
    later_site_settle(gw->later); /* publishes the resulting results */
    modbus_site_stop(gw->modbus);
    mqtt_site_stop(gw->mqtt); /* until then readings arrive, and may raise alarms */
    webhooks_destroy(gw->webhooks);
    workers_release(gw->workers);
    for (uint32_t i = 0; i < gw->n_loops; i++)
        if (gw->loops[i].http || gw->loops[i].node_http)
            end_calls(&gw->loops[i]);
    node_join_close(gw);
    node_shard_stop(gw);
    node_store_stop(gw);
    node_measure_close(gw->measure);
    node_health_fini(&gw->health);
    pool_destroy(gw->pool);
    registry_destroy(gw->registry);
    trust_policy_destroy(gw->trust);
    node_shard_close(gw);
    workers_destroy(gw->workers);
    deed_calls_destroy(gw->calls);
    mqtt_site_close(gw->mqtt);
    mqtt_door_destroy(gw->mqtt_door);
    mqtt_voice_destroy(gw->mqtt_voice);
    discovery_destroy(gw->discovery);
    deeds_destroy(gw->deeds);
    modbus_site_destroy(gw->modbus);
    config_unref(gw->modbus_config);
    config_unref(gw->deeds_config);
    explainer_destroy(gw->explainer);
    plant_destroy(gw->plant);
    model_watch_destroy(gw->model_watch);
    later_site_close(gw->later);
    home_things_destroy(gw->home.things); /* flows are attached to models */
    home_table_close(gw->home.table);
    for (uint32_t i = 0; i < gw->n_loops; i++) {
        if (gw->loops[i].loop)
            loop_flush(gw->loops[i].loop);
        tls_server_close(gw->loops[i].tls);
        loop_destroy(gw->loops[i].loop);
        recall_destroy(gw->loops[i].recall);
        flow_owner_fini(&gw->loops[i].flow);
        buf_fini(&gw->loops[i].spare);
        config_unref(gw->loops[i].config);
    }
    node_store_close(gw);
    for (size_t i = 0; i < g->n_addresses; i++)
        if (g->unix_paths[i][0])
            unlink(g->unix_paths[i]);
    tls_server_close(gw->node_tls);
    tls_client_close(gw->link_tls);
    prompt_cache_destroy(gw->cache);
    once_destroy(gw->once);
    once_bucket_destroy(gw->shared_once);
    trace_ring_destroy(gw->traces);
    energy_ledger_destroy(gw->energy);
    otlp_export_destroy(gw->exporter);
    response_store_destroy(gw->response_store);
    slot_store_destroy(gw->slots);
    folder_watch_destroy(gw);
    collections_close(gw->collections);
    model_profiles_close(gw->profiles);
    sessions_close(gw->sessions);
    deferred_door_destroy(gw);
    deferred_close(gw->deferred);
    similar_destroy(gw->similar);
    pseudonyms_destroy(gw->pseudonyms);
    audit_log_close(gw->audit);
    prefix_table_destroy(gw->prefixes);
    wake_close(gw->wake);
    peers_destroy(gw->peers);
    admission_destroy(gw->admission);
    quota_destroy(gw->quota);
    quota_bucket_destroy(gw->shared_quota);
    config_unref(gw->config);
    pthread_mutex_destroy(&g->lock);
    pthread_cond_destroy(&g->changed);
    mem_free(g);
}
