/* gw_parts.c - see gw_parts.h. */
#include "gateway/server/gw_parts.h"

#include <limits.h>
#include <string.h>

#include "apps/home/ask/ask_pack.h"
#include "apps/home/site/home_open.h"
#include "apps/home/site/home_things.h"
#include "base/sys_file.h"
#include "base/clock.h"
#include "base/file/file_read.h"
#include "base/file/state_file.h"
#include "base/log.h"
#include "cluster/affinity/prefix_table.h"
#include "cluster/once/once.h"
#include "cluster/once/once_bucket.h"
#include "cluster/quota_bucket.h"
#include "cluster/worker/worker_links.h"
#include "cluster/worker/workers.h"
#include "flow/pool.h"
#include "flow/privacy/pseudonyms.h"
#include "gateway/api/ollama/ollama_manage.h"
#include "gateway/api/llama/slot_store.h"
#include "gateway/api/openai/response_store.h"
#include "gateway/server/averages.h"
#include "gateway/grpc/health.h"
#include "gateway/mqtt/mqtt_door.h"
#include "gateway/mqtt/mqtt_voice.h"
#include "gateway/node/node_shard.h"
#include "host/energy_ledger.h"
#include "host/prompt_cache.h"
#include "host/quota.h"
#include "host/sha256.h"
#include "knowledge/sessions.h"
#include "knowledge/similar.h"
#include "net/peers.h"
#include "site/deeds/deed_call.h"
#include "site/deeds/deeds.h"
#include "site/deeds/discovery.h"
#include "site/deferred/deferred.h"
#include "site/modbus/modbus_site.h"
#include "site/mqtt/mqtt_site.h"
#include "site/things/explainer.h"
#include "site/things/later_site.h"
#include "site/things/live.h"
#include "site/things/model_watch.h"
#include "site/things/plant.h"
#include "site/things/webhooks.h"
#include "site/traces/otlp_export.h"
#include "store/collections.h"
#include "trace/trace_ring.h"
#include "supply/audit_log.h"
#include "supply/trust_policy.h"

#define VOTES_BYTES ((size_t)1 << 20)
#define TRACE_BYTES ((size_t)16 << 10) /* of memory for each kept trace, at most on average */
#define ALARMS_FILE "open-alarms.json"
#define POOL_THREADS 2u
#define POOL_WAITING 1024u

/* ---- limits and caches ---- */

static int open_admission(struct gw *gw, const struct config *config, struct err *e)
{
    struct admission_opts ao = config_admission(config);
    struct quota_opts qo = {.file = config->quota_file, .cache_dir = config->cache_dir};
    int rc = config->cluster.nats.n > 0 ? quota_bucket_create(&gw->shared_quota, e) : 0;
    if (gw->shared_quota)
        qo.source = quota_bucket_source(gw->shared_quota);
    if (rc == 0)
        rc = quota_create(&gw->quota, &qo, e);
    ao.quota = gw->quota;
    return rc < 0 ? rc : admission_create(&gw->admission, &ao, e);
}

static int open_once(struct gw *gw, const struct config *config, struct err *e)
{
    struct once_opts o = {.max_bytes = config->once_bytes, .ttl_ms = config->once_ttl_ms};
    const struct once_bucket_opts bo = {.name = config->cluster.name ? config->cluster.name : "",
                                        .ttl_ms = config->once_ttl_ms};
    bool shared = config->cluster.nats.n > 0 && !config->cluster.no_relay && config->once_shared;
    int rc = shared ? once_bucket_create(&gw->shared_once, &bo, e) : 0;
    if (gw->shared_once)
        o.ledger = once_bucket_ledger(gw->shared_once);
    return rc < 0 ? rc : once_create(&gw->once, &o, e);
}

