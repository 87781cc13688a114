/* generate.c - see generate.h. */
#include "gateway/generate.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/mem.h"
#include "gateway/recall.h"
#include "host/kept_answer.h"
#include "host/prompt_cache.h"

#define QUEUE_BYTES ((size_t)256 << 10)  /* tokens that wait for the loop */
#define OUT_BYTES ((size_t)128 << 10)    /* bytes that wait for the client before we hold back */
#define CACHED_BYTES ((size_t)256 << 10) /* longer answers are not kept */
#define INLINE_BODY_BYTES ((size_t)8 << 10)

struct record { /* in the queue; followed by n_top shoal_logprob and the text, padded to 8 */
    uint32_t bytes, choice;
    int32_t token;
    uint32_t text_bytes;
    float logprob;
    uint32_t n_top;
};

static void on_wake(struct loop_task *t);
static void on_prepared(struct loop_task *t);

/* ---- lifetime ---- */

struct gen *gen_create(struct call *c, const struct gen_sink *sink, const char *id_prefix)
{
    struct gen *g = gw_take(&c->gl->gens, sizeof(*g));
    struct timespec ts;
    if (!g) {
        call_fail_code(c, SHOAL_ENOMEM, "out of memory");
        return NULL;
    }
    g->call = c;
    g->sink = sink;
    g->p.n = g->p.n_prompts = 1;
    pthread_mutex_init(&g->lock, NULL);
    buf_init(&g->queue, 2 * QUEUE_BYTES);
    buf_init(&g->taken, 2 * QUEUE_BYTES);
    buf_init(&g->prefix, 64 << 10);
    buf_init(&g->prompt, (size_t)64 << 20);
    buf_init(&g->kept, CACHED_BYTES);
    g->wake.fn = on_wake;
    g->prepared.fn = on_prepared;
    clock_gettime(CLOCK_REALTIME_COARSE, &ts);
    g->created_s = (uint64_t)ts.tv_sec;
    uint64_t h = hash_bytes(c->id, strlen(c->id), c->gl->gw->id_salt ^ c->start_ns);
    size_t n = strlen(id_prefix);
    n = n < sizeof(g->id) - 17 ? n : sizeof(g->id) - 17;
    memcpy(g->id, id_prefix, n);
    hash_hex(g->id + n, h);
    g->id_prefix = id_prefix;
    call_hold(c);
    c->gl->n_jobs++;
    return g;
}

void gen_free(struct gen *g)
{
    for (uint32_t i = 0; g->choices && i < g->p.n; i++) {
        shoal_task_free(g->choices[i].task);
        buf_fini(&g->choices[i].text);
        buf_fini(&g->choices[i].extra);
    }
    g->call->job = NULL;
    g->call->abandon = NULL;
    g->call->resume = NULL;
    if (g->model && g->counted) {
        struct model_stats *m = &g->model->stats;
        atomic_fetch_sub_explicit(&m->in_flight, 1, memory_order_relaxed);
        atomic_fetch_sub_explicit(&m->more_tasks, g->p.n - 1, memory_order_relaxed);
    }
    if (g->model)
        registry_put(g->model);
    mem_free(g->choices);
    mem_free(g->tokens);
    mem_free(g->ends);
    mem_free(g->p.bias);
    buf_fini(&g->queue);
    buf_fini(&g->taken);
    buf_fini(&g->prefix);
    buf_fini(&g->prompt);
    buf_fini(&g->kept);
    pthread_mutex_destroy(&g->lock);
    struct gw_loop *gl = g->call->gl;
    gl->n_jobs--;
    call_release(g->call);
    gw_give(&gl->gens, g);
}

static void cancel_tasks(struct gen *g)
{
    for (uint32_t i = 0; g->choices && i < g->p.n; i++)
        if (g->choices[i].task)
            shoal_task_cancel(g->choices[i].task);
}

/* The client is gone. */
static void on_abandon(struct call *c)
{
    struct gen *g = c->job;
    if (g->model)
        counter_add(&g->model->stats.cancelled, 1);
    cancel_tasks(g);
    if (g->held) { /* nobody will drain the connection any more */
        g->held = false;
        on_wake(&g->wake);
    }
}

/* ---- from the engine's thread ---- */

