/* node_state.c - see node_state.h. */
#include "cluster/messages/node_state.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include <shoal/node/v1/node.pb-c.h>

#include "base/clock.h"
#include "base/utf8.h"
#include "cluster/control/desired.h"
#include "engine/decode/page_exchange.h"
#include "engine/estimate.h"
#include "wire/pb.h"

#define RECENT_NS 10000000000u

typedef Shoal__Node__V1__NodeState pb_state;
typedef Shoal__Node__V1__ModelState pb_model;
typedef Shoal__Node__V1__NodeState__LabelsEntry pb_label;
typedef Shoal__Node__V1__PrefixSlot pb_prefix;
typedef Shoal__Node__V1__Chain pb_chain;
typedef Shoal__Node__V1__ChainPart pb_chain_part;

/* ---- writing ---- */

static void put_model(pb_model *m, const struct node_model *from)
{
    shoal__node__v1__model_state__init(m);
    m->name = pb_text(from->name);
    if (from->sum)
        m->version = pb_bytes(from->sum, SHA256_BYTES);
    m->kinds = from->kinds;
    m->images = from->images;
    m->state = from->state;
    m->n_ctx = from->n_ctx;
    m->prefill_ns = from->prefill_ns;
    m->token_ns = from->token_ns;
    m->in_flight = from->in_flight;
    m->bytes = from->bytes;
    m->duty = from->duty;
    m->progress = from->progress;
    m->error = pb_text(from->error);
    m->requests = from->requests;
    m->p95_us = from->p95_us;
    m->recent_p95_us = from->recent_p95_us;
    m->errors = from->errors;
    m->epoch = from->epoch;
    m->until = from->until;
    m->share = from->share;
    m->standby = from->standby;
    m->waits = from->waits;
    m->unit_ns = from->unit_ns;
    m->queue_ns = from->queue_ns;
    m->answer_tokens = from->answer_tokens;
    m->prediction_error = from->prediction_error;
    m->parallel = from->parallel;
    m->shares_cache = from->shares_cache;
    m->page_bytes = from->page_bytes;
    m->replicas = from->replicas;
}

static void put_labels(pb_state *m, struct arena *a, const struct node_state *s)
{
    pb_label *list = arena_zalloc_n(a, s->n_labels, sizeof(*list));
    m->labels = arena_zalloc_n(a, s->n_labels, sizeof(*m->labels));
    for (uint32_t i = 0; list && m->labels && i < s->n_labels; i++) {
        const char *eq = strchr(s->labels[i], '=');
        size_t n = eq ? (size_t)(eq - s->labels[i]) : strlen(s->labels[i]);
        shoal__node__v1__node_state__labels_entry__init(&list[i]);
        list[i].key = pb_text(arena_printf(a, "%.*s", (int)n, s->labels[i]));
        list[i].value = pb_text(eq ? eq + 1 : "");
        m->labels[m->n_labels++] = &list[i];
    }
}

static void put_prefixes(pb_state *m, struct arena *a, const struct node_state *s)
{
    pb_prefix *list = pb_list(a, s->n_prefixes, sizeof(*list), (void ***)(void *)&m->prefixes);
    for (uint32_t i = 0; list && i < s->n_prefixes; i++) {
        shoal__node__v1__prefix_slot__init(&list[i]);
        list[i].at = s->prefixes[i].at;
        list[i].hash = s->prefixes[i].hash;
    }
    m->n_prefixes = list ? s->n_prefixes : 0;
}

static void put_parts(pb_chain *m, struct arena *a, const struct node_chain *c)
{
    pb_chain_part *list = pb_list(a, c->n_parts, sizeof(*list), (void ***)(void *)&m->parts);
    for (uint32_t i = 0; list && i < c->n_parts; i++) {
        shoal__node__v1__chain_part__init(&list[i]);
        list[i].node = pb_text(c->parts[i].node);
        list[i].first = c->parts[i].first;
        list[i].end = c->parts[i].end;
        list[i].share = c->parts[i].share;
    }
    m->n_parts = list ? c->n_parts : 0;
}

