/* api_info.c - health, metrics, lists of models. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "cluster/join.h"
#include "cluster/members.h"
#include "cluster/once/once.h"
#include "flow/flow_run.h"
#include "gateway/api/api.h"
#include "gateway/api/own/api_feedback.h"
#include "gateway/call/call.h"
#include "gateway/gw_names.h"
#include "gateway/mqtt/mqtt_door.h"
#include "gateway/node/node_shard.h"
#include "host/energy_ledger.h"
#include "host/prometheus.h"
#include "host/quota.h"
#include "knowledge/sessions.h"
#include "knowledge/similar.h"
#include "net/peers.h"
#include "site/deeds/deed_call.h"
#include "site/deeds/deeds.h"
#include "site/deferred/deferred.h"
#include "site/modbus/modbus_site.h"
#include "site/mqtt/mqtt_site.h"
#include "site/things/plant.h"
#include "site/things/webhooks.h"
#include "site/traces/otlp_export.h"
#include "trace/trace_ring.h"
#include "wire/json_out.h"

void api_healthz(struct call *c)
{
    call_text(c, 200, "text/plain; charset=utf-8", "ok\n", 3);
}

void api_readyz(struct call *c)
{
    struct gw *gw = c->gl->gw;
    struct err e = {0};
    if (atomic_load(&gw->leaving) || atomic_load(&gw->draining))
        call_refuse(c, GW_REFUSED_DRAINING, 503, 1, "the server is stopping");
    else if (!registry_ready(gw->registry))
        call_refuse(c, GW_REFUSED_NOT_LOADED, 503, 1, "models are being loaded");
    else if (gw->config->n_models == 0 && c->gl->members && !members_ready(c->gl->members))
        call_refuse(c, GW_REFUSED_NOT_LOADED, 503, 1, "no node can be reached");
    else if (gw_names_check_now(gw, c->gl->config, &e) < 0)
        call_fail(c, 503, "server_error", NULL, "wrong_configuration", "%s", e.msg);
    else
        call_text(c, 200, "text/plain; charset=utf-8", "ready\n", 6);
}

/* ---- models ---- */

struct model_facts {
    const char *task;
    unsigned kinds;
    enum registry_state state;
    bool images; /* it reads images, not texts */
};

/* parent: of an adapter, its base's name of n_parent bytes; NULL: none. */
static void put_model(struct json_out *j, const char *name, uint64_t created_s,
                      const struct model_facts *m, const char *parent, size_t n_parent)
{
    json_out_object(j);
    json_out_member_str(j, "id", name);
    json_out_member_str(j, "object", "model");
    json_out_member_uint(j, "created", created_s);
    json_out_member_str(j, "owned_by", "shoal");
    json_out_member_str(j, "task", m->task);
    json_out_member_array(j, "kinds");
    for (unsigned k = 1; k <= SHOAL_KIND_SPEAK; k <<= 1)
        if (m->kinds & k)
            json_out_str(j, shoal_kind_name((enum shoal_kind)k));
    json_out_array_end(j);
    json_out_member_str(j, "state", registry_state_name(m->state));
    if (m->images) {
        json_out_member_array(j, "input_modalities");
        json_out_str(j, "image");
        json_out_array_end(j);
    }
    if (parent)
        json_out_member_strn(j, "parent", parent, n_parent);
    json_out_member_object(j, "status"); /* the same in llama.cpp's words */
    json_out_member_str(j, "value",
                        m->state == REGISTRY_READY     ? "loaded"
                        : m->state == REGISTRY_LOADING ? "loading"
                                                       : "unloaded");
    if (m->state == REGISTRY_FAILED)
        json_out_member_bool(j, "failed", true);
    json_out_object_end(j);
    json_out_object_end(j);
}

/* Models by name, those of this process first. */
struct listing {
    struct json_out j;
    struct gw *gw;
    const char *name;  /* the only model to list; NULL: all */
    size_t name_bytes; /* bytes of it that count */
    bool found;
};

static bool is_wanted(const struct listing *l, const char *name)
{
    return !l->name || (strncmp(name, l->name, l->name_bytes) == 0 && name[l->name_bytes] == '\0');
}

