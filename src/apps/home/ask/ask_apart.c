/* ask_apart.c - see ask_apart.h. */
#include "apps/home/ask/ask_apart.h"

#include <stdatomic.h>
#include <string.h>

#include "base/thread/executor.h"
#include "base/mem.h"
#include "flow/dispatch.h"

/* One request. */
struct errand {
    struct sink inner; /* first */
    struct ask_apart *all;
    struct errand *prev, *next;
    struct executor_task start;
    enum { ERRAND_INFER, ERRAND_REPLY } what;
    enum ask_model model;
    bool told, cancelled;
    struct shoal_infer_opts infer;
    struct shoal_task_opts reply;
    const char *message;
};

struct ask_apart {
    struct ask_away away; /* first */
    struct flow_owner *owner;
    const struct request *request;
    const char *models[ASK_MODELS];
    _Atomic uint32_t refs;  /* held by the ask and by each errand */
    struct errand *running; /* on the owner's thread */
    _Atomic bool cancelled;
    struct failure failure;
    bool has_failure;
};

static struct errand *errand_of(struct sink *s)
{
    return (struct errand *)(void *)s; /* its first member */
}

static void unref(struct ask_apart *p)
{
    if (atomic_fetch_sub_explicit(&p->refs, 1, memory_order_acq_rel) == 1)
        mem_free(p);
}

/* ---- how it ends ---- */

/* Reports that the errand failed, unless it has already ended. */
static void tell_failed(struct errand *x, int code, const char *message)
{
    if (x->told)
        return;
    x->told = true;
    if (x->what == ERRAND_INFER) {
        const struct shoal_result r = {
            .size = sizeof(r), .kind = x->infer.kind, .code = code, .message = message};
        x->infer.done(x->infer.done_ctx, &r);
    } else {
        const struct shoal_event ev = {.size = sizeof(ev),
                                       .kind = SHOAL_EVENT_DONE,
                                       .token = -1,
                                       .text = "",
                                       .finish = SHOAL_FINISH_ERROR,
                                       .code = code};
        x->reply.event(x->reply.event_ctx, &ev);
    }
}

static void on_start(struct sink *s, const struct sink_start *e)
{
    (void)s;
    (void)e;
}

static void on_token(struct sink *s, const struct sink_token *e)
{
    struct errand *x = errand_of(s);
    const struct shoal_event ev = {.size = sizeof(ev),
                                   .kind = SHOAL_EVENT_TOKEN,
                                   .token = e->token,
                                   .text = e->text,
                                   .text_bytes = e->text_bytes};
    if (x->what == ERRAND_REPLY && !x->told)
        x->reply.event(x->reply.event_ctx, &ev);
}

static void on_result(struct sink *s, const struct sink_result *e)
{
    struct errand *x = errand_of(s);
    if (x->what != ERRAND_INFER || x->told)
        return;
    x->told = true;
    x->infer.done(x->infer.done_ctx, e->result);
}

static void on_done(struct sink *s, const struct sink_done *e)
{
    struct errand *x = errand_of(s);
    const struct shoal_event ev = {.size = sizeof(ev),
                                   .kind = SHOAL_EVENT_DONE,
                                   .token = -1,
                                   .text = "",
                                   .finish = e->finish,
                                   .generated_tokens = e->generated_tokens};
    if (x->told)
        return;
    x->told = true;
    if (x->what == ERRAND_REPLY)
        x->reply.event(x->reply.event_ctx, &ev);
}

static void on_fail(struct sink *s, const struct failure *f)
{
    struct errand *x = errand_of(s);
    struct ask_apart *p = x->all;
    if (!p->has_failure) {
        p->failure = *f;
        p->failure.param = p->failure.reason = NULL; /* they may live only as long as this event */
        p->has_failure = true;
    }
    tell_failed(x, f->code < 0 ? f->code : SHOAL_EIO, f->message);
}

static void errand_close(struct errand *x)
{
    struct ask_apart *p = x->all;
    tell_failed(x, SHOAL_ECANCELLED, err_text(SHOAL_ECANCELLED));
    *(x->prev ? &x->prev->next : &p->running) = x->next;
    if (x->next)
        x->next->prev = x->prev;
    mem_free(x);
    unref(p);
}

static void on_closed(struct sink *s)
{
    errand_close(errand_of(s));
}

/* ---- how it begins ---- */

static void fill(struct errand *x, struct request *q)
{
    const struct ask_apart *p = x->all;
    const struct request *r = p->request;
    memcpy(q->id, r->id, sizeof(q->id));
    request_trace(q, &r->spans);
    q->client = r->client;
    q->priority = r->priority;
    q->model = p->models[x->model];
    q->epoch = r->epoch;
    q->may_be_old = r->may_be_old;
    q->received_ns = r->received_ns;
    q->deadline_ns = r->deadline_ns;
    q->here = q->no_cache = true;
}

/* What is pointed to stays until the errand has told its end, and is not read after that.  False:
 * out of memory. */
