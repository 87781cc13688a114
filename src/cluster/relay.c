/* relay.c - see relay.h. */
#include "cluster/relay.h"

#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/mem.h"
#include "cluster/pace.h"
#include "cluster/patience.h"
#include "flow/acquire.h"
#include "host/sha256.h"
#include "trace/trace_words.h"

#define MAX_TRIED 64u                /* replicas that are not tried twice in a row */
#define RETRY_NS 20000000u           /* between two looks for a replica */
#define MAX_TICKET_TOKENS (1u << 24) /* per choice */
#define MS_NS 1000000u
#define STALL_MS 500u
#define LIVE_STALL_MS 250u        /* of a stream that runs, whose pace is known */
#define STALL_FACTOR 8u           /* times the expected duration, */
#define STALL_LONG_NS 2000000000u /* or of this part of it: the rest is a guess already */
#define DOUBLED_SHARE 10u         /* at most one request in this many runs on two replicas */
#define STALLED_SHARE 3u   /* the same, for streams that stopped: a node may take so many with it */
#define AGAIN_NS 50000000u /* a stall is looked at again after this long */
#define MAX_DOUBLINGS 6u   /* of the time that a second replica has */
#define STOOD_NS 200000000u /* a timer that is so late: this process stood still */

/* The part of a choice that the client has seen. */
struct choice {
    struct buf tokens; /* int32_t each */
    uint32_t n_tokens;
    size_t loose_bytes; /* bytes of text that arrived without a token after the last token */
    uint64_t first_token_ns;
    bool echoed; /* the client has the prompt */
    bool done;
    struct sink_usage usage;
};

/* The part of a choice that was given to a replica. */
struct given {
    uint32_t n_tokens;
    uint32_t skip_tokens; /* incoming tokens to skip: the client has them */
    uint32_t n_skipped;
    size_t skip_bytes; /* as skip_tokens, of the text */
};

/* A replica that works on the request. */
struct leg {
    struct sink inner;
    struct relay *relay;
    struct replica *at;
    bool running;     /* inner is not closed yet */
    bool out;         /* its events are ignored: it failed, or the other one was faster */
    bool from_ticket; /* it continues from the client's tokens, and does not echo the prompt */
    /* It begins anew: which version wrote the client's tokens is not known, so they must come
     * again. */
    bool reruns, has_sum;
    uint8_t sum[SHA256_BYTES]; /* with has_sum: of a leg that reruns */
    bool loads;                /* until it begins: the replica has to load the model first */
    bool has_start;            /* the replica has begun */
    struct sink_start start;   /* with has_start: for the client, if this replica answers first */
    struct sink_prompt prompt; /* latest of the first choice; tokens 0: none */
    uint32_t span;             /* see trace/trace.h */
    struct given *given;       /* [n] */
    uint32_t n_results;
    const struct shoal_result **results; /* [n_inputs] of a specialist */
};

struct relay {
    struct flow_job job; /* first */
    struct relay_opts opts;
    struct flow_owner *owner;
    struct request *request; /* owned */
    struct sink *sink;       /* the client's */
    struct leg legs[2];
    struct leg *lead;             /* the leg that started last without a rival, or won */
    bool quiet;                   /* the client only wants `closed` from now on */
    bool started;                 /* the client got `start` */
    bool waiting;                 /* on timer */
    bool doubled;                 /* counted as such */
    bool stalled;                 /* because the first replica was silent for too long */
    struct choice *choices;       /* [n] */
    uint32_t n, n_each, n_done;   /* choices: all, of each prompt, complete; an ask has one */
    bool planned;                 /* the client got the plan of an ask */
    bool has_sum, sum_wanted;     /* wanted: by the client */
    uint8_t sum[SHA256_BYTES];    /* of the model that began, or that the client wants */
    uint8_t chosen[SHA256_BYTES]; /* version that the replica should use */
    /* One of two versions during a canary: until it delivers something, the other one may answer.
     */
    bool trial, usual;                /* usual: the new one has failed */
    bool splits;                      /* after its first token another replica writes the answer */
    bool handed;                      /* that is what happens now */
    bool stamps;                      /* the request came without an epoch */
    struct replica *tried[MAX_TRIED]; /* the first n_refuted have another version */
    uint32_t n_tried, n_refuted, n_attempts;
    uint64_t began_ns;
    uint32_t span; /* below which those of the legs are */
    struct patience patience;
    struct failure failure; /* the last one */
    bool has_failure;
    /* silence */
    uint32_t n_pieces; /* of the answer, so far */
    struct pace pace;
    /* by what the replica says about its speed: until its first piece, and later */
    uint64_t stall_ns, token_stall_ns;
    uint64_t watch_ns;        /* when the watch is due */
    bool stood;               /* it was late the last time */
    uint64_t rival_ns;        /* when the second replica began */
    uint64_t rival_stall_ns;  /* as stall_ns, of that one */
    uint32_t n_rivals;        /* given up since the last piece */
    struct replica *rival_at; /* the last of those; or NULL */
    struct executor_timer timer, watch;
    struct executor_task next;
};

static struct leg *leg_of(struct sink *inner)
{
    return EXECUTOR_OF(inner, struct leg, inner);
}

static struct leg *other_of(struct leg *g)
{
    return g == &g->relay->legs[0] ? &g->relay->legs[1] : &g->relay->legs[0];
}

static void relay_close(struct relay *y)
{
    struct flow_owner *o = y->owner;
    executor_timer_clear(o->executor, &y->timer);
    executor_timer_clear(o->executor, &y->watch);
    y->opts.source->counts->n_running--;
    for (uint32_t i = 0; i < y->n; i++)
        buf_fini(&y->choices[i].tokens);
    y->sink->job = NULL;
    y->sink->ops->closed(y->sink);
    flow_give_request(o, y->request);
    mem_free(y);
    o->n_jobs--;
}

static void tell_failure(struct relay *y, const struct failure *f)
{
    if (y->quiet)
        return;
    y->quiet = true;
    /* an invalid request is not a loss */
    y->opts.source->counts->n_lost +=
        y->started && f->kind != FAILURE_INVALID && f->kind != FAILURE_DEADLINE;
    y->sink->ops->fail(y->sink, f);
}