static int open_traces(struct gw *gw, const struct config *c, struct err *e)
{
    const struct config_tracing *t = &c->tracing;
    struct otlp_place place;
    int rc = otlp_place_find(&place, t, c->cluster.name, getenv, e);
    const double ratio = place.ratio;
    if (rc == 0 && place.server)
        rc = otlp_export_create(&gw->exporter, &place, t->ca, shoal_version(), e);
    else if (rc == 0)
        otlp_place_fini(&place);
    char votes[PATH_MAX];
    const bool has_state = state_file_path(votes, sizeof(votes), "feedback.jsonl");
    const struct trace_ring_opts o = {.max_traces = t->keep,
                                      .votes_file = has_state ? votes : NULL,
                                      .votes_bytes = VOTES_BYTES,
                                      .max_bytes = (size_t)t->keep * TRACE_BYTES,
                                      .ratio = ratio,
                                      .slow_ns = (uint64_t)t->slow_ms * 1000000u,
                                      .after = otlp_export_keeper(gw->exporter)};
    if (rc == 0 && (t->keep > 0 || gw->exporter))
        rc = trace_ring_create(&gw->traces, &o, e);
    return rc;
}

int gw_parts_limits(struct gw *gw, struct err *e)
{
    const struct config *c = gw->config;
    const struct peers_limits pl = http_peers_limits(&c->limits);
    const uint64_t cache_ttl_ns = (uint64_t)c->cache_ttl_ms * 1000000u;
    const struct similar_opts similar = {.model = c->similar_model ? c->similar_model : "embed",
                                         .max_bytes = c->cache_bytes,
                                         .ttl_ns = cache_ttl_ns};
    int rc = open_admission(gw, c, e);
    if (rc == 0)
        rc = prefix_table_create(&gw->prefixes, e);
    if (rc == 0)
        rc = peers_create(&gw->peers, &pl, e);
    if (rc == 0)
        rc = pool_create(&gw->pool, POOL_THREADS, POOL_WAITING, e);
    if (rc == 0 && c->cache_bytes > 0)
        rc = prompt_cache_create(&gw->cache, c->cache_bytes, cache_ttl_ns, e);
    if (rc == 0 && c->cache_bytes > 0)
        rc = similar_create(&gw->similar, &similar, e);
    if (rc == 0 && c->once_bytes > 0)
        rc = open_once(gw, c, e);
    if (rc == 0)
        rc = slot_store_create(&gw->slots, e);
    if (rc == 0)
        rc = open_traces(gw, c, e);
    if (rc == 0 && c->responses_bytes > 0)
        rc = response_store_create(&gw->response_store, c->responses_bytes, c->responses_ttl_ms, e);
    if (rc == 0 && gw->response_store && c->responses_file)
        rc = response_store_use_file(gw->response_store, c->responses_file, clock_ns(), e);
    return rc;
}

/* ---- models ---- */

/* Before the first model is added: a worker learns about all loops when it starts. */
static int open_workers(struct gw_loop *gl, struct err *e)
{
    const struct config_cluster *k = &gl->gw->config->cluster;
    if (!gl->gw->workers)
        return 0;
    /* In a shoal another node takes over at once; alone, a request waits for the next worker. */
    bool alone = k->nodes.n == 0 && k->nats.n == 0 && k->listen.n == 0;
    int rc = worker_links_create(&gl->workers, gl->loop, gl->gw->workers, gl->gw->registry,
                                 alone ? k->wait_ms : 0, &gl->gw->worked, e);
    if (rc == 0)
        gl->flow.apart = worker_links_dispatch(gl->workers);
    return rc;
}

static void on_identity(void *ctx, const uint8_t *from, const uint8_t *to)
{
    struct gw *gw = ctx;
    if (gw->cache && to)
        prompt_cache_rename(gw->cache, from, to);
    else if (gw->cache)
        prompt_cache_purge(gw->cache, from);
}

static int on_trusted(void *ctx, const char *const *names, size_t n, const char *path,
                      bool included, const _Atomic bool *stop, char signer[REGISTRY_SIGNER_BYTES],
                      struct err *e)
{
    const struct gw *gw = ctx;
    const struct trust_policy_model m = {
        .names = names, .n_names = n, .path = path, .included = included};
    struct signed_by by;
    int rc = trust_policy_check(gw->trust, &m, stop, &by, NULL, e);
    if (rc == 0)
        snprintf(signer, REGISTRY_SIGNER_BYTES, "%s", by.name);
    return rc;
}

