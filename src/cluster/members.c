/* members.c - see members.h. */
#include "cluster/members.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/mem.h"
#include "cluster/affinity/prefix_chain.h"
#include "cluster/affinity/prefix_sent.h"
#include "cluster/choose.h"
#include "cluster/deployed.h"
#include "cluster/relay.h"
#include "cluster/replica_local.h"
#include "flow/request.h"

#define MS_NS 1000000u
/* What a session counts as, and up to twice that, whose node has read nothing of the present
 * prompt: its cache is there if anywhere, for example after the oldest turns were left out. */
#define SESSION_HELD 0.3

struct members {
    struct dispatch dispatch; /* first */
    struct replica_source source;
    struct loop *loop;
    struct registry *registry;
    struct deployed *deployed; /* or NULL */
    uint32_t wait_ms, total_ms, heartbeat_ms, silent_ms, hedge_ms;
    const char *const *hedge_models;
    uint32_t n_hedge_models;
    struct tls_client *tls;
    uint64_t refresh_ns;
    struct node_link *links[MEMBERS_MAX_NODES];
    uint32_t n_links, turn;
    /* this process, as its own heartbeat would show it */
    struct replica here;
    struct executor_timer refresh;
    struct arena arena;
    struct node_state local;
    const char *ask_model;
    struct prefix_table *prefixes;
    struct prefix_sent *sent;
    enum split_mode split;
};

static struct members *members_of(const struct replica_source *s)
{
    return EXECUTOR_OF(s, struct members, source);
}

/* ---- what nodes have read before ---- */

/* Whose memory is asked. */
struct reader {
    const struct members *members;
    const struct node_link *link; /* NULL: this process */
    uint64_t now_ns;
};

static bool has_read(void *ctx, uint64_t hash)
{
    const struct reader *k = ctx;
    if (!k->link)
        return prefix_table_has(k->members->prefixes, hash);
    return node_link_has_prefix(k->link, hash) ||
           prefix_sent_has(k->members->sent, node_link_name(k->link), hash, k->now_ns);
}

/* Of several nodes that have had the session, one is always preferred: it does not go to and fro.
 */
static double session_held(const struct reader *who, const struct prefix_chain *c)
{
    const char *name = who->link ? node_link_name(who->link) : "";
    const double turn = (double)(hash_bytes(name, strlen(name), c->session) >> 11) / (1ull << 53);
    return SESSION_HELD * (1 + turn);
}

double members_held(const struct members *m, const struct prefix_chain *c,
                    const struct node_link *k, uint64_t now_ns)
{
    struct reader who = {m, k, now_ns};
    if (!c || !m->sent)
        return 0;
    double held = prefix_chain_held(c, has_read, &who);
    double least =
        c->session && has_read(&who, prefix_chain_key(c, c->session)) ? session_held(&who, c) : 0;
    return held > least ? held : least;
}

/* One that a client may find is salted by the client.  If the nodes disagree whether clients share
 * the cache of the model, some prefixes are not found; none is found that should not be. */
static bool is_shared(const struct members *m, const struct request *r)
{
    const struct node_model *k = choose_model(&m->local, r, NULL);
    bool shared = r->shares_cache || (k && k->shares_cache);
    for (uint32_t i = 0; i < m->n_links && !shared; i++) {
        const struct node_state *s = node_link_state(m->links[i]);
        k = s ? choose_model(s, r, NULL) : NULL;
        shared = k && k->shares_cache;
    }
    return shared;
}

static const struct prefix_chain *prefix_of(const struct members *m, struct request *r)
{
    const struct prefix_chain *c =
        m->sent ? prefix_chain_make(&r->arena, r, is_shared(m, r)) : NULL;
    if (c)
        prefix_chain_tell(c, r);
    return c;
}

/* The replica was chosen: it will have read this prompt. */
static void note_sent(struct members *m, const struct replica *p, const struct prefix_chain *c,
                      uint64_t now_ns)
{
    if (c && p == &m->here)
        prefix_table_note(m->prefixes, c);
    else if (c)
        prefix_sent_note(m->sent, p->name, c, now_ns);
}

