/* process.c - see process.h.
 *
 * Events come on the engines' threads: they are written there, into a queue that the loop empties.
 * A reply has an end that is known, so the queue needs no other bound than the reply's. */
#include "gateway/api/process.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "flow/home/ask_pack.h"
#include "flow/acquire.h"
#include "gateway/call.h"

#define QUEUE_BYTES ((size_t)4 << 20)

struct body {
    const char *text;
    bool stream, explain, reply;
    int64_t priority;
    double latency_budget_ms;
};

#define AT(member) offsetof(struct body, member)
const struct field process_fields[] = {
    {"text", FIELD_STR, AT(text), 0, 0, "a command or a question", NULL},
    {"stream", FIELD_BOOL, AT(stream), 0, 0, "events plan, text and done as they come", NULL},
    {"explain", FIELD_BOOL, AT(explain), 0, 0, "also what each model said, and how long it took",
     NULL},
    {"reply", FIELD_BOOL, AT(reply), 0, 0, "false: actions only; default true", NULL},
    {"priority", FIELD_INT, AT(priority), -100, 100, "higher first", NULL},
    {"latency_budget_ms", FIELD_NUM, AT(latency_budget_ms), 1, 86400000,
     "refuse or stop what takes longer", NULL}};
const size_t n_process_fields = sizeof(process_fields) / sizeof(process_fields[0]);

struct process {
    struct call *call;
    struct request *request;
    bool stream;
    struct acquire for_encoder, for_reply;
    struct registry_model *encoder, *reply; /* held; reply NULL: actions only */
    struct ask_request *asked;
    struct executor_task wake;

    pthread_mutex_t lock; /* guards what follows */
    struct buf queue;     /* events that wait for the loop, or the whole answer */
    bool posted, done;
    int code;
    char message[320];
};

/* ---- from the engines' threads ---- */

/* In the queue, followed by so many bytes of JSON. */
struct queued {
    enum ask_event_kind kind;
    size_t n;
};

static const char *const event_names[] = {
    [ASK_EVENT_PLAN] = "plan", [ASK_EVENT_TEXT] = "text", [ASK_EVENT_DONE] = "done"};

/* The event's data; of a whole answer there is only the last one. */
static void put_event(struct process *p, const struct ask_request *r, const struct ask_event *ev)
{
    struct json_out j = json_out_make(&p->queue);
    struct queued head = {.kind = ev->kind};
    size_t at = p->queue.len;
    buf_put(&p->queue, &head, sizeof(head));
    json_out_object(&j);
    if (p->stream) { /* for clients that do not look at event names */
        json_out_key(&j, "type");
        json_out_str(&j, event_names[ev->kind]);
    }
    if (ev->kind == ASK_EVENT_PLAN) {
        ask_json_plan(&j, r);
    } else if (ev->kind == ASK_EVENT_TEXT) {
        json_out_key(&j, "text");
        json_out_strn(&j, ev->text, ev->text_bytes);
    } else {
        ask_json(&j, r, p->request->ask.explain || p->stream);
    }
    json_out_object_end(&j);
    if (p->queue.rc < 0)
        return;
    head.n = p->queue.len - at - sizeof(head);
    memcpy(p->queue.data + at, &head, sizeof(head));
}

static void on_event(void *ctx, const struct ask_request *r, const struct ask_event *ev)
{
    struct process *p = ctx;
    bool last = ev->kind == ASK_EVENT_DONE;
    if (!p->stream && !last)
        return;
    pthread_mutex_lock(&p->lock);
    if (last) {
        p->done = true;
        p->code = p->code < 0 ? p->code : ev->code;
        if (ev->code < 0)
            snprintf(p->message, sizeof(p->message), "%s", ev->message);
    }
    if (!last || ev->code == 0)
        put_event(p, r, ev);
    if (!p->posted) {
        p->posted = true;
        /* under the lock: once it is given up, the loop may free p */
        executor_post(p->call->gl->flow.executor, &p->wake);
    }
    pthread_mutex_unlock(&p->lock);
}

/* ---- on the loop ---- */

static void count_begin(struct registry_model *m)
{
    counter_add(&m->stats.requests, 1);
    atomic_fetch_add_explicit(&m->stats.in_flight, 1, memory_order_relaxed);
}

static void put_back(struct registry_model *m)
{
    if (!m)
        return;
    atomic_fetch_sub_explicit(&m->stats.in_flight, 1, memory_order_relaxed);
    registry_put(m);
}

static void process_free(struct process *p)
{
    ask_free(p->asked);
    put_back(p->encoder);
    put_back(p->reply);
    p->call->job = NULL;
    p->call->abandon = NULL;
    p->call->gl->flow.n_jobs--;
    flow_give_request(&p->call->gl->flow, p->request);
    buf_fini(&p->queue);
    pthread_mutex_destroy(&p->lock);
    call_release(p->call);
    mem_free(p);
}

