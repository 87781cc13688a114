/* api_cluster.c - the shoal as this member sees it: nodes, their models, moves. */
#include <string.h>

#include "base/clock.h"
#include "cluster/control/desired.h"
#include "cluster/join.h"
#include "cluster/members.h"
#include "gateway/api/api.h"
#include "gateway/call/call.h"
#include "gateway/call/fields.h"
#include "gateway/call/guard.h"
#include "gateway/node/node_self.h"
#include "gateway/call/ticker.h"
#include "shoal/shoal_version.h"
#include "wire/json_out.h"

#define STREAM_MS 500u

static void put_model(struct json_out *j, const struct node_model *m)
{
    char version[2 * SHA256_BYTES + 1] = "";
    if (m->sum)
        sha256_hex(version, m->sum);
    json_out_object(j);
    json_out_member_str(j, "name", m->name);
    json_out_member_str(j, "version", version);
    json_out_member_str(j, "state", registry_state_name(m->state));
    json_out_member_array(j, "kinds");
    for (unsigned k = 1; k <= SHOAL_KIND_SPEAK; k <<= 1)
        if (m->kinds & k)
            json_out_str(j, shoal_kind_name((enum shoal_kind)k));
    json_out_array_end(j);
    if (m->duty)
        json_out_member_str(j, "duty", desired_duty_text((enum desired_duty)m->duty));
    json_out_member_uint(j, "in_flight", m->in_flight);
    json_out_member_uint(j, "replicas", m->state == REGISTRY_READY ? node_model_replicas(m) : 0);
    json_out_member_uint(j, "bytes", m->bytes * node_model_replicas(m));
    json_out_key(j, "progress"); /* of fetching and loading, 0 to 1 */
    json_out_num(j, m->progress / 1000.0);
    json_out_member_str(j, "error", m->error ? m->error : "");
    json_out_key(j, "prefill_us"); /* of a token */
    json_out_num(j, m->prefill_ns / 1000);
    json_out_member_num(j, "token_us", m->token_ns / 1000);
    json_out_object_end(j);
}

static void put_chain(struct json_out *j, const struct node_chain *c)
{
    json_out_object(j);
    json_out_member_str(j, "model", c->model);
    json_out_member_array(j, "parts");
    for (uint32_t i = 0; i < c->n_parts; i++) {
        json_out_object(j);
        json_out_member_str(j, "node", c->parts[i].node);
        json_out_member_uint(j, "first", c->parts[i].first);
        json_out_member_uint(j, "end", c->parts[i].end);
        json_out_key(j, "share"); /* by rows: of every layer; otherwise 0 */
        json_out_num(j, c->parts[i].share);
        json_out_object_end(j);
    }
    json_out_array_end(j);
    json_out_member_uint(j, "rebuilt", c->n_rebuilt);
    json_out_member_str(j, "lost", c->lost);
    json_out_key(j, "predicted_ms"); /* of a token */
    json_out_num(j, c->predicted_ms);
    json_out_key(j, "step_ms"); /* measured, until the other nodes' layers are computed */
    json_out_num(j, c->step_ms);
    json_out_key(j, "remote_ms"); /* of it, computing */
    json_out_num(j, c->remote_ms);
    json_out_key(j, "wait_ms"); /* for the other nodes */
    json_out_num(j, c->wait_ms);
    json_out_member_num(j, "step_bytes", c->step_bytes);
    json_out_member_str(j, "wire", c->q8 ? "q8" : "exact");
    json_out_object_end(j);
}

static const char *clock_text(enum node_clock c)
{
    return c == NODE_CLOCK_KEPT ? "synchronized" : c == NODE_CLOCK_FREE ? "free" : "unknown";
}

/* null: it cannot say */
static void put_known(struct json_out *j, const char *key, double x)
{
    json_out_key(j, key);
    x > 0 ? json_out_num(j, x) : json_out_null(j);
}