/* Ignores this replica from now on. */
static void drop(struct leg *g)
{
    g->out = true;
    if (g->running)
        flow_cancel(&g->inner);
}

/* The client learns which node answers with the first piece: until then another replica, even with
 * another version, can take over without a contradiction. */
static void tell_start(struct leg *g)
{
    struct relay *y = g->relay;
    if (y->started)
        return;
    y->started = true;
    y->has_sum |= g->start.sum != NULL;
    y->sink->ops->start(y->sink, &g->start);
    if (g->prompt.tokens > 0)
        sink_tell_prompt(y->sink, &g->prompt);
}

/* The shortest silence for which a replica is blamed. */
static uint64_t stall_least_ns(const struct relay *y)
{
    return (y->opts.stall_ms ? y->opts.stall_ms : STALL_MS) * (uint64_t)MS_NS;
}

static void hurry_watch(struct relay *y);

/* A leg that reruns has brought all that the client had: its version is the one from now on. */
static void adopt_version(struct leg *g)
{
    struct relay *y = g->relay;
    bool all = g->reruns && g->has_sum && !y->has_sum;
    for (uint32_t i = 0; i < y->n; i++)
        all = all && g->given[i].skip_tokens == 0;
    if (!all)
        return;
    memcpy(y->sum, g->sum, SHA256_BYTES);
    y->has_sum = true;
}

/* The replica delivered a piece of the answer: it continues, the other one is cancelled. */
static void take_lead(struct leg *g)
{
    struct relay *y = g->relay;
    struct leg *rival = other_of(g);
    tell_start(g);
    adopt_version(g);
    const uint64_t now = clock_ns(), silent_ns = now - y->pace.last_ns;
    y->n_pieces++;
    y->n_rivals = 0;
    if (g == y->lead)
        pace_piece(&y->pace, now);
    y->pace.last_ns = now;
    patience_piece(&y->patience, now);
    hurry_watch(y);
    if (!rival->running || rival->out)
        return;
    if (g != y->lead) {
        y->opts.source->counts->n_won++;
        y->opts.source->counts->n_moved += y->n_pieces > 1; /* the client has read a part of it */
        /* one that was overtaken within moments may be as good as any */
        if (y->stalled && silent_ns >= stall_least_ns(y) && rival->at->ops->blame)
            rival->at->ops->blame(rival->at, y->request);
    }
    y->lead = g;
    drop(rival);
}

/* ---- what a replica sends ---- */

static void fail_nomem(struct leg *g)
{
    struct failure f;
    failure_of(&f, SHOAL_ENOMEM, "out of memory for the answer");
    tell_failure(g->relay, &f);
    drop(g);
    drop(other_of(g));
}

/* The replica violates the protocol: treated as lost. */
static void distrust(struct leg *g, const char *what)
{
    struct relay *y = g->relay;
    log_warn("cluster", "node %s: %s; trying another one", g->at->name, what);
    failure_set(&y->failure, FAILURE_UNAVAILABLE, SHOAL_EIO, NULL, REPLICA_LOST,
                "node %.64s sent something that does not fit the request", g->at->name);
    y->has_failure = true;
    patience_failed(&y->patience, PATIENCE_FAILED_ITSELF, 0);
    if (g->at->ops->blame)
        g->at->ops->blame(g->at, y->request);
    drop(g);
}

/* Its tokens differ from those that the client has.  It is not asked again: nothing is wrong with
 * it. */
static void refute(struct leg *g)
{
    struct relay *y = g->relay;
    log_info("cluster",
             "node %s has another version of the model than the one that began request %s",
             g->at->name, y->request->id);
    failure_set(&y->failure, FAILURE_UNAVAILABLE, SHOAL_EIO, "model", ACQUIRE_NO_VERSION,
                "the node that began the answer is lost, and node %.64s has another version of its "
                "model: ask again",
                g->at->name);
    y->has_failure = true;
    patience_failed(&y->patience, PATIENCE_MOVED, 0);
    for (uint32_t i = y->n_refuted; i < y->n_tried; i++) {
        if (y->tried[i] != g->at)
            continue;
        y->tried[i] = y->tried[y->n_refuted];
        y->tried[y->n_refuted++] = g->at;
        break;
    }
    drop(g);
}

/* The node has hashed its model since it began the answer, which it may not be able to end. */
static void learn_version(struct leg *g)
{
    struct relay *y = g->relay;
    const bool wanted = y->started && !y->has_sum && g == y->lead && !g->reruns &&
                        y->request->kind == REQUEST_GENERATE && g->at->ops->version;
    const uint8_t *sum = wanted ? g->at->ops->version(g->at, y->request) : NULL;
    if (!sum)
        return;
    memcpy(y->sum, sum, SHA256_BYTES);
    y->has_sum = true;
}

static bool deaf(const struct leg *g)
{
    return g->relay->quiet || g->out;
}

/* A version on trial failed before it delivered anything: the other one answers. */
static void end_trial(struct leg *g, bool lost)
{
    struct relay *y = g->relay;
    if (!y->trial || y->started || other_of(g)->running)
        return;
    y->usual = true;
    /* the same replica may have the other version, too */
    for (uint32_t i = 0; !lost && i < y->n_tried; i++)
        if (y->tried[i] == g->at)
            y->tried[i] = y->tried[--y->n_tried];
}

