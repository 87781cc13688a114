/* infer.c - see infer.h. */
#include "flow/infer.h"

#include <pthread.h>
#include <string.h>

#include "engine/estimate.h"
#include "flow/acquire.h"
#include "flow/calibrated.h"
#include "flow/flow_trace.h"
#include "flow/pool.h"
#include "host/energy_ledger.h"

#define INLINE_BYTES ((size_t)4 << 10) /* shorter inputs are submitted on the owner's thread */
#define MAX_TRACED 8u                  /* inputs of a request with spans of their own */
#define INLINE_INPUTS 256u             /* more go to the pool */
#define MAX_AHEAD 128u /* maximum inputs submitted at a time: others need the engine too */

struct inference;

struct ready { /* of one input, if the client reads the results as they come */
    struct inference *inference;
    bool done; /* guarded by the inference's lock */
};

struct inference {
    struct flow_job job; /* first */
    struct flow_owner *owner;
    struct request *request; /* owned */
    struct sink *sink;
    bool quiet;                   /* the sink only wants `closed` from now on */
    bool held;                    /* the sink was full */
    struct registry_model *model; /* held */
    struct shoal_task **tasks;    /* [n_inputs], in the request's arena */
    /* [n_inputs] there too, if the model has a calibration: results as it changes them. */
    const struct shoal_result **calibrated;
    struct energy_account energy;
    struct acquire acquire;
    struct pool_task pool_task;
    struct executor_task wake, more, some;
    struct ready *ready; /* [n_inputs] there too, or NULL: results are sent when all are done */
    uint32_t n_sent;     /* this and the next: the owner's thread alone */
    bool wake_waits;
    /* Inputs are submitted by one thread at a time, at most MAX_AHEAD before their results. */
    pthread_mutex_t lock; /* guards everything below, and the tasks while no thread submits */
    uint32_t next;        /* the first input that is not submitted yet */
    uint32_t n_running;
    bool rows;                /* SCORE: each input has as many columns as it has values */
    bool submitting, stopped; /* stopped: nothing more is submitted */
    bool some_posted;
    int rc; /* result of submitting */
    struct err error;
};

static void inference_close(struct inference *f)
{
    struct flow_owner *o = f->owner;
    (void)energy_account_end(o->flow->energy, &f->energy);
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
    if (f->model)
        failure_count(&f->model->stats, why);
    f->sink->ops->fail(f->sink, why);
}