static Shoal__Node__V1__Health health_of(const struct node_health *h)
{
    Shoal__Node__V1__Health m = SHOAL__NODE__V1__HEALTH__INIT;
    m.clock_ms = h->clock_ms;
    m.clock = h->clock;
    m.cert_until_s = h->cert_until_s;
    m.disk_free = h->disk_free;
    m.disk_bytes = h->disk_bytes;
    m.celsius = h->celsius;
    m.celsius_limit = h->celsius_limit;
    m.throttled = h->throttled;
    return m;
}

static void put_chains(pb_state *m, struct arena *a, const struct node_state *s)
{
    pb_chain *list = pb_list(a, s->n_chains, sizeof(*list), (void ***)(void *)&m->chains);
    for (uint32_t i = 0; list && i < s->n_chains; i++) {
        const struct node_chain *c = &s->chains[i];
        shoal__node__v1__chain__init(&list[i]);
        list[i].model = pb_text(c->model);
        list[i].n_rebuilt = c->n_rebuilt;
        list[i].lost = pb_text(c->lost);
        list[i].predicted_ms = c->predicted_ms;
        list[i].step_ms = c->step_ms;
        list[i].remote_ms = c->remote_ms;
        list[i].step_bytes = c->step_bytes;
        list[i].wait_ms = c->wait_ms;
        list[i].q8 = c->q8;
        put_parts(&list[i], a, c);
    }
    m->n_chains = list ? s->n_chains : 0;
}

int node_state_put(struct buf *out, const struct node_state *s)
{
    pb_state m = SHOAL__NODE__V1__NODE_STATE__INIT;
    struct arena a;
    arena_init(&a, NODE_STATE_MAX_BYTES);
    pb_model *list = pb_list(&a, s->n_models, sizeof(*list), (void ***)(void *)&m.models);
    for (uint32_t i = 0; list && i < s->n_models; i++)
        put_model(&list[i], &s->models[i]);
    m.n_models = list ? s->n_models : 0;
    m.id = pb_text(s->id);
    m.name = pb_text(s->name);
    m.address = pb_text(s->address);
    m.program_version = pb_text(s->program_version);
    m.isa = pb_text(s->isa);
    m.zone = pb_text(s->zone);
    m.serial = s->serial;
    m.draining = s->draining;
    m.asks = s->asks;
    m.n_cores = s->n_cores;
    m.memory_bytes = s->memory_bytes;
    m.memory_free = s->memory_free;
    m.bandwidth = s->bandwidth;
    m.probe_tokens = s->probe_tokens;
    m.link = s->link;
    m.gpu = pb_text(s->gpu);
    m.n_gpus = s->n_gpus;
    m.gpu_bytes = s->gpu_bytes;
    m.on_battery = s->on_battery;
    m.battery_percent = s->battery_percent;
    m.epoch = s->epoch;
    m.epoch_end = s->epoch_end;
    m.oldest_epoch = s->oldest_epoch;
    m.cpu = s->cpu;
    m.models_limit = s->models_limit;
    m.fence = s->fence;
    m.desired = s->desired;
    m.desired_fence = s->desired_fence;
    m.known_fence = s->known_fence;
    m.roll_call = s->roll_call;
    m.wanted = arena_zalloc_n(&a, s->n_wanted, sizeof(*m.wanted));
    for (uint32_t i = 0; m.wanted && i < s->n_wanted; i++)
        m.wanted[m.n_wanted++] = pb_text(s->wanted[i]);
    put_labels(&m, &a, s);
    put_prefixes(&m, &a, s);
    put_chains(&m, &a, s);
    Shoal__Node__V1__Health health = health_of(&s->health);
    m.health = &health;
    int rc = a.rc < 0 ? a.rc : pb_put(out, &m.base);
    arena_fini(&a);
    return rc;
}

/* ---- reading ---- */