static int open_registry(struct gw *gw, struct registry_opts *o, struct err *e)
{
    const struct workers_opts wo = {.program = NULL};
    int rc = config_trust_open(&gw->trust, &gw->config->trust, e);
    if (rc < 0)
        return rc;
    if (gw->trust)
        o->trusted = on_trusted;
    rc = config_any_apart(gw->config) ? workers_create(&gw->workers, &wo, e) : 0;
    if (gw->workers)
        o->apart = workers_apart(gw->workers);
    if (rc == 0)
        rc = registry_create(&gw->registry, o, e);
    if (rc == 0 && gw->workers)
        workers_set_registry(gw->workers, gw->registry);
    return rc;
}

static void on_changed(void *ctx)
{
    health_changed(ctx);
}

int gw_parts_models(struct gw *gw, struct err *e)
{
    const struct config *c = gw->config;
    struct registry_opts o = {.memory_bytes = c->memory_bytes,
                              .idle_unload_ms = c->idle_unload_ms,
                              .cache_dir = c->cache_dir,
                              .identity = on_identity,
                              .changed = on_changed,
                              .chain = node_shard_chain,
                              .ctx = gw};
    int rc = open_registry(gw, &o, e);
    for (uint32_t i = 0; i < gw->n_loops && rc == 0; i++)
        rc = open_workers(&gw->loops[i], e); /* before the first worker reports that it is ready */
    for (uint32_t i = 0; i < c->n_models && rc == 0; i++)
        rc = registry_add(gw->registry, &c->models[i], e);
    return rc < 0 ? rc : averages_add(gw->registry, c, e);
}

/* ---- what requests use beside models ---- */

/* The table of the home flow.  Only a table that the configuration names must be there: a server
 * without one does everything but /v1/process. */
static int open_table(struct gw *gw, const struct config *config, const char *dir, struct err *e)
{
    struct err why = {0};
    if (config->table)
        return ask_pack_table(&gw->home.table, NULL, config->table, config->home, e);
    int rc = ask_pack_table(&gw->home.table, dir, NULL, config->home, &why);
    if (rc < 0 && rc != SHOAL_ENOTFOUND && config->home) { /* the home file was asked for */
        *e = why;
        return rc;
    }
    if (rc < 0 && rc != SHOAL_ENOTFOUND)
        log_warn("gateway", "/v1/process is not available: %s", why.msg);
    gw->home.table_failed = rc < 0 && rc != SHOAL_ENOTFOUND;
    return 0;
}

/* The home of /v1/process: the configuration's, or the demo.  A table of one's own has no demo. */
static int open_home(struct gw *gw, const struct config *config, const char *dir, struct err *e)
{
    const struct home_open_opts o = {
        .path = config->home, .models = dir, .state_path = config->home_state};
    struct err why = {0};
    if (!gw->home.table || (config->table && !config->home))
        return 0;
    int rc = home_open(&gw->home.things, gw->home.table, &o, &why);
    if (rc == SHOAL_ENOTFOUND && !config->home)
        return 0; /* a pack without one */
    if (rc < 0)
        *e = why;
    return rc;
}

static int open_flow_home(struct gw *gw, const struct config *config, struct err *e)
{
    const char *dir = NULL;
    ask_app_init(&gw->home);
    for (uint32_t i = 0; !dir && i < config->n_models; i++)
        dir = config->models[i].pack;
    int rc = open_table(gw, config, dir, e);
    return rc < 0 ? rc : open_home(gw, config, dir, e);
}

static int open_collections(struct gw *gw, struct err *e)
{
    char usual[PATH_MAX];
    const char *dir = gw->config->collections_dir;
    if (!dir && !collections_default_dir(usual, sizeof(usual)))
        return 0;
    return collections_open(&gw->collections, dir ? dir : usual,
                            gw->config->collections_exact_passages, e);
}

static int open_documents(struct gw *gw, struct err *e)
{
    const struct yaml_in_strs *names = &gw->config->documents;
    struct err why = {0};
    int rc = documents_app_init(&gw->documents, &gw->home.app, gw->collections,
                                (const char *const *)names->v, names->n, &why);
    return rc < 0 ? err_set(e, rc, "process.documents: %s", why.msg) : 0;
}

