/* members.c - see members.h. */
#include "cluster/members.h"

#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "cluster/relay.h"
#include "cluster/replica_local.h"
#include "flow/request.h"

#define MS_NS 1000000u
#define UNKNOWN_TOKEN_NS 2000000.0 /* of a model that was not measured yet */

struct members {
    struct dispatch dispatch; /* first */
    struct replica_source source;
    struct loop *loop;
    struct registry *registry;
    uint32_t wait_ms, heartbeat_ms, silent_ms;
    struct tls_client *tls;
    uint64_t refresh_ns;
    struct node_link *links[MEMBERS_MAX_NODES];
    uint32_t n_links, turn;
    /* this process, as its own heartbeat would show it */
    struct replica here;
    struct executor_timer refresh;
    struct arena arena;
    struct node_state local;
};

static struct members *members_of(const struct replica_source *s)
{
    return EXECUTOR_OF(s, struct members, source);
}

/* ---- choosing ---- */

static unsigned kind_of(const struct request *r)
{
    return r->kind == REQUEST_GENERATE ? SHOAL_KIND_GENERATE
           : r->kind == REQUEST_INFER  ? (unsigned)r->infer.kind
                                       : 0;
}

/* What the node has for this request; NULL: nothing.  A flow needs no model by name. */
static const struct node_model *model_for(const struct node_state *s, const struct request *r)
{
    static const struct node_model flow = {.name = "", .state = REGISTRY_READY};
    if (r->kind == REQUEST_ASK)
        return s->asks ? &flow : NULL;
    return node_state_model(s, r->model, kind_of(r));
}

static bool has_version(const struct node_model *m, const uint8_t *version)
{
    return !version || (m->sum && memcmp(m->sum, version, SHA256_BYTES) == 0);
}

static bool is_avoided(const struct replica_query *q, const struct replica *p)
{
    for (size_t i = 0; i < q->n_avoid; i++)
        if (q->avoid[i] == p)
            return true;
    return false;
}

/* How long a request would take there, roughly: its cost times the requests that share the
 * machine.  calls: of ours, which the node's own figure may not show yet. */
static double price(const struct node_model *m, uint32_t calls)
{
    double token = m->token_ns > 0 ? m->token_ns : UNKNOWN_TOKEN_NS;
    uint32_t busy = m->in_flight > calls ? m->in_flight : calls;
    double loading = m->state == REGISTRY_READY ? 1 : 8; /* it has to be loaded first */
    return token * (1 + busy) * loading;
}

static bool usable(const struct node_model *m)
{
    return m->state != REGISTRY_FAILED && m->state != REGISTRY_UNLOADING;
}

static enum replica_found find(struct replica_source *s, const struct replica_query *q,
                               struct replica **out)
{
    struct members *m = members_of(s);
    uint64_t now = clock_ns();
    bool known = false, unsettled = false;
    double best = 0;
    *out = NULL;
    const struct node_model *here = model_for(&m->local, q->request);
    if (here && usable(here) && has_version(here, q->version)) {
        known = true;
        if (!is_avoided(q, &m->here)) {
            *out = &m->here;
            best = price(here, here->in_flight);
        }
    }
    m->turn++; /* equal nodes take turns */
    for (uint32_t i = 0; i < m->n_links; i++) {
        struct node_link *k = m->links[(m->turn + i) % m->n_links];
        const struct node_state *state = node_link_state(k);
        const struct node_model *there = state ? model_for(state, q->request) : NULL;
        unsettled |= !node_link_settled(k);
        if (!there || !has_version(there, q->version))
            continue;
        known = true;
        if (!usable(there) || !node_link_ready(k, now) || is_avoided(q, node_link_replica(k)))
            continue;
        double x = price(there, node_link_calls(k));
        if (!*out || x < best) {
            best = x;
            *out = node_link_replica(k);
        }
    }
    return *out ? REPLICA_FOUND : known || unsettled ? REPLICA_LATER : REPLICA_NONE;
}

/* Whether anybody but this process could answer. */
static bool elsewhere(const struct members *m, const struct request *r)
{
    bool here = model_for(&m->local, r) != NULL;
    for (uint32_t i = 0; i < m->n_links; i++) {
        const struct node_state *s = node_link_state(m->links[i]);
        if (s ? model_for(s, r) != NULL : !here)
            return true;
    }
    return !here && m->n_links > 0;
}

static bool run(struct dispatch *d, struct flow_owner *o, struct request *r, struct sink *s)
{
    struct members *m = (struct members *)(void *)d;
    const struct relay_opts opts = {&m->source, m->wait_ms};
    if (!elsewhere(m, r))
        return false;
    relay_run(&opts, o, r, s);
    return true;
}

/* ---- lifetime ---- */

