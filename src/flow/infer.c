/* infer.c - see infer.h. */
#include "flow/infer.h"

#include <pthread.h>
#include <string.h>

#include "flow/acquire.h"
#include "flow/pool.h"

#define INLINE_BYTES ((size_t)4 << 10) /* shorter inputs are submitted on the owner's thread */

struct inference {
    struct flow_job job; /* first */
    struct flow_owner *owner;
    struct request *request; /* owned */
    struct sink *sink;
    bool quiet;                   /* the sink wants nothing but `closed` any more */
    bool held;                    /* the sink was full */
    struct registry_model *model; /* held */
    struct shoal_task **tasks;    /* [n_inputs], in the request's arena */
    struct acquire acquire;
    struct pool_task pool_task;
    struct executor_task wake;
    pthread_mutex_t lock; /* guards n_left, submitted */
    uint32_t n_left;
    bool submitted;
    int rc; /* of submitting */
    struct err error;
};

static void inference_close(struct inference *f)
{
    struct flow_owner *o = f->owner;
    f->sink->job = NULL;
    f->sink->ops->closed(f->sink); /* may still read the model's name */
    for (uint32_t i = 0; f->tasks && i < f->request->infer.n_inputs; i++)
        shoal_task_free(f->tasks[i]);
    if (f->model) {
        atomic_fetch_sub_explicit(&f->model->stats.in_flight, 1, memory_order_relaxed);
        registry_put(f->model);
    }
    pthread_mutex_destroy(&f->lock);
    flow_give_request(o, f->request);
    flow_give(&o->inferences, f);
    o->n_jobs--;
}

static void send_failure(struct inference *f, const struct failure *why)
{
    if (f->quiet)
        return;
    f->quiet = true;
    f->sink->ops->fail(f->sink, why);
}

static void cancel_tasks(struct inference *f)
{
    for (uint32_t i = 0; f->tasks && i < f->request->infer.n_inputs; i++)
        if (f->tasks[i])
            shoal_task_cancel(f->tasks[i]);
}

static void on_wake(struct executor_task *t);

static void on_cancel(struct flow_job *j)
{
    struct inference *f = (struct inference *)(void *)j;
    if (f->quiet)
        return;
    f->quiet = true;
    acquire_cancel(&f->acquire);
    if (f->model)
        counter_add(&f->model->stats.cancelled, 1);
    pthread_mutex_lock(&f->lock);
    if (f->submitted) /* before that, the tasks belong to the thread that submits them */
        cancel_tasks(f);
    pthread_mutex_unlock(&f->lock);
    if (f->held) { /* nobody resumes any more */
        f->held = false;
        on_wake(&f->wake);
    }
}

static void on_resume(struct flow_job *j)
{
    struct inference *f = (struct inference *)(void *)j;
    if (f->held) {
        f->held = false;
        on_wake(&f->wake);
    }
}

/* ---- results ---- */

/* Of all inputs; the first error, or 0. */
static int count_results(struct inference *f)
{
    struct model_stats *m = &f->model->stats;
    int rc = f->rc;
    for (uint32_t i = 0; i < f->request->infer.n_inputs && f->tasks[i]; i++) {
        const struct shoal_result *r = shoal_task_result(f->tasks[i]);
        histogram_add(&m->queue, r->queue_ns);
        histogram_add(&m->total, r->total_ns);
        counter_add(&m->prompt_tokens, r->n_tokens);
        batch_histogram_add(&m->batch, r->code == 0 ? r->batch : 0);
        if (rc == 0 && r->code < 0)
            rc = err_set(&f->error, r->code, "%s",
                         r->message && r->message[0] ? r->message : err_text(r->code));
    }
    return rc;
}

static void send_results(struct inference *f)
{
    struct model_stats *m = &f->model->stats;
    uint32_t n = f->request->infer.n_inputs;
    struct failure why;
    int rc = count_results(f);
    if (f->quiet)
        return;
    if (rc < 0) {
        counter_add(&m->errors, 1);
        if (rc == SHOAL_EDEADLINE)
            failure_late(&why, f->rc < 0, model_stats_others(m), f->error.msg);
        else
            failure_of(&why, rc, f->error.msg);
        send_failure(f, &why);
        return;
    }
    f->quiet = true;
    for (uint32_t i = 0; i < n; i++) {
        const struct sink_result e = {i, shoal_task_result(f->tasks[i]), i + 1 == n};
        f->sink->ops->result(f->sink, &e);
    }
}

/* All is done. */
static void on_wake(struct executor_task *t)
{
    struct inference *f = EXECUTOR_OF(t, struct inference, wake);
    pthread_mutex_lock(&f->lock); /* the thread that posted may still hold it */
    pthread_mutex_unlock(&f->lock);
    if (!f->quiet && f->sink->ops->full && f->sink->ops->full(f->sink)) {
        f->held = true; /* on_resume goes on */
        return;
    }
    send_results(f);
    inference_close(f);
}

/* Of the tasks, and once of the submission itself: the last one wakes the owner. */
static void one_less(struct inference *f, uint32_t n)
{
    pthread_mutex_lock(&f->lock);
    f->n_left -= n;
    if (f->n_left == 0)
        executor_post(f->owner->executor, &f->wake);
    pthread_mutex_unlock(&f->lock);
}

/* On the engine's thread. */
static void on_done(void *ctx, const struct shoal_result *result)
{
    (void)result; /* it lives in the task until that is freed */
    one_less(ctx, 1);
}