static void put_record(struct gen *g, uint32_t choice, const struct shoal_event *ev)
{
    size_t top = ev->n_top * sizeof(*ev->top), n = sizeof(struct record) + top + ev->text_bytes;
    struct record r = {.bytes = (uint32_t)((n + 7) & ~(size_t)7),
                       .choice = choice,
                       .token = ev->token,
                       .text_bytes = (uint32_t)ev->text_bytes,
                       .logprob = ev->logprob,
                       .n_top = ev->n_top};
    static const char zeros[8];
    if (g->overflow)
        return;
    if (g->queue.len + r.bytes > QUEUE_BYTES) {
        g->overflow = SHOAL_EBUSY;
        return;
    }
    size_t before = g->queue.len;
    buf_put(&g->queue, &r, sizeof(r));
    buf_put(&g->queue, ev->top, top);
    buf_put(&g->queue, ev->text, ev->text_bytes);
    buf_put(&g->queue, zeros, r.bytes - n);
    if (g->queue.rc < 0) { /* half a record would be read as a whole one */
        g->queue.len = before;
        g->overflow = SHOAL_ENOMEM;
    }
}

static void on_event(void *ctx, const struct shoal_event *ev)
{
    struct gen_choice *ch = ctx;
    struct gen *g = ch->gen;
    uint32_t choice = (uint32_t)(ch - g->choices);
    pthread_mutex_lock(&g->lock);
    if (ev->kind == SHOAL_EVENT_DONE) {
        ch->done = *ev;
        ch->is_done = true;
    } else {
        put_record(g, choice, ev);
    }
    if (!g->posted) {
        g->posted = true;
        /* under the lock: once it is given up, the loop may free g */
        loop_post(g->call->gl->loop, &g->wake);
    }
    pthread_mutex_unlock(&g->lock);
}

/* ---- on the loop: what came ---- */

static void begin_stream(struct gen *g)
{
    if (g->call->began || !g->call->req)
        return;
    call_begin(g->call, g->sink->stream_type);
    buf_clear(&g->call->out);
    g->sink->begin(g);
}

static void show_token(struct gen *g, const struct gen_token *t)
{
    if (!g->call->req || g->failed)
        return;
    if (g->p.stream)
        begin_stream(g);
    g->sink->token(g, t);
}

static void keep_token(struct gen *g, const struct gen_token *t)
{
    const struct kept_token k = {t->choice, t->token, t->logprob,   t->top,
                                 t->n_top,  t->text,  t->text_bytes};
    kept_answer_put_token(&g->kept, &k);
}

/* Whole records, as they were queued. */
static void show_records(struct gen *g, const char *records, size_t n)
{
    size_t at = 0;
    while (at < n) {
        struct record r;
        memcpy(&r, records + at, sizeof(r));
        const char *p = records + at + sizeof(r);
        struct gen_token t = {.choice = r.choice,
                              .token = r.token,
                              .logprob = r.logprob,
                              .top = (const struct shoal_logprob *)(const void *)p,
                              .n_top = r.n_top,
                              .text = p + r.n_top * sizeof(struct shoal_logprob),
                              .text_bytes = r.text_bytes};
        at += r.bytes;
        if (g->cacheable)
            keep_token(g, &t);
        show_token(g, &t);
    }
}

static void count_done(struct gen *g, const struct shoal_event *d)
{
    struct model_stats *m = &g->model->stats;
    counter_add(&m->generated_tokens, d->generated_tokens);
    histogram_add(&m->queue, d->queue_ns);
    histogram_add(&m->total, d->total_ns);
    if (d->finish == SHOAL_FINISH_ERROR && d->code != SHOAL_ECANCELLED)
        counter_add(&m->errors, 1);
    if (d->generated_tokens == 0 || d->first_token_ns == 0)
        return;
    histogram_add(&m->first_token, d->first_token_ns);
    uint32_t computed = d->prompt_tokens - d->cached_tokens;
    if (computed > 0 && d->first_token_ns > d->queue_ns)
        model_stats_smooth(&m->prompt_token_ns, (d->first_token_ns - d->queue_ns) / computed);
    if (d->generated_tokens > 1) {
        uint64_t each = (d->total_ns - d->first_token_ns) / (d->generated_tokens - 1);
        histogram_add(&m->per_token, each);
        model_stats_smooth(&m->token_ns, each);
    }
}

static void fail(struct gen *g, int code, const char *msg)
{
    if (g->failed)
        return;
    g->failed = true;
    err_set(&g->error, code, "%s", msg);
    cancel_tasks(g);
}

