/* relay.c - see relay.h. */
#include "cluster/relay.h"

#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/mem.h"
#include "flow/acquire.h"
#include "host/sha256.h"

#define MAX_TRIED 64u                /* replicas that are not asked twice in a row */
#define RETRY_NS 20000000u           /* between two looks for a replica */
#define MAX_TICKET_TOKENS (1u << 24) /* of a choice */
#define MAX_INTERNAL 3u
#define MS_NS 1000000u

/* What the client has seen of a choice. */
struct choice {
    struct buf tokens;          /* int32_t each */
    uint32_t n_tokens, n_given; /* given: to the replica that works on it now */
    size_t loose_bytes;         /* of text that came without a token after the last token */
    size_t skip_bytes;          /* of the text that comes now: the client has it */
    uint64_t first_token_ns;
    bool done;
    struct sink_usage usage;
};

struct relay {
    struct flow_job job; /* first */
    struct relay_opts opts;
    struct flow_owner *owner;
    struct request *request;    /* owned */
    struct sink *sink;          /* the client's */
    struct sink inner;          /* of the replica that works on it */
    struct replica *at;         /* it; NULL: none */
    bool quiet;                 /* the client wants nothing but `closed` any more */
    bool running;               /* inner is not closed yet */
    bool started;               /* the client got `start` */
    bool retry;                 /* the replica failed: another one is to be found */
    bool waiting;               /* on timer */
    struct choice *choices;     /* [n] */
    uint32_t n, n_each, n_done; /* choices: all, of each prompt, complete; an ask has one */
    uint32_t n_results;
    const struct shoal_result **results; /* [n_inputs] of a specialist */
    bool planned;                        /* the client got the plan of an ask */
    bool has_sum;
    uint8_t sum[SHA256_BYTES];    /* of the model that began */
    uint8_t chosen[SHA256_BYTES]; /* that the replica is to use */
    bool stamps;                  /* the request came without an epoch */
    struct replica *tried[MAX_TRIED];
    uint32_t n_tried, n_attempts;
    uint64_t began_ns, give_up_ns; /* give_up: when waiting ends; 0: not waiting */
    struct failure failure;        /* the last one */
    bool has_failure;
    bool lost;           /* it came from a replica that is gone, not from one that refused */
    uint32_t n_internal; /* failures that should not be: not tried for long */
    struct executor_timer timer;
    struct executor_task next;
};

static struct relay *relay_of(struct sink *inner)
{
    return EXECUTOR_OF(inner, struct relay, inner);
}

static void relay_close(struct relay *y)
{
    struct flow_owner *o = y->owner;
    executor_timer_clear(o->executor, &y->timer);
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
    /* what is wrong with the request itself is no loss */
    y->opts.source->counts->n_lost +=
        y->started && f->kind != FAILURE_INVALID && f->kind != FAILURE_DEADLINE;
    y->sink->ops->fail(y->sink, f);
}

/* ---- what a replica sends ---- */

static void fail_nomem(struct relay *y)
{
    struct failure f;
    failure_of(&f, SHOAL_ENOMEM, "out of memory for the answer");
    tell_failure(y, &f);
    flow_cancel(&y->inner);
}

/* The replica does not keep to the protocol: as if it were gone. */
static void distrust(struct relay *y, const char *what)
{
    log_warn("cluster", "node %s: %s; trying another one", y->at ? y->at->name : "?", what);
    failure_set(&y->failure, FAILURE_UNAVAILABLE, SHOAL_EIO, NULL, REPLICA_LOST,
                "node %.64s sent something that does not fit the request",
                y->at ? y->at->name : "?");
    y->has_failure = y->retry = true;
    y->lost = false;
    y->n_internal++;
    flow_cancel(&y->inner);
}

static bool deaf(const struct relay *y)
{
    return y->quiet || y->retry;
}

static void on_start(struct sink *s, const struct sink_start *e)
{
    struct relay *y = relay_of(s);
    struct request *r = y->request;
    if (deaf(y))
        return;
    if (e->sum && !y->has_sum && r->kind != REQUEST_ASK) { /* a flow has several models */
        memcpy(y->sum, e->sum, SHA256_BYTES);
        y->has_sum = true;
    }
    if (y->started)
        return;
    struct sink_start mine = {.model = request_copy(r, e->model, strlen(e->model)),
                              .version = request_copy(r, e->version, strlen(e->version)),
                              .sum = y->has_sum ? y->sum : NULL,
                              .cache = e->cache == SINK_CACHE_HIT ? e->cache : SINK_CACHE_OFF};
    if (!r->model)
        r->model = mine.model; /* another replica may have another default */
    if (y->at != y->opts.source->here)
        mine.node = request_copy(r, y->at->name, strlen(y->at->name));
    y->started = true;
    y->sink->ops->start(y->sink, &mine);
}