static void on_start(struct sink *s, const struct sink_start *e)
{
    struct leg *g = leg_of(s);
    struct relay *y = g->relay;
    struct request *r = y->request;
    const bool here = g->at == y->opts.source->here;
    if (deaf(g))
        return;
    if (e->sum && r->kind != REQUEST_ASK) { /* a flow has several models */
        const uint8_t *want = y->has_sum ? y->sum : y->trial ? y->chosen : NULL;
        if (want && memcmp(want, e->sum, SHA256_BYTES) != 0) {
            distrust(g, "another version of the model than the one that started the answer");
            return;
        }
        memcpy(g->reruns ? g->sum : y->sum, e->sum, SHA256_BYTES);
        g->has_sum = true;
        y->has_sum |= !y->trial && !g->reruns; /* one on trial that has answered stays known */
    }
    g->has_start = true;
    if (y->started)
        return;
    struct sink_start mine = {.model = request_copy(r, e->model, strlen(e->model)),
                              .version = request_copy(r, e->version, strlen(e->version)),
                              .sum = y->has_sum || (y->trial && e->sum) ? y->sum : NULL,
                              .cache = e->cache == SINK_CACHE_HIT ? e->cache : SINK_CACHE_OFF,
                              .tools = e->tools,
                              .isolated = e->isolated || (r->may_be_old && here)};
    if (!r->model)
        r->model = mine.model; /* another replica may have another default */
    if (!here)
        mine.node = request_copy(r, g->at->name, strlen(g->at->name));
    g->start = mine;
}

/* The replica's plan is freed with the replica; the client's stays with the request. */
static void on_plan(struct sink *s, const struct sink_plan *e)
{
    struct leg *g = leg_of(s);
    struct relay *y = g->relay;
    if (deaf(g) || y->planned) /* rerun: the plan is the same */
        return;
    if (!g->has_start || y->request->kind != REQUEST_ASK) {
        distrust(g, "an unexpected plan");
        return;
    }
    const struct sink_plan mine = {ask_plan_copy(e->plan, &y->request->arena)};
    if (!mine.plan) {
        fail_nomem(g);
        return;
    }
    take_lead(g);
    y->planned = true;
    y->sink->ops->plan(y->sink, &mine);
}

/* Held until the replica delivers a piece of the answer: another one may still be faster. */
static void on_prompt(struct sink *s, const struct sink_prompt *e)
{
    struct leg *g = leg_of(s);
    if (!deaf(g) && e->choice == 0 && e->computed <= e->tokens && e->cached <= e->tokens)
        g->prompt = *e;
}

/* Keeps the token before the client sees it; false: it does not fit. */
static bool keep_token(struct choice *c, const struct sink_token *e)
{
    if (e->token >= 0) {
        int32_t token = e->token;
        buf_put(&c->tokens, &token, sizeof(token));
        if (c->tokens.rc < 0)
            return false;
        c->n_tokens++;
        c->loose_bytes = 0;
    } else if (e->echo) {
        c->echoed = true;
    } else {
        c->loose_bytes += e->text_bytes;
    }
    return true;
}

/* Whether the client has what a leg that reruns brings of this choice. */
static bool comes_again(const struct leg *g, uint32_t choice)
{
    return g->reruns && (g->given[choice].skip_tokens > 0 || g->relay->choices[choice].done);
}

/* Text without a token belongs to one that was compared. */
static void compare(struct leg *g, const struct sink_token *e)
{
    const struct choice *c = &g->relay->choices[e->choice];
    struct given *had = &g->given[e->choice];
    int32_t kept;
    if (g == g->relay->lead)
        g->relay->pace.last_ns = clock_ns(); /* it works */
    if (e->token < 0)
        return;
    if (had->skip_tokens > 0)
        memcpy(&kept, c->tokens.data + had->n_skipped * sizeof(kept), sizeof(kept));
    if (had->skip_tokens == 0 || kept != e->token) {
        refute(g);
        return;
    }
    had->skip_tokens--;
    had->n_skipped++;
}

/* This replica has computed the prompt, and the next one fetches it from there. */
static void hand_over(struct leg *g)
{
    struct relay *y = g->relay;
    struct replica *p = NULL;
    const struct replica_query q = {.request = y->request,
                                    .version = y->sum,
                                    .avoid = y->tried,
                                    .n_avoid = y->n_tried,
                                    .loaded = true};
    y->splits = false;
    if (!y->has_sum || y->quiet || g != y->lead || other_of(g)->running ||
        y->opts.source->ops->find(y->opts.source, &q, &p) != REPLICA_FOUND)
        return;
    log_info("cluster", "request %s: node %s has computed the prompt for another node",
             y->request->id, g->at->name);
    y->handed = true;
    drop(g);
}

static void on_token(struct sink *s, const struct sink_token *e)
{
    struct leg *g = leg_of(s);
    struct relay *y = g->relay;
    struct sink_token mine = *e;
    if (deaf(g))
        return;
    const bool known = g->has_start && e->choice < y->n;
    if (!known || (y->choices[e->choice].done && !g->reruns) || (e->echo && g->from_ticket)) {
        distrust(g, "an unexpected token");
        return;
    }
    struct choice *c = &y->choices[e->choice];
    struct given *had = &g->given[e->choice];
    if (e->echo && c->echoed)
        return; /* the client has it from a replica that was lost before its first token */
    if (comes_again(g, e->choice)) {
        compare(g, e);
        return;
    }
    if (had->skip_tokens > 0) { /* rerun from the start: it is the same */
        had->skip_tokens--;
        return;
    }
    size_t skip = had->skip_bytes < mine.text_bytes ? had->skip_bytes : mine.text_bytes;
    had->skip_bytes -= skip;
    mine.text += skip;
    mine.text_bytes -= skip;
    take_lead(g);
    if (c->first_token_ns == 0 && !e->echo)
        c->first_token_ns = clock_ns();
    if (!keep_token(c, &mine)) {
        fail_nomem(g);
        return;
    }
    y->sink->ops->token(y->sink, &mine);
    if (y->splits && mine.token >= 0)
        hand_over(g);
}

static void on_result(struct sink *s, const struct sink_result *e)
{
    struct leg *g = leg_of(s);
    struct relay *y = g->relay;
    if (deaf(g))
        return;
    uint32_t n = y->request->kind == REQUEST_INFER ? y->request->infer.n_inputs : 0;
    if (!g->has_start || e->index != g->n_results || e->index >= n ||
        e->last != (e->index + 1 == n) || e->result->kind != y->request->infer.kind) {
        distrust(g, "an unexpected result");
        return;
    }
    g->results[g->n_results++] = e->result;
    y->n_pieces++;
    y->pace.last_ns = clock_ns();
    if (!e->last)
        return;
    take_lead(g);
    y->quiet = true; /* the results stay until this call returns */
    for (uint32_t i = 0; i < n; i++) {
        const struct sink_result mine = {i, g->results[i], i + 1 == n};
        y->sink->ops->result(y->sink, &mine);
    }
}

