/* generate.c - see generate.h. */
#include "flow/page_source.h"
#include "flow/generate/generate.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/hash.h"
#include "engine/chat/chat.h"
#include "engine/decode/constraint_check.h"
#include "engine/estimate.h"
#include "flow/acquire.h"
#include "flow/flow_trace.h"
#include "flow/generate/answer_cache.h"
#include "flow/pool.h"
#include "flow/generate/prompt.h"
#include "flow/generate/token_queue.h"
#include "flow/tools/tool_constraint.h"
#include "host/energy_ledger.h"
#include "host/kept_answer.h"

#define INLINE_BYTES ((size_t)8 << 10) /* shorter prompts are prepared on the owner's thread */
#define MAX_LOGPROBS (1 + SHOAL_MAX_LOGPROBS) /* the token's own and the others */

struct choice {
    struct generation *generation;
    struct shoal_task *task;
    bool seen; /* its end was handled, or it never started */
};

struct generation {
    struct flow_job job; /* first */
    struct flow_owner *owner;
    struct request *request; /* owned */
    struct sink *sink;
    bool quiet;                   /* the sink only wants `closed` from now on */
    struct registry_model *model; /* held */
    bool counted;                 /* counted in the model's work in flight */
    struct prompt prompt;
    uint32_t n, n_left;           /* choices: all, not ended */
    struct choice *choices;       /* [n], in the request's arena, as is ends */
    struct token_queue_end *ends; /* [n] */
    struct token_queue queue;
    bool held;        /* the sink was full */
    bool *progressed; /* [n] the first progress event was sent; NULL: not requested */
    bool echoed;
    bool failed, refused; /* refused: before any work */
    struct err error;
    /* the prompt cache */
    uint8_t question[SHA256_BYTES];
    bool cacheable;
    struct buf kept; /* every token so far, as kept_answer.h has it */
    /* preparing */
    int prepare_rc;
    struct acquire acquire;
    struct pool_task pool_task;
    struct executor_task wake, prepared;
    struct page_fetch pages;
    struct energy_account energy; /* from submit to the end of the last choice */
    double prefill_ns, token_ns;  /* what its model's tokens cost */
    uint32_t n_sent;              /* tokens so far */
    struct sink_energy used;
};

static void on_wake(struct executor_task *t);

/* ---- lifetime ---- */

static void generation_close(struct generation *g)
{
    struct flow_owner *o = g->owner;
    (void)energy_account_end(o->flow->energy, &g->energy);
    g->sink->job = NULL;
    g->sink->ops->closed(g->sink); /* may still read the model's name */
    for (uint32_t i = 0; g->choices && i < g->n; i++)
        shoal_task_free(g->choices[i].task);
    if (g->counted) {
        struct model_stats *m = &g->model->stats;
        atomic_fetch_sub_explicit(&m->in_flight, 1, memory_order_relaxed);
    }
    if (g->model)
        registry_put(g->model);
    prompt_fini(&g->prompt);
    token_queue_fini(&g->queue);
    buf_fini(&g->kept);
    flow_give_request(o, g->request);
    flow_give(&o->generations, g);
    o->n_jobs--;
}

static void cancel_tasks(struct generation *g)
{
    for (uint32_t i = 0; g->choices && i < g->n; i++)
        if (g->choices[i].task)
            shoal_task_cancel(g->choices[i].task);
}

static void send_failure(struct generation *g, const struct failure *f)
{
    if (g->quiet)
        return;
    g->quiet = true;
    if (g->model)
        failure_count(&g->model->stats, f);
    g->sink->ops->fail(g->sink, f);
}

static void send_error(struct generation *g, int code, const char *msg)
{
    struct failure f;
    if (code == SHOAL_EDEADLINE)
        failure_late(&f, g->refused, model_stats_others(&g->model->stats), msg);
    else
        failure_of_model(&f, code, msg);
    send_failure(g, &f);
}