static void list_model(void *ctx, const struct registry_model *m)
{
    struct listing *l = ctx;
    if (!is_wanted(l, m->name) || m->slot->spec.n_parts > 0) /* an average: listed as a route */
        return;
    l->found = true;
    size_t n_parent;
    const char *parent = registry_base_name(m, &n_parent);
    const struct model_facts facts = {m->task, m->slot->kinds, m->slot->state, m->slot->images};
    put_model(&l->j, m->name, m->slot->created_s, &facts, parent, n_parent);
}

/* A model of another node. */
static void list_remote(void *ctx, const struct node_model *m)
{
    struct listing *l = ctx;
    enum registry_state here;
    if (!is_wanted(l, m->name) || registry_state(l->gw->registry, m->name, &here))
        return;
    l->found = true;
    const struct model_facts facts = {"", m->kinds, m->state, m->images};
    put_model(&l->j, m->name, l->gw->started_s, &facts, NULL, 0);
}

struct route_kinds {
    const struct router_route *route;
    unsigned kinds;
};

static void add_kinds(void *ctx, const struct registry_model *m)
{
    struct route_kinds *k = ctx;
    const struct ensemble *x = &k->route->ensemble;
    bool mine = k->route->n_models == 0 && x->kind == ENSEMBLE_NONE;
    for (uint32_t i = 0; i < k->route->n_models && !mine; i++)
        mine = strcmp(k->route->models[i].name, m->name) == 0;
    for (uint32_t i = 0; i < x->n_models && !mine; i++)
        mine = strcmp(x->models[i], m->name) == 0;
    if (mine)
        k->kinds |= m->slot->kinds;
}

/* To a client a route is a model with the kinds of its models. */
static void list_route(struct listing *l, const struct call *c, const struct router_route *r)
{
    struct route_kinds k = {r, 0};
    if (!is_wanted(l, r->name) || !router_may_call(r, c->client ? c->client->name : ""))
        return;
    l->found = true;
    if (r->flow)
        k.kinds = SHOAL_KIND_GENERATE;
    else
        registry_each(l->gw->registry, add_kinds, &k);
    const struct model_facts facts = {"route", k.kinds, REGISTRY_READY, false};
    put_model(&l->j, r->name, l->gw->started_s, &facts, NULL, 0);
}

static void list_routes(struct listing *l, const struct call *c)
{
    const struct router_table *t = &c->gl->config->router;
    const struct router_route *own = router_table_find(t, "auto");
    for (uint32_t i = 0; i < t->n_routes; i++) {
        list_route(l, c, &t->routes[i]);
        if (own == &t->routes[i])
            own = NULL;
    }
    if (own)
        list_route(l, c, own);
}

/* To a client a flow is a model that generates. */
static void list_flows(struct listing *l, const struct call *c)
{
    const struct config_flows *f = &c->gl->config->flows;
    const struct model_facts facts = {"flow", SHOAL_KIND_GENERATE, REGISTRY_READY, false};
    for (uint32_t i = 0; i < f->n; i++)
        if (is_wanted(l, f->v[i]->name)) {
            l->found = true;
            put_model(&l->j, f->v[i]->name, l->gw->started_s, &facts, NULL, 0);
        }
}

static void list_models(struct listing *l, struct call *c)
{
    registry_each(c->gl->gw->registry, list_model, l);
    if (c->gl->members)
        members_each_model(c->gl->members, list_remote, l);
    list_routes(l, c);
    list_flows(l, c);
}

void api_models(struct call *c)
{
    struct listing l = {.j = json_out_make(&c->out), .gw = c->gl->gw};
    json_out_object(&l.j);
    json_out_member_str(&l.j, "object", "list");
    json_out_member_array(&l.j, "data");
    list_models(&l, c);
    json_out_array_end(&l.j);
    json_out_object_end(&l.j);
    call_json(c, 200);
}

static void find_card(void *ctx, const struct registry_model *m)
{
    struct listing *w = ctx;
    size_t n = strlen(m->name);
    if (!m->card || strncmp(w->name, m->name, n) != 0 || strcmp(w->name + n, "/card") != 0)
        return;
    buf_puts(w->j.b, m->card);
    w->found = true;
}