/* Without a state folder and without configuration there are none. */
static int open_sessions(struct gw *gw, struct err *e)
{
    const struct config *c = gw->config;
    const struct sessions_opts o = {.place = c->sessions_store,
                                    .key_file = c->sessions_key_file,
                                    .ttl_s = (c->sessions_ttl_ms + 999) / 1000,
                                    .history_tokens = c->sessions_tokens,
                                    .summary = c->sessions_summary};
    struct err why = {0};
    if (c->sessions_store && strcmp(c->sessions_store, "off") == 0)
        return 0;
    int rc = sessions_open(&gw->sessions, &o, &why);
    if (rc == SHOAL_EINVAL && !c->sessions_store && !c->sessions_key_file)
        return 0;
    if (rc < 0)
        *e = why;
    return rc;
}

/* With the key of the file, if there is one. */
static int open_pseudonyms(struct gw *gw, struct err *e)
{
    const char *path = gw->config->privacy_key_file;
    uint8_t key[PSEUDONYMS_KEY_BYTES];
    struct buf text;
    if (!path)
        return pseudonyms_create(&gw->pseudonyms, NULL, e);
    buf_init(&text, 1 << 16);
    int rc = file_read(path, &text, e);
    if (rc == 0 && text.len < sizeof(key))
        rc = err_set(e, SHOAL_EINVAL, "privacy.key_file %s has %zu bytes; it needs %zu or more",
                     path, text.len, sizeof(key));
    struct sha256 h;
    sha256_begin(&h);
    sha256_add(&h, buf_str(&text), text.len);
    if (!sha256_end(&h, key) && rc == 0)
        rc = err_set(e, SHOAL_ENOMEM, "out of memory");
    buf_fini(&text);
    return rc < 0 ? rc : pseudonyms_create(&gw->pseudonyms, key, e);
}

static int open_audit(struct gw *gw, struct err *e)
{
    const struct config *c = gw->config;
    const struct audit_log_opts o = {.dir = c->audit_dir,
                                     .file_bytes = c->audit_file_bytes,
                                     .keep = c->audit_keep,
                                     .serve_when_full = c->audit_full == 1,
                                     .syslog = c->audit_syslog};
    return audit_log_open(&gw->audit, &o, e);
}

int gw_parts_state(struct gw *gw, struct err *e)
{
    int rc = open_flow_home(gw, gw->config, e);
    if (rc == 0)
        rc = open_collections(gw, e);
    const bool documents = gw->config->documents.n > 0;
    if (rc == 0 && documents)
        rc = open_documents(gw, e);
    if (rc == 0)
        rc = open_sessions(gw, e);
    if (rc == 0)
        rc = open_pseudonyms(gw, e);
    if (rc == 0)
        rc = deferred_open(&gw->deferred, gw->config, e);
    if (rc == 0 && gw->config->audit_dir)
        rc = open_audit(gw, e);
    if (rc == 0 && gw->config->energy.count)
        rc = energy_ledger_create(&gw->energy, sys_file_root(), &gw->config->energy.model, e);
    gw->flow = (struct flow){.registry = gw->registry,
                             .energy = gw->energy,
                             .cache = gw->cache,
                             .pool = gw->pool,
                             .app = documents ? &gw->documents.app : &gw->home.app,
                             .session = gw->sessions ? sessions_stage(gw->sessions) : NULL,
                             .similar = gw->similar ? similar_stage(gw->similar) : NULL,
                             .audit = gw->audit,
                             .pseudonyms = gw->pseudonyms};
    return rc < 0 ? rc : ollama_manage_open(gw, gw->config, e);
}

/* ---- sensors, machines and the home ---- */

static int open_deeds(struct gw *gw, struct err *e)
{
    struct mqtt *client = mqtt_site_client(gw->mqtt);
    const char *prefix = client ? gw->config->mqtt.discovery : NULL;
    if (gw->config->deeds.n == 0 && !prefix)
        return 0;
    if (!gw->home.things)
        return err_set(e, SHOAL_EINVAL, "deeds need a home: set 'home', or use the models' own");
    gw->deeds_config = config_ref(gw->config);
    int rc =
        deeds_create(&gw->deeds, &gw->deeds_config->deeds, client, gw->modbus, gw->home.things, e);
    if (rc == 0)
        home_things_set_sink(gw->home.things, deeds_sink(gw->deeds));
    if (rc == 0 && prefix)
        rc = discovery_create(&gw->discovery, prefix, mqtt_site_node(gw->mqtt), client, gw->deeds,
                              gw->home.things, gw->home.table, e);
    return rc;
}

