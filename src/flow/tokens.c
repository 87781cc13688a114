/* tokens.c - see tokens.h. */
#include "flow/tokens.h"

#include "base/mem.h"
#include "flow/acquire.h"
#include "flow/pool.h"

#define INLINE_BYTES ((size_t)8 << 10) /* longer ones go to the pool */

struct tokens {
    struct flow_job job; /* first */
    struct acquire acquire;
    struct pool_task pool_task;
    struct executor_task finished;
    struct flow_owner *owner;
    struct request *request;
    struct sink *sink;
    struct registry_model *model; /* held; NULL: not yet */
    bool quiet;                   /* the client only wants `closed` from now on */
    /* its outcome */
    int32_t *ids;
    size_t n_ids;
    char *text;
    size_t text_bytes;
    int rc;
    struct err error;
};

static void tokens_close(struct tokens *t)
{
    struct flow_owner *o = t->owner;
    struct sink *s = t->sink;
    if (t->model)
        registry_put(t->model);
    s->job = NULL;
    s->ops->closed(s);
    flow_give_request(o, t->request);
    shoal_free(t->ids);
    shoal_free(t->text);
    mem_free(t);
    o->n_jobs--;
}

static void tell(struct tokens *t, const struct failure *f)
{
    if (t->quiet)
        return;
    t->quiet = true;
    t->sink->ops->fail(t->sink, f);
}

/* Any thread. */
static void work(struct tokens *t)
{
    const struct request_tokens *q = &t->request->tokens;
    const struct shoal_engine *en = registry_engine(t->model);
    if (q->metadata)
        return;
    t->rc =
        q->decode
            ? shoal_detokenize(en, q->ids, q->n_ids, q->flags, &t->text, &t->text_bytes, &t->error)
            : shoal_tokenize(en, q->text, q->text_bytes, q->flags, &t->ids, &t->n_ids, &t->error);
}

static void send_tokens(struct tokens *t)
{
    const struct shoal_engine *en = registry_engine(t->model);
    struct sink *s = t->sink;
    for (size_t i = 0; i < t->n_ids && !t->quiet; i++) {
        struct sink_token e = {.token = t->ids[i]};
        e.text = shoal_token_text(en, e.token, SHOAL_TEXT_SPECIAL, &e.text_bytes);
        s->ops->token(s, &e);
    }
    if (t->request->tokens.metadata) {
        struct sink_token e = {.token = -1};
        e.text = shoal_engine_metadata(en, t->request->tokens.metadata, &e.text_bytes);
        if (e.text)
            s->ops->token(s, &e);
        return;
    }
    if (t->request->tokens.decode && !t->quiet) {
        const struct sink_token e = {.token = -1, .text = t->text, .text_bytes = t->text_bytes};
        s->ops->token(s, &e);
    }
}

static void answer(struct tokens *t)
{
    struct sink *s = t->sink;
    const struct sink_start start = {.model = t->model->name,
                                     .version = registry_identity(t->model)->version,
                                     .sum = registry_sum(t->model)};
    const struct sink_done done = {
        .finish = SHOAL_FINISH_STOP, .prompt_tokens = (uint32_t)t->n_ids, .last = true};
    if (t->rc < 0) {
        struct failure f;
        failure_of_model(&f, t->rc, t->error.msg);
        tell(t, &f);
    }
    if (!t->quiet) {
        s->ops->start(s, &start);
        send_tokens(t);
    }
    if (!t->quiet) {
        t->quiet = true;
        s->ops->done(s, &done);
        sink_flush(s);
    }
    tokens_close(t);
}

static void on_finished(struct executor_task *x)
{
    answer(EXECUTOR_OF(x, struct tokens, finished));
}

static void on_pool(struct pool_task *x)
{
    struct tokens *t = EXECUTOR_OF(x, struct tokens, pool_task);
    work(t);
    executor_post(t->owner->executor, &t->finished);
}

static void on_model(struct acquire *a, struct registry_model *m)
{
    struct tokens *t = EXECUTOR_OF(a, struct tokens, acquire);
    const struct request_tokens *q = &t->request->tokens;
    struct pool *pool = t->owner->flow->pool;
    t->model = m;
    if (!m) {
        tokens_close(t);
    } else if (!pool || q->text_bytes + q->n_ids * sizeof(int32_t) <= INLINE_BYTES) {
        work(t);
        answer(t);
    } else if (pool_submit(pool, &t->pool_task) < 0) {
        struct failure f;
        failure_set(&f, FAILURE_BUSY, SHOAL_EBUSY, NULL, "overloaded",
                    "too many long texts are waiting");
        f.retry_after_s = 1;
        tell(t, &f);
        tokens_close(t);
    }
}

static void on_failed(struct acquire *a, const struct failure *f)
{
    tell(EXECUTOR_OF(a, struct tokens, acquire), f);
}

static void on_cancel(struct flow_job *j)
{
    struct tokens *t = (struct tokens *)(void *)j;
    t->quiet = true;
    if (!t->model)
        acquire_cancel(&t->acquire); /* on_model still comes */
}

static void on_resume(struct flow_job *j)
{
    (void)j; /* all events come at once */
}

void tokens_run(struct flow_owner *o, struct request *r, struct sink *s)
{
    static const struct flow_job_ops ops = {on_cancel, on_resume};
    struct tokens *t = mem_zalloc(sizeof(*t));
    if (!t) {
        flow_refuse_nomem(o, r, s);
        return;
    }
    t->job.ops = &ops;
    t->owner = o;
    t->request = r;
    t->sink = s;
    t->pool_task.fn = on_pool;
    t->finished.fn = on_finished;
    t->acquire.owner = o;
    t->acquire.ready = on_model;
    t->acquire.failed = on_failed;
    t->acquire.version = r->version;
    t->acquire.key = request_key(r);
    t->acquire.epoch = r->epoch;
    t->acquire.may_be_old = r->may_be_old;
    s->job = &t->job;
    o->n_jobs++;
    acquire_model(&t->acquire, r->model, request_tokens_kind(&r->tokens));
}