static void on_cancel(struct flow_job *j)
{
    struct generation *g = (struct generation *)(void *)j;
    if (g->quiet)
        return;
    g->quiet = true;
    acquire_cancel(&g->acquire);
    if (g->model)
        counter_add(&g->model->stats.cancelled, 1);
    cancel_tasks(g);
    if (g->held) { /* it can no longer be resumed */
        g->held = false;
        on_wake(&g->wake);
    }
}

static void on_resume(struct flow_job *j)
{
    struct generation *g = (struct generation *)(void *)j;
    if (g->held) {
        g->held = false;
        on_wake(&g->wake);
    }
}

/* ---- events to the sink ---- */

static void put_logprob(struct sink_logprob *out, struct shoal_engine *en, int32_t token,
                        float logprob)
{
    out->token = token;
    out->logprob = logprob;
    out->text = shoal_token_text(en, token, SHOAL_TEXT_SPECIAL, &out->text_bytes);
}

static void send_token(struct sink *s, struct shoal_engine *en, const struct kept_token *t,
                       bool logprobs)
{
    struct sink_logprob list[MAX_LOGPROBS];
    struct sink_token e = {.choice = t->choice,
                           .token = t->token,
                           .text = t->text,
                           .text_bytes = t->text_bytes,
                           .echo = t->echo};
    if (logprobs && t->token >= 0) {
        e.logprobs = list;
        put_logprob(&list[e.n_logprobs++], en, t->token, t->logprob);
        if (t->echo) { /* a token of the prompt has its own text, even if it is special */
            e.text = list[0].text;
            e.text_bytes = list[0].text_bytes;
        }
        for (uint32_t i = 0; i < t->n_top && e.n_logprobs < MAX_LOGPROBS; i++)
            put_logprob(&list[e.n_logprobs++], en, t->top[i].token, t->top[i].logprob);
    }
    s->ops->token(s, &e);
}

static struct sink_done done_of(uint32_t choice, const struct shoal_event *d)
{
    return (struct sink_done){.choice = choice,
                              .finish = d->finish,
                              .prompt_tokens = d->prompt_tokens,
                              .cached_tokens = d->cached_tokens,
                              .generated_tokens = d->generated_tokens,
                              .queue_ns = d->queue_ns,
                              .first_token_ns = d->first_token_ns,
                              .total_ns = d->total_ns,
                              .stopped_by_text = d->stopped_by_text,
                              .stop_index = (uint32_t)d->stop_index};
}

/* Choices of one prompt share it: its tokens count once. */
static void add_usage(struct sink_usage *u, const struct sink_done *d, bool first_of_prompt)
{
    u->generated_tokens += d->generated_tokens;
    if (!first_of_prompt)
        return;
    u->prompt_tokens += d->prompt_tokens;
    u->cached_tokens += d->cached_tokens;
}

/* The first token of a prompt has no log-probability. */
static void send_first(struct generation *g, uint32_t i, int32_t token)
{
    struct sink_logprob one;
    put_logprob(&one, registry_engine(g->model), token, NAN);
    const struct sink_token e = {.choice = i,
                                 .token = token,
                                 .echo = true,
                                 .text = one.text,
                                 .text_bytes = one.text_bytes,
                                 .logprobs = &one,
                                 .n_logprobs = 1};
    g->sink->ops->token(g->sink, &e);
}

/* Sends the prompts in front of their answers. */
static void send_echo(struct generation *g)
{
    const struct request_generate *q = &g->request->generate;
    g->echoed = true;
    for (uint32_t i = 0; q->echo && i < g->n && !g->quiet; i++) {
        char *text = NULL;
        size_t n = 0, n_tokens;
        const int32_t *tokens = prompt_tokens(&g->prompt, i / q->n, &n_tokens);
        if (q->prompt_logprobs) {
            send_first(g, i, tokens[0]);
            continue;
        }
        if (shoal_detokenize(registry_engine(g->model), tokens, n_tokens,
                             q->special ? SHOAL_TEXT_SPECIAL : 0, &text, &n, NULL) < 0)
            n = 0;
        struct sink_token e = {
            .choice = i, .token = -1, .echo = true, .text = n > 0 ? text : "", .text_bytes = n};
        g->sink->ops->token(g->sink, &e);
        shoal_free(text);
    }
}