/* Figures of the whole choice, from all replicas that computed a part. */
static void send_done(struct leg *g, struct choice *c, const struct sink_done *e)
{
    struct relay *y = g->relay;
    uint64_t now = clock_ns();
    struct sink_done mine = *e;
    uint32_t given = g->given[e->choice].n_tokens;
    if (given > 0 || y->n_attempts > 1) {
        mine.prompt_tokens -= given < mine.prompt_tokens ? given : mine.prompt_tokens;
        mine.generated_tokens = c->n_tokens;
        mine.first_token_ns = c->first_token_ns ? c->first_token_ns - y->began_ns : 0;
        mine.total_ns = now - y->began_ns;
        if (mine.cached_tokens > mine.prompt_tokens)
            mine.cached_tokens = mine.prompt_tokens;
    }
    c->done = true;
    c->usage = (struct sink_usage){.prompt_tokens = mine.prompt_tokens,
                                   .cached_tokens = mine.cached_tokens,
                                   .generated_tokens = mine.generated_tokens};
    y->n_done++;
    mine.last = y->n_done == y->n;
    mine.usage = (struct sink_usage){.energy = e->usage.energy}; /* of the last replica */
    for (uint32_t i = 0; mine.last && i < y->n; i++) {
        mine.usage.generated_tokens += y->choices[i].usage.generated_tokens;
        if (i % y->n_each == 0) { /* choices of one prompt share it */
            mine.usage.prompt_tokens += y->choices[i].usage.prompt_tokens;
            mine.usage.cached_tokens += y->choices[i].usage.cached_tokens;
        }
    }
    y->quiet = mine.last;
    y->sink->ops->done(y->sink, &mine);
}

static void on_done(struct sink *s, const struct sink_done *e)
{
    struct leg *g = leg_of(s);
    struct relay *y = g->relay;
    if (deaf(g))
        return;
    const bool known = g->has_start && e->choice < y->n;
    if (!known || (y->choices[e->choice].done && !g->reruns)) {
        distrust(g, "an unexpected end");
        return;
    }
    if (comes_again(g, e->choice)) {
        if (g->given[e->choice].skip_tokens > 0)
            refute(g);
        return;
    }
    take_lead(g);
    send_done(g, &y->choices[e->choice], e);
}

/* Whether another replica may do better. */
static bool worth_moving(const struct relay *y, const struct failure *f)
{
    switch (f->kind) {
    case FAILURE_BUSY:
    case FAILURE_NOT_LOADED:
    case FAILURE_UNAVAILABLE:
    case FAILURE_INTERNAL:
    case FAILURE_NOT_FOUND: /* it had the model when it was chosen */
        return true;
    case FAILURE_DEADLINE: /* a stream has until its deadline, whatever a busy replica expects */
        return y->started && !patience_late(&y->patience, clock_ns());
    case FAILURE_INVALID:
    case FAILURE_CONFLICT:
        return false;
    }
    return false;
}

static bool is_reason(const struct failure *f, const char *reason)
{
    return f->reason && strcmp(f->reason, reason) == 0;
}

/* The meaning of a replica's failure for the request. */
static enum patience_failure meaning_of(const struct failure *f)
{
    if (f->kind == FAILURE_INTERNAL)
        return PATIENCE_FAILED_ITSELF;
    if (is_reason(f, REPLICA_ENDED))
        return PATIENCE_DIED;
    /* a node that has unloaded the model, or loads it, or whose state was outdated */
    if (f->kind == FAILURE_NOT_FOUND || f->kind == FAILURE_NOT_LOADED ||
        is_reason(f, REPLICA_LOST) || is_reason(f, REPLICA_ABSENT) ||
        is_reason(f, ACQUIRE_NO_VERSION) || is_reason(f, ACQUIRE_NOT_SERVED))
        return PATIENCE_MOVED;
    return PATIENCE_REFUSED_IT;
}

static void on_fail(struct sink *s, const struct failure *f)
{
    struct leg *g = leg_of(s);
    struct relay *y = g->relay;
    if (deaf(g))
        return;
    trace_fail(y->request->spans.trace, g->span, f->reason);
    learn_version(g);
    if (!worth_moving(y, f)) {
        tell_failure(y, f);
        drop(other_of(g));
        return;
    }
    /* reason and param may live only as long as this event */
    y->failure = *f;
    y->failure.reason = f->reason ? request_copy(y->request, f->reason, strlen(f->reason)) : NULL;
    y->failure.param = f->param ? request_copy(y->request, f->param, strlen(f->param)) : NULL;
    y->has_failure = g->out = true;
    patience_failed(&y->patience, meaning_of(f), g->at->n_ended);
    end_trial(g, is_reason(f, REPLICA_LOST) || is_reason(f, REPLICA_ENDED));
}

static void on_closed(struct sink *s)
{
    struct leg *g = leg_of(s);
    struct relay *y = g->relay;
    g->running = false;
    trace_end(y->request->spans.trace, g->span, clock_ns());
    if (!y->quiet && !g->out) { /* it ended without a final event */
        learn_version(g);
        trace_fail(y->request->spans.trace, g->span, REPLICA_LOST);
        failure_set(&y->failure, FAILURE_UNAVAILABLE, SHOAL_EIO, NULL, REPLICA_LOST,
                    "node %.64s disconnected", g->at->name);
        y->has_failure = g->out = true;
        patience_failed(&y->patience, PATIENCE_DIED, 0);
    }
    if (!y->quiet)
        end_trial(g, true);
    if (y->doubled) {
        y->doubled = false;
        y->opts.source->counts->n_doubled--;
    }
    if (other_of(g)->running)
        y->lead = other_of(g);
    /* not from here: the replica's code is still on the stack */
    executor_later(y->owner->executor, &y->next);
}

static void on_flush(struct sink *s)
{
    struct leg *g = leg_of(s);
    if (!deaf(g))
        sink_flush(g->relay->sink);
}

