/* ask_run.c - see ask_run.h.
 *
 * The home flow reports on the engines' threads.  Pieces of the reply go through a token_queue; the
 * plan is complete before the first of them and is then only read, so it needs no copy. */
#include "apps/home/ask/ask_run.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "flow/acquire.h"
#include "apps/home/ask/ask_apart.h"
#include "apps/home/ask/ask.h"
#include "apps/home/table/home_table.h"
#include "engine/estimate.h"
#include "flow/generate/token_queue.h"
#include "host/kept_answer.h"

struct asking {
    struct flow_job job; /* first */
    const struct ask_app *app;
    struct flow_owner *owner;
    struct request *request; /* owned */
    struct sink *sink;
    bool quiet;                            /* the sink only wants `closed` from now on */
    struct registry_model *reader, *reply; /* held; reply NULL: actions only */
    struct acquire for_reader, for_reply;
    struct ask_apart *apart;        /* NULL: all models have engines in this process */
    const struct home_table *table; /* in the language of the text */
    struct ask *ask;                /* the reader's */
    struct ask_request *asked;
    struct token_queue queue;
    struct token_queue_end end;
    /* Set on an engine's thread before it pushes, read after a take: the queue's lock orders both
     * this and the plan itself, so relaxed is enough. */
    _Atomic bool planned;
    bool plan_sent;
    bool held; /* the sink was full */
    int lost;  /* why pieces of the reply were lost, or 0 */
    struct executor_task wake;
};

static void on_wake(struct executor_task *t);

/* ---- lifetime ---- */

/* Requests to an isolated model are counted where they are sent. */
static bool is_counted(const struct registry_model *m)
{
    return m && registry_engine(m);
}

static void put_back(struct registry_model *m)
{
    if (is_counted(m))
        atomic_fetch_sub_explicit(&m->stats.in_flight, 1, memory_order_relaxed);
    if (m)
        registry_put(m);
}

static void asking_close(struct asking *a)
{
    struct flow_owner *o = a->owner;
    a->sink->job = NULL;
    a->sink->ops->closed(a->sink); /* may still read the plan */
    ask_free(a->asked);
    ask_apart_put(a->apart);
    put_back(a->reader);
    put_back(a->reply);
    token_queue_fini(&a->queue);
    flow_give_request(o, a->request);
    flow_give(&o->asks, a);
    o->n_jobs--;
}

static void send_failure(struct asking *a, const struct failure *f)
{
    if (a->quiet)
        return;
    a->quiet = true;
    a->sink->ops->fail(a->sink, f);
}

static void send_error(struct asking *a, int code, bool refused, const char *msg)
{
    struct failure f;
    if (code == SHOAL_EDEADLINE)
        failure_late(&f, refused, model_stats_others(&a->reader->stats), msg);
    else
        failure_of(&f, code, msg);
    send_failure(a, &f);
}

static void on_cancel(struct flow_job *j)
{
    struct asking *a = (struct asking *)(void *)j;
    if (a->quiet)
        return;
    a->quiet = true;
    acquire_cancel(&a->for_reader);
    acquire_cancel(&a->for_reply);
    if (a->reader)
        counter_add(&a->reader->stats.cancelled, 1);
    if (a->asked)
        ask_cancel(a->asked);
    if (a->held) { /* it can no longer be resumed */
        a->held = false;
        on_wake(&a->wake);
    }
}

static void on_resume(struct flow_job *j)
{
    struct asking *a = (struct asking *)(void *)j;
    if (a->held) {
        a->held = false;
        on_wake(&a->wake);
    }
}

/* ---- events of the home flow ---- */

