/* sim_stream.c - see sim_inside.h: the gateway's relays, its clients, and nodes that answer. */
#include "cluster/sim/shoal/sim_inside.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "cluster/choose.h"
#include "cluster/deployed.h"
#include "cluster/join.h"
#include "cluster/relay.h"
#include "flow/acquire.h"

#define SILENT_NS SIM_S /* a node that is not heard for this long is lost */
#define WATCH_NS (100 * SIM_MS)
#define WAIT_MS 10000u
#define MAX_HELD 64u
#define STEADY_NS (1500 * SIM_MS) /* a node that is there for this long is known to the gateway */
#define KNOWN_NS (10 * SIM_S)     /* until all know that an update is done, or that they cannot */

/* The real one; the relay's goes through sim_flow_give_request. */
#undef flow_give_request
void flow_give_request(struct flow_owner *o, struct request *r);

static int32_t token_of(uint8_t version, uint64_t seed, uint32_t i)
{
    return (int32_t)(hash_mix(seed * 1000003 + version * 257 + i) & 0xffff);
}

/* ---- the epochs of requests ---- */

static struct {
    const struct request *request;
    uint64_t epoch;
} held[MAX_HELD];

void sim_flow_hold_epoch(struct flow_owner *o, struct request *r)
{
    uint32_t at = 0;
    (void)o;
    for (uint32_t i = 0; i < MAX_HELD; i++)
        if (held[i].request == r || (!held[i].request && held[at].request))
            at = i;
    held[at].request = r;
    held[at].epoch = r->epoch;
}

void sim_flow_give_request(struct flow_owner *o, struct request *r)
{
    for (uint32_t i = 0; i < MAX_HELD; i++)
        if (held[i].request == r)
            held[i].request = NULL;
    flow_give_request(o, r);
}

uint64_t sim_stream_held(void)
{
    uint64_t oldest = 0;
    for (uint32_t i = 0; i < MAX_HELD; i++)
        if (held[i].request && held[i].epoch && (!oldest || held[i].epoch < oldest))
            oldest = held[i].epoch;
    return oldest;
}

/* ---- a call of a node ---- */

struct sim_call {
    struct flow_job job; /* first */
    struct sim_call *next;
    struct sink *sink; /* the relay's; NULL: it is closed */
    struct sim_link *link;
    uint32_t life; /* of the node */
    uint64_t seed, epoch;
    uint32_t n_had, n_max;
    uint8_t wanted; /* version; 0: any */
    bool may_be_old;
    uint32_t n_refs;
    bool cancelled;
    /* at the node */
    uint8_t version;
    uint32_t n_sent;
    bool works, isolated;
};

static void release(struct sim_call *c)
{
    if (--c->n_refs > 0)
        return;
    struct sim_call **at = &sim.calls;
    while (*at != c)
        at = &(*at)->next;
    *at = c->next;
    sim_free(c);
}

/* At the gateway: the relay hears no more of it. */
static void close_call(struct sim_call *c)
{
    struct sink *s = c->sink;
    if (!s)
        return;
    c->sink = NULL;
    c->link->n_calls--;
    s->job = NULL;
    s->ops->closed(s);
    release(c);
}

static void fail_call(struct sim_call *c, enum failure_kind kind, const char *reason)
{
    struct failure f;
    if (!c->sink)
        return;
    failure_set(&f, kind, SHOAL_EIO, NULL, reason, "simulated: %s", reason);
    if (!c->cancelled)
        c->sink->ops->fail(c->sink, &f);
    close_call(c);
}

enum piece_kind { PIECE_START, PIECE_TOKEN, PIECE_DONE, PIECE_REFUSED };

struct piece {
    struct sim_call *call;
    enum piece_kind kind;
    uint32_t index;
};

static void tell_done(struct sim_call *c, uint32_t n)
{
    const struct sink_done d = {
        .finish = SHOAL_FINISH_LENGTH, .prompt_tokens = 4, .generated_tokens = n, .last = true};
    c->sink->ops->done(c->sink, &d);
    close_call(c);
}