/* For logs and pages: removes characters that could disturb a terminal. */
static const char *clean(struct arena *a, const char *s)
{
    size_t n = strlen(s);
    bool ok = utf8_valid_prefix(s, n) == n;
    for (size_t i = 0; i < n && ok; i++)
        ok = (unsigned char)s[i] >= 0x20 && s[i] != 0x7f;
    if (ok)
        return s;
    char *to = arena_copy(a, s, n + 1);
    for (size_t i = 0; to && i < n; i++)
        to[i] = (unsigned char)s[i] >= 0x20 && (unsigned char)s[i] < 0x7f ? s[i] : '?';
    return to ? to : "";
}

/* Figures of another machine: invalid values count as unknown. */
static double figure(double x)
{
    return isfinite(x) && x > 0 ? x : 0;
}

static int read_model(struct node_model *out, struct arena *a, const pb_model *m, struct err *e)
{
    if ((m->version.len != 0 && m->version.len != SHA256_BYTES) || m->state > REGISTRY_FAILED ||
        m->duty > DESIRED_LEAVE || m->share > 1000 || !m->name[0])
        return err_set(e, SHOAL_EFORMAT, "the state of a model is damaged");
    *out = (struct node_model){
        .name = clean(a, m->name),
        .sum = m->version.len ? m->version.data : NULL,
        .kinds = m->kinds,
        .images = m->images,
        .state = (enum registry_state)m->state,
        .n_ctx = m->n_ctx,
        .in_flight = m->in_flight,
        .prefill_ns = figure(m->prefill_ns),
        .token_ns = figure(m->token_ns),
        .bytes = m->bytes,
        .duty = m->duty,
        .progress = m->progress,
        .error = clean(a, m->error),
        .requests = m->requests,
        .p95_us = m->p95_us,
        .recent_p95_us = m->recent_p95_us,
        .errors = m->errors,
        .epoch = m->epoch,
        .until = m->until,
        .share = m->share,
        .standby = m->standby,
        .waits = m->waits,
        .unit_ns = figure(m->unit_ns),
        .queue_ns = figure(m->queue_ns),
        .answer_tokens = figure(m->answer_tokens),
        .prediction_error = figure(m->prediction_error),
        .parallel = m->parallel,
        .shares_cache = m->shares_cache,
        .page_bytes = m->page_bytes,
        .replicas = m->replicas < NODE_STATE_MAX_REPLICAS ? m->replicas : NODE_STATE_MAX_REPLICAS};
    return 0;
}

/* Words and labels: at most NODE_STATE_MAX_WORDS. */
static void read_words(struct node_state *out, struct arena *a, const pb_state *m)
{
    uint32_t n = m->n_wanted < NODE_STATE_MAX_WORDS ? (uint32_t)m->n_wanted : NODE_STATE_MAX_WORDS;
    const char **wanted = arena_zalloc_n(a, n, sizeof(*wanted));
    for (uint32_t i = 0; wanted && i < n; i++)
        wanted[i] = clean(a, m->wanted[i]);
    out->wanted = wanted;
    out->n_wanted = wanted ? n : 0;
    n = m->n_labels < NODE_STATE_MAX_WORDS ? (uint32_t)m->n_labels : NODE_STATE_MAX_WORDS;
    const char **labels = arena_zalloc_n(a, n, sizeof(*labels));
    for (uint32_t i = 0; labels && i < n; i++) {
        const char *value = m->labels[i]->value, *key = m->labels[i]->key;
        labels[i] = clean(a, arena_printf(a, "%s%s%s", key, value[0] ? "=" : "", value));
    }
    out->labels = labels;
    out->n_labels = labels ? n : 0;
}

static int read_prefixes(struct node_state *out, struct arena *a, const pb_state *m, struct err *e)
{
    if (m->n_prefixes > PREFIX_TABLE_SLOTS)
        return err_set(e, SHOAL_ELIMIT, "the state of a node has too many prefixes");
    struct prefix_slot *list = arena_zalloc_n(a, m->n_prefixes, sizeof(*list));
    for (size_t i = 0; list && i < m->n_prefixes; i++) {
        if (m->prefixes[i]->at >= PREFIX_TABLE_SLOTS)
            return err_set(e, SHOAL_EFORMAT, "the prefixes of a node are damaged");
        list[i] = (struct prefix_slot){m->prefixes[i]->at, m->prefixes[i]->hash};
    }
    out->prefixes = list;
    out->n_prefixes = list ? (uint32_t)m->n_prefixes : 0;
    return 0;
}