static bool on_full(struct sink *s)
{
    struct leg *g = leg_of(s);
    struct sink *client = g->relay->sink;
    return !deaf(g) && sink_is_full(client);
}

/* ---- finding a replica ---- */

/* The request for the next replica: with the tokens that the client already has, if it is known
 * which version can continue them. */
static bool make_ticket(struct relay *y, struct leg *g)
{
    struct request_generate *q = &y->request->generate;
    bool begun = false;
    g->reruns = g->has_sum = false;
    for (uint32_t i = 0; i < y->n; i++)
        g->given[i] = (struct given){
            .skip_tokens = y->request->kind == REQUEST_TOKENS ? y->choices[i].n_tokens : 0,
            .skip_bytes = y->choices[i].loose_bytes};
    if (y->request->kind != REQUEST_GENERATE)
        return true;
    for (uint32_t i = 0; i < y->n; i++)
        begun |= y->choices[i].done || y->choices[i].n_tokens > 0;
    if (!begun)
        return true;
    g->reruns = !y->has_sum;
    for (uint32_t i = 0; g->reruns && i < y->n; i++)
        g->given[i].skip_tokens = y->choices[i].n_tokens;
    if (g->reruns)
        return true;
    struct request_resume *list = arena_zalloc_n(&y->request->arena, y->n, sizeof(*list));
    for (uint32_t i = 0; list && i < y->n; i++) {
        const struct choice *c = &y->choices[i];
        uint32_t n = c->done ? 0 : c->n_tokens;
        /* copied: the running replica may append more */
        int32_t *tokens = n > 0 ? arena_zalloc_n(&y->request->arena, n, sizeof(*tokens)) : NULL;
        if (n > 0 && !tokens)
            return false;
        if (n > 0)
            memcpy(tokens, c->tokens.data, n * sizeof(*tokens));
        list[i] = (struct request_resume){c->done, tokens, n};
        g->given[i].n_tokens = c->n_tokens;
    }
    q->resume = list;
    return list != NULL;
}

static void forget_tried(struct relay *y)
{
    y->n_tried = y->n_refuted;
}

static void wait_for_one(struct relay *y)
{
    uint64_t now = clock_ns();
    patience_waits(&y->patience, now);
    forget_tried(y); /* earlier failures may succeed now */
    y->waiting = true;
    executor_timer_set(y->owner->executor, &y->timer, now + RETRY_NS);
}

static bool is_late(const struct relay *y)
{
    return patience_late(&y->patience, clock_ns());
}

/* No node has the model, or none that has it is available. */
static void say_absent(const struct relay *y, struct failure *f, enum replica_found found)
{
    if (found == REPLICA_NONE && y->request->kind == REQUEST_ASK) {
        failure_set(f, FAILURE_NOT_FOUND, SHOAL_ENOTFOUND, NULL, "model_not_found",
                    "no node of this shoal has the models that commands need: start one with the "
                    "models included with Shoal");
    } else if (found == REPLICA_NONE) {
        failure_set(f, FAILURE_NOT_FOUND, SHOAL_ENOTFOUND, "model", "model_not_found",
                    "there is no model '%s' in this shoal",
                    y->request->model ? y->request->model : "");
    } else if (found == REPLICA_UNHEARD) { /* one of them may have it: a client must not give up */
        failure_set(f, FAILURE_UNAVAILABLE, SHOAL_EIO, NULL, REPLICA_ABSENT,
                    "no node that can be reached serves this model, and not all nodes can be "
                    "reached at the moment");
        f->retry_after_s = 2;
    } else {
        failure_set(f, FAILURE_UNAVAILABLE, SHOAL_EIO, NULL, REPLICA_ABSENT,
                    "no node that serves this model can be reached at the moment");
        f->retry_after_s = 2;
    }
}

/* The answer has begun, and nobody else can go on with it. */
static void add_absent(struct failure *f, const char *model)
{
    const size_t n = strlen(f->message);
    snprintf(f->message + n, sizeof(f->message) - n,
             "; no other node that answers has the model '%.128s' with the bytes that began it",
             model);
}

static void give_up(struct relay *y, enum patience_verdict why, enum replica_found found)
{
    struct failure f;
    if (why == PATIENCE_LATE)
        failure_late(&f, false, false, "the deadline passed while no node could continue");
    else if (why == PATIENCE_DEADLY)
        failure_set(&f, FAILURE_INTERNAL, SHOAL_EINTERNAL, NULL, "request_ends_nodes",
                    "several nodes crashed while running this request: it is not retried");
    else if (y->has_failure)
        f = y->failure;
    else
        say_absent(y, &f, found);
    if (y->has_failure && y->started && y->has_sum && y->request->model && found != REPLICA_FOUND)
        add_absent(&f, y->request->model);
    if (why != PATIENCE_REFUSED && why != PATIENCE_LATE)
        log_warn("cluster", "giving up on request %s after %u attempts: %s", y->request->id,
                 y->n_attempts, patience_text(why));
    tell_failure(y, &f);
    relay_close(y);
}

/* What the replica does is below the span of its leg, also on its own machine. */
static void begin_span(struct relay *y, struct leg *g)
{
    struct trace_at *at = &y->request->spans;
    if (!at->trace)
        return;
    g->span = at->span = trace_begin(at->trace, y->span, "node", clock_ns());
    trace_set_kind(at->trace, g->span, TRACE_CLIENT);
    trace_text(at->trace, g->span, TRACE_NODE, g->at->name);
    trace_number(at->trace, g->span, TRACE_ATTEMPT, y->n_attempts);
    if (g->from_ticket && y->n > 0)
        trace_number(at->trace, g->span, TRACE_GIVEN_TOKENS, y->choices[0].n_tokens);
    if (y->request->pages_name[0])
        trace_text(at->trace, g->span, TRACE_PROMPT_NODE, y->request->pages_name);
}

static void note_tried(struct relay *y, struct replica *p)
{
    if (y->n_tried < MAX_TRIED)
        y->tried[y->n_tried++] = p;
}