static void receive(void *ctx)
{
    struct piece *p = ctx;
    struct sim_call *c = p->call;
    uint8_t sum[SHA256_BYTES];
    char text[8];
    const uint64_t cable = sim.members[c->link->node].cable_ns;
    if (sim.now_ns < cable && c->sink) { /* the connection holds it back */
        sim_again(cable);
        return;
    }
    sim_version_sum(sum, c->version);
    const struct sink_start start = {
        .model = SIM_MODEL, .version = "v", .sum = sum, .isolated = c->isolated};
    const struct sink_token token = {
        .token = token_of(c->version, c->seed, p->index), .text = text, .text_bytes = 4};
    snprintf(text, sizeof(text), "%04x", (unsigned)token.token);
    if (c->sink && !c->cancelled && c->life == c->link->life) {
        if (p->kind == PIECE_START)
            c->sink->ops->start(c->sink, &start);
        else if (p->kind == PIECE_TOKEN)
            c->sink->ops->token(c->sink, &token);
        else if (p->kind == PIECE_DONE)
            tell_done(c, p->index);
        else
            fail_call(c, FAILURE_NOT_FOUND, ACQUIRE_NO_VERSION);
    }
    sim_free(p);
    release(c);
}

/* From the node to the gateway, in order. */
static void send(struct sim_call *c, enum piece_kind kind, uint32_t index)
{
    struct piece *p = sim_zalloc(sizeof(*p));
    uint64_t at = sim.now_ns + sim_between(0, sim.slow_ns);
    *p = (struct piece){c, kind, index};
    if (at < c->link->last_ns)
        at = c->link->last_ns;
    c->link->last_ns = at;
    c->n_refs++;
    sim_at(at, SIM_GATEWAY, receive, p);
}

/* The version that serves the call on this node, as registry_get_wanted finds it; NULL: none. */
static struct sim_loaded *serving(struct sim_member *m, const struct sim_call *c)
{
    const uint64_t epoch = c->epoch ? c->epoch : m->epoch;
    struct sim_loaded *best = NULL;
    if (m->epoch_end && epoch >= m->epoch_end && !c->wanted)
        return NULL;
    for (struct sim_loaded *k = m->models; k; k = k->next) {
        const bool fits = c->wanted ? k->model.sum[0] == c->wanted
                                    : registry_serves(&k->model.service, epoch, c->may_be_old);
        if (fits && k->slot.state == REGISTRY_READY &&
            (!best || k->model.service.epoch > best->model.service.epoch))
            best = k;
    }
    return best;
}

static bool node_has(const struct sim_call *c)
{
    const struct sim_member *m = &sim.members[c->link->node];
    return m->life == c->life && !m->dead;
}

static void leave(struct sim_call *c)
{
    uint8_t sum[SHA256_BYTES];
    sim_version_sum(sum, c->version);
    struct sim_loaded *k = sim_member_model(&sim.members[c->link->node], sum);
    if (k && c->works && node_has(c) && k->model.users > 0)
        k->model.users--;
    c->works = false;
}

static void compute(void *ctx)
{
    struct sim_call *c = ctx;
    if (node_has(c) && !c->cancelled && c->sink) {
        send(c, PIECE_TOKEN, c->n_had + c->n_sent++);
        if (c->n_had + c->n_sent < c->n_max) {
            const bool slow = !sim.calm && sim_pick(200) == 0;
            sim_at(sim.now_ns + sim_between(5 * SIM_MS, slow ? 3 * SIM_S : 60 * SIM_MS),
                   c->link->node, compute, c);
            return;
        }
        send(c, PIECE_DONE, c->n_max);
    }
    leave(c);
    release(c);
}