static void put_health(struct json_out *j, const struct node_health *h)
{
    json_out_key(j, "health");
    json_out_object(j);
    json_out_member_str(j, "clock", clock_text(h->clock));
    put_known(j, "certificate_until", (double)h->cert_until_s);
    put_known(j, "disk_bytes", (double)h->disk_bytes);
    json_out_member_uint(j, "disk_free", h->disk_free);
    put_known(j, "celsius", h->celsius);
    put_known(j, "celsius_limit", h->celsius_limit);
    json_out_key(j, "throttled");
    json_out_bool(j, h->throttled);
    json_out_object_end(j);
}

static void put_machine(struct json_out *j, const struct node_state *s)
{
    json_out_member_str(j, "zone", s->zone);
    json_out_member_str(j, "isa", s->isa);
    json_out_member_str(j, "program", s->program_version);
    json_out_member_uint(j, "cores", s->n_cores);
    json_out_member_uint(j, "memory_bytes", s->memory_bytes);
    json_out_member_uint(j, "memory_free", s->memory_free);
    json_out_key(j, "memory_gb_s"); /* measured; 0: not yet */
    json_out_num(j, s->bandwidth / 1e9);
    json_out_member_num(j, "probe_tokens_s", s->probe_tokens);
    json_out_member_str(j, "gpu", s->gpu);
    json_out_member_uint(j, "gpus", s->n_gpus);
    json_out_member_uint(j, "gpu_bytes", s->gpu_bytes);
    json_out_member_bool(j, "on_battery", s->on_battery);
    json_out_member_uint(j, "battery_percent", s->battery_percent);
    put_health(j, &s->health);
    json_out_member_array(j, "wanted"); /* models that requests wait for there */
    for (uint32_t i = 0; i < s->n_wanted; i++)
        json_out_str(j, s->wanted[i]);
    json_out_array_end(j);
    json_out_member_array(j, "models");
    for (uint32_t i = 0; i < s->n_models; i++)
        put_model(j, &s->models[i]);
    json_out_array_end(j);
    if (s->n_chains == 0)
        return;
    json_out_member_array(j, "shards");
    for (uint32_t i = 0; i < s->n_chains; i++)
        put_chain(j, &s->chains[i]);
    json_out_array_end(j);
}

static void put_node(void *ctx, const struct node_link *k)
{
    struct json_out *j = ctx;
    const struct node_state *s = node_link_state(k);
    bool ready = node_link_ready(k, clock_ns());
    bool draining = s && s->draining;
    int64_t clock_ms;
    json_out_object(j);
    json_out_member_str(j, "name", node_link_name(k));
    json_out_member_str(j, "address", node_link_address(k));
    json_out_member_str(j, "state",
                        ready                  ? "ready"
                        : draining             ? "draining"
                        : node_link_settled(k) ? "lost"
                                               : "unknown");
    json_out_member_str(j, "error", node_link_error(k));
    json_out_member_uint(j, "calls", node_link_calls(k));
    json_out_member_str(j, "breaker", breaker_state_name(node_link_breaker(k, clock_ns())));
    json_out_member_num(j, "slowness", node_link_slowness(k));
    json_out_member_num(j, "rtt_us", (double)node_link_rtt_ns(k) / 1000);
    json_out_key(j, "clock_ms"); /* ahead of this member's clock; null: not known */
    node_link_clock(k, &clock_ms) ? json_out_num(j, (double)clock_ms) : json_out_null(j);
    if (s)
        put_machine(j, s);
    json_out_object_end(j);
}

/* This member, if others may send it requests: it is not among its own links. */
static void put_self(struct json_out *j, const struct node_state *s)
{
    uint32_t calls = 0;
    for (uint32_t i = 0; i < s->n_models; i++)
        calls += s->models[i].in_flight;
    json_out_object(j);
    json_out_member_str(j, "name", s->name);
    json_out_member_str(j, "address", s->address);
    json_out_member_bool(j, "self", true);
    json_out_member_str(j, "state", s->draining ? "draining" : "ready");
    json_out_member_str(j, "error", "");
    json_out_member_uint(j, "calls", calls);
    json_out_member_str(j, "breaker", breaker_state_name(BREAKER_CLOSED));
    json_out_member_num(j, "slowness", 0);
    json_out_member_num(j, "rtt_us", 0);
    put_machine(j, s);
    json_out_object_end(j);
}