/* ---- choosing ---- */

/* No node has the model ready; if it is deployed, one will. A process that has just started has not
 * heard all nodes yet. */
static bool may_come(struct members *m, const struct request *r)
{
    if (!m->deployed)
        return false;
    return !deployed_settled(m->deployed) ||
           (r->kind != REQUEST_ASK && deployed_want(m->deployed, r->model, choose_kind(r)));
}

static enum replica_found find(struct replica_source *s, const struct replica_query *q,
                               struct replica **out)
{
    struct members *m = members_of(s);
    uint64_t now = clock_ns();
    bool unsettled = false, unheard = false;
    struct choose c = {.now_ns = now, .deployed = m->deployed, .split = m->split};
    const struct choose_view here = {.state = &m->local,
                                     .replica = &m->here,
                                     .name = "",
                                     .ready = true,
                                     .slowness = 1,
                                     .held = members_held(m, q->prefix, NULL, now)};
    choose_look(&c, q, &here);
    m->turn++; /* equal nodes take turns */
    for (uint32_t i = 0; i < m->n_links; i++) {
        struct node_link *k = m->links[(m->turn + i) % m->n_links];
        const struct node_state *state = node_link_state(k);
        unsettled |= !node_link_settled(k);
        unheard |= !node_link_heard(k);
        if (!state)
            continue;
        double slow = node_link_slowness(k);
        const struct choose_view there = {.state = state,
                                          .replica = node_link_replica(k),
                                          .name = node_link_name(k),
                                          .ready = node_link_ready(k, now) &&
                                                   node_state_knows(state, q->request->epoch) &&
                                                   node_link_passes(k, q->request->model, now),
                                          .calls = node_link_calls(k),
                                          .told_calls = node_link_told_calls(k),
                                          .slowness = slow > NODE_LINK_INCREDIBLE ? slow : 1,
                                          .held = members_held(m, q->prefix, k, now),
                                          .probe = node_link_probe(k)};
        choose_look(&c, q, &there);
    }
    *out = choose_end(&c, q);
    if (*out) {
        note_sent(m, *out, q->prefix, now);
        return REPLICA_FOUND;
    }
    c.known |= may_come(m, q->request);
    if (c.known || unsettled)
        return REPLICA_LATER;
    return unheard ? REPLICA_UNHEARD : REPLICA_NONE;
}

static bool can_use(const struct node_state *s, const struct request *r)
{
    const struct node_model *m = NULL;
    while ((m = choose_model(s, r, m)))
        if (node_model_usable(m, r->epoch, r->may_be_old))
            return true;
    return false;
}

/* Whether anybody but this process could answer. */
static bool elsewhere(struct members *m, const struct request *r)
{
    bool here = can_use(&m->local, r);
    for (uint32_t i = 0; i < m->n_links; i++) {
        const struct node_state *s = node_link_state(m->links[i]);
        if (s ? choose_model(s, r, NULL) != NULL : !here)
            return true;
    }
    return !here && (m->n_links > 0 || may_come(m, r));
}

static int descending(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? 1 : x > y ? -1 : 0;
}

/* The epoch of new requests: this process's own, or the one reported by more than half of the nodes
 * that have one. A single node cannot send the gateways into an epoch that nobody serves. */
static void update_epoch(struct members *m)
{
    uint64_t said[MEMBERS_MAX_NODES], now = clock_ns(); /* runs for every request, so not zeroed */
    uint32_t n = 0;
    for (uint32_t i = 0; i < m->n_links; i++) {
        const struct node_state *s = node_link_state(m->links[i]);
        if (s && s->epoch_end > 0 && node_link_ready(m->links[i], now))
            said[n++] = s->epoch;
    }
    if (n > 0)
        qsort(said, n, sizeof(said[0]), descending);
    if (n > 0 && said[n / 2] > m->source.epoch)
        m->source.epoch = said[n / 2];
    if (m->local.epoch > m->source.epoch)
        m->source.epoch = m->local.epoch;
}