/* With the lock held, while no thread submits. */
static void cancel_tasks(struct inference *f)
{
    for (uint32_t i = 0; f->tasks && i < f->next; i++)
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
    f->stopped = true;
    if (!f->submitting) /* otherwise the submitting thread does it */
        cancel_tasks(f);
    pthread_mutex_unlock(&f->lock);
    if (f->held) { /* it can no longer be resumed */
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

/* Whether the model's calibration is for the request's label set. */
static bool is_calibrated(const struct inference *f)
{
    const char *want = f->request->infer.labels, *has = f->model->labels;
    return f->request->infer.kind == SHOAL_KIND_CLASSIFY && f->model->calibration.temperature > 0 &&
           (!want || (has && strcmp(want, has) == 0));
}

static const struct shoal_result *result_of(struct inference *f, uint32_t i)
{
    const struct shoal_result *r = shoal_task_result(f->tasks[i]);
    if (!f->calibrated)
        return r;
    if (!f->calibrated[i])
        f->calibrated[i] = calibrated_result(&f->request->arena, r, &f->model->calibration);
    return f->calibrated[i];
}

/* Over all inputs: the first error, or 0. */
static int count_results(struct inference *f)
{
    struct model_stats *m = &f->model->stats;
    int rc = f->rc;
    double work = 0;
    for (uint32_t i = 0; i < f->request->infer.n_inputs && f->tasks[i]; i++) {
        const struct shoal_result *r = result_of(f, i);
        work += (double)r->run_ns / (r->batch > 1 ? r->batch : 1);
        if (i < MAX_TRACED)
            flow_trace_result(&f->request->spans, f->model->name, r);
        histogram_add(&m->queue, r->queue_ns);
        histogram_add(&m->total, r->total_ns);
        counter_add(&m->prompt_tokens, r->n_tokens);
        histogram_add_batch(&m->batch, r->code == 0 ? r->batch : 0);
        if (r->kind == SHOAL_KIND_CLASSIFY && r->code == 0)
            confidence_watch_add(&m->confidence, f->model->name, (double)r->confidence);
        if (rc == 0 && r->code < 0)
            rc = err_set(&f->error, r->code, "%s",
                         r->message && r->message[0] ? r->message : err_text(r->code));
    }
    energy_account_work(f->owner->flow->energy, &f->energy, work);
    const double joules = energy_account_end(f->owner->flow->energy, &f->energy);
    counter_add(&m->microjoules, (uint64_t)(joules * 1e6));
    return rc;
}

/* What only the kind of request tells about a failure. */
static void add_reason(const struct inference *f, int rc, struct failure *why)
{
    const struct request_infer *q = &f->request->infer;
    if (rc == SHOAL_EINVAL && q->kind == SHOAL_KIND_TRANSCRIBE && q->labels) {
        why->param = "language";
        why->reason = "invalid_value";
    }
    for (uint32_t i = 0; i < q->n_inputs; i++)
        if (q->inputs[i].image && (rc == SHOAL_EFORMAT || rc == SHOAL_ELIMIT)) {
            why->param = "input";
            why->reason = rc == SHOAL_ELIMIT ? "image_too_large" : "invalid_image";
        }
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
            failure_of_model(&why, rc, f->error.msg);
        add_reason(f, rc, &why);
        send_failure(f, &why);
        return;
    }
    f->quiet = true;
    for (; f->n_sent < n; f->n_sent++) {
        const struct sink_result e = {f->n_sent, result_of(f, f->n_sent), f->n_sent + 1 == n};
        f->sink->ops->result(f->sink, &e);
    }
}

static void on_wake(struct executor_task *t);

/* Results that are ready while others are not, in the order of their inputs.  The last one is left
 * to on_wake, and so are failures. */
static void on_some(struct executor_task *t)
{
    struct inference *f = EXECUTOR_OF(t, struct inference, some);
    bool ready = true;
    pthread_mutex_lock(&f->lock);
    f->some_posted = false;
    pthread_mutex_unlock(&f->lock);
    while (ready && !f->quiet && !sink_is_full(f->sink)) {
        const uint32_t i = f->n_sent;
        pthread_mutex_lock(&f->lock);
        ready = i + 1 < f->request->infer.n_inputs && i < f->next && f->ready[i].done;
        pthread_mutex_unlock(&f->lock);
        if (!ready || result_of(f, i)->code < 0)
            break;
        const struct sink_result e = {i, result_of(f, i), false};
        f->n_sent++;
        f->sink->ops->result(f->sink, &e);
    }
    if (!f->quiet)
        sink_flush(f->sink);
    if (f->wake_waits)
        on_wake(&f->wake);
}

/* All is done. */
static void on_wake(struct executor_task *t)
{
    struct inference *f = EXECUTOR_OF(t, struct inference, wake);
    pthread_mutex_lock(&f->lock); /* the thread that posted may still hold it */
    f->wake_waits =
        f->some_posted; /* then on_some calls again: it must not outlive the inference */
    pthread_mutex_unlock(&f->lock);
    if (f->wake_waits)
        return;
    if (!f->quiet && sink_is_full(f->sink)) {
        f->held = true; /* on_resume continues */
        return;
    }
    send_results(f);
    inference_close(f);
}

/* With the lock: whether nothing runs and nothing will. */
static bool is_over(const struct inference *f)
{
    return !f->submitting && f->n_running == 0 &&
           (f->stopped || f->next == f->request->infer.n_inputs);
}

/* On the engine's thread. */
static void on_done(void *ctx, const struct shoal_result *result)
{
    struct inference *f = ctx;
    (void)result; /* it lives in the task until that is freed */
    pthread_mutex_lock(&f->lock);
    f->n_running--;
    if (is_over(f)) {
        executor_post(f->owner->executor, &f->wake);
    } else if (!f->submitting && !f->stopped && f->n_running <= MAX_AHEAD / 2) {
        f->submitting = true;
        executor_post(f->owner->executor, &f->more);
    }
    pthread_mutex_unlock(&f->lock);
}

/* The same for one of the results that are sent as they come. */
static void on_ready(void *ctx, const struct shoal_result *result)
{
    struct ready *r = ctx;
    struct inference *f = r->inference;
    pthread_mutex_lock(&f->lock);
    r->done = true;
    if (!f->some_posted) {
        f->some_posted = true;
        executor_post(f->owner->executor, &f->some);
    }
    pthread_mutex_unlock(&f->lock);
    on_done(f, result);
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
                                     .words = q->words,
                                     .speed = q->speed,
                                     .volume = q->volume,
                                     .whole = q->whole,
                                     .deadline_ns = r->deadline_ns,
                                     .priority = who.priority,
                                     .client = who.client,
                                     .weight = who.weight,
                                     .held = true,
                                     .done = on_done,
                                     .done_ctx = f};
}