static bool fill_work(struct errand *x, struct request *q)
{
    if (x->what == ERRAND_INFER) {
        struct request_input *in = arena_zalloc(&q->arena, sizeof(*in));
        if (!in)
            return false;
        in->text = request_copy(q, x->infer.text, x->infer.text_bytes);
        in->text_bytes = q->input_bytes = x->infer.text_bytes;
        q->kind = REQUEST_INFER;
        q->infer = (struct request_infer){
            .kind = x->infer.kind, .inputs = in, .n_inputs = 1, .labels = x->infer.labels};
    } else {
        struct chat_message *m = arena_zalloc(&q->arena, sizeof(*m));
        if (!m)
            return false;
        m->role = "user";
        m->content_bytes = q->input_bytes = strlen(x->message);
        m->content = request_copy(q, x->message, m->content_bytes);
        q->kind = REQUEST_GENERATE;
        q->generate = (struct request_generate){.chat = {.messages = m, .n_messages = 1},
                                                .n_prompts = 1,
                                                .n = 1,
                                                .max_tokens = x->reply.max_tokens,
                                                .seeded = true};
    }
    return request_rc(q) == 0;
}

static void start(struct executor_task *t)
{
    struct errand *x = EXECUTOR_OF(t, struct errand, start);
    struct ask_apart *p = x->all;
    x->next = p->running;
    if (x->next)
        x->next->prev = x;
    p->running = x;
    struct request *q = NULL;
    if (!atomic_load_explicit(&p->cancelled, memory_order_relaxed)) {
        q = flow_take_request(p->owner);
        if (!q || !fill_work(x, q))
            tell_failed(x, SHOAL_ENOMEM, "out of memory");
    }
    if (!q || x->told) {
        if (q)
            flow_give_request(p->owner, q);
        errand_close(x);
        return;
    }
    fill(x, q);
    struct dispatch *d = p->owner->apart;
    if (d && d->ops->run(d, p->owner, q, &x->inner))
        return;
    flow_give_request(p->owner, q);
    tell_failed(x, SHOAL_EIO,
                "a model of this command no longer runs in its own process: try again");
    errand_close(x);
}

/* NULL: out of memory. */
static struct errand *errand_create(struct ask_apart *p, enum ask_model model)
{
    static const struct sink_ops ops = {.start = on_start,
                                        .token = on_token,
                                        .result = on_result,
                                        .done = on_done,
                                        .fail = on_fail,
                                        .closed = on_closed};
    struct errand *x = mem_zalloc(sizeof(*x));
    if (!x)
        return NULL;
    x->inner.ops = &ops;
    x->all = p;
    x->model = model;
    x->start.fn = start;
    atomic_fetch_add_explicit(&p->refs, 1, memory_order_relaxed);
    return x;
}

static struct ask_apart *of_away(struct ask_away *w)
{
    return (struct ask_apart *)(void *)w; /* its first member */
}

/* On any thread, as reply. */
static void infer(struct ask_away *w, enum ask_model which, const struct shoal_infer_opts *o)
{
    struct ask_apart *p = of_away(w);
    struct errand *x = errand_create(p, which);
    if (!x) {
        const struct shoal_result r = {
            .size = sizeof(r), .kind = o->kind, .code = SHOAL_ENOMEM, .message = "out of memory"};
        o->done(o->done_ctx, &r);
        return;
    }
    x->what = ERRAND_INFER;
    x->infer = *o;
    executor_post(p->owner->executor, &x->start);
}

static void reply(struct ask_away *w, const char *message, const struct shoal_task_opts *o)
{
    struct ask_apart *p = of_away(w);
    struct errand *x = errand_create(p, ASK_MODEL_REPLY);
    if (!x) {
        const struct shoal_event ev = {.size = sizeof(ev),
                                       .kind = SHOAL_EVENT_DONE,
                                       .token = -1,
                                       .text = "",
                                       .finish = SHOAL_FINISH_ERROR,
                                       .code = SHOAL_ENOMEM};
        o->event(o->event_ctx, &ev);
        return;
    }
    x->what = ERRAND_REPLY;
    x->reply = *o;
    x->message = message;
    executor_post(p->owner->executor, &x->start);
}

/* On the owner's thread, like all calls of ask_cancel. A cancelled errand may end inside, so the
 * search restarts after each. */
static void cancel(struct ask_away *w)
{
    struct ask_apart *p = of_away(w);
    struct errand *x = p->running;
    atomic_store_explicit(&p->cancelled, true, memory_order_relaxed);
    while (x) {
        if (x->cancelled) {
            x = x->next;
            continue;
        }
        x->cancelled = true;
        flow_cancel(&x->inner);
        x = p->running;
    }
}

/* ---- lifetime ---- */

struct ask_apart *ask_apart_create(struct flow_owner *o, const struct request *r,
                                   const char *const models[ASK_MODELS])
{
    static const struct ask_away_ops ops = {infer, reply, cancel};
    struct ask_apart *p = mem_zalloc(sizeof(*p));
    if (!p)
        return NULL;
    p->away.ops = &ops;
    p->owner = o;
    p->request = r;
    memcpy(p->models, models, sizeof(p->models));
    atomic_init(&p->refs, 1);
    return p;
}

void ask_apart_put(struct ask_apart *p)
{
    if (p)
        unref(p);
}

struct ask_away *ask_apart_away(struct ask_apart *p)
{
    return p ? &p->away : NULL;
}

const struct failure *ask_apart_failure(const struct ask_apart *p)
{
    return p && p->has_failure ? &p->failure : NULL;
}