static bool is_hedged(const struct members *m, const struct request *r)
{
    for (uint32_t i = 0; i < m->n_hedge_models; i++)
        if (r->model && strcmp(m->hedge_models[i], r->model) == 0)
            return true;
    return m->n_hedge_models == 0;
}

static bool run(struct dispatch *d, struct flow_owner *o, struct request *r, struct sink *s)
{
    struct members *m = (struct members *)(void *)d;
    if (!elsewhere(m, r))
        return false;
    const struct relay_opts opts = {.source = &m->source,
                                    .prefix = prefix_of(m, r),
                                    .wait_ms = m->wait_ms,
                                    .total_ms = m->total_ms,
                                    .hedge_ms = is_hedged(m, r) ? m->hedge_ms : 0};
    if (m->source.epoch == 0)
        update_epoch(m);
    relay_run(&opts, o, r, s);
    return true;
}

/* Before the first `strong` update no epoch is known, and requests carry 0, the current epoch. A
 * request that fans out carries the first epoch instead, if all nodes know it: it must not follow
 * into the second. */
static uint64_t epoch(struct dispatch *d)
{
    struct members *m = (struct members *)(void *)d;
    if (m->source.epoch == 0)
        update_epoch(m);
    bool known = node_state_knows(&m->local, REGISTRY_FIRST_EPOCH);
    for (uint32_t i = 0; i < m->n_links; i++) {
        const struct node_state *s = node_link_state(m->links[i]);
        known &= !s || node_state_knows(s, REGISTRY_FIRST_EPOCH);
    }
    return m->source.epoch == 0 && known ? REGISTRY_FIRST_EPOCH : m->source.epoch;
}

/* ---- lifetime ---- */

static void on_refresh(struct executor_timer *t)
{
    struct members *m = LOOP_OF(t, struct members, refresh);
    arena_reset(&m->arena, (size_t)64 << 10);
    if (m->registry)
        node_state_collect(&m->local, &m->arena, m->registry);
    m->local.asks = m->ask_model && node_state_model(&m->local, m->ask_model, 0);
    update_epoch(m);
    loop_timer_set(m->loop, t, clock_ns() + m->refresh_ns);
}

static int add_link(struct members *m, const char *address, const char *name, struct err *e)
{
    const struct node_link_opts lo = {.address = address,
                                      .tls = m->tls,
                                      .name = name,
                                      .heartbeat_ms = m->heartbeat_ms,
                                      .silent_ms = m->silent_ms,
                                      .counts = m->source.counts};
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
    static const struct dispatch_ops ops = {.run = run, .epoch = epoch};
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
    m->deployed = o->deployed;
    m->wait_ms = o->wait_ms;
    m->total_ms = o->total_ms;
    m->heartbeat_ms = o->heartbeat_ms;
    m->silent_ms = o->silent_ms;
    m->hedge_ms = o->hedge_ms;
    m->hedge_models = o->hedge_models;
    m->n_hedge_models = o->n_hedge_models;
    m->tls = o->tls;
    m->ask_model = o->ask_model;
    m->prefixes = o->prefixes;
    m->sent = o->sent;
    m->split = o->sent ? o->split : SPLIT_NEVER; /* who has the prompt would not be known */
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
    return !m->deployed || deployed_settled(m->deployed);
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

struct unheld {
    const struct members *members;
    void (*fn)(void *ctx, const struct node_model *model);
    void *ctx;
};

static void give_unheld(void *ctx, const char *name, unsigned kinds)
{
    const struct unheld *u = ctx;
    const struct node_model m = {.name = name, .kinds = kinds, .state = REGISTRY_UNLOADED};
    if (!named_before(u->members, u->members->n_links, name))
        u->fn(u->ctx, &m);
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
    struct unheld u = {m, fn, ctx};
    if (m->deployed)
        deployed_each(m->deployed, give_unheld, &u);
}