/* The replica's plan goes with the replica; the client's stays with the request. */
static void on_plan(struct sink *s, const struct sink_plan *e)
{
    struct relay *y = relay_of(s);
    if (deaf(y) || y->planned) /* run again, the plan is the same */
        return;
    if (!y->started || y->request->kind != REQUEST_ASK) {
        distrust(y, "a plan that nobody asked for");
        return;
    }
    const struct sink_plan mine = {ask_plan_copy(e->plan, &y->request->arena)};
    if (!mine.plan) {
        fail_nomem(y);
        return;
    }
    y->planned = true;
    y->sink->ops->plan(y->sink, &mine);
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
    } else if (!e->echo) {
        c->loose_bytes += e->text_bytes;
    }
    return true;
}

static void on_token(struct sink *s, const struct sink_token *e)
{
    struct relay *y = relay_of(s);
    struct sink_token mine = *e;
    if (deaf(y))
        return;
    if (!y->started || y->n == 0 || e->choice >= y->n || y->choices[e->choice].done ||
        (e->echo && y->n_attempts > 1)) {
        distrust(y, "a token that nobody asked for");
        return;
    }
    struct choice *c = &y->choices[e->choice];
    size_t skip = c->skip_bytes < mine.text_bytes ? c->skip_bytes : mine.text_bytes;
    c->skip_bytes -= skip;
    mine.text += skip;
    mine.text_bytes -= skip;
    if (c->first_token_ns == 0 && !e->echo)
        c->first_token_ns = clock_ns();
    if (!keep_token(c, &mine)) {
        fail_nomem(y);
        return;
    }
    y->give_up_ns = 0;
    y->sink->ops->token(y->sink, &mine);
}

static void on_result(struct sink *s, const struct sink_result *e)
{
    struct relay *y = relay_of(s);
    if (deaf(y))
        return;
    uint32_t n = y->request->kind == REQUEST_INFER ? y->request->infer.n_inputs : 0;
    if (!y->started || e->index != y->n_results || e->index >= n ||
        e->last != (e->index + 1 == n) || e->result->kind != y->request->infer.kind) {
        distrust(y, "a result that nobody asked for");
        return;
    }
    y->results[y->n_results++] = e->result;
    if (!e->last)
        return;
    y->quiet = true; /* the results stay until this call returns */
    for (uint32_t i = 0; i < n; i++) {
        const struct sink_result mine = {i, y->results[i], i + 1 == n};
        y->sink->ops->result(y->sink, &mine);
    }
}

/* Figures of the whole choice, whoever computed which part of it. */
static void send_done(struct relay *y, struct choice *c, const struct sink_done *e)
{
    uint64_t now = clock_ns();
    struct sink_done mine = *e;
    if (c->n_given > 0 || y->n_attempts > 1) {
        mine.prompt_tokens -= c->n_given < mine.prompt_tokens ? c->n_given : mine.prompt_tokens;
        mine.generated_tokens = c->n_tokens;
        mine.first_token_ns = c->first_token_ns ? c->first_token_ns - y->began_ns : 0;
        mine.total_ns = now - y->began_ns;
        if (mine.cached_tokens > mine.prompt_tokens)
            mine.cached_tokens = mine.prompt_tokens;
    }
    c->done = true;
    c->usage = (struct sink_usage){mine.prompt_tokens, mine.cached_tokens, mine.generated_tokens};
    y->n_done++;
    mine.last = y->n_done == y->n;
    mine.usage = (struct sink_usage){0, 0, 0};
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
    struct relay *y = relay_of(s);
    if (deaf(y))
        return;
    if (!y->started || y->n == 0 || e->choice >= y->n || y->choices[e->choice].done)
        distrust(y, "an end that nobody asked for");
    else
        send_done(y, &y->choices[e->choice], e);
}

/* Whether another replica may do better. */
static bool worth_moving(const struct failure *f)
{
    switch (f->kind) {
    case FAILURE_BUSY:
    case FAILURE_NOT_LOADED:
    case FAILURE_UNAVAILABLE:
    case FAILURE_INTERNAL:
    case FAILURE_NOT_FOUND: /* it had the model when it was chosen */
        return true;
    case FAILURE_INVALID:
    case FAILURE_DEADLINE:
        return false;
    }
    return false;
}