/* ---- starting ---- */

static struct shoal_infer_opts options_of(struct inference *f)
{
    const struct request *r = f->request;
    const struct request_infer *q = &r->infer;
    const struct fair_who who = request_who(r);
    return (struct shoal_infer_opts){.size = sizeof(struct shoal_infer_opts),
                                     .kind = q->kind,
                                     .text = q->query,
                                     .text_bytes = q->query ? strlen(q->query) : 0,
                                     .labels = q->labels ? q->labels : f->model->labels,
                                     .prompt = q->prompt,
                                     .document = q->title,
                                     .document_bytes = q->title ? strlen(q->title) : 0,
                                     .temperature = q->temperature,
                                     .seed = q->seed,
                                     .n_columns = q->n_columns,
                                     .stream = q->stream,
                                     .dimensions = q->dimensions,
                                     .max_sentences = q->max_sentences,
                                     .max_tokens = q->max_tokens,
                                     .beams = q->beams,
                                     .raw = q->raw,
                                     .whole = q->whole,
                                     .deadline_ns = r->deadline_ns,
                                     .priority = who.priority,
                                     .client = who.client,
                                     .weight = who.weight,
                                     .held = true,
                                     .done = on_done,
                                     .done_ctx = f};
}

static void submit(struct inference *f, bool on_owner)
{
    const struct request_infer *q = &f->request->infer;
    struct shoal_infer_opts o = options_of(f);
    struct shoal_engine_info info = {.size = sizeof(info)};
    uint32_t i = 0;
    if (q->kind == SHOAL_KIND_SCORE && q->n_columns == 0)
        shoal_engine_info(registry_engine(f->model), &info);
    bool rows = q->kind == SHOAL_KIND_SCORE && q->n_columns == 0 && info.dim == 0;
    f->n_left = q->n_inputs + 1;
    for (; i < q->n_inputs && f->rc == 0; i++) {
        const struct request_input *in = &q->inputs[i];
        struct err e = {0};
        if (o.kind == SHOAL_KIND_RERANK) {
            o.document = in->text;
            o.document_bytes = in->text_bytes;
        } else {
            o.text = in->text;
            o.text_bytes = in->text_bytes;
            o.values = in->values;
            o.n_values = in->n_values;
            if (rows) /* the model reads any number of values: an input is one row */
                o.n_columns = in->n_values;
        }
        f->rc = shoal_infer_submit(registry_engine(f->model), &o, &f->tasks[i], &e);
        if (f->rc < 0) {
            err_set(&f->error, f->rc, "%s", e.msg);
            break;
        }
    }
    pthread_mutex_lock(&f->lock);
    f->submitted = true;
    pthread_mutex_unlock(&f->lock);
    if (f->rc < 0)
        cancel_tasks(f);
    if (on_owner)
        flow_wake_later(f->owner, f->model);
    else
        shoal_engine_wake(registry_engine(f->model));
    one_less(f, q->n_inputs - i + 1);
}

static void submit_on_pool(struct pool_task *t)
{
    submit(EXECUTOR_OF(t, struct inference, pool_task), false);
}

static void on_failed(struct acquire *a, const struct failure *why)
{
    send_failure(EXECUTOR_OF(a, struct inference, acquire), why);
}

static void on_model(struct acquire *a, struct registry_model *m)
{
    struct inference *f = EXECUTOR_OF(a, struct inference, acquire);
    struct request *r = f->request;
    struct pool *pool = f->owner->flow->pool;
    struct failure why;
    if (!m) {
        inference_close(f);
        return;
    }
    f->model = m;
    counter_add(&m->stats.requests, 1);
    atomic_fetch_add_explicit(&m->stats.in_flight, 1, memory_order_relaxed);
    const struct sink_start start = {
        .model = m->name, .version = registry_identity(m)->version, .sum = registry_sum(m)};
    f->sink->ops->start(f->sink, &start);
    f->tasks = arena_zalloc_n(&r->arena, r->infer.n_inputs, sizeof(struct shoal_task *));
    f->pool_task.fn = submit_on_pool;
    if (!f->tasks)
        failure_of(&why, SHOAL_ENOMEM, "out of memory");
    else if (!pool || r->input_bytes <= INLINE_BYTES) { /* a thread would cost more */
        submit(f, true);
        return;
    } else if (pool_submit(pool, &f->pool_task) == 0)
        return;
    else
        failure_of(&why, SHOAL_EBUSY, "too many long inputs are waiting");
    send_failure(f, &why);
    inference_close(f);
}

void infer_run(struct flow_owner *o, struct request *r, struct sink *s)
{
    static const struct flow_job_ops ops = {on_cancel, on_resume};
    struct inference *f = flow_take(&o->inferences, sizeof(*f));
    if (!f) {
        flow_refuse_nomem(o, r, s);
        return;
    }
    f->job.ops = &ops;
    f->owner = o;
    f->request = r;
    f->sink = s;
    f->wake.fn = on_wake;
    pthread_mutex_init(&f->lock, NULL);
    s->job = &f->job;
    o->n_jobs++;
    f->acquire.owner = o;
    f->acquire.ready = on_model;
    f->acquire.failed = on_failed;
    f->acquire.version = r->version;
    f->acquire.epoch = r->epoch;
    f->acquire.key = request_key(r);
    acquire_model(&f->acquire, r->model, r->infer.kind);
}