static void reach_node(void *ctx)
{
    struct sim_call *c = ctx;
    struct sim_member *m = &sim.members[c->link->node];
    struct sim_loaded *k = node_has(c) ? serving(m, c) : NULL;
    if (!node_has(c) || c->cancelled) {
        release(c);
        return;
    }
    if (sim.now_ns < m->cable_ns && sim_pick(4) > 0) { /* else a node that has it, and is silent */
        sim_again(m->cable_ns);
        return;
    }
    if (sim.now_ns < m->cable_ns) {
        release(c);
        return;
    }
    if (!k || (!sim.calm && sim_pick(300) == 0)) {
        send(c, PIECE_REFUSED, 0);
        release(c);
        return;
    }
    c->version = k->model.sum[0];
    c->works = true;
    c->isolated = m->join && join_is_isolated(m->join, c->may_be_old);
    k->model.users++;
    send(c, PIECE_START, 0);
    if (c->n_had >= c->n_max) {
        send(c, PIECE_DONE, c->n_max);
        leave(c);
        release(c);
        return;
    }
    sim_at(sim.now_ns + sim_between(5 * SIM_MS, 80 * SIM_MS), c->link->node, compute, c);
}

static void end_cancelled(void *ctx)
{
    close_call(ctx);
    release(ctx);
}

static void on_cancel(struct flow_job *j)
{
    struct sim_call *c = (struct sim_call *)(void *)j;
    if (c->cancelled)
        return;
    c->cancelled = true;
    c->n_refs++;
    sim_at(sim.now_ns, SIM_GATEWAY, end_cancelled, c);
}

static void on_resume(struct flow_job *j)
{
    (void)j;
}

/* What the next node gets is what the client has. */
static void check_ticket(const struct request *r, const struct sim_call *c)
{
    const struct request_resume *had = r->generate.resume;
    for (uint32_t i = 0; had && i < had->n_tokens; i++)
        if (c->wanted == 0 || had->tokens[i] != token_of(c->wanted, c->seed, i)) {
            sim_broken("a ticket has a wrong token %u", i);
            return;
        }
}

static void run(struct replica *p, struct flow_owner *o, const struct request *r, struct sink *s)
{
    static const struct flow_job_ops ops = {on_cancel, on_resume};
    struct sim_link *k = (struct sim_link *)(void *)p;
    struct sim_call *c = sim_zalloc(sizeof(*c));
    (void)o;
    *c = (struct sim_call){.job = {&ops},
                           .next = sim.calls,
                           .sink = s,
                           .link = k,
                           .life = k->life,
                           .seed = r->generate.sampling.seed,
                           .epoch = r->epoch,
                           .may_be_old = r->may_be_old,
                           .n_had = r->generate.resume ? r->generate.resume->n_tokens : 0,
                           .n_max = r->generate.max_tokens,
                           .wanted = r->version ? r->version[0] : 0,
                           .n_refs = 2};
    sim.calls = c;
    check_ticket(r, c);
    s->job = &c->job;
    k->n_calls++;
    sim_at(sim.now_ns + sim_between(0, sim.slow_ns), k->node, reach_node, c);
}

uint64_t sim_stream_oldest(uint32_t node)
{
    uint64_t oldest = 0;
    for (const struct sim_call *c = sim.calls; c; c = c->next)
        if (c->works && c->link->node == node && c->epoch && (!oldest || c->epoch < oldest))
            oldest = c->epoch;
    return oldest;
}

/* ---- the nodes as the gateway knows them ---- */

static struct sim_call *next_of(const struct sim_link *k, uint32_t life)
{
    struct sim_call *c = sim.calls;
    while (c && (c->link != k || c->life != life || !c->sink))
        c = c->next;
    return c;
}

static void fail_all(struct sim_link *k, uint32_t life, const char *reason)
{
    uint32_t n = 0;
    k->has_state = false;
    for (const struct sim_call *c = sim.calls; c; c = c->next)
        n += c->link == k && c->life == life && c->sink;
    k->replica.n_ended = n;
    for (struct sim_call *c; (c = next_of(k, life));) /* failing one may start others */
        fail_call(c, FAILURE_UNAVAILABLE, reason);
    k->replica.n_ended = 0;
}

struct ending {
    uint32_t node, life;
};