static void count_done(struct process *p)
{
    const struct ask_step *steps;
    uint32_t n = ask_steps_of(p->asked, &steps);
    for (uint32_t i = 0; i < n; i++) {
        bool reads = steps[i].model && strcmp(steps[i].name, "understand") == 0;
        struct registry_model *m = !steps[i].model ? NULL : reads ? p->encoder : p->reply;
        if (!m)
            continue;
        counter_add(reads ? &m->stats.prompt_tokens : &m->stats.generated_tokens, steps[i].tokens);
        histogram_add(&m->stats.total, steps[i].ns);
    }
    if (p->code < 0 && p->code != SHOAL_ECANCELLED)
        counter_add(&p->encoder->stats.errors, 1);
    if (!p->call->req)
        counter_add(&p->encoder->stats.cancelled, 1);
}

static void fail_code(struct process *p, int code, bool refused, const char *msg)
{
    struct failure f;
    if (code == SHOAL_EDEADLINE)
        failure_late(&f, refused, model_stats_others(&p->encoder->stats), msg);
    else
        failure_of(&f, code, msg);
    call_fail_with(p->call, &f);
}

static void fail(struct process *p)
{
    struct call *c = p->call;
    const char *msg = p->code == SHOAL_EDEADLINE
                          ? "the deadline passed before the answer was complete"
                          : p->message;
    if (!c->began) {
        fail_code(p, p->code, false, msg);
        return;
    }
    struct failure f;
    failure_of(&f, p->code, msg);
    buf_clear(&c->out);
    call_event_begin(c, "error");
    call_put_failure(c, &f);
    call_event_end(c);
    call_end_flushed(c);
}

/* Events, as they were queued, to the call's out. */
static void show(struct process *p, const struct buf *events)
{
    struct call *c = p->call;
    struct queued head;
    for (size_t at = 0; at < events->len; at += sizeof(head) + head.n) {
        memcpy(&head, events->data + at, sizeof(head));
        if (p->stream)
            call_event_begin(c, event_names[head.kind]);
        buf_put(&c->out, events->data + at + sizeof(head), head.n);
        if (p->stream)
            call_event_end(c);
        else
            buf_putc(&c->out, '\n');
    }
}

static void on_wake(struct executor_task *t)
{
    struct process *p = LOOP_OF(t, struct process, wake);
    struct call *c = p->call;
    pthread_mutex_lock(&p->lock);
    struct buf events = p->queue;
    buf_init(&p->queue, QUEUE_BYTES);
    p->posted = false;
    bool done = p->done;
    if (events.rc < 0) { /* half an event is none: the answer ends with the error */
        p->code = events.rc;
        snprintf(p->message, sizeof(p->message), "%s", err_text(events.rc));
        events.len = 0;
    }
    pthread_mutex_unlock(&p->lock);
    buf_clear(&c->out);
    if (c->req && p->stream && events.len > 0 && !c->began)
        call_begin(c, SSE_TYPE);
    if (c->req)
        show(p, &events);
    buf_fini(&events);
    if (p->stream && c->out.rc < 0) {
        p->code = c->out.rc;
        snprintf(p->message, sizeof(p->message), "%s", err_text(c->out.rc));
        buf_clear(&c->out);
    }
    if (p->stream)
        call_flush(c);
    if (!done)
        return;
    count_done(p);
    if (c->req && p->code < 0)
        fail(p);
    else if (c->req && p->stream)
        call_end(c);
    else if (c->req)
        call_json(c, 200);
    process_free(p);
}

/* ---- starting ---- */

static void on_abandon(struct call *c)
{
    struct process *p = c->job;
    acquire_cancel(&p->for_encoder);
    acquire_cancel(&p->for_reply);
    if (p->asked)
        ask_cancel(p->asked);
}

static struct home_table *home(const struct call *c)
{
    return c->gl->gw->home;
}

static int make_ask(void *table, void **out, struct shoal_engine *encoder, struct err *e)
{
    struct ask *a = NULL;
    int rc = ask_create(&a, table, encoder, NULL, e);
    *out = a;
    return rc;
}

static void drop_ask(void *ask)
{
    ask_destroy(ask);
}

static void submit(struct process *p)
{
    const struct request *r = p->request;
    struct err e = {0};
    void *ask = NULL;
    struct ask_opts o = {.text = r->ask.text,
                         .text_bytes = strlen(r->ask.text),
                         .no_reply = !p->reply,
                         .reply = p->reply ? registry_engine(p->reply) : NULL,
                         .deadline_ns = r->deadline_ns,
                         .priority = r->priority + r->client.priority,
                         .event = on_event,
                         .event_ctx = p};
    int rc = registry_attach(p->encoder, make_ask, home(p->call), drop_ask, &ask, &e);
    if (rc == 0)
        rc = ask_submit(ask, &o, &p->asked, &e);
    if (rc < 0) {
        fail_code(p, rc, true, e.msg);
        process_free(p);
    }
}