static void see_done(struct gen *g, uint32_t i)
{
    struct gen_choice *ch = &g->choices[i];
    ch->seen = true;
    g->n_left--;
    count_done(g, &ch->done);
    if (!g->call->req || g->failed)
        return;
    if (ch->done.finish == SHOAL_FINISH_ERROR) {
        fail(g, ch->done.code,
             ch->done.code == SHOAL_EDEADLINE ? "the deadline passed before the answer was complete"
                                              : err_text(ch->done.code));
        return;
    }
    if (g->p.stream)
        begin_stream(g);
    g->sink->done(g, i);
}

static void answer_error(struct gen *g)
{
    struct call *c = g->call;
    if (!c->req)
        return;
    if (!c->began && g->error.code == SHOAL_EDEADLINE) {
        call_fail_late(c, g->refused, model_stats_others(&g->model->stats), g->error.msg);
        return;
    }
    if (!c->began) {
        call_fail_code(c, g->error.code, g->error.msg);
        return;
    }
    g->sink->error(g, g->error.code, g->error.msg);
    call_write(c, buf_str(&c->out), c->out.len);
    call_end(c);
}

/* ---- the prompt cache ---- */

static void make_question(struct gen *g)
{
    const struct gen_params *p = &g->p;
    const struct registry_slot *slot = g->model->slot;
    const struct prompt_question q = {.kind = g->tokens ? PROMPT_KIND_TOKENS : g->prompt_kind,
                                      .text = buf_str(&g->prompt),
                                      .text_bytes = g->prompt.len,
                                      .tokens = g->tokens,
                                      .n_tokens = g->n_tokens,
                                      .ends = g->ends,
                                      .n_prompts = p->n_prompts,
                                      .n_choices = p->n,
                                      .max_tokens = p->max_tokens,
                                      .sampling = p->sampling,
                                      .stop = p->stop,
                                      .n_stop = p->n_stop,
                                      .ignore_end = p->ignore_end,
                                      .special = p->special,
                                      .n_ctx = slot->n_ctx,
                                      .int8 = slot->spec.int8,
                                      .kv_q8 = slot->spec.kv_q8};
    /* an echo needs the prompt's tokens, which a hit would save */
    g->cacheable =
        g->call->gl->gw->cache && !g->echo && registry_identity(g->model)->kind != IDENTITY_NONE &&
        prompt_key_repeats(&p->sampling, p->has_seed) && prompt_key_question(g->question, &q);
}

static struct prompt_key key_of(const uint8_t question[SHA256_BYTES],
                                const struct registry_model *m)
{
    struct prompt_key key;
    memcpy(key.model, registry_identity(m)->sum, sizeof(key.model));
    memcpy(key.question, question, sizeof(key.question));
    return key;
}

static void keep(struct gen *g)
{
    struct kept_choice ends[GEN_MAX_CHOICES];
    struct buf b;
    if (!g->cacheable || g->hit || g->failed)
        return;
    for (uint32_t i = 0; i < g->p.n; i++) {
        const struct shoal_event *d = &g->choices[i].done;
        ends[i] = (struct kept_choice){d->finish,   d->prompt_tokens,  d->generated_tokens,
                                       d->queue_ns, d->first_token_ns, d->total_ns};
    }
    buf_init(&b, 2 * CACHED_BYTES);
    /* refuses what was cut off by its client or a deadline */
    if (kept_answer_put(&b, ends, g->p.n, &g->kept) == 0) {
        const struct prompt_key key = key_of(g->question, g->model);
        prompt_cache_put(g->call->gl->gw->cache, &key, b.data, b.len, clock_ns());
    }
    buf_fini(&b);
}

static void answer(struct gen *g)
{
    struct call *c = g->call;
    keep(g);
    if (!c->req)
        return;
    if (g->failed) {
        answer_error(g);
        return;
    }
    g->sink->finish(g);
    if (g->p.stream) {
        call_write(c, buf_str(&c->out), c->out.len);
        call_end(c);
    } else {
        call_json(c, 200);
    }
}