static void on_fail(struct sink *s, const struct failure *f)
{
    struct relay *y = relay_of(s);
    if (deaf(y))
        return;
    y->n_internal += f->kind == FAILURE_INTERNAL;
    if (!worth_moving(f) || y->n_internal > MAX_INTERNAL) {
        tell_failure(y, f);
        return;
    }
    /* reason and param may live only as long as this event */
    y->failure = *f;
    y->failure.reason = f->reason ? request_copy(y->request, f->reason, strlen(f->reason)) : NULL;
    y->failure.param = f->param ? request_copy(y->request, f->param, strlen(f->param)) : NULL;
    y->has_failure = y->retry = true;
    y->lost = f->reason &&
              (strcmp(f->reason, REPLICA_LOST) == 0 || strcmp(f->reason, REPLICA_ABSENT) == 0 ||
               strcmp(f->reason, ACQUIRE_NO_VERSION) == 0 || /* what is known of it is old */
               strcmp(f->reason, ACQUIRE_NOT_SERVED) == 0);
}

static void on_closed(struct sink *s)
{
    struct relay *y = relay_of(s);
    y->running = false;
    if (!y->quiet && !y->retry) { /* it ended without an end */
        failure_set(&y->failure, FAILURE_UNAVAILABLE, SHOAL_EIO, NULL, REPLICA_LOST,
                    "node %.64s broke off", y->at ? y->at->name : "?");
        y->has_failure = y->retry = y->lost = true;
    }
    /* not from here: the replica is still in its own code */
    executor_later(y->owner->executor, &y->next);
}

static void on_flush(struct sink *s)
{
    struct relay *y = relay_of(s);
    if (!deaf(y) && y->sink->ops->flush)
        y->sink->ops->flush(y->sink);
}

static bool on_full(struct sink *s)
{
    struct relay *y = relay_of(s);
    return !deaf(y) && y->sink->ops->full && y->sink->ops->full(y->sink);
}

/* ---- finding a replica ---- */

/* The request as the next replica is to see it: with what the client has already. */
static bool make_ticket(struct relay *y)
{
    struct request_generate *g = &y->request->generate;
    bool begun = false;
    for (uint32_t i = 0; i < y->n; i++)
        y->choices[i].skip_bytes = y->choices[i].loose_bytes;
    if (y->request->kind != REQUEST_GENERATE)
        return true;
    for (uint32_t i = 0; i < y->n; i++)
        begun |= y->choices[i].done || y->choices[i].n_tokens > 0;
    if (!begun)
        return true;
    struct request_resume *list = arena_zalloc_n(&y->request->arena, y->n, sizeof(*list));
    if (!list)
        return false;
    for (uint32_t i = 0; i < y->n; i++) {
        struct choice *c = &y->choices[i];
        list[i] = (struct request_resume){c->done, (const int32_t *)(void *)c->tokens.data,
                                          c->done ? 0 : c->n_tokens};
        c->n_given = c->n_tokens;
    }
    g->resume = list;
    return true;
}

static void forget_tried(struct relay *y)
{
    y->n_tried = 0;
}

static void wait_for_one(struct relay *y)
{
    uint64_t now = clock_ns();
    if (y->give_up_ns == 0)
        y->give_up_ns = now + (uint64_t)y->opts.wait_ms * MS_NS;
    forget_tried(y); /* what failed before may work again */
    y->waiting = true;
    executor_timer_set(y->owner->executor, &y->timer, now + RETRY_NS);
}

static void give_up(struct relay *y, enum replica_found found)
{
    struct failure f;
    if (y->request->deadline_ns && clock_ns() >= y->request->deadline_ns) {
        failure_late(&f, false, false, "the deadline passed while no node could go on");
    } else if (y->has_failure) {
        f = y->failure;
    } else if (found == REPLICA_NONE) {
        failure_set(&f, FAILURE_NOT_FOUND, SHOAL_ENOTFOUND, "model", "model_not_found",
                    "there is no model '%s' in this shoal",
                    y->request->model ? y->request->model : "");
    } else {
        failure_set(&f, FAILURE_UNAVAILABLE, SHOAL_EIO, NULL, REPLICA_ABSENT,
                    "no node that serves this model can be reached at the moment");
        f.retry_after_s = 2;
    }
    tell_failure(y, &f);
    relay_close(y);
}

/* Whether it makes sense to wait: a replica that refused is believed, one that is gone may come
 * back, and a stream that has begun is not given up lightly. */
static bool may_wait(const struct relay *y, enum replica_found found)
{
    uint64_t now = clock_ns();
    bool hope = y->started || (found == REPLICA_LATER && (!y->has_failure || y->lost));
    return hope && y->n_internal <= MAX_INTERNAL && (y->give_up_ns == 0 || now < y->give_up_ns) &&
           (y->request->deadline_ns == 0 || now < y->request->deadline_ns);
}