static double sane(double x)
{
    return isfinite(x) && x >= 0 ? x : 0;
}

static void read_parts(struct node_chain *out, struct arena *a, const pb_chain *m)
{
    const uint32_t n =
        m->n_parts < NODE_STATE_MAX_CHAINS ? (uint32_t)m->n_parts : NODE_STATE_MAX_CHAINS;
    struct node_chain_part *list = arena_zalloc_n(a, n, sizeof(*list));
    for (uint32_t i = 0; list && i < n; i++)
        list[i] = (struct node_chain_part){.node = clean(a, m->parts[i]->node),
                                           .first = m->parts[i]->first,
                                           .end = m->parts[i]->end,
                                           .share = sane(m->parts[i]->share)};
    out->parts = list;
    out->n_parts = list ? n : 0;
}

/* At most NODE_STATE_MAX_CHAINS, each with as many parts: they are only shown. */
static void read_chains(struct node_state *out, struct arena *a, const pb_state *m)
{
    const uint32_t n =
        m->n_chains < NODE_STATE_MAX_CHAINS ? (uint32_t)m->n_chains : NODE_STATE_MAX_CHAINS;
    struct node_chain *list = arena_zalloc_n(a, n, sizeof(*list));
    for (uint32_t i = 0; list && i < n; i++) {
        const pb_chain *c = m->chains[i];
        list[i] = (struct node_chain){.model = clean(a, c->model),
                                      .n_rebuilt = c->n_rebuilt,
                                      .lost = clean(a, c->lost),
                                      .predicted_ms = sane(c->predicted_ms),
                                      .step_ms = sane(c->step_ms),
                                      .remote_ms = sane(c->remote_ms),
                                      .step_bytes = sane(c->step_bytes),
                                      .wait_ms = sane(c->wait_ms),
                                      .q8 = c->q8};
        read_parts(&list[i], a, c);
    }
    out->chains = list;
    out->n_chains = list ? n : 0;
}

static void read_health(struct node_health *h, const Shoal__Node__V1__Health *m)
{
    if (!m)
        return;
    *h = (struct node_health){.clock_ms = m->clock_ms,
                              .clock = m->clock <= NODE_CLOCK_FREE ? (enum node_clock)m->clock
                                                                   : NODE_CLOCK_UNKNOWN,
                              .cert_until_s = m->cert_until_s > 0 ? m->cert_until_s : 0,
                              .disk_free = m->disk_free,
                              .disk_bytes = m->disk_bytes,
                              .celsius = figure(m->celsius),
                              .celsius_limit = figure(m->celsius_limit),
                              .throttled = m->throttled};
}