/* Creates what flow steps need besides models. */
static int open_flows(struct gw *gw, struct err *e)
{
    int rc = deed_calls_create(&gw->calls, mqtt_site_client(gw->mqtt), gw->config->flows.ca,
                               gw->config->flows.plugin_memory, e);
    for (uint32_t i = 0; i < gw->n_loops && rc == 0; i++) {
        gw->loops[i].flows.collections = gw->collections;
        gw->loops[i].flows.outside = deed_calls_outside(gw->calls);
    }
    return rc;
}

/* Open alarms, and beside them the queues of webhooks, are in the state folder. */
static bool find_alarms_file(char out[PATH_MAX], const struct gw *gw)
{
    char queue[PATH_MAX], name[NAME_MAX + 1];
    const char *cache = registry_memo_dir(gw->registry);
    const struct config *c = gw->config;
    if (!plant_is_needed(c))
        return false; /* nothing is stored: no folder is created */
    for (uint32_t i = 0; i < c->webhooks.n; i++)
        if (webhooks_queue_file(name, sizeof(name), ALARMS_FILE, c->webhooks.v[i].url))
            (void)state_file_find(queue, sizeof(queue), name, cache);
    return state_file_find(out, PATH_MAX, ALARMS_FILE, cache);
}

static int open_plant(struct gw *gw, struct err *e)
{
    char file[PATH_MAX];
    const char *given = gw->config->alarms_file;
    if (!given && find_alarms_file(file, gw))
        given = file;
    int rc = plant_create(&gw->plant, gw->config, given, e);
    if (rc == 0)
        rc = model_watch_create(&gw->model_watch, gw->registry, gw->plant, e);
    if (rc == 0)
        rc = webhooks_create(&gw->webhooks, &gw->config->webhooks, given, gw->plant, e);
    if (rc == 0)
        rc = explainer_create(&gw->explainer, gw->config->manuals, gw->collections, gw->plant, e);
    if (rc == 0 && gw->plant && gw->home.things) { /* "how warm is it in the hall?" */
        live_init(&gw->live, gw->plant);
        home_things_set_live(gw->home.things, &gw->live.home);
    }
    return rc;
}

static int open_modbus(struct gw *gw, struct err *e)
{
    gw->modbus_config = config_ref(gw->config); /* a change of the file needs a restart */
    return modbus_site_create(&gw->modbus, &gw->modbus_config->modbus, gw->plant, e);
}

static int open_mqtt(struct gw *gw, struct err *e)
{
    const struct mqtt_site_opts o = {.config = gw->config,
                                     .cache_dir = registry_memo_dir(gw->registry),
                                     .plant = gw->plant,
                                     .assistant = gw->home.table != NULL};
    int rc = mqtt_site_open(&gw->mqtt, &o, e);
    if (rc == 0)
        rc = mqtt_voice_create(&gw->mqtt_voice, gw, e);
    return rc < 0 ? rc : mqtt_door_create(&gw->mqtt_door, gw, e);
}

static int open_later(struct gw *gw, struct err *e)
{
    const struct later_site_opts o = {.config = gw->config,
                                      .cache_dir = registry_memo_dir(gw->registry),
                                      .table = gw->home.table,
                                      .things = gw->home.things,
                                      .client = mqtt_site_client(gw->mqtt)};
    return later_site_open(&gw->later, &o, e);
}

int gw_parts_things(struct gw *gw, struct err *e)
{
    int rc = open_plant(gw, e);
    if (rc == 0)
        rc = open_modbus(gw, e);
    if (rc == 0)
        rc = open_mqtt(gw, e);
    if (rc == 0)
        rc = open_deeds(gw, e);
    if (rc == 0)
        rc = open_later(gw, e);
    return rc < 0 ? rc : open_flows(gw, e);
}