static void on_wake(struct loop_task *t)
{
    struct gen *g = LOOP_OF(t, struct gen, wake);
    struct call *c = g->call;
    bool done[GEN_MAX_CHOICES] = {false};
    if (c->req && http_queued(c->req) > OUT_BYTES) {
        g->held = true; /* on_resume goes on */
        return;
    }
    pthread_mutex_lock(&g->lock);
    struct buf swap = g->taken;
    g->taken = g->queue;
    g->queue = swap;
    g->posted = false;
    int overflow = g->overflow;
    for (uint32_t i = 0; i < g->p.n; i++)
        done[i] = g->choices[i].is_done && !g->choices[i].seen;
    pthread_mutex_unlock(&g->lock);

    show_records(g, buf_str(&g->taken), g->taken.len);
    buf_clear(&g->taken);
    if (overflow && c->req)
        fail(g, overflow,
             overflow == SHOAL_EBUSY ? "the client reads too slowly" : "out of memory");
    for (uint32_t i = 0; i < g->p.n; i++)
        if (done[i])
            see_done(g, i);
    if (g->n_left == 0) {
        answer(g);
        gen_free(g);
        return;
    }
    if (g->p.stream && c->out.len > 0 && c->began) {
        call_write(c, buf_str(&c->out), c->out.len);
        buf_clear(&c->out);
    }
}

static void on_resume(struct call *c)
{
    struct gen *g = c->job;
    if (g && g->held) {
        g->held = false;
        on_wake(&g->wake);
    }
}

/* ---- starting ---- */

static uint32_t per_prompt(const struct gen *g)
{
    return g->p.n / g->p.n_prompts;
}

const int32_t *gen_prompt_of(const struct gen *g, uint32_t choice, size_t *n)
{
    uint32_t i = choice / per_prompt(g);
    size_t from = g->ends && i > 0 ? g->ends[i - 1] : 0;
    *n = (g->ends ? g->ends[i] : g->n_tokens) - from;
    return g->tokens + from;
}

/* Of several prompts, the message names the one that it is about. */
static void fail_choice(struct gen *g, uint32_t i, int code, const char *msg)
{
    char text[sizeof(g->error.msg) + 32];
    snprintf(text, sizeof(text), "prompt[%u]: %s", i / per_prompt(g), msg);
    g->refused = true;
    fail(g, code, g->p.n_prompts > 1 ? text : msg);
}

static void submit(struct gen *g)
{
    struct shoal_task_opts o = {.size = sizeof(o),
                                .max_tokens = g->p.max_tokens,
                                .sampling = g->p.sampling,
                                .stop = g->p.stop,
                                .n_stop = g->p.n_stop,
                                .ignore_end = g->p.ignore_end,
                                .special = g->p.special,
                                .deadline_ns = g->call->deadline_ns,
                                .priority = g->p.priority,
                                .held = true,
                                .event = on_event};
    struct err e = {0};
    int rc = 0;
    g->call->abandon = on_abandon;
    g->call->resume = on_resume;
    for (uint32_t i = 0; i < g->p.n && rc == 0; i++) {
        struct shoal_task *task = NULL;
        size_t n;
        o.tokens = gen_prompt_of(g, i, &n);
        o.n_tokens = (uint32_t)n;
        /* with a seed that was given, a prompt's answers do not depend on those beside it */
        o.sampling.seed = g->p.sampling.seed + (g->p.has_seed ? i % per_prompt(g) : i);
        o.event_ctx = &g->choices[i];
        rc = shoal_task_submit(registry_engine(g->model), &o, &task, &e);
        if (rc == 0) {
            g->choices[i].task = task;
            g->n_left++;
        } else {
            g->choices[i].seen = true;
            fail_choice(g, i, rc, e.msg);
        }
    }
    for (uint32_t i = g->n_left; i < g->p.n; i++)
        g->choices[i].seen = true;
    if (g->n_left == 0) {
        answer_error(g);
        gen_free(g);
    } else {
        acquire_wake_later(g->call->gl, g->model);
    }
}

/* Answers with what was kept.  false: these bytes are no answer to this question. */
static bool answer_hit(struct gen *g, const struct prompt_entry *e)
{
    struct kept_answer a;
    struct kept_token k;
    if (kept_answer_open(&a, e->data, e->n, NULL) < 0 || a.n_choices != g->p.n)
        return false;
    counter_add(&g->model->stats.cache_hits, 1);
    g->call->cache_note = "hit";
    g->hit = true;
    for (uint32_t i = 0; i < g->p.n; i++) {
        const struct kept_choice c = kept_answer_choice(&a, i);
        g->choices[i].done = (struct shoal_event){.kind = SHOAL_EVENT_DONE,
                                                  .text = "",
                                                  .finish = c.finish,
                                                  .prompt_tokens = c.prompt_tokens,
                                                  .cached_tokens = c.prompt_tokens,
                                                  .generated_tokens = c.generated_tokens,
                                                  .queue_ns = c.queue_ns,
                                                  .first_token_ns = c.first_token_ns,
                                                  .total_ns = c.total_ns};
    }
    while (kept_answer_next(&a, &k)) {
        const struct gen_token t = {k.choice,  k.token, k.text, k.text_bytes,
                                    k.logprob, k.top,   k.n_top};
        show_token(g, &t);
    }
    for (uint32_t i = 0; i < g->p.n; i++) {
        if (g->p.stream)
            begin_stream(g);
        g->sink->done(g, i);
    }
    answer(g);
    gen_free(g);
    return true;
}