static void send_prompt(struct sink *s, uint32_t choice, const struct token_queue_progress *p)
{
    const struct sink_prompt e = {choice, p->tokens, p->cached, p->computed};
    sink_tell_prompt(s, &e);
}

/* Sends prefill progress. The engine may be ahead of the first event that a sink must see. */
static void send_progress(struct generation *g)
{
    struct token_queue_progress p;
    for (uint32_t i = 0; g->progressed && i < g->n && !g->quiet; i++) {
        if (!token_queue_progress(&g->queue, &g->ends[i], &p))
            continue;
        if (!g->progressed[i] && p.computed > p.cached) {
            const struct token_queue_progress first = {p.tokens, p.cached, p.cached};
            send_prompt(g->sink, i, &first);
        }
        g->progressed[i] = true;
        if (!g->quiet)
            send_prompt(g->sink, i, &p);
    }
}

/* ---- events of the engine ---- */

static void on_event(void *ctx, const struct shoal_event *ev)
{
    struct choice *ch = ctx;
    struct generation *g = ch->generation;
    uint32_t i = (uint32_t)(ch - g->choices);
    token_queue_push(&g->queue, &g->ends[i], i, ev);
}

static void count_done(struct generation *g, const struct shoal_event *d)
{
    struct model_stats *m = &g->model->stats;
    counter_add(&m->generated_tokens, d->generated_tokens);
    counter_add(&m->prefix_hits, d->cached_tokens > 0);
    counter_add(&m->cached_tokens, d->cached_tokens);
    histogram_add(&m->queue, d->queue_ns);
    histogram_add(&m->total, d->total_ns);
    if (d->finish == SHOAL_FINISH_ERROR && d->code != SHOAL_ECANCELLED)
        counter_add(&m->errors, 1);
    if (d->generated_tokens == 0 || d->first_token_ns == 0)
        return;
    histogram_add(&m->first_token, d->first_token_ns);
    if (d->generated_tokens > 1)
        histogram_add(&m->per_token, (d->total_ns - d->first_token_ns) / (d->generated_tokens - 1));
}

/* ---- energy ---- */

/* Until the prompt is read nobody knows how much of it was cached. */
static void count_work(struct generation *g, bool ended)
{
    double work = g->token_ns * g->n_sent;
    for (uint32_t i = 0; i < g->n && ended; i++) {
        const struct shoal_event *d = &g->ends[i].done;
        work += g->prefill_ns * (double)(d->prompt_tokens - d->cached_tokens);
    }
    energy_account_work(g->owner->flow->energy, &g->energy, work);
}

static void count_energy(struct generation *g)
{
    struct energy_ledger *l = g->owner->flow->energy;
    if (!l || g->used.known)
        return;
    struct energy_figures f;
    count_work(g, true);
    const double joules = energy_account_end(l, &g->energy);
    energy_ledger_figures(l, &f);
    g->used = (struct sink_energy){
        .known = f.kind != ENERGY_NONE, .estimated = f.estimated, .joules = joules};
    counter_add(&g->model->stats.microjoules, (uint64_t)(joules * 1e6));
}

/* Reports the failure to the client when all choices have ended. */
static void fail(struct generation *g, int code, const char *msg)
{
    if (g->failed)
        return;
    g->failed = true;
    err_set(&g->error, code, "%s", msg);
    cancel_tasks(g);
}

static void send_done(struct generation *g, uint32_t i)
{
    struct sink_done e = done_of(i, &g->ends[i].done);
    if (!g->echoed)
        send_echo(g);
    e.last = g->n_left == 0;
    for (uint32_t k = 0; e.last && k < g->n; k++) {
        const struct sink_done each = done_of(k, &g->ends[k].done);
        add_usage(&e.usage, &each, k % g->request->generate.n == 0);
    }
    e.usage.energy = g->used;
    if (e.last && g->cacheable) {
        const struct prompt_key key = answer_cache_key(g->question, g->model);
        answer_cache_keep(g->owner->flow->cache, &key, g->ends, g->n, &g->kept);
    }
    if (g->quiet)
        return;
    g->quiet = e.last;
    g->sink->ops->done(g->sink, &e);
}