void api_model(struct call *c)
{
    const char *name = c->req->path + strlen("/v1/models/");
    struct listing w = {.j = json_out_make(&c->out),
                        .gw = c->gl->gw,
                        .name = name,
                        .name_bytes = flow_name_bytes(c->gl->flow.flow, name)};
    registry_each(c->gl->gw->registry, find_card, &w);
    if (w.found) {
        call_text(c, 200, "text/markdown; charset=utf-8", buf_str(&c->out), c->out.len);
        return;
    }
    list_models(&w, c);
    if (w.found)
        call_json(c, 200);
    else
        call_fail(c, 404, NULL, "model", "model_not_found", "the model '%.64s' does not exist",
                  w.name);
}

/* ---- metrics ---- */

struct scrape {
    struct buf *b;
    int part;
};

enum {
    PART_COUNTERS = 0,
    PART_HISTOGRAMS = 20,
    PART_BATCH = 30,
    PART_MEMORY,
    PART_CONFIDENCE,
    PART_DRIFT,
    PART_DRIFT_ALARM,
    PART_REFUSED
};

static const struct {
    const char *name, *type, *help;
} model_rows[] = {
    {"shoal_requests_total", "counter", "requests to a model"},
    {"shoal_prompt_tokens_total", "counter", "tokens of prompts"},
    {"shoal_generated_tokens_total", "counter", "tokens generated"},
    {"shoal_cancelled_total", "counter", "requests whose client disconnected"},
    {"shoal_errors_total", "counter", "generations that failed"},
    {"shoal_in_flight", "gauge", "requests in progress"},
    {"shoal_prompt_cache_hits_total", "counter", "answers from the prompt cache"},
    {"shoal_prompt_cache_misses_total", "counter", "requests that were not in the prompt cache"},
    {"shoal_prefix_cache_hits_total", "counter", "prompts whose prefix was found in the cache"},
    {"shoal_prefix_cache_tokens_total", "counter", "tokens of these prefixes"},
    {"shoal_model_bytes", "gauge", "memory reserved by a model"},
    {"shoal_energy_joules_total", "counter",
     "energy of a model's requests (configuration: energy)"},
    {"shoal_worker_restarts_total", "counter",
     "restarts of a model's process (isolation: process)"},
    {"shoal_kv_pages", "gauge", "pages of the key-value cache"},
    {"shoal_kv_pages_free", "gauge", "pages of the key-value cache that no task uses"},
    {"shoal_kv_pages_used", "gauge", "pages of the key-value cache in use"},
};
#define ROW_ENERGY 11
#define ROW_RESTARTS 12
#define ROW_KV 13 /* rows from here on are for decoders */
#define N_MODEL_ROWS (sizeof(model_rows) / sizeof(model_rows[0]))

static const struct {
    const char *name, *help;
} model_times[] = {
    {"shoal_queue_seconds", "from submit until a task runs"},
    {"shoal_first_token_seconds", "from submit to the first token"},
    {"shoal_token_seconds", "between tokens"},
    {"shoal_generation_seconds", "from submit to the last token"},
};

static void put_row(struct buf *b, const struct registry_model *cm, int row)
{
    struct registry_model *m =
        (struct registry_model *)(uintptr_t)cm; /* counters are atomics: reading needs it */
    struct model_stats *k = &m->stats;
    struct shoal_engine_info info = {.size = sizeof(info)};
    char label[PROMETHEUS_LABEL_BYTES];
    if (row == ROW_RESTARTS && !m->slot->spec.apart)
        return;
    if (row >= ROW_KV && m->slot->engine)
        shoal_engine_info(m->slot->engine, &info);
    if (row >= ROW_KV && info.kv_pages == 0) /* not loaded, or no decoder */
        return;
    const uint64_t v[N_MODEL_ROWS] = {counter_read(&k->requests),
                                      counter_read(&k->prompt_tokens),
                                      counter_read(&k->generated_tokens),
                                      counter_read(&k->cancelled),
                                      counter_read(&k->errors),
                                      atomic_load(&k->in_flight),
                                      counter_read(&k->cache_hits),
                                      counter_read(&k->cache_misses),
                                      counter_read(&k->prefix_hits),
                                      counter_read(&k->cached_tokens),
                                      m->slot->bytes,
                                      counter_read(&k->microjoules),
                                      m->slot->n_restarts,
                                      info.kv_pages,
                                      info.kv_pages_free,
                                      info.kv_pages - info.kv_pages_free};
    if (row == ROW_ENERGY && v[row] > 0) /* counted in microjoules */
        buf_printf(b, "%s{%s} %.6f\n", model_rows[row].name, prometheus_model(label, m->name),
                   (double)v[row] / 1e6);
    else if (row != ROW_ENERGY)
        buf_printf(b, "%s{%s} %" PRIu64 "\n", model_rows[row].name,
                   prometheus_model(label, m->name), v[row]);
}