static void on_refresh(struct executor_timer *t)
{
    struct members *m = LOOP_OF(t, struct members, refresh);
    arena_reset(&m->arena, (size_t)64 << 10);
    if (m->registry)
        node_state_collect(&m->local, &m->arena, m->registry);
    loop_timer_set(m->loop, t, clock_ns() + m->refresh_ns);
}

static int add_link(struct members *m, const char *address, const char *name, struct err *e)
{
    const struct node_link_opts lo = {.address = address,
                                      .tls = m->tls,
                                      .name = name,
                                      .heartbeat_ms = m->heartbeat_ms,
                                      .silent_ms = m->silent_ms};
    if (m->n_links == MEMBERS_MAX_NODES)
        return err_set(e, SHOAL_ELIMIT, "there are more than %u nodes", MEMBERS_MAX_NODES);
    int rc = node_link_create(&m->links[m->n_links], m->loop, &lo, e);
    m->n_links += rc == 0;
    return rc;
}

static uint32_t index_of(const struct members *m, const char *address)
{
    uint32_t i = 0;
    while (i < m->n_links && strcmp(node_link_address(m->links[i]), address) != 0)
        i++;
    return i;
}

void members_add(struct members *m, const char *address, const char *name)
{
    struct err e = {0};
    if (index_of(m, address) == m->n_links && add_link(m, address, name, &e) < 0)
        log_warn("cluster", "node %s at %s cannot be used: %s", name, address, e.msg);
}

void members_remove(struct members *m, const char *address)
{
    uint32_t i = index_of(m, address);
    if (i == m->n_links || node_link_calls(m->links[i]) > 0 ||
        node_link_ready(m->links[i], clock_ns()))
        return;
    node_link_destroy(m->links[i]);
    m->links[i] = m->links[--m->n_links];
}

int members_create(struct members **out, struct loop *l, const struct members_opts *o,
                   struct err *e)
{
    static const struct dispatch_ops ops = {run};
    static const struct replica_source_ops source_ops = {find};
    struct members *m = mem_zalloc(sizeof(*m));
    int rc = 0;
    *out = NULL;
    if (!m)
        return err_set(e, SHOAL_ENOMEM, "out of memory for the nodes");
    m->dispatch.ops = &ops;
    m->source.ops = &source_ops;
    m->loop = l;
    m->registry = o->registry;
    m->wait_ms = o->wait_ms;
    m->heartbeat_ms = o->heartbeat_ms;
    m->silent_ms = o->silent_ms;
    m->tls = o->tls;
    m->local.asks = o->asks;
    m->refresh_ns = (uint64_t)o->heartbeat_ms * MS_NS;
    m->refresh.fn = on_refresh;
    arena_init(&m->arena, NODE_STATE_MAX_BYTES * 8);
    replica_local_init(&m->here);
    m->source.here = &m->here;
    m->source.counts = o->counts;
    for (uint32_t i = 0; i < o->n_nodes && rc == 0; i++)
        rc = add_link(m, o->nodes[i], NULL, e);
    if (rc < 0) {
        members_destroy(m);
        return rc;
    }
    on_refresh(&m->refresh);
    *out = m;
    return 0;
}

void members_destroy(struct members *m)
{
    if (!m)
        return;
    loop_timer_clear(m->loop, &m->refresh);
    for (uint32_t i = 0; i < m->n_links; i++)
        node_link_destroy(m->links[i]);
    arena_fini(&m->arena);
    mem_free(m);
}

struct dispatch *members_dispatch(struct members *m)
{
    return &m->dispatch;
}

bool members_settled(const struct members *m)
{
    for (uint32_t i = 0; i < m->n_links; i++)
        if (!node_link_settled(m->links[i]))
            return false;
    return true;
}

bool members_ready(const struct members *m)
{
    uint64_t now = clock_ns();
    for (uint32_t i = 0; i < m->n_links; i++)
        if (node_link_ready(m->links[i], now))
            return true;
    return false;
}

void members_each(const struct members *m, void (*fn)(void *ctx, const struct node_link *k),
                  void *ctx)
{
    for (uint32_t i = 0; i < m->n_links; i++)
        fn(ctx, m->links[i]);
}

/* Whether a node before the i-th has a model of this name. */
static bool named_before(const struct members *m, uint32_t i, const char *name)
{
    for (uint32_t k = 0; k < i; k++) {
        const struct node_state *s = node_link_state(m->links[k]);
        if (s && node_state_model(s, name, 0))
            return true;
    }
    return false;
}

void members_each_model(const struct members *m,
                        void (*fn)(void *ctx, const struct node_model *model), void *ctx)
{
    for (uint32_t i = 0; i < m->n_links; i++) {
        const struct node_state *s = node_link_state(m->links[i]);
        for (uint32_t k = 0; s && k < s->n_models; k++)
            if (!named_before(m, i, s->models[k].name))
                fn(ctx, &s->models[k]);
    }
}