static void see_done(struct generation *g, uint32_t i)
{
    const struct shoal_event *d = &g->ends[i].done;
    g->choices[i].seen = true;
    g->n_left--;
    count_done(g, d);
    if (g->n_left == 0)
        count_energy(g);
    flow_trace_done(&g->request->spans, g->model->name, d, &g->used);
    if (g->sink->ops->broke_off && (g->quiet || g->failed || d->finish == SHOAL_FINISH_ERROR)) {
        const struct sink_done e = done_of(i, d);
        g->sink->ops->broke_off(g->sink, &e, d->code);
    }
    if (g->quiet || g->failed)
        return;
    if (d->finish != SHOAL_FINISH_ERROR)
        send_done(g, i);
    else
        fail(g, d->code,
             d->code == SHOAL_EDEADLINE ? "the deadline passed before the answer was complete"
                                        : err_text(d->code));
}

static void on_wake(struct executor_task *t)
{
    struct generation *g = EXECUTOR_OF(t, struct generation, wake);
    struct sink *s = g->sink;
    bool is_done[REQUEST_MAX_CHOICES];
    struct kept_token token;
    const char *records;
    size_t n, at = 0;
    if (!g->quiet && sink_is_full(s)) {
        g->held = true; /* on_resume continues */
        return;
    }
    int overflow = token_queue_take(&g->queue, g->ends, g->n, is_done, &records, &n);
    bool logprobs = g->request->generate.sampling.logprobs;
    if (!g->failed)
        send_progress(g);
    while (!g->quiet && !g->failed && token_queue_next(records, n, &at, &token)) {
        if (g->cacheable)
            kept_answer_put_token(&g->kept, &token);
        if (!g->echoed)
            send_echo(g);
        send_token(s, registry_engine(g->model), &token, logprobs);
        g->n_sent++;
    }
    count_work(g, false);
    if (overflow && !g->quiet)
        fail(g, overflow,
             overflow == SHOAL_EBUSY ? "the client reads too slowly" : "out of memory");
    for (uint32_t i = 0; i < g->n; i++)
        if (is_done[i] && !g->choices[i].seen)
            see_done(g, i);
    if (g->n_left == 0) {
        if (g->failed)
            send_error(g, g->error.code, g->error.msg);
        generation_close(g);
    } else if (!g->quiet) {
        sink_flush(s);
    }
}

/* ---- the prompt cache ---- */

/* Nothing of its prompts is computed. */
static void replay_prompts(struct sink *s, const struct kept_answer *kept)
{
    for (uint32_t i = 0; i < kept->n_choices; i++) {
        const uint32_t n = kept_answer_choice(kept, i).prompt_tokens;
        const struct token_queue_progress p = {n, n, n};
        send_prompt(s, i, &p);
    }
}

/* Replays all events of a cached answer. n: answers to each prompt. False: the entry does not fit
 * the request, and there was no event. */
static bool replay(struct sink *s, struct registry_model *m, const struct sink_start *start,
                   const struct prompt_entry *entry, uint32_t n_prompts, uint32_t n, bool logprobs,
                   bool progress)
{
    struct sink_usage usage = {0};
    struct kept_answer kept;
    struct kept_token token;
    if (kept_answer_open(&kept, entry->data, entry->n, NULL) < 0 || kept.n_choices != n_prompts * n)
        return false;
    counter_add(&m->stats.cache_hits, 1);
    s->ops->start(s, start);
    if (progress)
        replay_prompts(s, &kept);
    while (kept_answer_next(&kept, &token))
        send_token(s, registry_engine(m), &token, logprobs);
    for (uint32_t i = 0; i < kept.n_choices; i++) {
        const struct kept_choice c = kept_answer_choice(&kept, i);
        struct sink_done e = {.choice = i,
                              .finish = c.finish,
                              .prompt_tokens = c.prompt_tokens,
                              .cached_tokens = c.prompt_tokens, /* nothing was computed */
                              .generated_tokens = c.generated_tokens,
                              .queue_ns = c.queue_ns,
                              .first_token_ns = c.first_token_ns,
                              .total_ns = c.total_ns};
        add_usage(&usage, &e, i % n == 0);
        e.last = i + 1 == kept.n_choices;
        e.usage = usage;
        s->ops->done(s, &e);
    }
    return true;
}