/* The text of token ids, in the request's arena: the model tokenizes it again. */
static int text_of_ids(struct inference *f, const struct request_input *in,
                       struct shoal_infer_opts *o, struct err *e)
{
    struct shoal_engine *en = registry_engine(f->model);
    struct shoal_engine_info info = {.size = sizeof(info)};
    char *text = NULL;
    size_t n = 0;
    shoal_engine_info(en, &info);
    for (uint32_t i = 0; i < in->n_ids; i++)
        if (in->ids[i] < 0 || (uint32_t)in->ids[i] >= info.n_vocab)
            return err_set(e, SHOAL_EINVAL, "token %d is not in the vocabulary of %u tokens",
                           in->ids[i], info.n_vocab);
    int rc = shoal_detokenize(en, in->ids, in->n_ids, 0, &text, &n, e);
    if (rc == 0) {
        o->text = request_copy(f->request, text, n);
        o->text_bytes = n;
        rc = request_rc(f->request) < 0 ? err_set(e, SHOAL_ENOMEM, "out of memory") : 0;
    }
    shoal_free(text);
    return rc;
}

static int submit_one(struct inference *f, struct shoal_infer_opts *o, uint32_t i, struct err *e)
{
    const struct request_input *in = &f->request->infer.inputs[i];
    int rc = 0;
    if (f->ready) {
        f->ready[i].inference = f;
        o->done = on_ready;
        o->done_ctx = &f->ready[i];
    }
    if (o->kind == SHOAL_KIND_RERANK) {
        o->document = in->text;
        o->document_bytes = in->text_bytes;
    } else {
        o->text = in->text;
        o->text_bytes = in->text_bytes;
        o->values = in->values;
        o->n_values = in->n_values;
        o->samples = in->samples;
        o->n_samples = in->n_samples;
        o->part = in->part;
        o->image = in->image;
        o->image_bytes = in->image_bytes;
        if (f->rows) /* the model reads any number of values: an input is one row */
            o->n_columns = in->n_values;
        if (in->ids)
            rc = text_of_ids(f, in, o, e);
    }
    return rc < 0 ? rc : shoal_infer_submit(registry_engine(f->model), o, &f->tasks[i], e);
}

/* With the lock: whether the next input may be submitted; then it is counted. */
static bool take_next(struct inference *f)
{
    if (f->stopped || f->next == f->request->infer.n_inputs || f->n_running >= MAX_AHEAD)
        return false;
    f->n_running++;
    return true;
}

/* Submits as many inputs as the engine may have at a time.  f->submitting is set. */
static void submit(struct inference *f, bool on_owner)
{
    struct shoal_infer_opts o = options_of(f);
    struct err e = {0};
    pthread_mutex_lock(&f->lock);
    while (take_next(f)) {
        uint32_t i = f->next;
        pthread_mutex_unlock(&f->lock);
        int rc = submit_one(f, &o, i, &e);
        pthread_mutex_lock(&f->lock);
        if (rc == 0) {
            f->next++;
            continue;
        }
        f->n_running--;
        if (rc == SHOAL_EBUSY && f->n_running > 0)
            break; /* the queue is full: retry when one of ours ends */
        f->rc = err_set(&f->error, rc, "%s", e.code ? e.msg : err_text(rc));
        f->stopped = true;
    }
    pthread_mutex_unlock(&f->lock);
    if (on_owner)
        flow_wake_later(f->owner, f->model);
    else
        shoal_engine_wake(registry_engine(f->model));
    pthread_mutex_lock(&f->lock);
    f->submitting = false;
    if (f->stopped)
        cancel_tasks(f);
    if (is_over(f)) {
        executor_post(f->owner->executor, &f->wake);
    } else if (!f->stopped && f->n_running == 0) { /* all were done before the flag was cleared */
        f->submitting = true;
        executor_post(f->owner->executor, &f->more);
    }
    pthread_mutex_unlock(&f->lock);
}