static void run_on(struct relay *y, struct leg *g, struct replica *p)
{
    note_tried(y, p);
    g->from_ticket = y->request->kind == REQUEST_GENERATE && y->request->generate.resume;
    y->n_attempts++;
    patience_asked(&y->patience, clock_ns());
    g->at = p;
    g->out = g->has_start = false;
    g->prompt = (struct sink_prompt){0};
    g->running = true;
    g->n_results = 0;
    g->inner.job = NULL;
    begin_span(y, g);
    p->ops->run(p, y->owner, y->request, &g->inner);
}

/* The replica that starts or continues the request. */
static enum replica_found find_next(struct relay *y, struct replica **out, uint64_t *expect_ns,
                                    uint64_t *token_ns)
{
    const uint8_t *chosen = NULL;
    const struct replica *holder = NULL;
    double part = 0;
    if (y->stamps && !y->started) /* from now on all its models are of this epoch */
        y->request->epoch = y->opts.source->epoch;
    y->request->may_be_old = patience_any_version(&y->patience, clock_ns());
    flow_hold_epoch(y->owner, y->request); /* held even while it waits for a replica */
    const struct replica_query q = {.request = y->request,
                                    .version = y->has_sum ? y->sum : NULL,
                                    .avoid = y->tried,
                                    .n_avoid = y->n_tried,
                                    .usual = y->usual,
                                    .prefix = y->opts.prefix,
                                    .chosen = &chosen,
                                    .expect_ns = expect_ns,
                                    .token_ns = token_ns,
                                    .splits = y->n_attempts == 0 ? &y->splits : NULL,
                                    .loads = &y->legs[0].loads,
                                    .holder = &holder,
                                    .holder_part = &part};
    *expect_ns = *token_ns = 0;
    y->legs[0].loads = false;
    enum replica_found found = y->opts.source->ops->find(y->opts.source, &q, out);
    if (chosen)
        memcpy(y->chosen, chosen, sizeof(y->chosen));
    if (y->handed && *out != y->lead->at) { /* it has just read all of it */
        holder = y->lead->at;
        part = 1;
    }
    const bool told = holder && holder->address && holder->name;
    snprintf(y->request->pages_from, sizeof(y->request->pages_from), "%s",
             told ? holder->address : "");
    snprintf(y->request->pages_name, sizeof(y->request->pages_name), "%s",
             told ? holder->name : "");
    y->request->pages_part = told ? part : 0;
    y->trial = chosen && !q.version && y->request->kind != REQUEST_ASK;
    y->request->version = q.version ? q.version : chosen ? y->chosen : NULL;
    return found;
}

/* What a second replica has to read, or to write once more, of the answer.  The first one is not
 * given that time: whoever reads sooner goes on. */
static uint32_t n_given(const struct relay *y)
{
    uint64_t n = 0;
    for (uint32_t i = 0; i < y->n; i++)
        n += y->choices[i].done ? 0 : y->choices[i].n_tokens;
    return n < UINT32_MAX ? (uint32_t)n : UINT32_MAX;
}

/* A second replica beside the leading one, with the same version; not `also`, unless that is NULL.
 */
static enum replica_found find_rival(struct relay *y, struct replica *also, struct replica **out,
                                     uint64_t *expect_ns)
{
    struct replica *const avoid[] = {y->lead->at, also};
    const struct replica_query q = {.request = y->request,
                                    .version = y->has_sum ? y->sum : y->request->version,
                                    .avoid = avoid,
                                    .n_avoid = also ? 2 : 1,
                                    .loaded = true,
                                    .n_given = n_given(y),
                                    .prefix = y->opts.prefix,
                                    .expect_ns = expect_ns};
    y->request->version = q.version;
    return y->opts.source->ops->find(y->opts.source, &q, out);
}

/* How long a stream that runs may be silent; UINT64_MAX: its pace is not known yet. */
static uint64_t live_stall_ns(const struct relay *y)
{
    const uint64_t unusual = pace_unusual_ns(&y->pace);
    uint64_t least = LIVE_STALL_MS * (uint64_t)MS_NS;
    if (stall_least_ns(y) < least)
        least = stall_least_ns(y);
    return unusual > least ? unusual : least;
}

/* How long the replica may be silent before a second one is tried. */
static uint64_t patience(const struct relay *y)
{
    const uint64_t hedge = (uint64_t)y->opts.hedge_ms * MS_NS, live = live_stall_ns(y);
    const bool sooner = y->pace.n > 0 && y->token_stall_ns < y->stall_ns;
    const uint64_t stall = sooner ? y->token_stall_ns : y->stall_ns;
    if (y->n_pieces == 0)
        return hedge > 0 && hedge < stall ? hedge : stall;
    return live < stall ? live : stall;
}

/* Its replica has not even begun. */
static bool is_loading(const struct relay *y)
{
    return y->lead->loads && !y->lead->has_start;
}

static void watch_at(struct relay *y, uint64_t at_ns)
{
    y->watch_ns = at_ns;
    executor_timer_set(y->owner->executor, &y->watch, at_ns);
}

/* When it is silent for too long if no piece comes until then. */
static void set_watch(struct relay *y)
{
    const uint64_t most = y->patience.total_ns; /* replicas may be silent for ever */
    const uint64_t silence = is_loading(y) ? AGAIN_NS : patience(y);
    watch_at(y, y->pace.last_ns + (silence < most ? silence : most));
}

/* The pace of the stream has become known: silence is noticed sooner than when it began. */
static void hurry_watch(struct relay *y)
{
    const uint64_t silence = patience(y);
    if (silence < UINT64_MAX - y->pace.last_ns && y->pace.last_ns + silence < y->watch_ns)
        set_watch(y);
}

/* How long a replica that says it needs so long may be silent. */
static uint64_t stall_of(const struct relay *y, uint64_t expect_ns)
{
    const uint64_t noisy = expect_ns < STALL_LONG_NS ? expect_ns : STALL_LONG_NS;
    const uint64_t least = stall_least_ns(y), most = expect_ns + noisy * (STALL_FACTOR - 1);
    return expect_ns == 0 ? UINT64_MAX : most > least ? most : least;
}