static struct sink_start start_of(struct registry_model *m, enum sink_cache cache,
                                  const uint8_t *question, const struct chat *chat)
{
    bool tools = chat && chat_has_tools(chat);
    return (struct sink_start){.tools = tools ? chat_tool_format(registry_engine(m)) : 0,
                               .model = m->name,
                               .version = registry_identity(m)->version,
                               .sum = registry_sum(m),
                               .cache = cache,
                               .question = question,
                               .slot = m->slot->serial};
}

/* True: the answer was in the cache, and the generation has ended. */
static bool answer_from_cache(struct generation *g)
{
    struct prompt_cache *cache = g->owner->flow->cache;
    const struct request_generate *q = &g->request->generate;
    struct sink_start start = start_of(g->model, SINK_CACHE_HIT, g->question, &q->chat);
    bool hit = false;
    g->cacheable =
        cache && !g->request->no_cache && answer_cache_question(g->question, g->request, g->model);
    if (g->cacheable) {
        const struct prompt_key key = answer_cache_key(g->question, g->model);
        const struct prompt_entry *entry = prompt_cache_get(cache, &key, clock_ns());
        g->quiet = true; /* all events come from here */
        hit = entry && replay(g->sink, g->model, &start, entry, q->n_prompts, q->n,
                              q->sampling.logprobs, q->progress);
        prompt_cache_unref(entry);
    }
    if (hit) {
        generation_close(g);
        return true;
    }
    g->quiet = false;
    if (g->cacheable)
        counter_add(&g->model->stats.cache_misses, 1);
    start.cache = g->cacheable ? SINK_CACHE_MISS : SINK_CACHE_OFF;
    start.question = g->cacheable ? g->question : NULL;
    g->sink->ops->start(g->sink, &start);
    return false;
}

bool generate_replay(struct flow_owner *o, const struct generate_memo *memo, struct sink *s)
{
    const struct prompt_entry *entry = NULL;
    struct registry_model *m = NULL;
    if (!o->flow->cache || registry_get(o->flow->registry, memo->named ? memo->model : NULL,
                                        SHOAL_KIND_GENERATE, &m, NULL, NULL) < 0)
        return false;
    if (strcmp(m->name, memo->model) == 0 && m->slot->serial == memo->slot) {
        const struct prompt_key key = answer_cache_key(memo->question, m);
        entry = prompt_cache_get(o->flow->cache, &key, clock_ns());
    }
    const struct sink_start start = start_of(m, SINK_CACHE_HIT, memo->question, NULL);
    bool hit =
        entry && replay(s, m, &start, entry, memo->n_prompts, memo->n, memo->logprobs, false);
    prompt_cache_unref(entry);
    if (hit) {
        counter_add(&m->stats.requests, 1);
        s->ops->closed(s);
    }
    registry_put(m);
    return hit;
}

/* ---- starting ---- */

/* With several prompts, the message names the failed one. */
static void fail_choice(struct generation *g, uint32_t i, int code, const char *msg)
{
    const struct request_generate *q = &g->request->generate;
    char text[sizeof(g->error.msg) + 32];
    snprintf(text, sizeof(text), "prompt[%u]: %s", i / q->n, msg);
    g->refused = true;
    fail(g, code, q->n_prompts > 1 ? text : msg);
}

