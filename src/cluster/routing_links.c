/* routing_links.c - see routing_links.h. */
#include "cluster/routing_links.h"

#include "base/clock.h"
#include "base/thread/executor.h"
#include "cluster/affinity/prefix_chain.h"
#include "cluster/members.h"
#include "flow/request.h"

#define LOADING_NS 2000000000.0 /* a model that must be loaded first */

struct giving {
    const struct members *members;
    struct request *request;
    struct prefix_chain *prefix[2]; /* of its client, and shared; NULL: not made yet */
    unsigned kind;
    uint64_t now;
    void (*fn)(void *ctx, const char *model, const struct router_candidate *c);
    void *ctx;
};

static enum router_state state_of(const struct node_model *m, const struct node_state *s)
{
    if (!node_model_usable(m, s->epoch, false))
        return ROUTER_GONE;
    /* a standby is used only when no other can answer */
    return m->state == REGISTRY_READY && !m->standby ? ROUTER_READY : ROUTER_LOADING;
}

/* How much of the prompt the node has read with this model. */
static double held(struct giving *g, const struct node_link *k, const struct node_model *m)
{
    struct request *r = g->request;
    const bool shared = r->shares_cache || m->shares_cache;
    if (!g->prefix[shared] && r->kind == REQUEST_GENERATE)
        g->prefix[shared] = prefix_chain_make(&r->arena, r, shared);
    if (g->prefix[shared])
        prefix_chain_for(g->prefix[shared], m->name);
    return members_held(g->members, g->prefix[shared], k, g->now);
}

static struct router_speed speed_of(struct giving *g, const struct node_link *k,
                                    const struct node_model *m)
{
    const double slow = node_link_slowness(k);
    const double times = slow > NODE_LINK_INCREDIBLE ? slow : 1;
    struct router_speed s = {.prefill_ns = m->prefill_ns * times,
                             .token_ns = m->token_ns * times,
                             .unit_ns = m->unit_ns * times,
                             .queue_ns = m->queue_ns,
                             .rtt_ns = (double)node_link_rtt_ns(k),
                             .answer_tokens = m->answer_tokens,
                             .error = m->prediction_error,
                             .held = held(g, k, m),
                             .in_flight = m->in_flight,
                             .parallel = m->parallel};
    router_speed_unseen(&s, node_link_calls(k));
    if (m->state != REGISTRY_READY)
        s.load_ns = LOADING_NS;
    return s;
}

static void give(void *ctx, const struct node_link *k)
{
    struct giving *g = ctx;
    const struct node_state *s = node_link_state(k);
    if (!s || !node_link_ready(k, g->now))
        return;
    for (uint32_t i = 0; i < s->n_models; i++) {
        const struct node_model *m = &s->models[i];
        if ((m->kinds && !(m->kinds & g->kind)) || !node_link_passes(k, m->name, g->now))
            continue;
        const struct router_candidate c = {.node = node_link_name(k),
                                           .state = state_of(m, s),
                                           .context = m->n_ctx,
                                           .speed = speed_of(g, k, m),
                                           .on_battery = s->on_battery,
                                           .battery = s->battery_percent};
        g->fn(g->ctx, m->name, &c);
    }
}

static void each(struct routing_source *s, struct request *r, unsigned kind,
                 void (*fn)(void *ctx, const char *model, const struct router_candidate *c),
                 void *ctx)
{
    const struct routing_links *l = EXECUTOR_OF(s, struct routing_links, source);
    struct giving g = {
        .members = l->members, .request = r, .kind = kind, .now = clock_ns(), .fn = fn, .ctx = ctx};
    members_each(l->members, give, &g);
}

static bool settled(struct routing_source *s)
{
    const struct routing_links *l = EXECUTOR_OF(s, struct routing_links, source);
    return members_settled(l->members);
}

void routing_links_init(struct routing_links *l, const struct members *m)
{
    *l = (struct routing_links){.source = {each, settled}, .members = m};
}