static void put_counts(struct json_out *j, const struct replica_counts *n)
{
    json_out_member_object(j, "counts");
    json_out_member_uint(j, "requests", n->n_requests);
    json_out_member_uint(j, "moved", n->n_moved);
    json_out_member_uint(j, "split", n->n_split);
    json_out_member_uint(j, "retried", n->n_retried);
    json_out_member_uint(j, "lost", n->n_lost);
    json_out_member_uint(j, "hedged", n->n_hedged);
    json_out_member_uint(j, "stalled", n->n_stalled);
    json_out_member_uint(j, "second_won", n->n_won);
    json_out_member_uint(j, "breakers_opened", n->n_opened);
    json_out_object_end(j);
}

/* ---- desired and actual state ---- */

struct desired_out {
    struct json_out *j;
    const struct members *members; /* or NULL */
    const struct node_state *self; /* NULL: this member is not a node */
    const struct desired_model *model;
    uint32_t n_ready;
};

static void count_ready_of(struct desired_out *o, const struct node_state *s)
{
    const struct node_model *m = NULL;
    while ((m = node_state_next(s, m, o->model->name, 0)))
        if (m->state == REGISTRY_READY && m->duty != DESIRED_LEAVE && m->duty != DESIRED_STAGE &&
            m->sum && memcmp(m->sum, o->model->sha256, SHA256_BYTES) == 0)
            o->n_ready += node_model_replicas(m);
}

static void count_ready(void *ctx, const struct node_link *k)
{
    if (node_link_ready(k, clock_ns()))
        count_ready_of(ctx, node_link_state(k));
}

static void put_wanted(struct desired_out *o, const struct desired *d)
{
    const struct desired_model *m = o->model;
    struct json_out *j = o->j;
    char version[2 * SHA256_BYTES + 1];
    sha256_hex(version, m->sha256);
    o->n_ready = 0;
    if (o->members)
        members_each(o->members, count_ready, o);
    if (o->self && !o->self->draining)
        count_ready_of(o, o->self);
    json_out_object(j);
    json_out_member_str(j, "name", m->name);
    json_out_member_str(j, "version", version);
    json_out_member_uint(j, "min", m->replicas_min);
    json_out_member_uint(j, "max", m->replicas_max);
    json_out_member_uint(j, "want", m->replicas_want);
    json_out_member_uint(j, "ready", o->n_ready);
    json_out_member_array(j, "nodes");
    for (uint32_t i = 0; i < d->n_assignments; i++) {
        const struct desired_assignment *a = &d->assignments[i];
        if (strcmp(a->model, m->name) != 0)
            continue;
        json_out_object(j);
        json_out_member_str(j, "node", a->node);
        json_out_member_str(j, "duty", desired_duty_text(a->duty));
        json_out_member_uint(j, "replicas", desired_copies(a));
        json_out_object_end(j);
    }
    json_out_array_end(j);
    json_out_object_end(j);
}

static void put_desired(void *ctx, const struct desired *d)
{
    struct desired_out *o = ctx;
    json_out_member_object(o->j, "desired");
    json_out_member_uint(o->j, "version", d->version);
    json_out_member_array(o->j, "models");
    for (uint32_t i = 0; i < d->n_models; i++) {
        o->model = &d->models[i];
        put_wanted(o, d);
    }
    json_out_array_end(o->j);
    json_out_member_array(o->j, "drained");
    for (uint32_t i = 0; i < d->drained.n; i++)
        json_out_str(o->j, d->drained.items[i]);
    json_out_array_end(o->j);
    json_out_object_end(o->j);
}

static void put_control(struct json_out *j, struct call *c, const struct node_state *self)
{
    struct join *join = c->gl->gw->join;
    struct desired_out o = {.j = j, .members = c->gl->members, .self = self};
    struct join_view v;
    if (!join)
        return;
    join_get_view(join, &v);
    json_out_member_str(j, "controller", v.controller);
    json_out_member_uint(j, "fence", v.fence);
    if (v.own.gap[0])
        json_out_member_str(j, "gap", v.own.gap);
    json_out_key(j, "may_change"); /* whether this client may drain nodes here */
    json_out_bool(j, guard_may_change(c) && config_may_change(c->gl->config));
    join_with_desired(join, put_desired, &o);
}