/* The tokens of choice i and, for a resumed choice, those it already has. */
static int set_tokens(struct generation *g, uint32_t i, struct shoal_task_opts *o)
{
    const struct request_generate *q = &g->request->generate;
    const struct request_resume *begun = q->resume ? &q->resume[i] : NULL;
    size_t n;
    const int32_t *prompt = prompt_tokens(&g->prompt, i / q->n, &n);
    o->tokens = prompt;
    o->n_tokens = (uint32_t)n;
    o->max_tokens = q->max_tokens;
    o->n_continued = begun ? begun->n_tokens : 0;
    if (o->n_continued == 0)
        return 0;
    int32_t *all = arena_zalloc_n(&g->request->arena, n + o->n_continued, sizeof(*all)); /* n > 0 */
    if (!all)
        return SHOAL_ENOMEM;
    memcpy(all, prompt, n * sizeof(*all));
    memcpy(all + n, begun->tokens, o->n_continued * sizeof(*all));
    o->tokens = all;
    o->n_tokens += o->n_continued;
    o->max_tokens -= o->n_continued < o->max_tokens ? o->n_continued : o->max_tokens;
    return 0;
}

/* Whether a resumed choice has all its tokens, but not its end. */
static bool is_full(const struct generation *g, const struct shoal_task_opts *o)
{
    uint32_t most = g->request->generate.max_tokens;
    return o->n_continued > 0 &&
           ((most > 0 && o->n_continued >= most) || o->n_tokens >= g->model->slot->n_ctx);
}

static void end_full(struct generation *g, uint32_t i, const struct shoal_task_opts *o)
{
    const struct shoal_event done = {.size = sizeof(done),
                                     .kind = SHOAL_EVENT_DONE,
                                     .token = -1,
                                     .text = "",
                                     .finish = SHOAL_FINISH_LENGTH,
                                     .prompt_tokens = o->n_tokens};
    token_queue_push(&g->queue, &g->ends[i], i, &done);
}

/* Whether tool calls begin with special tokens, which then must be visible in the text. */
static bool shows_marks(const struct generation *g)
{
    return chat_has_tools(&g->request->generate.chat) &&
           tool_format_spec(chat_tool_format(registry_engine(g->model)))->special;
}

static void submit(struct generation *g)
{
    const struct request *r = g->request;
    const struct request_generate *q = &r->generate;
    const struct fair_who who = request_who(r);
    struct shoal_task_opts o = {.size = sizeof(o),
                                .sampling = q->sampling,
                                .stop = q->stop,
                                .n_stop = q->n_stop,
                                .ignore_end = q->ignore_end,
                                .special = q->special || shows_marks(g),
                                .prompt_logprobs = q->prompt_logprobs && !q->resume,
                                .prompt_only = q->prompt_only,
                                .progress = g->progressed != NULL,
                                .drawn_logprobs = q->drawn_logprobs,
                                .fresh_prefix = q->fresh_prefix,
                                .no_shift = q->no_shift,
                                .keep_tokens = q->keep_tokens,
                                .adapter = registry_adapter(g->model),
                                .adapter_scale = (double)q->adapter_scale,
                                .constraint = q->constraint.kind,
                                .constraint_text = q->constraint.text,
                                .constraint_bytes = q->constraint.text_bytes,
                                .deadline_ns = r->deadline_ns,
                                .priority = who.priority,
                                .client = who.client,
                                .shared_prefix = answer_cache_shared(r, g->model),
                                .weight = who.weight,
                                .held = true,
                                .event = on_event};
    struct err e = {0};
    int rc = 0;
    for (uint32_t i = 0; i < g->n; i++)
        g->choices[i].seen = true; /* until it begins */
    for (uint32_t i = 0; i < g->n && rc == 0; i++) {
        struct shoal_task *task = NULL;
        if (q->resume && q->resume[i].done)
            continue;
        rc = set_tokens(g, i, &o);
        /* with the client's seed, a prompt's answers do not depend on the other prompts */
        o.sampling.seed = q->sampling.seed + (q->has_seed ? i % q->n : i);
        o.event_ctx = &g->choices[i];
        bool full = rc == 0 && (is_full(g, &o) || (q->prompt_only && !q->prompt_logprobs));
        if (rc == 0 && !full)
            rc = shoal_task_submit(registry_engine(g->model), &o, &task, &e);
        if (rc == 0) {
            g->choices[i].task = task;
            g->choices[i].seen = false;
            g->n_left++;
        } else {
            fail_choice(g, i, rc, e.code ? e.msg : err_text(rc));
        }
        if (full)
            end_full(g, i, &o);
    }
    if (g->n_left == 0) {
        send_error(g, g->error.code, g->error.msg);
        generation_close(g);
    } else {
        flow_wake_later(g->owner, g->model);
    }
}