/* On an engine's thread, or inside ask_submit. */
static void on_event(void *ctx, const struct ask_request *r, const struct ask_event *ev)
{
    struct asking *a = ctx;
    struct shoal_event out = {.size = sizeof(out),
                              .kind = SHOAL_EVENT_TOKEN,
                              .token = -1,
                              .text = ev->text,
                              .text_bytes = ev->text_bytes};
    (void)r;
    if (ev->kind == ASK_EVENT_PLAN) { /* a record without text: it wakes the owner */
        atomic_store_explicit(&a->planned, true, memory_order_relaxed);
    } else if (ev->kind == ASK_EVENT_DONE) {
        out.kind = SHOAL_EVENT_DONE;
        out.code = ev->code;
    }
    token_queue_push(&a->queue, &a->end, 0, &out);
}

static bool is_reader(const struct ask_plan_step *s)
{
    return strcmp(s->model, "reply") != 0;
}

/* NULL: they are kept elsewhere. */
static struct model_stats *stats_of(struct asking *a, const struct ask_plan_step *s)
{
    struct registry_model *m = is_reader(s) ? a->reader : a->reply;
    return is_counted(m) ? &m->stats : NULL;
}

static void count_done(struct asking *a, const struct ask_plan_answer *x)
{
    for (uint32_t i = 0; i < x->n_steps; i++) {
        const struct ask_plan_step *s = &x->steps[i];
        if (!s->model)
            continue;
        struct model_stats *m = stats_of(a, s);
        if (!m)
            continue;
        counter_add(is_reader(s) ? &m->prompt_tokens : &m->generated_tokens, s->tokens);
        histogram_add(&m->total, s->ns);
    }
    int code = a->lost ? a->lost : a->end.done.code;
    if (code < 0 && code != SHOAL_ECANCELLED)
        counter_add(&a->reader->stats.errors, 1);
}

static void send_done(struct asking *a, const struct ask_plan_answer *x)
{
    struct sink_done e = {.finish = SHOAL_FINISH_STOP,
                          .total_ns = x->total_ns,
                          .last = true,
                          .steps = x->steps,
                          .n_steps = x->n_steps};
    for (uint32_t i = 0; i < x->n_steps; i++)
        if (x->steps[i].model && is_reader(&x->steps[i]))
            e.prompt_tokens += x->steps[i].tokens;
        else if (x->steps[i].model)
            e.generated_tokens += x->steps[i].tokens;
    e.usage = (struct sink_usage){.prompt_tokens = e.prompt_tokens,
                                  .generated_tokens = e.generated_tokens};
    a->quiet = true;
    a->sink->ops->done(a->sink, &e);
}

static void see_end(struct asking *a)
{
    const struct ask_plan_answer x = ask_answer_of(a->asked);
    int code = a->end.done.code;
    count_done(a, &x);
    if (a->quiet)
        return;
    if (a->lost)
        send_error(a, a->lost, false,
                   a->lost == SHOAL_EBUSY ? "the client reads too slowly" : "out of memory");
    else if (code < 0 && ask_apart_failure(a->apart))
        send_failure(a, ask_apart_failure(a->apart));
    else if (code == SHOAL_EDEADLINE)
        send_error(a, code, false, "the deadline passed before the answer was complete");
    else if (code < 0)
        send_error(a, code, false, ask_message_of(a->asked));
    else
        send_done(a, &x);
}

static void send_plan(struct asking *a)
{
    const struct sink_plan e = {ask_plan_of(a->asked)};
    a->plan_sent = true;
    a->sink->ops->plan(a->sink, &e);
}

static void on_wake(struct executor_task *t)
{
    struct asking *a = EXECUTOR_OF(t, struct asking, wake);
    struct sink *s = a->sink;
    struct kept_token piece;
    const char *records;
    size_t n, at = 0;
    bool is_done;
    if (!a->quiet && sink_is_full(s)) {
        a->held = true; /* on_resume continues */
        return;
    }
    int lost = token_queue_take(&a->queue, &a->end, 1, &is_done, &records, &n);
    if (!a->quiet && !a->plan_sent && atomic_load_explicit(&a->planned, memory_order_relaxed))
        send_plan(a);
    while (!a->quiet && !a->lost && token_queue_next(records, n, &at, &piece)) {
        const struct sink_token e = {
            .token = -1, .text = piece.text, .text_bytes = piece.text_bytes};
        if (e.text_bytes > 0)
            s->ops->token(s, &e);
    }
    if (lost && !a->lost) {
        a->lost = lost;
        ask_cancel(a->asked);
    }
    if (is_done) {
        see_end(a);
        asking_close(a);
    } else if (!a->quiet) {
        sink_flush(s);
    }
}