/* This member's features besides models, so that a page shows views for them. */
static void put_offers(struct json_out *j, const struct gw *gw)
{
    json_out_member_array(j, "offers");
    if (gw->plant)
        json_out_str(j, "sensors");
    if (gw->demo)
        json_out_str(j, "demo");
    if (gw->home.things)
        json_out_str(j, "home");
    json_out_array_end(j);
}

static void put_cluster(struct call *c)
{
    struct gw *gw = c->gl->gw;
    const struct config_cluster *k = &c->gl->config->cluster;
    const bool is_node = k->listen.n > 0;
    struct json_out j = json_out_make(&c->out);
    struct node_state self;
    struct arena a;
    arena_init(&a, NODE_STATE_MAX_BYTES);
    if (is_node)
        node_self_fill(&self, &a, c->gl);
    json_out_object(&j);
    json_out_member_str(&j, "member", k->name ? k->name : "");
    json_out_member_str(&j, "shoal", k->shoal ? k->shoal : "");
    if (is_node || k->nodes.n > 0 || gw->join) {
        struct node_health mine;
        node_health_get(&gw->health, &mine);
        json_out_member_str(&j, "program", SHOAL_VERSION);
        put_health(&j, &mine);
    }
    json_out_member_str(&j, "nats", !gw->join ? "none" : join_up(gw->join) ? "up" : "away");
    put_control(&j, c, is_node ? &self : NULL);
    put_offers(&j, gw);
    put_counts(&j, &gw->relayed);
    json_out_member_array(&j, "nodes");
    if (is_node)
        put_self(&j, &self);
    if (c->gl->members)
        members_each(c->gl->members, put_node, &j);
    json_out_array_end(&j);
    api_rollouts_put(&j, c);
    json_out_object_end(&j);
    arena_fini(&a);
}

static void send_event(struct call *c)
{
    if (!c->began)
        call_begin(c, "text/event-stream");
    call_event_begin(c, NULL);
    put_cluster(c);
    call_event_end(c);
    call_flush(c);
}

void api_cluster(struct call *c)
{
    static const struct ticker_ops ops = {send_event, call_end};
    bool stream;
    if (!call_query_bool(c, "stream", &stream))
        return;
    if (!stream) {
        put_cluster(c);
        call_json(c, 200);
    } else if (!ticker_start(c, STREAM_MS, &ops)) {
        call_refuse(c, GW_REFUSED_BUSY, 429, 10, "too many clients watch this server");
    }
}

/* ---- changing it ---- */

struct body {
    const char *node, *action;
};

#define AT(member) offsetof(struct body, member)
const struct field api_cluster_fields[] = {
    {"node", FIELD_STR, AT(node), 0, 0, "name of a node", NULL},
    {"action", FIELD_STR, AT(action), 0, 0, "drain or undrain", NULL}};
const size_t api_n_cluster_fields = sizeof(api_cluster_fields) / sizeof(api_cluster_fields[0]);

void api_cluster_change(struct call *c)
{
    struct body b = {.node = NULL};
    struct fields_error fe = {{0}, {0}, NULL};
    struct err e = {0};
    int rc = fields_read(api_cluster_fields, api_n_cluster_fields, c->json, &b, c->lenient, &fe);
    bool drain = b.action && strcmp(b.action, "drain") == 0;
    if (rc == 0 && (!b.node || !b.node[0] || !b.action))
        rc = fields_fail(&fe, b.node ? "action" : "node", "missing_required_parameter",
                         "'node' and 'action' are required");
    else if (rc == 0 && !drain && strcmp(b.action, "undrain") != 0)
        rc = fields_fail(&fe, "action", "invalid_value", "'action' must be drain or undrain");
    if (rc < 0) {
        call_fail_fields(c, &fe);
        return;
    }
    rc = c->gl->gw->join ? join_set_drained(c->gl->gw->join, b.node, drain, &e)
                         : err_set(&e, SHOAL_EINVAL,
                                   "no NATS is configured: drain a node by sending it SIGTERM");
    if (rc < 0) {
        call_fail_code(c, rc, e.msg);
        return;
    }
    put_cluster(c);
    call_json(c, 202); /* takes effect once the controller has seen it */
}