static void run_on(struct relay *y, struct replica *p)
{
    if (y->n_tried < MAX_TRIED)
        y->tried[y->n_tried++] = p;
    y->opts.source->counts->n_moved += y->n_attempts > 0 && y->started;
    y->opts.source->counts->n_retried += y->n_attempts > 0 && !y->started;
    if (y->n_attempts > 0)
        log_info("cluster", "request %s goes on at node %s", y->request->id, p->name);
    y->n_attempts++;
    y->at = p;
    y->retry = false;
    y->running = true;
    y->n_results = 0;
    y->inner.job = NULL;
    p->ops->run(p, y->owner, y->request, &y->inner);
}

/* Begins, or goes on. */
static void next_replica(struct relay *y)
{
    struct replica *p = NULL;
    const uint8_t *chosen = NULL;
    if (y->stamps && !y->started) /* from then on all its models are those of this epoch */
        y->request->epoch = y->opts.source->epoch;
    const struct replica_query q = {.request = y->request,
                                    .version = y->has_sum ? y->sum : NULL,
                                    .avoid = y->tried,
                                    .n_avoid = y->n_tried,
                                    .chosen = &chosen};
    enum replica_found found = y->opts.source->ops->find(y->opts.source, &q, &p);
    if (found == REPLICA_FOUND && make_ticket(y)) {
        if (chosen)
            memcpy(y->chosen, chosen, sizeof(y->chosen));
        y->request->version = q.version ? q.version : chosen ? y->chosen : NULL;
        run_on(y, p);
    } else if (found == REPLICA_FOUND) {
        struct failure f;
        failure_of(&f, SHOAL_ENOMEM, "out of memory to continue the answer");
        tell_failure(y, &f);
        relay_close(y);
    } else if (may_wait(y, found)) {
        wait_for_one(y);
    } else {
        give_up(y, found);
    }
}

static void on_next(struct executor_task *t)
{
    struct relay *y = EXECUTOR_OF(t, struct relay, next);
    if (y->running || y->waiting)
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

/* ---- the client's side ---- */

static void on_cancel(struct flow_job *j)
{
    struct relay *y = (struct relay *)(void *)j;
    if (y->quiet)
        return;
    y->quiet = true;
    if (y->running) {
        flow_cancel(&y->inner);
    } else if (y->waiting) {
        y->waiting = false;
        executor_timer_clear(y->owner->executor, &y->timer);
        executor_later(y->owner->executor, &y->next);
    } /* else on_next is due */
}

static void on_resume(struct flow_job *j)
{
    struct relay *y = (struct relay *)(void *)j;
    if (y->running)
        flow_resume(&y->inner);
}

static bool prepare(struct relay *y)
{
    struct request *r = y->request;
    if (r->kind == REQUEST_INFER) {
        y->results =
            arena_zalloc_n(&r->arena, r->infer.n_inputs, sizeof(const struct shoal_result *));
        return y->results != NULL;
    }
    uint32_t n = r->kind == REQUEST_GENERATE ? request_choices(&r->generate) : 1;
    y->choices = arena_zalloc_n(&r->arena, n, sizeof(*y->choices));
    if (!y->choices)
        return false;
    y->n = n;
    y->n_each = r->kind == REQUEST_GENERATE ? r->generate.n : 1;
    for (uint32_t i = 0; i < y->n; i++)
        buf_init(&y->choices[i].tokens, MAX_TICKET_TOKENS * sizeof(int32_t));
    if (r->kind != REQUEST_GENERATE)
        return true;
    if (!r->generate.has_seed && !r->generate.seeded)
        r->generate.sampling.seed = hash_mix(y->owner->next_seed++);
    r->generate.seeded = true; /* every replica must draw the same */
    return true;
}

void relay_run(const struct relay_opts *opts, struct flow_owner *o, struct request *r,
               struct sink *s)
{
    static const struct flow_job_ops job_ops = {on_cancel, on_resume};
    static const struct sink_ops ops = {.start = on_start,
                                        .plan = on_plan,
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
                        .inner = {.ops = &ops},
                        .stamps = r->epoch == 0,
                        .began_ns = clock_ns(),
                        .timer = {.fn = on_timer},
                        .next = {.fn = on_next}};
    if (r->version && r->kind != REQUEST_ASK) { /* the client wants this one */
        memcpy(y->sum, r->version, SHA256_BYTES);
        y->has_sum = true;
    }
    s->job = &y->job;
    o->n_jobs++;
    opts->source->counts->n_requests++;
    if (prepare(y)) {
        next_replica(y);
        return;
    }
    struct failure f;
    failure_of(&f, SHOAL_ENOMEM, "out of memory");
    tell_failure(y, &f);
    relay_close(y);
}