/* The next time it need not be read. */
static void remember(struct gen *g)
{
    struct recalled r = {.sink = g->sink, .id_prefix = g->id_prefix, .p = g->p, .named = g->named};
    if (!g->recallable || !g->call->req || strlen(g->model->name) >= sizeof(r.model))
        return;
    memcpy(r.question, g->question, sizeof(r.question));
    r.p.bias = NULL;
    r.p.sampling.bias = NULL;
    r.p.n_stop = 0;
    snprintf(r.model, sizeof(r.model), "%s", g->model->name);
    r.slot = g->model->slot->serial;
    recall_keep(g->call->gl->recall, g->call, &r);
}

/* false: there is no answer from before. */
static bool answer_from_cache(struct gen *g)
{
    struct call *c = g->call;
    make_question(g);
    if (!g->cacheable)
        return false;
    const struct prompt_key key = key_of(g->question, g->model);
    const struct prompt_entry *e = prompt_cache_get(c->gl->gw->cache, &key, clock_ns());
    if (e)
        remember(g);
    bool hit = e && answer_hit(g, e);
    prompt_cache_unref(e);
    if (hit)
        return true;
    counter_add(&g->model->stats.cache_misses, 1);
    c->cache_note = "miss";
    return false;
}

/* The time to the last of our first tokens by what this model has cost so far, with so many tasks
 * in flight, ours among them. */
static uint64_t first_tokens_ns(struct gen *g, uint32_t n_tasks)
{
    struct model_stats *m = &g->model->stats;
    struct shoal_engine_info info = {.size = sizeof(info)};
    shoal_engine_info(registry_engine(g->model), &info);
    uint64_t prompts = counter_read(&m->prompt_token_ns) * g->n_tokens;
    uint64_t each = counter_read(&m->token_ns);
    /* Those that run beside us share the machine; those beyond wait for a place first. */
    uint64_t rounds = (n_tasks > 0 ? n_tasks - 1 : 0) / (info.max_tasks ? info.max_tasks : 1);
    return prompts + each + rounds * (prompts / g->p.n_prompts + each);
}

/* Whether the deadline can be met; if not, the call is answered. */
static bool can_make_it(struct gen *g)
{
    struct model_stats *m = &g->model->stats;
    uint64_t deadline = g->call->deadline_ns, now = clock_ns();
    if (deadline == 0)
        return true;
    uint64_t left = deadline > now ? deadline - now : 0;
    uint32_t n = atomic_load_explicit(&m->in_flight, memory_order_relaxed) +
                 atomic_load_explicit(&m->more_tasks, memory_order_relaxed);
    uint64_t need = first_tokens_ns(g, n), alone = first_tokens_ns(g, g->p.n);
    if (left > 0 && need <= left)
        return true;
    if (left > 0 && alone <= left) {
        call_refuse(g->call, GW_REFUSED_BUSY, 429, 1,
                    "%u tasks are ahead: the first token would take about %" PRIu64
                    " ms, the budget is over in %" PRIu64 " ms",
                    n - g->p.n, need / 1000000u, left / 1000000u);
        return false;
    }
    char msg[160] = "the budget was over before the work could begin";
    if (left > 0)
        snprintf(msg, sizeof(msg),
                 "the first token takes about %" PRIu64
                 " ms by what was measured, the budget is over in %" PRIu64 " ms",
                 alone / 1000000u, left / 1000000u);
    call_fail_late(g->call, true, false, msg);
    return false;
}

static void run_prepared(struct gen *g)
{
    if (!g->call->req) {
        gen_free(g);
        return;
    }
    if (g->prepare_rc < 0) {
        call_fail_code(g->call, g->prepare_rc, g->error.msg);
        gen_free(g);
        return;
    }
    if (!can_make_it(g)) {
        gen_free(g);
        return;
    }
    counter_add(&g->model->stats.prompt_tokens, g->n_tokens);
    submit(g);
}

