/* choose.c - see choose.h. */
#include "cluster/choose.h"

#include <string.h>

#include "cluster/deployed.h"
#include "engine/decode/page_exchange.h"
#include "flow/request.h"

#define MAX_EXPECTED_NS 6e10       /* a node may report anything */
#define PREFERRED 1e-6             /* price factor for the node that a route has chosen */
#define UNKNOWN_TOKEN_NS 2000000.0 /* default for a model without measurements */
#define UNKNOWN_ANSWER 64.0        /* tokens of an answer, likewise */
#define DOUBTFUL 4.0     /* times the best price: an idle replica of that price is probed */
#define HOT_SPOT 4.0     /* times as busy or slow as another one may be that has the whole prompt */
#define MUCH_BYTES 512.0 /* of a prompt: less is soon computed again */
#define MORE_BYTES 128.0 /* of a prompt: smaller differences of what nodes have do not count */

unsigned choose_kind(const struct request *r)
{
    if (r->kind == REQUEST_GENERATE || r->kind == REQUEST_TOKENS)
        return SHOAL_KIND_GENERATE;
    return r->kind == REQUEST_INFER ? (unsigned)r->infer.kind : 0;
}

/* A flow needs no model by name. */
const struct node_model *choose_model(const struct node_state *s, const struct request *r,
                                      const struct node_model *after)
{
    static const struct node_model flow = {.name = "", .state = REGISTRY_READY};
    if (r->kind == REQUEST_ASK)
        return s->asks && !after ? &flow : NULL;
    if (r->model || !after)
        return node_state_next(s, after, r->model, choose_kind(r));
    return node_state_next(s, after, after->name, 0); /* other versions of the default model */
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

static double prompt_tokens(const struct request *r)
{
    return (double)r->input_bytes / REQUEST_TOKEN_BYTES;
}

/* Requests for each of the node's replicas. */
static double busy(const struct node_model *m, const struct choose_view *v)
{
    /* what it told is as old as its last state: of our own requests we know better */
    const uint32_t others = m->in_flight > v->told_calls ? m->in_flight - v->told_calls : 0;
    return (double)(v->calls + others) / node_model_replicas(m);
}

/* Its figures are those of the load that it told: by how much requests that it has not told yet, or
 * that are gone since, change them. */
static double since_told(const struct node_model *m, const struct choose_view *v)
{
    return (1 + busy(m, v)) / (1 + (double)m->in_flight / node_model_replicas(m));
}

/* Rough time that a request would take there: its cost times the requests that share the machine.
 * An idle node among busy ones would get all requests of a moment if those that it has not told
 * yet did not count in its cost, as they will. */
static double price(const struct node_model *m, const struct choose_view *v)
{
    double token = m->token_ns > 0 ? m->token_ns : UNKNOWN_TOKEN_NS;
    double loading = m->state == REGISTRY_READY ? 1 : 8; /* it has to be loaded first */
    return token * since_told(m, v) * (1 + busy(m, v)) * loading * v->slowness;
}

/* Expected time of a generation: queue, the part of the prompt that the node has not read before,
 * answer.  Its figures show its load, but not yet the requests that were sent since. 0: unknown. */
static double total(const struct node_model *m, const struct request *r,
                    const struct choose_view *v)
{
    const struct request_generate *g = &r->generate;
    double tokens = m->answer_tokens > 0 ? m->answer_tokens : UNKNOWN_ANSWER;
    double prompt = prompt_tokens(r) * (1 - v->held);
    if (r->kind != REQUEST_GENERATE || m->token_ns <= 0 || m->prefill_ns <= 0)
        return 0;
    if (g->max_tokens > 0 && g->max_tokens < tokens)
        tokens = g->max_tokens;
    return (m->queue_ns + m->prefill_ns * prompt + m->token_ns * tokens) * v->slowness *
           since_told(m, v);
}

/* Expected time to the next piece of the answer; 0: unknown.  begun: the first piece has come. */
static uint64_t expected(const struct node_model *m, const struct replica_query *q,
                         const struct choose_view *v, bool begun)
{
    const struct request *r = q->request;
    const double tokens = prompt_tokens(r) + q->n_given;
    double ns = begun ? 0 : m->queue_ns + m->prefill_ns * tokens;
    if (m->token_ns <= 0 || m->prefill_ns <= 0 || r->kind == REQUEST_ASK ||
        r->kind == REQUEST_TOKENS || m->state != REGISTRY_READY)
        return 0;
    if (r->kind == REQUEST_INFER)
        ns += m->token_ns * (r->infer.max_tokens ? r->infer.max_tokens : tokens);
    ns = (ns + m->token_ns) * since_told(m, v);
    return ns < MAX_EXPECTED_NS ? (uint64_t)ns : (uint64_t)MAX_EXPECTED_NS;
}

/* A requested version may be used while it is loaded, whatever its duty. */
static bool usable(const struct node_model *m, const struct replica_query *q)
{
    if (q->version)
        return m->state != REGISTRY_FAILED && m->state != REGISTRY_UNLOADING;
    return node_model_usable(m, q->request->epoch, q->request->may_be_old);
}

/* A model that nobody has asked for yet is loaded by a request; an answer that has begun does not
 * wait for that. */
static enum choose_rank rank_of(const struct choose *c, const struct replica_query *q,
                                const struct node_model *m, const struct choose_view *v)
{
    const bool old =
        m->waits || (c->deployed && deployed_is_behind(c->deployed, v->state->desired, m->name,
                                                       m->sum, q->request->epoch));
    if (old && !q->version)
        return CHOOSE_BEHIND;
    if (m->state == REGISTRY_LOADING || (q->version && m->state != REGISTRY_READY))
        return CHOOSE_LOADING;
    return m->standby || m->waits ? CHOOSE_STANDBY : CHOOSE_FIRST;
}

static bool is_better(const struct choose_one *x, const struct choose_one *than)
{
    if (!than->replica)
        return true;
    return x->rank == than->rank ? x->price < than->price : x->rank < than->rank;
}

static bool holds_more(const struct choose_one *x, const struct choose_one *than,
                       const struct request *r)
{
    const double more = (x->held - than->held) * (double)r->input_bytes;
    return !than->replica || more >= MORE_BYTES || (more > -MORE_BYTES && x->price < than->price);
}

/* Whether the prompt goes to the node that has read most of it, although another one is cheaper. */
static bool stays(const struct choose_one *holder, const struct choose_one *best,
                  const struct request *r)
{
    const double saved = holder->held * (double)r->input_bytes / MUCH_BYTES;
    const double times = 1 + (HOT_SPOT - 1) * holder->held * (saved < 1 ? saved : 1);
    const bool even = holder->load <= best->load * times;
    if (!holder->replica || best->total_ns <= 0 || holder->total_ns <= 0)
        return holder->replica && even;
    return holder->total_ns <= best->total_ns * times && (even || holder->load <= holder->parallel);
}

static struct split_node speed_of(const struct node_model *m, const struct choose_view *v)
{
    const double times = v->slowness * since_told(m, v);
    return (struct split_node){m->queue_ns * times, m->prefill_ns * times, m->token_ns * times,
                               v->held};
}

/* Whether pages of its prompt are computed and fetched as usual, and there is one prompt. */
static bool may_split(const struct choose *c, const struct replica_query *q)
{
    const struct request *r = q->request;
    const struct request_generate *g = &r->generate;
    return q->splits && c->split != SPLIT_NEVER && r->kind == REQUEST_GENERATE && !r->node &&
           !q->version && q->n_avoid == 0 && g->n == 1 && g->n_prompts == 1 && !g->prompt_only &&
           !g->prompt_logprobs && !g->fresh_prefix && g->adapter_scale == 0;
}

/* Other nodes must be able to fetch what it computes. */
static void note_reader(struct choose *c, const struct choose_one *x, int side,
                        const struct request *r)
{
    struct choose_one *strong = &c->strong[side];
    const double tokens = prompt_tokens(r);
    if (!x->replica->address || x->token_bytes <= 0 || x->rank != CHOOSE_FIRST || x->loads)
        return;
    c->n_readers[side]++;
    if (!strong->replica ||
        split_prompt_ns(&x->speed, tokens) < split_prompt_ns(&strong->speed, tokens))
        *strong = *x;
}

/* The replica that begins: x, which was chosen, or the one that computes long prompts best. */
static const struct choose_one *begin_at(const struct choose *c, const struct replica_query *q,
                                         const struct choose_one *x, int side)
{
    const struct choose_one *strong = &c->strong[side];
    const uint32_t most = q->request->generate.max_tokens;
    /* a conversation that stays was weighed against the others with wider limits */
    const bool stays_there = strong->replica == x->replica || x == &c->holder[side];
    if (!may_split(c, q) || c->n_readers[side] < 2 || (stays_there && c->split != SPLIT_ALWAYS))
        return x;
    const struct split_case k = {.strong = strong->speed,
                                 .chosen = x->speed,
                                 .link = x->link,
                                 .token_bytes = x->token_bytes,
                                 .prompt = prompt_tokens(q->request),
                                 .answer = most > 0 && most < x->answer ? most : x->answer};
    const enum split_way way = split_way(c->split, &k);
    *q->splits = way == SPLIT_BOTH;
    return way == SPLIT_AS_CHOSEN ? x : strong;
}

/* Only a request that may take its time, is new, and has no reason to go elsewhere. */
static bool may_probe(const struct choose *c, const struct replica_query *q,
                      const struct node_model *m, const struct choose_view *v)
{
    const struct request *r = q->request;
    return v->probe && r->deadline_ns == 0 && !r->node && q->n_avoid == 0 && !q->version &&
           m->state == REGISTRY_READY && busy(m, v) <= 0 && probe_due(v->probe, c->now_ns);
}

/* A model that is loaded for the first time has not told its kinds yet: it may be the one that a
 * request without a name means. */
static bool may_turn_out(const struct node_state *s, const struct request *r)
{
    for (uint32_t i = 0; !r->model && r->kind != REQUEST_ASK && i < s->n_models; i++)
        if (s->models[i].kinds == 0 && s->models[i].state == REGISTRY_LOADING)
            return true;
    return false;
}

void choose_look(struct choose *c, const struct replica_query *q, const struct choose_view *v)
{
    const struct node_model *m = NULL;
    c->known |= may_turn_out(v->state, q->request);
    while ((m = choose_model(v->state, q->request, m))) {
        int side = m->share > 0 && !q->version;
        if (!has_version(m, q->version))
            continue;
        c->known = true;
        if (v->held > c->pages[side].held && m->state == REGISTRY_READY)
            c->pages[side] = (struct choose_one){.replica = v->replica, .held = v->held};
        if (!v->ready || !usable(m, q) || is_avoided(q, v->replica) ||
            (q->loaded && m->state != REGISTRY_READY))
            continue;
        struct choose_one x = {.replica = v->replica,
                               .price = price(m, v),
                               .held = v->held,
                               .load = 1 + busy(m, v),
                               .parallel = (double)m->parallel / node_model_replicas(m),
                               .total_ns = total(m, q->request, v),
                               .rank = rank_of(c, q, m, v),
                               .loads = m->state != REGISTRY_READY,
                               .speed = speed_of(m, v),
                               .link = v->state->link,
                               .token_bytes = (double)m->page_bytes / PAGE_EXCHANGE_TOKENS,
                               .answer = m->answer_tokens > 0 ? m->answer_tokens : UNKNOWN_ANSWER,
                               .expect_ns = expected(m, q, v, false),
                               .token_ns = expected(m, q, v, true),
                               .sum = m->sum,
                               .probe = v->probe};
        if (side && m->share > c->share)
            c->share = m->share;
        note_reader(c, &x, side, q->request);
        if (may_probe(c, q, m, v) && x.rank == CHOOSE_FIRST && x.price > c->idle[side].price)
            c->idle[side] = x;
        /* the node that a route has chosen was chosen with what it holds in mind */
        if (v->held > 0 && x.rank == CHOOSE_FIRST && !q->request->node &&
            m->state == REGISTRY_READY && holds_more(&x, &c->holder[side], q->request))
            c->holder[side] = x;
        if (q->request->node && strcmp(q->request->node, v->name) == 0)
            x.price *= PREFERRED;
        if (is_better(&x, &c->best[side]))
            c->best[side] = x;
    }
}

struct replica *choose_end(struct choose *c, const struct replica_query *q)
{
    int side = c->share > 0 && !q->usual && registry_in_share(request_key(q->request), c->share);
    if (!c->best[side].replica)
        side = !side;
    const struct choose_one *best = &c->best[side], *idle = &c->idle[side], *x = best;
    if (stays(&c->holder[side], best, q->request))
        best = x = &c->holder[side];
    /* not with a prompt that only another node has read, nor when nobody can say how long an answer
     * takes: then the relay would wait for a replica that says nothing */
    if (best->replica && best->rank == CHOOSE_FIRST && best->expect_ns > 0 && idle->replica &&
        idle->price > DOUBTFUL * best->price && idle->held * 2 >= best->held &&
        c->split != SPLIT_ALWAYS) { /* then all of them get requests */
        probe_sent(idle->probe, c->now_ns);
        x = idle;
    } else {
        if (best->probe)
            *best->probe =
                (struct probe){0}; /* it is as good as any: the next doubt is a new one */
        best = x = begin_at(c, q, best, side);
    }
    if (q->expect_ns)
        *q->expect_ns = best->expect_ns;
    if (q->token_ns)
        *q->token_ns = best->token_ns;
    if (q->loads)
        *q->loads = x->loads;
    if (q->holder && x->replica && c->pages[side].replica != x->replica &&
        (c->pages[side].held - x->held) * (double)q->request->input_bytes >= MUCH_BYTES) {
        *q->holder = c->pages[side].replica;
        *q->holder_part = c->pages[side].held;
    }
    if (c->share > 0 && q->chosen) /* otherwise the node itself chooses the version that serves */
        *q->chosen = x->sum;
    return x->replica;
}