static void submit_on_pool(struct pool_task *t)
{
    submit(EXECUTOR_OF(t, struct inference, pool_task), false);
}

/* Submits here if that is cheaper than a thread; otherwise on the pool. */
static void begin_submit(struct inference *f)
{
    struct pool *pool = f->owner->flow->pool;
    const struct request *r = f->request;
    bool small = r->input_bytes <= INLINE_BYTES && r->infer.n_inputs <= INLINE_INPUTS;
    for (uint32_t i = 0; small && i < r->infer.n_inputs; i++)
        small = !r->infer.inputs[i].image; /* a small file may be a large image */
    if (pool && !small) {
        f->pool_task.fn = submit_on_pool;
        if (pool_submit(pool, &f->pool_task) == 0)
            return;
        pthread_mutex_lock(&f->lock);
        f->rc = err_set(&f->error, SHOAL_EBUSY, "too many long inputs are waiting");
        f->stopped = true;
        pthread_mutex_unlock(&f->lock);
    }
    submit(f, true);
}

static void on_more(struct executor_task *t)
{
    begin_submit(EXECUTOR_OF(t, struct inference, more));
}

static bool reads_rows(const struct inference *f)
{
    struct shoal_engine_info info = {.size = sizeof(info)};
    const struct request_infer *q = &f->request->infer;
    if (q->kind != SHOAL_KIND_SCORE || q->n_columns > 0)
        return false;
    shoal_engine_info(registry_engine(f->model), &info);
    return info.dim == 0;
}

static void on_failed(struct acquire *a, const struct failure *why)
{
    send_failure(EXECUTOR_OF(a, struct inference, acquire), why);
}

static void on_model(struct acquire *a, struct registry_model *m)
{
    struct inference *f = EXECUTOR_OF(a, struct inference, acquire);
    struct request *r = f->request;
    struct failure why;
    if (!m) {
        inference_close(f);
        return;
    }
    f->model = m;
    counter_add(&m->stats.requests, 1);
    atomic_fetch_add_explicit(&m->stats.in_flight, 1, memory_order_relaxed);
    energy_account_begin(f->owner->flow->energy, &f->energy);
    const struct sink_start start = {
        .model = m->name, .version = registry_identity(m)->version, .sum = registry_sum(m)};
    f->sink->ops->start(f->sink, &start);
    f->tasks = arena_zalloc_n(&r->arena, r->infer.n_inputs, sizeof(struct shoal_task *));
    if (is_calibrated(f))
        f->calibrated = arena_zalloc_n(&r->arena, r->infer.n_inputs, sizeof(*f->calibrated));
    if (r->streams && r->infer.n_inputs > 1) /* without memory for it: all at the end */
        f->ready = arena_zalloc_n(&r->arena, r->infer.n_inputs, sizeof(*f->ready));
    f->submitting = true;
    f->rows = reads_rows(f);
    if (f->tasks) {
        begin_submit(f);
        return;
    }
    failure_of(&why, SHOAL_ENOMEM, "out of memory");
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
    f->more.fn = on_more;
    f->some.fn = on_some;
    pthread_mutex_init(&f->lock, NULL);
    s->job = &f->job;
    o->n_jobs++;
    f->acquire.owner = o;
    f->acquire.ready = on_model;
    f->acquire.failed = on_failed;
    f->acquire.version = r->version;
    f->acquire.epoch = r->epoch;
    f->acquire.may_be_old = r->may_be_old;
    f->acquire.key = request_key(r);
    acquire_model(&f->acquire, r->model, r->infer.kind);
}
