/* api_cluster.c - the shoal as this member sees it: nodes, their models, what was moved. */
#include <string.h>

#include "base/clock.h"
#include "cluster/join.h"
#include "cluster/members.h"
#include "gateway/api/api.h"
#include "gateway/call.h"
#include "gateway/ticker.h"
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
    json_out_key(j, "kinds");
    json_out_array(j);
    for (unsigned k = 1; k <= SHOAL_KIND_SCORE; k <<= 1)
        if (m->kinds & k)
            json_out_str(j, shoal_kind_name((enum shoal_kind)k));
    json_out_array_end(j);
    json_out_member_uint(j, "in_flight", m->in_flight);
    json_out_member_uint(j, "bytes", m->bytes);
    json_out_key(j, "prefill_us"); /* of a token */
    json_out_num(j, m->prefill_ns / 1000);
    json_out_key(j, "token_us");
    json_out_num(j, m->token_ns / 1000);
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
    json_out_key(j, "on_battery");
    json_out_bool(j, s->on_battery);
    json_out_key(j, "models");
    json_out_array(j);
    for (uint32_t i = 0; i < s->n_models; i++)
        put_model(j, &s->models[i]);
    json_out_array_end(j);
}

static void put_node(void *ctx, const struct node_link *k)
{
    struct json_out *j = ctx;
    const struct node_state *s = node_link_state(k);
    bool ready = node_link_ready(k, clock_ns());
    bool draining = s && s->draining;
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
    json_out_key(j, "slowness");
    json_out_num(j, node_link_slowness(k));
    json_out_key(j, "rtt_us");
    json_out_num(j, (double)node_link_rtt_ns(k) / 1000);
    if (s)
        put_machine(j, s);
    json_out_object_end(j);
}

static void put_counts(struct json_out *j, const struct replica_counts *n)
{
    json_out_key(j, "counts");
    json_out_object(j);
    json_out_member_uint(j, "requests", n->n_requests);
    json_out_member_uint(j, "moved", n->n_moved);
    json_out_member_uint(j, "retried", n->n_retried);
    json_out_member_uint(j, "lost", n->n_lost);
    json_out_member_uint(j, "hedged", n->n_hedged);
    json_out_member_uint(j, "stalled", n->n_stalled);
    json_out_member_uint(j, "second_won", n->n_won);
    json_out_member_uint(j, "breakers_opened", n->n_opened);
    json_out_object_end(j);
}

static void put_cluster(struct call *c)
{
    struct gw *gw = c->gl->gw;
    const struct config_cluster *k = &c->gl->config->cluster;
    struct json_out j = json_out_make(&c->out);
    json_out_object(&j);
    json_out_member_str(&j, "member", k->name ? k->name : "");
    json_out_member_str(&j, "shoal", k->shoal ? k->shoal : "");
    json_out_member_str(&j, "nats", !gw->join ? "none" : join_up(gw->join) ? "up" : "away");
    put_counts(&j, &gw->relayed);
    json_out_key(&j, "nodes");
    json_out_array(&j);
    if (c->gl->members)
        members_each(c->gl->members, put_node, &j);
    json_out_array_end(&j);
    json_out_object_end(&j);
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
    char stream[8];
    if (!http_query(c->req, "stream", stream, sizeof(stream)) || strcmp(stream, "true") != 0) {
        put_cluster(c);
        call_json(c, 200);
    } else if (!ticker_start(c, STREAM_MS, &ops)) {
        call_refuse(c, GW_REFUSED_BUSY, 429, 10, "too many watch this server");
    }
}