static void put_memory(struct buf *b, const struct registry_model *m, const char *label)
{
    static const char *const kinds[] = {"weights", "scratch", "kv", "constraints"};
    struct shoal_engine_info info = {.size = sizeof(info)};
    if (!m->slot->engine)
        return;
    shoal_engine_info(m->slot->engine, &info);
    const size_t bytes[] = {info.weights_bytes, info.scratch_bytes, info.kv_bytes,
                            info.constraint_bytes};
    for (size_t i = 0; i < sizeof(bytes) / sizeof(bytes[0]); i++)
        buf_printf(b, "shoal_model_memory_bytes{%s,kind=\"%s\"} %zu\n", label, kinds[i], bytes[i]);
}

static void put_refused(struct buf *b, struct registry_model *m, const char *label)
{
    static const char *const why[MODEL_STATS_N_REFUSED] = {"busy", "deadline", "invalid"};
    for (int i = 0; i < MODEL_STATS_N_REFUSED; i++)
        buf_printf(b, "shoal_model_refused_total{%s,reason=\"%s\"} %" PRIu64 "\n", label, why[i],
                   counter_read(&m->stats.refused[i]));
}

/* Only once something was compared. */
static void put_drift(struct buf *b, struct confidence_watch *w, const char *label, bool alarm)
{
    if (counter_read(&w->n_windows) == 0)
        return;
    if (alarm)
        buf_printf(b, "shoal_confidence_drift_alarm{%s} %" PRIu64 "\n", label,
                   counter_read(&w->alarm));
    else
        buf_printf(b, "shoal_confidence_drift{%s} %.6f\n", label,
                   (double)counter_read(&w->index_ppm) / 1e6);
}

static void put_part(void *ctx, const struct registry_model *cm)
{
    struct scrape *s = ctx;
    struct registry_model *m = (struct registry_model *)(uintptr_t)cm;
    char label[PROMETHEUS_LABEL_BYTES];
    prometheus_model(label, m->name);
    if (s->part == PART_MEMORY) {
        put_memory(s->b, cm, label);
    } else if (s->part == PART_CONFIDENCE) {
        if (m->slot->kinds & (unsigned)SHOAL_KIND_CLASSIFY)
            prometheus_shares(s->b, "shoal_confidence", label, &m->stats.confidence.shares);
    } else if (s->part == PART_DRIFT || s->part == PART_DRIFT_ALARM) {
        put_drift(s->b, &m->stats.confidence, label, s->part == PART_DRIFT_ALARM);
    } else if (s->part == PART_REFUSED) {
        put_refused(s->b, m, label);
    } else if (s->part == PART_BATCH) {
        if (m->slot->kinds & ~(unsigned)SHOAL_KIND_GENERATE)
            prometheus_batches(s->b, "shoal_batch_size", label, &m->stats.batch);
    } else if (s->part < PART_HISTOGRAMS) {
        put_row(s->b, cm, s->part);
    } else {
        struct histogram *all[] = {&m->stats.queue, &m->stats.first_token, &m->stats.per_token,
                                   &m->stats.total};
        int i = s->part - PART_HISTOGRAMS;
        prometheus_histogram(s->b, model_times[i].name, label, all[i], NULL);
    }
}

static void put_models(struct gw *gw, struct buf *b, int part, const char *name, const char *type,
                       const char *help)
{
    struct scrape s = {b, part};
    prometheus_help(b, name, type, help);
    registry_each(gw->registry, put_part, &s);
}

static const char *const refusals[GW_N_REFUSED] = {"auth",     "rate",    "busy",       "deadline",
                                                   "draining", "invalid", "not_loaded", "quota"};

static void count_node(void *ctx, const struct node_link *k)
{
    uint32_t *n = ctx;
    n[node_link_ready(k, clock_ns()) ? 0 : 1]++;
}