/* Whether the deadline can be met; if not, f says so. */
static bool can_make_it(struct generation *g, struct failure *f)
{
    const struct cost_request r = {.prompt_tokens = (uint32_t)g->prompt.n_tokens,
                                   .max_tokens = g->request->generate.max_tokens,
                                   .n_choices = g->n,
                                   .ignore_end = g->request->generate.ignore_end};
    uint64_t deadline = g->request->deadline_ns, now = clock_ns();
    if (deadline == 0 || g->request->generate.resume) /* a stream that has started continues */
        return true;
    const struct fair_who who = request_who(g->request);
    const struct cost_estimate x = registry_estimate(g->model, &r, &who);
    struct err e = {0};
    if (cost_check(&x, deadline, now, &e) == 0)
        return true;
    if (now < deadline && x.alone_ns <= (double)(deadline - now)) {
        failure_set(f, FAILURE_BUSY, SHOAL_EBUSY, NULL, "overloaded", "%u tasks are ahead: %s",
                    x.n_ahead, e.msg);
        f->retry_after_s = 1;
    } else {
        failure_late(f, true, false,
                     now < deadline ? e.msg
                                    : "the latency budget was used up before the work could begin");
    }
    return false;
}

/* Whatever became of the pages: what is missing is computed. */
static void on_pages(struct page_fetch *f)
{
    struct generation *g = EXECUTOR_OF(f, struct generation, pages);
    if (g->quiet)
        generation_close(g);
    else
        submit(g);
}

/* True: another node may send pages of the prompt, and on_pages comes. */
static bool fetch_pages(struct generation *g)
{
    const struct request *r = g->request;
    struct page_source *s = g->owner->pages;
    size_t n;
    if (!s || !r->pages_from[0] || r->generate.fresh_prefix || r->generate.prompt_logprobs ||
        r->generate.adapter_scale != 0) /* others have pages of its own scale */
        return false;
    const int32_t *tokens = prompt_tokens(&g->prompt, 0, &n);
    g->pages = (struct page_fetch){.model = g->model,
                                   .request = r,
                                   .shared = answer_cache_shared(r, g->model),
                                   .tokens = tokens,
                                   .n_tokens = (uint32_t)n,
                                   .done = on_pages};
    return s->ops->start(s, &g->pages);
}

static void run_prepared(struct generation *g)
{
    struct failure f;
    if (g->quiet) {
        generation_close(g);
    } else if (g->prepare_rc < 0) {
        failure_of_model(&f, g->prepare_rc, g->error.msg);
        send_failure(g, &f);
        generation_close(g);
    } else if (!can_make_it(g, &f)) {
        send_failure(g, &f);
        generation_close(g);
    } else {
        counter_add(&g->model->stats.prompt_tokens, g->prompt.n_tokens);
        if (!fetch_pages(g))
            submit(g);
    }
}

static void on_prepared(struct executor_task *t)
{
    run_prepared(EXECUTOR_OF(t, struct generation, prepared));
}

/* Any thread: tokens of the prompts, and the constraint compiled. */
static void make_ready(struct generation *g)
{
    struct shoal_engine *en = registry_engine(g->model);
    const struct request_constraint *c = &g->request->generate.constraint;
    g->prepare_rc = prompt_make(&g->prompt, g->request, en, &g->error);
    if (g->prepare_rc == 0)
        g->prepare_rc = tool_constraint_set(g->request, en, &g->error);
    if (g->prepare_rc == 0)
        g->prepare_rc = constraint_check(en, c->kind, c->text, c->text_bytes, &g->error);
}