/* Starts, or continues. */
static void next_replica(struct relay *y)
{
    struct replica *p = NULL;
    uint64_t expect_ns, token_ns;
    struct replica_counts *n = y->opts.source->counts;
    if (!y->started && !y->sum_wanted)
        y->has_sum = false; /* the client has seen nothing of it: any version is fine */
    enum replica_found found = find_next(y, &p, &expect_ns, &token_ns);
    struct leg *g = &y->legs[0];
    enum patience_verdict verdict = patience_judge(&y->patience, found, clock_ns());
    if (verdict != PATIENCE_GO_ON) {
        give_up(y, verdict, found);
    } else if (found != REPLICA_FOUND) {
        wait_for_one(y);
    } else if (make_ticket(y, g)) {
        n->n_moved += y->n_attempts > 0 && y->started && !y->handed;
        n->n_split += y->handed;
        y->handed = false;
        n->n_retried += y->n_attempts > 0 && !y->started;
        if (y->n_attempts > 0)
            log_info("cluster", "request %s continues on node %s", y->request->id, p->name);
        y->stall_ns = stall_of(y, expect_ns);
        y->token_stall_ns = stall_of(y, token_ns);
        pace_begin(&y->pace, clock_ns());
        y->lead = g;
        g->has_start = false;
        set_watch(y);
        run_on(y, g, p);
    } else {
        struct failure f;
        failure_of(&f, SHOAL_ENOMEM, "out of memory to continue the answer");
        tell_failure(y, &f);
        relay_close(y);
    }
}

static void on_next(struct executor_task *t)
{
    struct relay *y = EXECUTOR_OF(t, struct relay, next);
    if (y->legs[0].running || y->legs[1].running || y->waiting)
        return;
    if (y->quiet)
        relay_close(y);
    else
        next_replica(y);
}

static void on_timer(struct executor_timer *t)
{
    struct relay *y = EXECUTOR_OF(t, struct relay, timer);
    y->waiting = false;
    next_replica(y);
}

/* ---- a second replica ---- */

static bool may_double(const struct relay *y, bool hedged)
{
    const struct replica_counts *n = y->opts.source->counts;
    const bool one = y->legs[0].running != y->legs[1].running;
    const uint32_t share = hedged || y->n_pieces == 0 ? DOUBLED_SHARE : STALLED_SHARE;
    return one && !y->quiet && !y->lead->out && !is_late(y) &&
           n->n_doubled < 1 + n->n_running / share;
}

/* Asks another replica as well; the first piece of the answer decides. False: there is none now. */
static bool start_rival(struct relay *y, bool hedged)
{
    struct replica *p = NULL;
    struct replica_counts *n = y->opts.source->counts;
    struct leg *g = other_of(y->lead);
    struct replica *const last = y->rival_at;
    uint64_t expect_ns = 0;
    learn_version(y->lead);
    y->rival_at = NULL; /* the next look takes any */
    if (find_rival(y, last, &p, &expect_ns) != REPLICA_FOUND || !make_ticket(y, g))
        return false;
    n->n_hedged += hedged;
    n->n_stalled += !hedged;
    n->n_doubled++;
    y->doubled = true;
    y->stalled = !hedged;
    y->rival_ns = clock_ns();
    y->rival_stall_ns = expect_ns > 0 ? stall_of(y, expect_ns) : y->stall_ns;
    g->loads = false;
    log_info("cluster", "request %s waits for node %s: also sending it to node %s", y->request->id,
             y->lead->at->name, p->name);
    run_on(y, g, p);
    return true;
}

/* Its replicas work, or say so, but nothing comes: it ends when they have closed. */
static void end_fruitless(struct relay *y)
{
    struct failure f;
    failure_set(&f, FAILURE_UNAVAILABLE, SHOAL_EIO, NULL, REPLICA_ABSENT,
                "no node made progress with this request for too long");
    log_warn("cluster", "giving up on request %s after %u attempts: %s", y->request->id,
             y->n_attempts, patience_text(PATIENCE_FRUITLESS));
    tell_failure(y, &f);
    for (int i = 0; i < 2; i++)
        drop(&y->legs[i]);
}

/* The second replica is silent, too, and there is another one, which may do better: when it is
 * closed, that is tried.  Each has twice the time of the one before it: if all of them are busier
 * than they say, one must at last have the time to read what the client has. */
static void give_up_rival(struct relay *y)
{
    struct leg *rival = other_of(y->lead);
    struct replica *p = NULL;
    const uint32_t times = 1u << (y->n_rivals < MAX_DOUBLINGS ? y->n_rivals : MAX_DOUBLINGS);
    if (!rival->running || rival->out || (clock_ns() - y->rival_ns) / times < y->rival_stall_ns ||
        find_rival(y, rival->at, &p, NULL) != REPLICA_FOUND)
        return;
    y->rival_at = rival->at;
    y->n_rivals++;
    drop(rival);
}

/* An update has ended since it was sent: no other replica has that version, or serves that epoch,
 * but one could answer it anew, since the client has seen nothing of it. */
static bool is_superseded(struct relay *y)
{
    struct request *r = y->request;
    struct replica *const avoid[] = {y->lead->at}, *p = NULL;
    const struct replica_query q = {.request = r, .avoid = avoid, .n_avoid = 1};
    const uint64_t epoch = r->epoch;
    if (y->started || y->sum_wanted || !y->stamps)
        return false;
    r->epoch = y->opts.source->epoch;
    const bool found = y->opts.source->ops->find(y->opts.source, &q, &p) == REPLICA_FOUND;
    r->epoch = epoch;
    return found;
}

/* Another replica has the model loaded by now: the request goes there when this one has closed.
 * Those that failed before are asked again after a while. */
static void leave_loading(struct relay *y, uint64_t now)
{
    struct replica *p = NULL;
    if (now - y->pace.last_ns >= stall_least_ns(y)) {
        forget_tried(y);
        note_tried(y, y->lead->at);
    }
    const struct replica_query q = {.request = y->request,
                                    .version = y->has_sum ? y->sum : NULL,
                                    .avoid = y->tried,
                                    .n_avoid = y->n_tried,
                                    .loaded = true};
    if (y->lead->out || y->opts.source->ops->find(y->opts.source, &q, &p) != REPLICA_FOUND)
        return;
    log_info("cluster", "request %s waits while node %s loads its model: node %s has it",
             y->request->id, y->lead->at->name, p->name);
    drop(y->lead);
}