/* The nodes as this loop sees them; the counts of all loops. */
static void put_shoal(const struct members *m, const struct replica_counts *k, struct buf *b)
{
    uint32_t n[2] = {0, 0};
    members_each(m, count_node, n);
    prometheus_help(b, "shoal_nodes", "gauge", "nodes that accept requests, and those that do not");
    buf_printf(b, "shoal_nodes{state=\"ready\"} %u\nshoal_nodes{state=\"lost\"} %u\n", n[0], n[1]);
    const struct {
        const char *name, *help;
        uint64_t n;
    } rows[] = {
        {"shoal_relayed_total", "requests that may go to any replica", k->n_requests},
        {"shoal_moved_total", "answers that continued on another replica", k->n_moved},
        {"shoal_split_total", "answers of one node to a prompt that another has computed",
         k->n_split},
        {"shoal_retried_total", "requests that were retried on another replica", k->n_retried},
        {"shoal_lost_total", "answers that were cut off because no replica was available",
         k->n_lost},
        {"shoal_hedged_total", "requests sent to a second replica for their deadline", k->n_hedged},
        {"shoal_stalled_total", "requests sent to a second replica because the first was silent",
         k->n_stalled},
        {"shoal_second_won_total",
         "hedged and stalled requests that the second replica answered first", k->n_won},
        {"shoal_breakers_opened_total", "circuit breakers that opened because requests failed",
         k->n_opened}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        prometheus_help(b, rows[i].name, "counter", rows[i].help);
        buf_printf(b, "%s %" PRIu64 "\n", rows[i].name, rows[i].n);
    }
}

/* Of a node: prompts that came from others. */
static void put_pages(const struct page_counts *k, struct buf *b)
{
    const struct {
        const char *name, *help;
        uint64_t n;
    } rows[] = {
        {"shoal_page_fetches_total", "fetches of computed prompts from other nodes", k->n_fetches},
        {"shoal_page_fetches_failed_total", "those that failed or took too long", k->n_failed},
        {"shoal_page_tokens_total", "prompt tokens that came with them", k->n_tokens},
        {"shoal_page_bytes_total", "bytes that came with them", k->n_bytes}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        prometheus_help(b, rows[i].name, "counter", rows[i].help);
        buf_printf(b, "%s %" PRIu64 "\n", rows[i].name, rows[i].n);
    }
}

static void put_workers(const struct replica_counts *k, struct buf *b)
{
    const struct {
        const char *name, *help;
        uint64_t n;
    } rows[] = {
        {"shoal_worker_requests_total", "requests to models in other processes", k->n_requests},
        {"shoal_worker_moved_total", "answers that continued in a restarted process", k->n_moved},
        {"shoal_worker_retried_total", "requests that were retried there", k->n_retried},
        {"shoal_worker_lost_total", "answers that were cut off", k->n_lost}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        prometheus_help(b, rows[i].name, "counter", rows[i].help);
        buf_printf(b, "%s %" PRIu64 "\n", rows[i].name, rows[i].n);
    }
}

static void put_similar(struct similar *s, struct buf *b)
{
    struct similar_counts n;
    similar_counts(s, &n);
    prometheus_help(
        b, "shoal_similar_total", "counter",
        "chats that searched the semantic cache; refused: similar, but a different question");
    buf_printf(b,
               "shoal_similar_total{outcome=\"hit\"} %" PRIu64
               "\nshoal_similar_total{outcome=\"miss\"} %" PRIu64
               "\nshoal_similar_total{outcome=\"refused\"} %" PRIu64 "\n",
               n.hits, n.misses, n.refused);
}

static void put_sessions(struct sessions *s, struct buf *b)
{
    struct sessions_counts n;
    sessions_counts(s, &n);
    prometheus_help(b, "shoal_session_turns_total", "counter",
                    "Turns of conversations that were kept.");
    buf_printf(b, "shoal_session_turns_total %" PRIu64 "\n", n.turns);
    prometheus_help(b, "shoal_session_degraded_total", "counter",
                    "Turns that began while the session store was unavailable.");
    buf_printf(b, "shoal_session_degraded_total %" PRIu64 "\n", n.degraded);
    prometheus_help(b, "shoal_sessions_unsaved", "gauge",
                    "Conversations that wait for the session store.");
    buf_printf(b, "shoal_sessions_unsaved %u\n", n.unsaved);
}