static void prepare_on_pool(struct pool_task *t)
{
    struct generation *g = EXECUTOR_OF(t, struct generation, pool_task);
    make_ready(g);
    executor_post(g->owner->executor, &g->prepared);
}

static void prepare(struct generation *g)
{
    struct failure f;
    struct pool *pool = g->owner->flow->pool;
    const bool quick = g->request->input_bytes <= INLINE_BYTES &&
                       !g->request->generate.chat.template &&
                       g->request->generate.constraint.kind == SHOAL_CONSTRAINT_NONE &&
                       !tool_constraint_needed(&g->request->generate);
    if (!pool || quick) { /* microseconds: a thread costs more */
        make_ready(g);
        run_prepared(g);
        return;
    }
    g->pool_task.fn = prepare_on_pool;
    g->prepared.fn = on_prepared;
    if (pool_submit(pool, &g->pool_task) == 0)
        return;
    failure_of(&f, SHOAL_EBUSY, "too many long prompts are waiting");
    send_failure(g, &f);
    generation_close(g);
}

static void on_failed(struct acquire *a, const struct failure *f)
{
    send_failure(EXECUTOR_OF(a, struct generation, acquire), f);
}

static void on_model(struct acquire *a, struct registry_model *m)
{
    struct generation *g = EXECUTOR_OF(a, struct generation, acquire);
    struct arena *arena = &g->request->arena;
    if (!m) {
        generation_close(g);
        return;
    }
    g->model = m;
    g->counted = true;
    counter_add(&m->stats.requests, 1);
    atomic_fetch_add_explicit(&m->stats.in_flight, 1, memory_order_relaxed);
    registry_speed(m, &g->prefill_ns, &g->token_ns);
    g->prefill_ns = g->prefill_ns > 0 ? g->prefill_ns : 1; /* not measured yet */
    g->token_ns = g->token_ns > 0 ? g->token_ns : 1;
    energy_account_begin(g->owner->flow->energy, &g->energy);
    g->ends = arena_zalloc_n(arena, g->n, sizeof(*g->ends));
    g->choices = arena_zalloc_n(arena, g->n, sizeof(*g->choices));
    if (g->request->generate.progress && !g->request->generate.resume)
        g->progressed = arena_zalloc_n(arena, g->n, sizeof(*g->progressed));
    if (!g->ends || !g->choices || arena->rc < 0) {
        send_error(g, SHOAL_ENOMEM, "out of memory");
        generation_close(g);
        return;
    }
    for (uint32_t i = 0; i < g->n; i++)
        g->choices[i].generation = g;
    if (!answer_from_cache(g))
        prepare(g);
}

void generate_run(struct flow_owner *o, struct request *r, struct sink *s)
{
    static const struct flow_job_ops ops = {on_cancel, on_resume};
    struct generation *g = flow_take(&o->generations, sizeof(*g));
    if (!g) {
        flow_refuse_nomem(o, r, s);
        return;
    }
    g->job.ops = &ops;
    g->owner = o;
    g->request = r;
    g->sink = s;
    g->n = request_choices(&r->generate);
    g->echoed = r->generate.resume != NULL;
    g->wake.fn = on_wake;
    s->job = &g->job;
    o->n_jobs++;
    token_queue_init(&g->queue, o->executor, &g->wake);
    buf_init(&g->kept, ANSWER_CACHE_MAX_BYTES);
    if (!r->generate.has_seed && !r->generate.seeded)
        r->generate.sampling.seed = hash_mix(o->next_seed++);
    g->acquire.owner = o;
    g->acquire.ready = on_model;
    g->acquire.failed = on_failed;
    g->acquire.version = r->version;
    g->acquire.epoch = r->epoch;
    g->acquire.may_be_old = r->may_be_old;
    g->acquire.key = request_key(r);
    g->acquire.beginnings = r->beginnings;
    g->acquire.n_beginnings = r->n_beginnings;
    acquire_model(&g->acquire, r->model, SHOAL_KIND_GENERATE);
}