int node_state_read(struct node_state *out, struct arena *a, const uint8_t *p, size_t n,
                    struct err *e)
{
    const pb_state *m = n <= NODE_STATE_MAX_BYTES
                            ? pb_unpack(&shoal__node__v1__node_state__descriptor, a, p, n)
                            : NULL;
    if (!m)
        return err_set(e, a->rc < 0 ? a->rc : SHOAL_EFORMAT, "the state of a node is damaged");
    if (m->n_models > NODE_STATE_MAX_MODELS)
        return err_set(e, SHOAL_ELIMIT, "a node has %zu models, allowed are %u", m->n_models,
                       NODE_STATE_MAX_MODELS);
    struct node_model *list = arena_zalloc_n(a, m->n_models, sizeof(*list));
    int rc = list ? 0 : err_set(e, a->rc, "out of memory for the state of a node");
    for (size_t i = 0; i < m->n_models && rc == 0; i++)
        rc = read_model(&list[i], a, m->models[i], e);
    *out = (struct node_state){.id = clean(a, m->id),
                               .name = clean(a, m->name),
                               .address = clean(a, m->address),
                               .program_version = clean(a, m->program_version),
                               .isa = clean(a, m->isa),
                               .zone = clean(a, m->zone),
                               .serial = m->serial,
                               .draining = m->draining,
                               .asks = m->asks,
                               .models = list,
                               .n_models = rc == 0 ? (uint32_t)m->n_models : 0,
                               .n_cores = m->n_cores,
                               .memory_bytes = m->memory_bytes,
                               .memory_free = m->memory_free,
                               .bandwidth = isfinite(m->bandwidth) ? m->bandwidth : 0,
                               .probe_tokens = isfinite(m->probe_tokens) ? m->probe_tokens : 0,
                               .link = isfinite(m->link) && m->link > 0 ? m->link : 0,
                               .gpu = clean(a, m->gpu),
                               .n_gpus = m->n_gpus,
                               .gpu_bytes = m->gpu_bytes,
                               .on_battery = m->on_battery,
                               .battery_percent = m->battery_percent,
                               .cpu = isfinite(m->cpu) ? m->cpu : -1,
                               .models_limit = m->models_limit,
                               .fence = m->fence,
                               .desired = m->desired,
                               .desired_fence = m->desired_fence,
                               .known_fence = m->known_fence,
                               .roll_call = m->roll_call,
                               .epoch = m->epoch,
                               .epoch_end = m->epoch_end,
                               .oldest_epoch = m->oldest_epoch};
    read_words(out, a, m);
    if (rc == 0)
        rc = read_prefixes(out, a, m, e);
    read_chains(out, a, m);
    read_health(&out->health, m->health);
    if (rc == 0 && a->rc < 0)
        rc = err_set(e, a->rc, "out of memory for the state of a node");
    return rc;
}

const struct node_model *node_state_next(const struct node_state *s, const struct node_model *after,
                                         const char *name, unsigned kind)
{
    for (uint32_t i = after ? (uint32_t)(after - s->models) + 1 : 0; i < s->n_models; i++) {
        const struct node_model *m = &s->models[i];
        if (name ? strcmp(m->name, name) == 0 : (m->kinds & kind) != 0)
            return m;
    }
    return NULL;
}

const struct node_model *node_state_model(const struct node_state *s, const char *name,
                                          unsigned kind)
{
    return node_state_next(s, NULL, name, kind);
}

bool node_model_usable(const struct node_model *m, uint64_t epoch, bool may_be_old)
{
    const bool serves = m->duty == DESIRED_SERVE || (may_be_old && m->waits);
    if (m->state == REGISTRY_FAILED || m->state == REGISTRY_UNLOADING)
        return false;
    /* a model of the configuration may be loaded by the request itself */
    if (m->duty != 0 && (!serves || m->state != REGISTRY_READY))
        return false;
    return epoch >= m->epoch && (m->until == 0 || epoch < m->until);
}

/* ---- collecting ---- */

struct collect {
    struct arena *arena;
    struct node_model *list;
    uint32_t n, cap;
};

static void count_model(void *ctx, const struct registry_model *m)
{
    (void)m;
    ((struct collect *)ctx)->cap++;
}

/* Configured models that no controller changed have no duty. */
static uint32_t duty_of(const struct registry_model *m)
{
    static const struct registry_service all = {.duty = REGISTRY_SERVE};
    if (!m->versioned && registry_service_same(&m->service, &all))
        return 0;
    return m->service.duty == REGISTRY_SERVE   ? DESIRED_SERVE
           : m->service.duty == REGISTRY_LEAVE ? DESIRED_LEAVE
                                               : DESIRED_STAGE;
}

/* Another copy of a model that is in the list: the node has one of the name, with the work of all
 * of them. */