static void put_once(struct once *w, struct buf *b)
{
    struct once_counts n;
    once_count(w, &n);
    prometheus_help(b, "shoal_idempotent_total", "counter",
                    "calls with an idempotency key: the first of a key, those that joined it, got "
                    "its answer, or differed from it");
    buf_printf(b,
               "shoal_idempotent_total{outcome=\"first\"} %" PRIu64
               "\nshoal_idempotent_total{outcome=\"joined\"} %" PRIu64
               "\nshoal_idempotent_total{outcome=\"replayed\"} %" PRIu64
               "\nshoal_idempotent_total{outcome=\"refused\"} %" PRIu64 "\n",
               n.n_first, n.n_joined, n.n_replayed, n.n_conflicts);
    prometheus_help(b, "shoal_idempotent_bytes", "gauge", "memory of answers kept by their key");
    buf_printf(b, "shoal_idempotent_bytes %zu\n", n.bytes);
}

static void put_peers(struct gw *gw, struct buf *b)
{
    struct peers_stats s;
    peers_stats(gw->peers, &s);
    prometheus_help(b, "shoal_buffer_bytes", "gauge",
                    "memory held for clients: input, bodies, unsent answers");
    buf_printf(b, "shoal_buffer_bytes %zu\n", s.bytes);
    prometheus_help(b, "shoal_buffer_refused_total", "counter",
                    "refused because of limits.buffers (all) or limits.client_buffers (client)");
    buf_printf(b,
               "shoal_buffer_refused_total{limit=\"all\"} %" PRIu64 "\n"
               "shoal_buffer_refused_total{limit=\"client\"} %" PRIu64 "\n",
               s.refused_all, s.refused_peer);
    prometheus_help(b, "shoal_stream_resets_total", "counter",
                    "HTTP/2 streams that were reset, by either side");
    buf_printf(b, "shoal_stream_resets_total %" PRIu64 "\n", s.resets);
    prometheus_help(b, "shoal_stream_resets_refused_total", "counter",
                    "resets above limits.resets, whose connections were closed");
    buf_printf(b, "shoal_stream_resets_refused_total %" PRIu64 "\n", s.resets_over);
    prometheus_help(b, "shoal_connections_displaced_total", "counter",
                    "idle connections that were closed to make room for new ones");
    buf_printf(b, "shoal_connections_displaced_total %" PRIu64 "\n", s.displaced);
}

/* ---- keys: as many label values as the configuration has names of keys ---- */

enum { KEY_TOKENS, KEY_REFUSED, KEY_TODAY, KEY_LIMIT, N_KEY_PARTS };

static void put_key(void *ctx, const struct quota_figures *f)
{
    static const char *const why[QUOTA_N_REFUSED] = {"rate", "busy", "quota"};
    const struct scrape *s = ctx;
    struct buf *b = s->b;
    char label[PROMETHEUS_LABEL_BYTES];
    prometheus_label(label, "key", f->name);
    if (s->part == KEY_TOKENS)
        buf_printf(b,
                   "shoal_key_tokens_total{%s,kind=\"prompt\"} %" PRIu64 "\n"
                   "shoal_key_tokens_total{%s,kind=\"generated\"} %" PRIu64 "\n",
                   label, f->prompt_tokens, label, f->generated_tokens);
    else if (s->part == KEY_TODAY)
        buf_printf(b, "shoal_key_tokens_today{%s} %" PRIu64 "\n", label, f->used);
    else if (s->part == KEY_LIMIT && f->limit > 0)
        buf_printf(b, "shoal_key_tokens_per_day{%s} %" PRIu64 "\n", label, f->limit);
    for (int i = 0; s->part == KEY_REFUSED && i < QUOTA_N_REFUSED; i++)
        buf_printf(b, "shoal_key_refused_total{%s,reason=\"%s\"} %" PRIu64 "\n", label, why[i],
                   f->refused[i]);
}

static void put_keys(struct gw *gw, struct buf *b)
{
    static const struct {
        const char *name, *type, *help;
    } parts[N_KEY_PARTS] = {
        {"shoal_key_tokens_total", "counter", "tokens of a key's requests"},
        {"shoal_key_refused_total", "counter",
         "requests of a key refused before they ran, by reason"},
        {"shoal_key_tokens_today", "gauge", "tokens of a key's requests today (UTC)"},
        {"shoal_key_tokens_per_day", "gauge", "tokens that a key may use in a day"},
    };
    for (int i = 0; i < N_KEY_PARTS; i++) {
        struct scrape s = {b, i};
        prometheus_help(b, parts[i].name, parts[i].type, parts[i].help);
        quota_each(gw->quota, put_key, &s);
    }
}