/* Nothing came for too long: asks another replica as well, as soon as that is allowed. */
static void on_stall(struct relay *y)
{
    const bool hedged = y->n_pieces == 0 && patience(y) < y->stall_ns;
    if (!may_double(y, hedged))
        give_up_rival(y);
    else if (start_rival(y, hedged))
        y->opts.hedge_ms = hedged ? 0 : y->opts.hedge_ms; /* once */
    else if (!hedged && is_superseded(y))
        drop(y->lead); /* when it is closed, the request goes to the other one */
}

static void on_watch(struct executor_timer *t)
{
    struct relay *y = EXECUTOR_OF(t, struct relay, watch);
    const uint64_t now = clock_ns(), due = y->watch_ns;
    /* a client that reads slowly holds the replica back */
    const bool held = sink_is_full(y->sink);
    if (y->quiet)
        return;
    if (!held && patience_judge(&y->patience, REPLICA_FOUND, now) == PATIENCE_FRUITLESS) {
        end_fruitless(y);
        return;
    }
    if (held)
        y->pace.last_ns = now;
    y->stood = now - due > STOOD_NS && !y->stood;
    if (y->stood) { /* what came meanwhile has not been read yet; a process that is always late does
                       not wait for ever */
        watch_at(y, now + AGAIN_NS);
        return;
    }
    if (is_loading(y)) {
        leave_loading(y, now);
        watch_at(y, now + AGAIN_NS);
        return;
    }
    if (patience(y) == UINT64_MAX || now - y->pace.last_ns < patience(y)) {
        set_watch(y);
        return;
    }
    on_stall(y);
    watch_at(y, now + AGAIN_NS);
}

/* ---- the client's side ---- */

static void on_cancel(struct flow_job *j)
{
    struct relay *y = (struct relay *)(void *)j;
    if (y->quiet)
        return;
    y->quiet = true;
    for (int i = 0; i < 2; i++)
        if (y->legs[i].running)
            flow_cancel(&y->legs[i].inner);
    if (y->waiting) {
        y->waiting = false;
        executor_timer_clear(y->owner->executor, &y->timer);
        executor_later(y->owner->executor, &y->next);
    } /* otherwise on_next is due, or is called when the last replica is closed */
}

static void on_resume(struct flow_job *j)
{
    struct relay *y = (struct relay *)(void *)j;
    for (int i = 0; i < 2; i++)
        if (y->legs[i].running)
            flow_resume(&y->legs[i].inner);
}

static bool prepare(struct relay *y)
{
    struct request *r = y->request;
    for (int i = 0; r->kind == REQUEST_INFER && i < 2; i++) {
        y->legs[i].results =
            arena_zalloc_n(&r->arena, r->infer.n_inputs, sizeof(const struct shoal_result *));
        if (!y->legs[i].results)
            return false;
    }
    if (r->kind == REQUEST_INFER)
        return true;
    uint32_t n = r->kind == REQUEST_GENERATE ? request_choices(&r->generate) : 1;
    y->choices = arena_zalloc_n(&r->arena, n, sizeof(*y->choices));
    for (int i = 0; i < 2; i++)
        y->legs[i].given = arena_zalloc_n(&r->arena, n, sizeof(struct given));
    if (!y->choices || !y->legs[0].given || !y->legs[1].given)
        return false;
    y->n = n;
    y->n_each = r->kind == REQUEST_GENERATE ? r->generate.n : 1;
    for (uint32_t i = 0; i < y->n; i++)
        buf_init(&y->choices[i].tokens, MAX_TICKET_TOKENS * sizeof(int32_t));
    if (r->kind != REQUEST_GENERATE)
        return true;
    if (!r->generate.has_seed && !r->generate.seeded)
        r->generate.sampling.seed = hash_mix(y->owner->next_seed++);
    r->generate.seeded = true; /* every replica must sample the same tokens */
    return true;
}

void relay_run(const struct relay_opts *opts, struct flow_owner *o, struct request *r,
               struct sink *s)
{
    static const struct flow_job_ops job_ops = {on_cancel, on_resume};
    static const struct sink_ops ops = {.start = on_start,
                                        .plan = on_plan,
                                        .prompt = on_prompt,
                                        .token = on_token,
                                        .result = on_result,
                                        .done = on_done,
                                        .fail = on_fail,
                                        .closed = on_closed,
                                        .flush = on_flush,
                                        .full = on_full};
    struct relay *y = mem_zalloc(sizeof(*y));
    if (!y) {
        flow_refuse_nomem(o, r, s);
        return;
    }
    *y = (struct relay){.job = {&job_ops},
                        .opts = *opts,
                        .owner = o,
                        .request = r,
                        .sink = s,
                        .stamps = r->epoch == 0,
                        .began_ns = clock_ns(),
                        .span = r->spans.span,
                        .timer = {.fn = on_timer},
                        .watch = {.fn = on_watch},
                        .next = {.fn = on_next}};
    if (r->version && r->kind != REQUEST_ASK) { /* the client requires this one */
        memcpy(y->sum, r->version, SHA256_BYTES);
        y->has_sum = y->sum_wanted = true;
    }
    patience_init(&y->patience, opts->wait_ms, opts->total_ms, r->deadline_ns, y->began_ns);
    for (int i = 0; i < 2; i++)
        y->legs[i] = (struct leg){.inner = {.ops = &ops}, .relay = y};
    y->lead = &y->legs[0];
    if (!r->deadline_ns)
        y->opts.hedge_ms = 0; /* nothing is late */
    s->job = &y->job;
    o->n_jobs++;
    opts->source->counts->n_requests++;
    opts->source->counts->n_running++;
    if (prepare(y)) {
        next_replica(y);
        return;
    }
    struct failure f;
    failure_of(&f, SHOAL_ENOMEM, "out of memory");
    tell_failure(y, &f);
    relay_close(y);
}