static void on_prepared(struct loop_task *t)
{
    struct gen *g = LOOP_OF(t, struct gen, prepared);
    run_prepared(g);
}

static void prepare_on_pool(struct pool_task *t)
{
    struct gen *g = LOOP_OF(t, struct gen, pool_task);
    g->prepare_rc = g->prepare(g, &g->error);
    loop_post(g->call->gl->loop, &g->prepared);
}

static void nothing(struct call *c)
{
    (void)c; /* whoever works on it finds out that the client is gone */
}

/* The model is there.  false: no memory, and the call is answered. */
static bool begin(struct gen *g)
{
    counter_add(&g->model->stats.requests, 1);
    atomic_fetch_add_explicit(&g->model->stats.in_flight, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&g->model->stats.more_tasks, g->p.n - 1, memory_order_relaxed);
    g->counted = true;
    g->choices = mem_zalloc_n(g->p.n, sizeof(*g->choices));
    if (!g->choices) {
        call_fail_code(g->call, SHOAL_ENOMEM, "out of memory");
        gen_free(g);
        return false;
    }
    for (uint32_t i = 0; i < g->p.n; i++) {
        g->choices[i].gen = g;
        buf_init(&g->choices[i].text, (size_t)64 << 20);
        buf_init(&g->choices[i].extra, (size_t)64 << 20);
    }
    return true;
}

static void with_model(struct gen *g)
{
    struct call *c = g->call;
    if (!begin(g))
        return;
    if (answer_from_cache(g))
        return;
    if (c->req->body_bytes <= INLINE_BODY_BYTES) { /* tens of microseconds: a thread costs more */
        g->prepare_rc = g->prepare(g, &g->error);
        run_prepared(g);
        return;
    }
    g->pool_task.fn = prepare_on_pool;
    if (pool_submit(c->gl->gw->pool, &g->pool_task) < 0) {
        call_refuse(c, GW_REFUSED_BUSY, 429, 1, "too many long prompts are waiting");
        gen_free(g);
    }
}

static void on_model(struct acquire *a, struct registry_model *m)
{
    struct gen *g = LOOP_OF(a, struct gen, acquire);
    g->model = m;
    if (m)
        with_model(g);
    else
        gen_free(g);
}

void gen_run(struct gen *g, const char *model)
{
    struct call *c = g->call;
    c->job = g;
    c->abandon = nothing;
    if (!g->p.has_seed)
        g->p.sampling.seed = hash_mix(c->gl->next_seed++);
    g->named = model != NULL;
    g->p.sampling.bias = g->p.bias;
    if (c->client)
        g->p.priority += c->client->priority;
    acquire_model(&g->acquire, c, model, SHOAL_KIND_GENERATE, on_model);
}

bool gen_recall(struct call *c)
{
    struct gw *gw = c->gl->gw;
    const struct recalled *r = gw->cache ? recall_find(c->gl->recall, c) : NULL;
    const struct prompt_entry *e = NULL;
    struct registry_model *m = NULL;
    if (!r || registry_get(gw->registry, r->named ? r->model : NULL, SHOAL_KIND_GENERATE, &m, NULL,
                           NULL) < 0)
        return false;
    if (strcmp(m->name, r->model) == 0 && m->slot->serial == r->slot) {
        const struct prompt_key key = key_of(r->question, m);
        e = prompt_cache_get(gw->cache, &key, clock_ns());
    }
    if (!e) { /* gone, or of a model that was: read, computed and kept anew */
        registry_put(m);
        return false;
    }
    struct gen *g = gen_create(c, r->sink, r->id_prefix);
    if (!g) {
        registry_put(m);
        prompt_cache_unref(e);
        return true;
    }
    g->p = r->p;
    g->model = m;
    c->model_name = m->name;
    bool answered = !begin(g) || answer_hit(g, e);
    prompt_cache_unref(e);
    if (!answered)
        gen_free(g);
    return answered;
}

uint32_t gen_prompt_tokens(const struct gen *g)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < g->p.n; i += per_prompt(g))
        n += g->choices[i].done.prompt_tokens;
    return n;
}

uint32_t gen_completion_tokens(const struct gen *g)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < g->p.n; i++)
        n += g->choices[i].done.generated_tokens;
    return n;
}

uint32_t gen_cached_tokens(const struct gen *g)
{
    uint32_t n = 0; /* choices share their prompt: what the first one found was found */
    for (uint32_t i = 0; i < g->p.n; i += per_prompt(g))
        n += g->choices[i].done.cached_tokens;
    return n;
}