static void put_deeds(const struct deeds *d, struct buf *b)
{
    struct deeds_counts n;
    deeds_count(d, &n);
    prometheus_help(b, "shoal_deeds_total", "counter", "actions carried out, by result");
    buf_printf(b,
               "shoal_deeds_total{result=\"done\"} %" PRIu64
               "\nshoal_deeds_total{result=\"sent\"} %" PRIu64
               "\nshoal_deeds_total{result=\"failed\"} %" PRIu64
               "\nshoal_deeds_total{result=\"not_connected\"} %" PRIu64 "\n",
               n.n_done, n.n_sent, n.n_failed, n.n_not_connected);
    prometheus_help(b, "shoal_deed_states_total", "counter", "states that things reported");
    buf_printf(b, "shoal_deed_states_total %" PRIu64 "\n", n.n_reports);
}

static void put_plugins(struct gw *gw, struct buf *b)
{
    struct deed_plugin_counts n;
    deed_calls_count_plugins(gw->calls, &n);
    prometheus_help(b, "shoal_plugin_processes", "gauge", "processes of plug-ins");
    buf_printf(b, "shoal_plugin_processes %u\n", n.n_running);
    prometheus_help(b, "shoal_plugin_starts_total", "counter", "processes of plug-ins started");
    buf_printf(b, "shoal_plugin_starts_total %" PRIu64 "\n", n.n_starts);
    prometheus_help(b, "shoal_plugin_failures_total", "counter",
                    "processes of plug-ins that crashed, or were killed because they were late");
    buf_printf(b,
               "shoal_plugin_failures_total{why=\"crash\"} %" PRIu64
               "\nshoal_plugin_failures_total{why=\"late\"} %" PRIu64 "\n",
               n.n_crashes, n.n_killed);
}

/* open: as OpenMetrics, with exemplars. */
static void put_server(struct gw *gw, struct buf *b, bool open)
{
    prometheus_help(b, "shoal_responses_total", "counter",
                    "answers by the first digit of the status");
    for (int i = 1; i <= 5; i++)
        buf_printf(b, "shoal_responses_total{status=\"%dxx\"} %" PRIu64 "\n", i,
                   counter_read(&gw->responses[i]));
    prometheus_help(b, "shoal_refused_total", "counter", "requests refused, by reason");
    for (int i = 0; i < GW_N_REFUSED; i++)
        buf_printf(b, "shoal_refused_total{reason=\"%s\"} %" PRIu64 "\n", refusals[i],
                   counter_read(&gw->refused[i]));
    prometheus_help(b, "shoal_calls_in_flight", "gauge",
                    "requests for models in progress, here and on other nodes");
    buf_printf(b, "shoal_calls_in_flight %u\n", admission_in_flight(gw->admission));
    put_peers(gw, b);
    if (admission_needed(gw->admission))
        put_keys(gw, b);
    if (gw->once)
        put_once(gw->once, b);
    if (gw->deferred)
        deferred_metrics(gw->deferred, b);
    if (gw->similar)
        put_similar(gw->similar, b);
    if (gw->sessions)
        put_sessions(gw->sessions, b);
    mqtt_site_metrics(gw->mqtt, b);
    mqtt_door_metrics(gw->mqtt_door, b);
    plant_metrics(gw->plant, b);
    webhooks_metrics(gw->webhooks, b);
    otlp_export_metrics(gw->exporter, b);
    modbus_site_metrics(gw->modbus, b);
    if (gw->deeds)
        put_deeds(gw->deeds, b);
    if (gw->calls)
        put_plugins(gw, b);
    prometheus_help(b, "shoal_http_seconds", "histogram",
                    "from the last byte of a request to the end "
                    "of its answer");
    for (size_t i = 0; i < gw->n_routes; i++) {
        char labels[160];
        snprintf(labels, sizeof(labels), "route=\"%s %s\"", gw->routes[i].method,
                 gw->routes[i].path);
        prometheus_histogram(b, "shoal_http_seconds", labels, &gw->call_time[i],
                             open ? &gw->call_traces[i] : NULL);
    }
    prometheus_help(b, "shoal_uptime_seconds", "gauge", "since the server started");
    buf_printf(b, "shoal_uptime_seconds %.3f\n", (double)(clock_ns() - gw->started_ns) / 1e9);
}