static void notice_end(void *ctx)
{
    struct ending *x = ctx;
    struct sim_link *k = &sim.links[x->node];
    if (k->life == x->life)
        fail_all(k, x->life, REPLICA_ENDED);
    sim_free(x);
}

void sim_stream_ended(uint32_t node)
{
    struct ending *x = sim_zalloc(sizeof(*x));
    struct sim_link *k = &sim.links[node];
    *x = (struct ending){node, sim.members[node].life};
    uint64_t at = sim.now_ns + sim_between(0, sim.slow_ns);
    sim_at(at > k->last_ns ? at : k->last_ns, SIM_GATEWAY, notice_end, x);
}

static int descending(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? 1 : x > y ? -1 : 0;
}

/* As members.c: the epoch that more than half of the nodes report. */
static void update_epoch(void)
{
    uint64_t said[SIM_NODES];
    uint32_t n = 0;
    for (uint32_t i = 0; i < sim.n_nodes; i++)
        if (sim.links[i].has_state && sim.links[i].state.epoch_end > 0)
            said[n++] = sim.links[i].state.epoch;
    if (n > 0)
        qsort(said, n, sizeof(said[0]), descending);
    if (n > 0 && said[n / 2] > sim.source.epoch)
        sim.source.epoch = said[n / 2];
}

void sim_stream_told(uint32_t node)
{
    (void)node;
    update_epoch();
}

/* Whether a node could take over what another one leaves: two of them, since one that is well may
 * be slow. */
static void note_health(void)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < sim.n_nodes; i++) {
        const struct sim_member *m = &sim.members[i];
        if (!sim_member_up(m) || m->paused_ns > sim.now_ns || m->cable_ns > sim.now_ns)
            sim.links[i].bad_ns = sim.now_ns;
        n += sim.now_ns - sim.links[i].bad_ns > STEADY_NS;
    }
    if (n < 2 || sim.slow_ns > 100 * SIM_MS || sim.now_ns - sim.watched_ns > 2 * WATCH_NS)
        sim.alone_ns = sim.now_ns;
    sim.watched_ns = sim.now_ns;
}

/* Whether a node can answer a request that accepts any version, as far as the gateway knows. */
static bool is_able(void)
{
    const struct sim_call any = {.epoch = sim.source.epoch, .may_be_old = true};
    for (uint32_t i = 0; i < sim.n_nodes; i++) {
        const struct sim_link *k = &sim.links[i];
        struct sim_member *m = &sim.members[i];
        if (sim_member_up(m) && m->paused_ns <= sim.now_ns && m->cable_ns <= sim.now_ns &&
            k->has_state && k->life == m->life && sim.now_ns - k->heard_ns < SILENT_NS / 2 &&
            serving(m, &any))
            return true;
    }
    return false;
}

static void watch(void *ctx)
{
    sim.able_ns += is_able() ? WATCH_NS : 0;
    note_health();
    for (uint32_t i = 0; i < sim.n_nodes; i++) {
        struct sim_link *k = &sim.links[i];
        if (k->has_state && sim.now_ns - k->heard_ns > SILENT_NS)
            fail_all(k, k->life, REPLICA_LOST);
    }
    sim_at(sim.now_ns + WATCH_NS, SIM_GATEWAY, watch, ctx);
}

static enum replica_found find(struct replica_source *s, const struct replica_query *q,
                               struct replica **out)
{
    struct choose c = {.now_ns = sim.now_ns, .deployed = sim.members[SIM_GATEWAY].deployed};
    const uint32_t turn = sim_pick(sim.n_nodes);
    (void)s;
    for (uint32_t i = 0; i < sim.n_nodes; i++) {
        struct sim_link *k = &sim.links[(turn + i) % sim.n_nodes];
        const struct choose_view v = {.state = &k->state,
                                      .replica = &k->replica,
                                      .name = k->replica.name,
                                      .ready = node_state_knows(&k->state, q->request->epoch),
                                      .calls = k->n_calls,
                                      .told_calls = k->n_calls,
                                      .slowness = 1};
        if (k->has_state)
            choose_look(&c, q, &v);
    }
    *out = choose_end(&c, q);
    return *out ? REPLICA_FOUND : REPLICA_LATER;
}