/* ---- starting ---- */

/* reader NULL: it is isolated. */
static int make_ask(void *ctx, void **out, struct shoal_engine *reader, struct err *e)
{
    const struct ask_app *app = ctx;
    struct ask *a = NULL;
    int rc = ask_create(&a, app->table, app->things, reader, NULL, e);
    *out = a;
    return rc;
}

static void drop_ask(void *ask)
{
    ask_destroy(ask);
}

static void submit(struct asking *a)
{
    const struct request *r = a->request;
    const struct fair_who who = request_who(r);
    struct err e = {0};
    char conversation[sizeof(r->client.name) + sizeof(r->session) + 1];
    snprintf(conversation, sizeof(conversation), "%s%s%s", r->client.name, *r->session ? "/" : "",
             r->session);
    const struct ask_opts o = {.text = r->ask.text,
                               .text_bytes = strlen(r->ask.text),
                               .conversation = *r->session ? conversation : NULL,
                               .owner = r->client.name,
                               .confirm = r->ask.confirm,
                               .language = r->language,
                               .room = r->ask.room,
                               .heard = r->ask.heard,
                               .dry = r->ask.dry,
                               .no_reply = !a->reply && (a->table->reply || !r->ask.reply),
                               .reply = a->reply ? registry_engine(a->reply) : NULL,
                               .away = ask_apart_away(a->apart),
                               .deadline_ns = r->deadline_ns,
                               .priority = who.priority,
                               .client = who.client,
                               .weight = who.weight,
                               .event = on_event,
                               .event_ctx = a};
    int rc = ask_submit(a->ask, &o, &a->asked, &e);
    if (rc < 0) {
        send_error(a, rc, true, e.msg);
        asking_close(a);
    }
}

/* The reader's part of the flow, and isolated models, which are reached by requests. */
static void prepare(struct asking *a)
{
    const struct registry_model *all[ASK_MODELS] = {a->reader, a->reply}; /* as enum ask_model */
    const char *names[ASK_MODELS] = {NULL};
    struct err e = {0};
    void *ask = NULL;
    bool apart = false;
    for (int i = 0; i < ASK_MODELS; i++) {
        names[i] = all[i] ? all[i]->name : NULL;
        apart |= all[i] && !registry_engine(all[i]);
    }
    if (apart && !(a->apart = ask_apart_create(a->owner, a->request, names))) {
        send_error(a, SHOAL_ENOMEM, true, "out of memory");
        asking_close(a);
        return;
    }
    int rc = registry_attach(a->reader, make_ask, (void *)(uintptr_t)a->app, drop_ask, &ask, &e);
    a->ask = ask;
    if (rc < 0) {
        send_error(a, rc, true, e.msg);
        asking_close(a);
    } else {
        submit(a);
    }
}

static void begin(struct asking *a)
{
    const struct registry_model *m = a->reply ? a->reply : a->reader;
    const struct sink_start start = {
        .model = m->name, .version = registry_identity(m)->version, .sum = registry_sum(m)};
    a->sink->ops->start(a->sink, &start);
    if (a->quiet)
        asking_close(a);
    else
        prepare(a);
}

static void count_begin(struct registry_model *m)
{
    if (!is_counted(m))
        return;
    counter_add(&m->stats.requests, 1);
    atomic_fetch_add_explicit(&m->stats.in_flight, 1, memory_order_relaxed);
}

static void on_reply_failed(struct acquire *q, const struct failure *f)
{
    send_failure(EXECUTOR_OF(q, struct asking, for_reply), f);
}

static void on_reply(struct acquire *q, struct registry_model *m)
{
    struct asking *a = EXECUTOR_OF(q, struct asking, for_reply);
    if (!m) {
        asking_close(a);
        return;
    }
    a->reply = m;
    count_begin(m);
    begin(a);
}