static void add_copy(struct collect *c, const struct registry_model *m)
{
    struct node_model *to = NULL;
    struct model_stats *stats = (struct model_stats *)(uintptr_t)&m->stats; /* under its lock */
    for (uint32_t i = 0; i < c->n && !to; i++)
        if (c->list[i].sum && strcmp(c->list[i].name, m->name) == 0 &&
            memcmp(c->list[i].sum, m->sum, SHA256_BYTES) == 0)
            to = &c->list[i];
    if (!to)
        return;
    to->requests += counter_read(&stats->requests);
    to->errors += counter_read(&stats->errors);
    to->in_flight += atomic_load_explicit(&m->stats.in_flight, memory_order_relaxed);
    if (m->slot->state != REGISTRY_READY)
        return;
    const struct fair_who nobody = {.client = 0};
    const struct cost_telemetry t = registry_telemetry(m, &nobody);
    uint64_t recent =
        histogram_recent_quantile(&stats->recent, &stats->total, 0.95, clock_ns(), RECENT_NS) /
        1000;
    to->recent_p95_us = recent > to->recent_p95_us ? recent : to->recent_p95_us;
    to->queue_ns = to->replicas == 0 || t.queue_ns < to->queue_ns ? t.queue_ns : to->queue_ns;
    to->parallel += t.parallel;
    to->replicas++;
    to->state = REGISTRY_READY; /* also while the first is loaded again */
    to->kinds |= m->slot->kinds;
    to->error = "";
}

static void add_model(void *ctx, const struct registry_model *m)
{
    struct collect *c = ctx;
    struct model_stats *stats = (struct model_stats *)(uintptr_t)&m->stats; /* under its lock */
    const uint8_t *is = registry_sum(m);
    if (m->copy > 0) {
        add_copy(c, m);
        return;
    }
    if (c->n == c->cap || c->n == NODE_STATE_MAX_MODELS)
        return;
    struct node_model *to = &c->list[c->n++];
    uint8_t *sum = is ? arena_zalloc(c->arena, SHA256_BYTES) : NULL;
    if (sum)
        memcpy(sum, is, SHA256_BYTES);
    *to = (struct node_model){
        .name = arena_printf(c->arena, "%s", m->name),
        .sum = sum,
        .kinds = m->slot->kinds,
        .images = m->slot->images,
        .state = m->slot->state,
        .n_ctx = m->slot->n_ctx,
        .in_flight = atomic_load_explicit(&m->stats.in_flight, memory_order_relaxed),
        .bytes = m->slot->bytes,
        .duty = duty_of(m),
        .progress = atomic_load_explicit(&m->slot->progress, memory_order_relaxed),
        .error = "",
        .requests = counter_read(&stats->requests),
        .p95_us = histogram_quantile(&stats->total, 0.95) / 1000,
        .recent_p95_us =
            histogram_recent_quantile(&stats->recent, &stats->total, 0.95, clock_ns(), RECENT_NS) /
            1000,
        .errors = counter_read(&stats->errors),
        .epoch = m->service.epoch,
        .until = m->service.until,
        .share = m->service.share,
        .standby = m->slot->spec.standby,
        .waits = m->service.duty == REGISTRY_WAIT,
        .shares_cache = m->slot->spec.shares_cache,
        .page_bytes = page_exchange_bytes(m->slot->engine),
        .replicas = m->slot->state == REGISTRY_READY};
    if (m->slot->state == REGISTRY_FAILED)
        to->error = arena_printf(c->arena, "%s", m->slot->error);
    registry_speed(m, &to->prefill_ns, &to->token_ns);
    const struct fair_who nobody = {.client = 0};
    const struct cost_telemetry t = registry_telemetry(m, &nobody);
    to->unit_ns = t.unit_ns;
    to->queue_ns = t.queue_ns;
    to->answer_tokens = t.answer_tokens;
    to->prediction_error = t.error;
    to->parallel = t.parallel;
}

void node_state_collect(struct node_state *s, struct arena *a, struct registry *r)
{
    struct collect c = {.arena = a};
    registry_get_epoch(r, &s->epoch, &s->epoch_end);
    s->oldest_epoch = registry_oldest_epoch(r);
    registry_each_version(r, count_model, &c);
    c.list = arena_zalloc_n(a, c.cap, sizeof(*c.list));
    if (!c.list)
        c.cap = 0;
    registry_each_version(r, add_model,
                          &c); /* a model added in between appears in the next state */
    s->models = c.list;
    s->n_models = c.n;
}