/* ---- clients ---- */

struct sim_client {
    struct sink sink; /* first */
    struct sim_client *next;
    const struct request *request;
    uint64_t seed, began_ns;
    uint64_t able_ns;          /* as that of the site, when it began */
    uint64_t got_ns, pause_ns; /* its last token; its longest pause */
    uint32_t n_max, n_got;
    uint8_t version;
    bool isolated, over;
};

static struct sim_client *client_of(struct sink *s)
{
    return (struct sim_client *)(void *)s;
}

static void check_version(const struct sim_client *k)
{
    const uint64_t epoch = k->request->epoch;
    if (k->began_ns < sim.mixed_ns + KNOWN_NS)
        memset(sim.epochs, 0, sizeof(sim.epochs));
    else if (epoch > 0 && epoch < sizeof(sim.epochs) && !k->isolated) {
        if (sim.epochs[epoch] && sim.epochs[epoch] != k->version)
            sim_broken("epoch %llu was answered by version %u and by %u", (unsigned long long)epoch,
                       sim.epochs[epoch], k->version);
        sim.epochs[epoch] = k->version;
    }
    if (sim.done_version && k->began_ns > sim.done_ns + KNOWN_NS &&
        k->version != sim.done_version && !k->isolated)
        sim_broken("version %u answers %.1f s after the update to %u was done", k->version,
                   (double)(k->began_ns - sim.done_ns) / 1e9, sim.done_version);
}

static void on_start(struct sink *s, const struct sink_start *e)
{
    struct sim_client *k = client_of(s);
    if (k->version)
        sim_broken("an answer began twice");
    k->version = e->sum ? e->sum[0] : 0;
    k->isolated = e->isolated;
    check_version(k);
}

static void on_token(struct sink *s, const struct sink_token *e)
{
    struct sim_client *k = client_of(s);
    if (k->over || !k->version || e->token != token_of(k->version, k->seed, k->n_got) ||
        e->text_bytes != 4)
        sim_broken("a client of version %u got the wrong token %d with %zu bytes after %u%s",
                   k->version, e->token, e->text_bytes, k->n_got, k->over ? ", and an end" : "");
    k->n_got++;
    sim.counts->n_tokens++;
    note_health();
    if (k->got_ns > sim.alone_ns && sim.now_ns - k->got_ns > k->pause_ns)
        k->pause_ns = sim.now_ns - k->got_ns;
    k->got_ns = sim.now_ns;
}

static void count_pause(const struct sim_client *k)
{
    const uint64_t step = k->pause_ns / (SIM_PAUSE_MS * SIM_MS);
    if (k->pause_ns > 0)
        sim.counts->pauses[step < SIM_PAUSES ? step : SIM_PAUSES - 1]++;
}

uint32_t sim_shoal_pause_ms(const struct sim_shoal_counts *c, double share)
{
    uint64_t n = 0, below = 0;
    for (uint32_t i = 0; i < SIM_PAUSES; i++)
        n += c->pauses[i];
    for (uint32_t i = 0; n > 0 && i < SIM_PAUSES; i++)
        if ((double)(below += c->pauses[i]) >= share * (double)n)
            return (i + 1) * SIM_PAUSE_MS;
    return 0;
}

static void on_done(struct sink *s, const struct sink_done *e)
{
    struct sim_client *k = client_of(s);
    if (k->n_got != k->n_max || e->usage.generated_tokens != k->n_max || k->over)
        sim_broken("a client got %u of %u tokens", k->n_got, k->n_max);
    k->over = true;
    count_pause(k);
}

