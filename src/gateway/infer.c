/* infer.c - see infer.h. */
#include "gateway/infer.h"

#include <string.h>

#include "base/mem.h"

#define INLINE_BODY_BYTES ((size_t)4 << 10)

static void on_wake(struct loop_task *t);

struct infer *infer_create(struct call *c, uint32_t n, void (*put)(struct infer *f))
{
    struct infer *f = gw_take(&c->gl->infers, sizeof(*f));
    if (f)
        f->inputs = mem_zalloc_n(n, sizeof(*f->inputs));
    if (!f || !f->inputs) {
        if (f)
            gw_give(&c->gl->infers, f);
        call_fail_code(c, SHOAL_ENOMEM, "out of memory");
        return NULL;
    }
    f->call = c;
    f->n = n;
    f->put = put;
    f->wake.fn = on_wake;
    pthread_mutex_init(&f->lock, NULL);
    call_hold(c);
    c->gl->n_jobs++;
    return f;
}

void infer_free(struct infer *f)
{
    for (uint32_t i = 0; i < f->n; i++) {
        shoal_task_free(f->inputs[i].task);
        mem_free(f->inputs[i].values);
    }
    if (f->model) {
        atomic_fetch_sub_explicit(&f->model->stats.in_flight, 1, memory_order_relaxed);
        registry_put(f->model);
    }
    f->call->job = NULL;
    f->call->abandon = NULL;
    struct gw_loop *gl = f->call->gl;
    gl->n_jobs--;
    pthread_mutex_destroy(&f->lock);
    call_release(f->call);
    mem_free(f->inputs);
    gw_give(&gl->infers, f);
}

static void cancel(struct infer *f)
{
    for (uint32_t i = 0; i < f->n; i++)
        if (f->inputs[i].task)
            shoal_task_cancel(f->inputs[i].task);
}

static void on_abandon(struct call *c)
{
    struct infer *f = c->job;
    pthread_mutex_lock(&f->lock);
    if (f->submitted) /* before that, whoever submits finds out */
        cancel(f);
    pthread_mutex_unlock(&f->lock);
}

static void answer(struct infer *f)
{
    struct call *c = f->call;
    struct model_stats *m = &f->model->stats;
    int rc = f->rc;
    for (uint32_t i = 0; i < f->n && f->inputs[i].task; i++) {
        const struct shoal_result *r = shoal_task_result(f->inputs[i].task);
        f->inputs[i].result = r;
        histogram_add(&m->queue, r->queue_ns);
        histogram_add(&m->total, r->total_ns);
        counter_add(&m->prompt_tokens, r->n_tokens);
        batch_histogram_add(&m->batch, r->code == 0 ? r->batch : 0);
        if (rc == 0 && r->code < 0)
            rc = err_set(&f->error, r->code, "%s",
                         r->message && r->message[0] ? r->message : err_text(r->code));
    }
    if (!c->req) {
        counter_add(&m->cancelled, 1);
        return;
    }
    if (rc < 0) {
        counter_add(&m->errors, 1);
        if (rc == SHOAL_EDEADLINE)
            call_fail_late(c, f->rc < 0, model_stats_others(m), f->error.msg);
        else
            call_fail_code(c, rc, f->error.msg);
        return;
    }
    buf_clear(&c->out);
    f->put(f);
    call_json(c, 200);
}

/* All is done. */
static void on_wake(struct loop_task *t)
{
    struct infer *f = LOOP_OF(t, struct infer, wake);
    pthread_mutex_lock(&f->lock); /* whoever posted holds it a moment longer, and then not f */
    pthread_mutex_unlock(&f->lock);
    answer(f);
    infer_free(f);
}

/* Of the tasks, and once of the submission itself: the last one wakes the loop. */
static void one_less(struct infer *f, uint32_t n)
{
    pthread_mutex_lock(&f->lock);
    f->n_left -= n;
    if (f->n_left == 0)
        loop_post(f->call->gl->loop, &f->wake);
    pthread_mutex_unlock(&f->lock);
}

/* On the engine's thread. */
static void on_done(void *ctx, const struct shoal_result *result)
{
    (void)result; /* it lives in the task until that is freed */
    one_less(ctx, 1);
}

static void submit(struct infer *f, bool on_loop)
{
    struct shoal_infer_opts o = f->opts;
    uint32_t i = 0;
    o.done = on_done;
    o.done_ctx = f;
    o.held = true;
    f->n_left = f->n + 1;
    for (; i < f->n && f->rc == 0; i++) {
        struct infer_input *in = &f->inputs[i];
        struct err e = {0};
        if (o.kind == SHOAL_KIND_RERANK) {
            o.document = in->text;
            o.document_bytes = in->text_bytes;
        } else {
            o.text = in->text;
            o.text_bytes = in->text_bytes;
            o.values = in->values;
            o.n_values = in->n_values;
        }
        f->rc = shoal_infer_submit(registry_engine(f->model), &o, &in->task, &e);
        if (f->rc < 0) {
            err_set(&f->error, f->rc, "%s", e.msg);
            break;
        }
    }
    pthread_mutex_lock(&f->lock);
    f->submitted = true;
    pthread_mutex_unlock(&f->lock);
    if (f->rc < 0)
        cancel(f);
    if (on_loop)
        acquire_wake_later(f->call->gl, f->model);
    else
        shoal_engine_wake(registry_engine(f->model));
    one_less(f, f->n - i + 1);
}

static void submit_on_pool(struct pool_task *t)
{
    submit(LOOP_OF(t, struct infer, pool_task), false);
}

static void on_model(struct acquire *a, struct registry_model *m)
{
    struct infer *f = LOOP_OF(a, struct infer, acquire);
    struct call *c = f->call;
    if (!m) {
        infer_free(f);
        return;
    }
    f->model = m;
    counter_add(&m->stats.requests, 1);
    atomic_fetch_add_explicit(&m->stats.in_flight, 1, memory_order_relaxed);
    if (!f->opts.labels)
        f->opts.labels = m->labels;
    f->opts.deadline_ns = c->deadline_ns;
    if (c->client)
        f->opts.priority += c->client->priority;
    c->abandon = on_abandon;
    if (c->req->body_bytes <= INLINE_BODY_BYTES) { /* a thread would cost more */
        submit(f, true);
        return;
    }
    f->pool_task.fn = submit_on_pool;
    if (pool_submit(c->gl->gw->pool, &f->pool_task) < 0) {
        call_refuse(c, GW_REFUSED_BUSY, 429, 1, "too many long inputs are waiting");
        infer_free(f);
    }
}

static void nothing(struct call *c)
{
    (void)c;
}

void infer_run(struct infer *f, const char *model)
{
    f->call->job = f;
    f->call->abandon = nothing;
    acquire_model(&f->acquire, f->call, model, f->opts.kind, on_model);
}

uint64_t infer_tokens(const struct infer *f)
{
    uint64_t n = 0;
    for (uint32_t i = 0; i < f->n; i++)
        n += f->inputs[i].result->n_tokens;
    return n;
}