static void acquire_failed(struct process *p, const struct failure *f)
{
    if (p->call->req)
        call_fail_with(p->call, f);
}

static void on_encoder_failed(struct acquire *a, const struct failure *f)
{
    acquire_failed(LOOP_OF(a, struct process, for_encoder), f);
}

static void on_reply_failed(struct acquire *a, const struct failure *f)
{
    acquire_failed(LOOP_OF(a, struct process, for_reply), f);
}

static void acquire(struct process *p, struct acquire *a, const char *name, enum shoal_kind kind,
                    void (*ready)(struct acquire *a, struct registry_model *m))
{
    a->owner = &p->call->gl->flow;
    a->ready = ready;
    a->failed = a == &p->for_reply ? on_reply_failed : on_encoder_failed;
    acquire_model(a, name, kind);
}

static void on_reply(struct acquire *a, struct registry_model *m)
{
    struct process *p = LOOP_OF(a, struct process, for_reply);
    if (!m) {
        process_free(p);
        return;
    }
    p->reply = m;
    p->call->model_name = m->name;
    count_begin(m);
    submit(p);
}

static void on_encoder(struct acquire *a, struct registry_model *m)
{
    struct process *p = LOOP_OF(a, struct process, for_encoder);
    if (!m) {
        process_free(p);
        return;
    }
    p->encoder = m;
    p->call->model_name = m->name;
    count_begin(m);
    if (p->request->ask.reply)
        acquire(p, &p->for_reply, home(p->call)->reply, SHOAL_KIND_GENERATE, on_reply);
    else
        submit(p);
}

struct needed {
    const struct home_table *table;
    bool encoder, reply;
};

static void look(void *ctx, const struct registry_model *m)
{
    struct needed *have = ctx;
    have->encoder |= strcmp(m->name, have->table->encoder) == 0;
    have->reply |= strcmp(m->name, have->table->reply) == 0;
}

/* true: the server has the models that this needs. */
static bool check_models(struct call *c, const struct request_ask *b)
{
    struct needed have = {.table = home(c)};
    if (!have.table) {
        call_fail(c, 404, NULL, NULL, "model_not_found",
                  "/v1/process needs a table of words and actions, which this server does not "
                  "have: start 'shoal serve' with the models that come with Shoal (without -m)");
        return false;
    }
    registry_each(c->gl->gw->registry, look, &have);
    if (have.encoder && (have.reply || !b->reply))
        return true;
    call_fail(c, 404, NULL, NULL, "model_not_found",
              "/v1/process needs the model '%s', which this server does not have: start "
              "'shoal serve' with the models that come with Shoal (without -m)",
              have.encoder ? have.table->reply : have.table->encoder);
    return false;
}

int process_read(struct request *r, bool *stream, const cJSON *json, bool lenient,
                 struct fields_error *e)
{
    struct body b = {.reply = true};
    int rc = fields_read(process_fields, n_process_fields, json, &b, lenient, e);
    if (rc == 0 && !b.text)
        rc = fields_fail(e, "text", "missing_required_parameter", "'text' is missing");
    if (rc < 0)
        return rc;
    r->kind = REQUEST_ASK;
    r->priority = (int32_t)b.priority;
    request_set_budget(r, b.latency_budget_ms);
    r->input_bytes = strlen(b.text);
    r->ask.text = request_copy(r, b.text, r->input_bytes);
    r->ask.explain = b.explain;
    r->ask.reply = b.reply;
    *stream = b.stream;
    return request_rc(r) < 0 ? fields_fail(e, "text", NULL, "out of memory") : 0;
}

static void start(struct call *c, struct request *r, bool stream)
{
    struct process *p = mem_zalloc(sizeof(*p));
    if (!p) {
        call_fail_code(c, SHOAL_ENOMEM, "out of memory");
        flow_give_request(&c->gl->flow, r);
        return;
    }
    p->call = c;
    p->request = r;
    p->stream = stream;
    p->wake.fn = on_wake;
    pthread_mutex_init(&p->lock, NULL);
    buf_init(&p->queue, QUEUE_BYTES);
    call_hold(c);
    c->gl->flow.n_jobs++;
    c->job = p;
    c->abandon = on_abandon;
    acquire(p, &p->for_encoder, home(c)->encoder, SHOAL_KIND_CLASSIFY, on_encoder);
}

void process_handle(struct call *c)
{
    struct fields_error e = {{0}, {0}, NULL};
    struct request *r = call_request(c);
    bool stream = false;
    if (!r)
        return;
    int rc = process_read(r, &stream, c->json, c->lenient, &e);
    if (rc < 0)
        call_fail_fields(c, &e);
    if (rc < 0 || !check_models(c, &r->ask))
        flow_give_request(&c->gl->flow, r);
    else
        start(c, r, stream);
}