static void on_fail(struct sink *s, const struct failure *f)
{
    struct sim_client *k = client_of(s);
    k->over = true;
    sim.counts->n_failed++;
    if (k->n_got == 0 && sim.able_ns - k->able_ns > WAIT_MS / 2 * SIM_MS)
        sim_broken("a request fails although a node could answer it for %.1f s: %s",
                   (double)(sim.able_ns - k->able_ns) / 1e9, f->reason ? f->reason : "");
    if (sim.calm && k->began_ns > sim.now_ns - 5 * SIM_S)
        sim_broken("a request fails although all is well: %s", f->reason ? f->reason : "");
}

static void on_closed(struct sink *s)
{
    struct sim_client *k = client_of(s), **at = &sim.clients;
    if (!k->over)
        sim_broken("an answer ended without an end");
    while (*at != k)
        at = &(*at)->next;
    *at = k->next;
    sim.n_clients--;
    sim_free(k);
}

static struct request *make_request(struct sim_client *k)
{
    struct request *r = flow_take_request(&sim.owner);
    static const struct request_prompt prompt = {.text = "a prompt", .text_bytes = 8};
    if (!r)
        return NULL;
    r->kind = REQUEST_GENERATE;
    r->model = SIM_MODEL;
    r->input_bytes = 8 + k->seed % 2000; /* what nodes expect to need for the prompt */
    r->generate.prompts = &prompt;
    r->generate.n_prompts = r->generate.n = 1;
    r->generate.max_tokens = k->n_max;
    r->generate.has_seed = true;
    r->generate.sampling.seed = k->seed;
    return r;
}

void sim_stream_client(void)
{
    static const struct sink_ops ops = {.start = on_start,
                                        .token = on_token,
                                        .done = on_done,
                                        .fail = on_fail,
                                        .closed = on_closed};
    struct sim_client *k = sim_zalloc(sizeof(*k));
    struct request *r;
    const struct relay_opts o = {.source = &sim.source, .wait_ms = WAIT_MS, .total_ms = 60000};
    *k = (struct sim_client){.sink = {.ops = &ops},
                             .next = sim.clients,
                             .seed = sim_pick(1 << 20),
                             .began_ns = sim.now_ns,
                             .able_ns = sim.able_ns,
                             .got_ns = sim.now_ns,
                             .n_max = 1 + sim_pick(40)};
    r = make_request(k);
    if (!r) {
        sim_broken("out of memory");
        sim_free(k);
        return;
    }
    sim.clients = k;
    sim.n_clients++;
    sim.counts->n_streams++;
    sim.current = SIM_GATEWAY;
    k->request = r;
    relay_run(&o, &sim.owner, r, &k->sink);
}

uint32_t sim_stream_open(void)
{
    return sim.n_clients;
}

void sim_stream_init(void)
{
    static const struct replica_ops ops = {.run = run};
    static const struct replica_source_ops source = {find};
    memset(held, 0, sizeof(held));
    sim.source = (struct replica_source){.ops = &source, .counts = &sim.replica_counts};
    flow_owner_init(&sim.owner, &sim.flow, &sim.members[SIM_GATEWAY].executor);
    for (uint32_t i = 0; i < SIM_NODES; i++) {
        struct sim_link *k = &sim.links[i];
        k->replica = (struct replica){.ops = &ops, .name = sim.members[i].name};
        k->node = i;
        arena_init(&k->arena, NODE_STATE_MAX_BYTES);
    }
    sim_at(0, SIM_GATEWAY, watch, NULL);
}

/* All members have ended: what is under way is cancelled, and freed by what is still to happen. */
void sim_stream_fini(void)
{
    sim.current = SIM_GATEWAY;
    for (struct sim_client *k = sim.clients; k; k = k->next) {
        k->over = true;
        flow_cancel(&k->sink);
    }
    sim.counts->n_moved += sim.replica_counts.n_moved + sim.replica_counts.n_retried;
    sim.counts->n_doubled += sim.replica_counts.n_stalled + sim.replica_counts.n_hedged;
}

void sim_stream_free(void)
{
    flow_owner_fini(&sim.owner);
    for (uint32_t i = 0; i < SIM_NODES; i++)
        arena_fini(&sim.links[i].arena);
}