static void find_reply(struct asking *a)
{
    if (!a->request->ask.reply || !a->table->reply) {
        begin(a);
        return;
    }
    a->for_reply.owner = a->owner;
    a->for_reply.ready = on_reply;
    a->for_reply.failed = on_reply_failed;
    a->for_reply.epoch = a->request->epoch; /* the same for both: never models of two versions */
    a->for_reply.may_be_old = a->request->may_be_old;
    a->for_reply.any = true;
    a->for_reply.key = request_key(a->request);
    acquire_model(&a->for_reply, a->table->reply, SHOAL_KIND_GENERATE);
}

static void on_reader_failed(struct acquire *q, const struct failure *f)
{
    send_failure(EXECUTOR_OF(q, struct asking, for_reader), f);
}

static void on_reader(struct acquire *q, struct registry_model *m)
{
    struct asking *a = EXECUTOR_OF(q, struct asking, for_reader);
    if (!m) {
        asking_close(a);
        return;
    }
    a->reader = m;
    count_begin(m);
    find_reply(a);
}

/* Whether the table and the models of the request exist; if not, f names what is missing. */
static bool check_parts(struct asking *a, struct failure *f)
{
    const struct home_table *t = a->app->table;
    const struct request_ask *q = &a->request->ask;
    struct registry *registry = a->owner->flow->registry;
    const char *missing = NULL;
    enum registry_state state;
    if (!t && a->app->table_failed) {
        failure_set(f, FAILURE_UNAVAILABLE, SHOAL_EFORMAT, NULL, "table_failed",
                    "commands are not available: the server cannot read its table of words and "
                    "actions, and its log says why; program and models must be of one version");
        return false;
    }
    if (!t) {
        failure_set(f, FAILURE_NOT_FOUND, SHOAL_ENOTFOUND, NULL, "model_not_found",
                    "commands need a table of words and actions, which this server does not have: "
                    "start 'shoal serve' with the models included with Shoal (without -m)");
        return false;
    }
    a->table = home_table_in(t, a->request->language);
    if (a->table) /* else ask_submit says what is wrong */
        t = a->table;
    a->table = t;
    if (!registry_state(registry, t->reader, &state))
        missing = t->reader;
    else if (q->reply && t->reply && !registry_state(registry, t->reply, &state))
        missing = t->reply;
    if (missing)
        failure_set(f, FAILURE_NOT_FOUND, SHOAL_ENOTFOUND, NULL, "model_not_found",
                    "commands need the model '%s', which this server does not have: start 'shoal "
                    "serve' with the models included with Shoal (without -m)",
                    missing);
    return !missing;
}

static void run(struct app *app, struct flow_owner *o, struct request *r, struct sink *s)
{
    static const struct flow_job_ops ops = {on_cancel, on_resume};
    struct asking *a = flow_take(&o->asks, sizeof(*a));
    struct failure f;
    if (!a) {
        flow_refuse_nomem(o, r, s);
        return;
    }
    a->job.ops = &ops;
    a->app = (const struct ask_app *)app; /* its first member */
    a->owner = o;
    a->request = r;
    a->sink = s;
    a->wake.fn = on_wake;
    s->job = &a->job;
    o->n_jobs++;
    token_queue_init(&a->queue, o->executor, &a->wake);
    if (!check_parts(a, &f)) {
        send_failure(a, &f);
        asking_close(a);
        return;
    }
    a->for_reader.owner = o;
    a->for_reader.ready = on_reader;
    a->for_reader.failed = on_reader_failed;
    a->for_reader.epoch = r->epoch;
    a->for_reader.may_be_old = r->may_be_old;
    a->for_reader.any = true;
    a->for_reader.key = request_key(r);
    acquire_model(&a->for_reader, a->app->table->reader, SHOAL_KIND_CLASSIFY);
}

void ask_app_init(struct ask_app *a)
{
    *a = (struct ask_app){.app.run = run};
}