static void put_energy(struct energy_ledger *l, struct buf *b)
{
    struct energy_figures f;
    energy_ledger_figures(l, &f);
    prometheus_help(b, "shoal_energy_source", "gauge", "where the figures of energy come from");
    buf_printf(b, "shoal_energy_source{source=\"%s\",estimated=\"%s\"} 1\n",
               energy_kind_name(f.kind), f.estimated ? "true" : "false");
    prometheus_help(b, "shoal_energy_requests_joules_total", "counter",
                    "energy of the machine while requests ran");
    buf_printf(b, "shoal_energy_requests_joules_total %.6f\n", f.request_joules);
    prometheus_help(b, "shoal_energy_idle_joules_total", "counter",
                    "energy of the machine while none ran");
    buf_printf(b, "shoal_energy_idle_joules_total %.6f\n", f.idle_joules);
    prometheus_help(b, "shoal_power_watts", "gauge", "power of the machine");
    buf_printf(b, "shoal_power_watts %.3f\n", f.watts);
}

void api_metrics(struct call *c)
{
    struct gw *gw = c->gl->gw;
    struct buf *b = &c->out;
    const char *accept = http_header(c->req, "accept");
    const bool open = accept && strstr(accept, "application/openmetrics-text");
    put_server(gw, b, open);
    if (gw->join) {
        prometheus_help(b, "shoal_nats_up", "gauge", "whether NATS can be reached");
        buf_printf(b, "shoal_nats_up %d\n", join_up(gw->join));
        prometheus_help(b, "shoal_heartbeats_total", "counter", "heartbeats received over NATS");
        buf_printf(b, "shoal_heartbeats_total %" PRIu64 "\n", join_heartbeats(gw->join));
    }
    if (gw->traces)
        api_feedback_metrics(trace_ring_votes(gw->traces), b);
    if (gw->flow.energy)
        put_energy(gw->flow.energy, b);
    if (c->gl->members)
        put_shoal(c->gl->members, &gw->relayed, b);
    if (c->gl->workers)
        put_workers(&gw->worked, b);
    if (c->gl->pages)
        put_pages(&gw->paged, b);
    node_shard_metrics(gw, b);
    for (int i = 0; i < (int)N_MODEL_ROWS; i++)
        put_models(gw, b, i, model_rows[i].name, model_rows[i].type, model_rows[i].help);
    put_models(gw, b, PART_MEMORY, "shoal_model_memory_bytes", "gauge",
               "memory reserved by a loaded model, by purpose");
    for (int i = 0; i < 4; i++)
        put_models(gw, b, PART_HISTOGRAMS + i, model_times[i].name, "histogram",
                   model_times[i].help);
    put_models(gw, b, PART_BATCH, "shoal_batch_size", "histogram",
               "batch size that a specialist's input was computed in");
    put_models(gw, b, PART_CONFIDENCE, "shoal_confidence", "histogram",
               "confidence of a model in the class that it answered");
    put_models(gw, b, PART_DRIFT, "shoal_confidence_drift", "gauge",
               "population stability index of the last 500 confidences against the usual ones");
    put_models(gw, b, PART_DRIFT_ALARM, "shoal_confidence_drift_alarm", "gauge",
               "1: the confidences of a model are distributed differently than usual");
    put_models(gw, b, PART_REFUSED, "shoal_model_refused_total", "counter",
               "requests refused once their model was known, by reason");
    if (open) {
        struct buf page = c->out;
        buf_init(&c->out, page.max);
        prometheus_open(&c->out, buf_str(&page), page.len);
        c->out.rc = page.rc < 0 ? page.rc : c->out.rc;
        buf_fini(&page);
    }
    const char *type = open ? "application/openmetrics-text; version=1.0.0; charset=utf-8"
                            : "text/plain; version=0.0.4; charset=utf-8";
    if (c->out.rc < 0)
        call_fail_code(c, SHOAL_ENOMEM, "out of memory");
    else
        call_text(c, 200, type, buf_str(&c->out), c->out.len);
}
