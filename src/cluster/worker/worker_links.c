/* worker_links.c - see worker_links.h. */
#include "cluster/worker/worker_links.h"

#include <stdio.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "cluster/relay.h"
#include "cluster/worker/worker_link.h"
#include "cluster/worker/workers.h"
#include "flow/acquire.h"
#include "flow/calibrated.h"

/* An isolated model of the registry, with its one process. */
struct place {
    struct replica_source source; /* first */
    struct worker_links *all;
    struct place *next;
    uint64_t serial, family; /* as in workers_conn */
    char name[128];          /* of the model */
    struct worker_link *link;
};

struct worker_links {
    struct dispatch dispatch; /* first */
    struct loop *loop;
    struct workers *workers;
    struct registry *registry;
    struct replica_counts *counts;
    uint32_t port, wait_ms;
    bool joined;
    struct place *places;
    struct executor_task arrived; /* connections to take */
};

/* A request, between the client and the relay. */
struct visit {
    struct flow_job job; /* first */
    struct sink inner;   /* of the relay */
    struct sink *sink;   /* the client's */
    struct worker_links *all;
    struct flow_owner *owner;
    struct request *request; /* until the relay takes it */
    struct acquire acquire;
    struct registry_model *model; /* held; NULL: not yet */
    bool quiet;                   /* the client only wants `closed` from now on */
    bool calibrated;              /* results get the confidences of the model's calibration */
    struct arena arena;           /* memory of such results */
};

static bool is_avoided(const struct replica_query *q, const struct place *p)
{
    for (size_t i = 0; i < q->n_avoid; i++)
        if (q->avoid[i] == worker_link_replica(p->link))
            return true;
    return false;
}

/* The model's own process, or another copy of it: that continues at once what a crash has
 * interrupted. */
static enum replica_found find(struct replica_source *s, const struct replica_query *q,
                               struct replica **out)
{
    const struct place *p = (const struct place *)(const void *)s, *x = p;
    enum registry_state state;
    *out = NULL;
    if (is_avoided(q, p) || !worker_link_ready(p->link))
        for (x = p->all->places; x; x = x->next)
            if (x->family == p->family && worker_link_ready(x->link) && !is_avoided(q, x))
                break;
    if (x) {
        *out = worker_link_replica(x->link);
        return REPLICA_FOUND;
    }
    if (is_avoided(q, p))
        return REPLICA_LATER;
    /* a failed one does not come back */
    return registry_state(p->all->registry, p->name, &state) && state != REGISTRY_FAILED
               ? REPLICA_LATER
               : REPLICA_NONE;
}

/* NULL: out of memory. */
static struct place *place_of(struct worker_links *m, uint64_t serial, uint64_t family,
                              const char *name)
{
    static const struct replica_source_ops ops = {find};
    struct place *p = m->places;
    struct err e;
    while (p && p->serial != serial)
        p = p->next;
    if (p || !(p = mem_zalloc(sizeof(*p))))
        return p;
    *p = (struct place){.source = {.ops = &ops, .counts = m->counts},
                        .all = m,
                        .next = m->places,
                        .serial = serial,
                        .family = family};
    snprintf(p->name, sizeof(p->name), "%s", name);
    if (worker_link_create(&p->link, m->loop, name, &e) < 0) {
        mem_free(p);
        return NULL;
    }
    m->places = p;
    return p;
}

/* ---- one request ---- */

static struct visit *visit_of(struct sink *inner)
{
    return EXECUTOR_OF(inner, struct visit, inner);
}

static void visit_close(struct visit *v)
{
    struct flow_owner *o = v->owner;
    struct sink *s = v->sink;
    if (v->model) {
        atomic_fetch_sub_explicit(&v->model->stats.in_flight, 1, memory_order_relaxed);
        registry_put(v->model);
    }
    s->job = NULL;
    s->ops->closed(s);
    if (v->request)
        flow_give_request(o, v->request);
    arena_fini(&v->arena);
    mem_free(v);
    o->n_jobs--;
}

static void on_start(struct sink *s, const struct sink_start *e)
{
    struct visit *v = visit_of(s);
    /* This process knows the model better than the worker. */
    const struct sink_start mine = {.model = v->model->name,
                                    .version = registry_identity(v->model)->version,
                                    .sum = registry_sum(v->model),
                                    .cache = SINK_CACHE_OFF,
                                    .tools = e->tools}; /* it has the template */
    v->sink->ops->start(v->sink, &mine);
}

static void on_prompt(struct sink *s, const struct sink_prompt *e)
{
    struct visit *v = visit_of(s);
    sink_tell_prompt(v->sink, e);
}

static void on_token(struct sink *s, const struct sink_token *e)
{
    struct visit *v = visit_of(s);
    v->sink->ops->token(v->sink, e);
}

static void on_result(struct sink *s, const struct sink_result *e)
{
    struct visit *v = visit_of(s);
    struct model_stats *m = &v->model->stats;
    const struct shoal_result *r =
        v->calibrated ? calibrated_result(&v->arena, e->result, &v->model->calibration) : e->result;
    const struct sink_result mine = {e->index, r, e->last};
    histogram_add(&m->queue, r->queue_ns);
    histogram_add(&m->total, r->total_ns);
    counter_add(&m->prompt_tokens, r->n_tokens);
    histogram_add_batch(&m->batch, r->code == 0 ? r->batch : 0);
    if (r->kind == SHOAL_KIND_CLASSIFY && r->code == 0)
        confidence_watch_add(&m->confidence, v->model->name, (double)r->confidence);
    v->quiet |= e->last;
    v->sink->ops->result(v->sink, &mine);
}

static void on_done(struct sink *s, const struct sink_done *e)
{
    struct visit *v = visit_of(s);
    struct model_stats *m = &v->model->stats;
    counter_add(&m->generated_tokens, e->generated_tokens);
    histogram_add(&m->queue, e->queue_ns);
    histogram_add(&m->total, e->total_ns);
    if (e->generated_tokens > 0 && e->first_token_ns > 0)
        histogram_add(&m->first_token, e->first_token_ns);
    if (e->generated_tokens > 1 && e->total_ns > e->first_token_ns)
        histogram_add(&m->per_token, (e->total_ns - e->first_token_ns) / (e->generated_tokens - 1));
    if (e->last)
        counter_add(&m->prompt_tokens, e->usage.prompt_tokens);
    v->quiet |= e->last;
    v->sink->ops->done(v->sink, e);
}

static void on_fail(struct sink *s, const struct failure *f)
{
    struct visit *v = visit_of(s);
    counter_add(&v->model->stats.errors, 1);
    v->quiet = true;
    v->sink->ops->fail(v->sink, f);
}

static void on_closed(struct sink *s)
{
    visit_close(visit_of(s));
}

static void on_flush(struct sink *s)
{
    struct visit *v = visit_of(s);
    sink_flush(v->sink);
}

static bool on_full(struct sink *s)
{
    struct visit *v = visit_of(s);
    return sink_is_full(v->sink);
}

static void on_cancel(struct flow_job *j)
{
    struct visit *v = (struct visit *)(void *)j;
    if (!v->quiet && v->model)
        counter_add(&v->model->stats.cancelled, 1);
    v->quiet = true;
    if (v->model)
        flow_cancel(&v->inner);
    else
        acquire_cancel(&v->acquire); /* ready still comes */
}

static void on_resume(struct flow_job *j)
{
    struct visit *v = (struct visit *)(void *)j;
    if (v->model)
        flow_resume(&v->inner);
}

static void on_refused(struct acquire *a, const struct failure *f)
{
    struct visit *v = EXECUTOR_OF(a, struct visit, acquire);
    if (v->quiet)
        return;
    v->quiet = true;
    v->sink->ops->fail(v->sink, f);
}

static void on_ready(struct acquire *a, struct registry_model *m)
{
    struct visit *v = EXECUTOR_OF(a, struct visit, acquire);
    struct request *r = v->request;
    if (!m) {
        visit_close(v);
        return;
    }
    struct place *p = place_of(v->all, m->slot->serial, m->slot->family, m->name);
    if (!p) {
        struct failure f;
        failure_of(&f, SHOAL_ENOMEM, "out of memory");
        on_refused(a, &f);
        registry_put(m);
        visit_close(v);
        return;
    }
    v->model = m;
    v->request = NULL;
    counter_add(&m->stats.requests, 1);
    atomic_fetch_add_explicit(&m->stats.in_flight, 1, memory_order_relaxed);
    r->shares_cache |= m->slot->spec.shares_cache; /* the worker does not know */
    r->model = NULL;                               /* the worker has one */
    r->version = NULL;                             /* acquire has checked it */
    if (r->kind == REQUEST_INFER && !r->infer.labels) {
        r->infer.labels = m->labels;
        v->calibrated = r->infer.kind == SHOAL_KIND_CLASSIFY && m->calibration.temperature > 0;
    }
    const struct relay_opts opts = {.source = &p->source, .wait_ms = v->all->wait_ms};
    relay_run(&opts, v->owner, r, &v->inner);
}

static enum shoal_kind kind_of(const struct request *r)
{
    return r->kind == REQUEST_INFER    ? r->infer.kind
           : r->kind == REQUEST_TOKENS ? request_tokens_kind(&r->tokens)
                                       : SHOAL_KIND_GENERATE;
}

static bool run(struct dispatch *d, struct flow_owner *o, struct request *r, struct sink *s)
{
    static const struct flow_job_ops job_ops = {on_cancel, on_resume};
    static const struct sink_ops ops = {.start = on_start,
                                        .prompt = on_prompt,
                                        .token = on_token,
                                        .result = on_result,
                                        .done = on_done,
                                        .fail = on_fail,
                                        .closed = on_closed,
                                        .flush = on_flush,
                                        .full = on_full};
    struct worker_links *m = (struct worker_links *)(void *)d;
    if (r->kind == REQUEST_ASK || !registry_is_apart(m->registry, r->model, kind_of(r)))
        return false;
    struct visit *v = mem_zalloc(sizeof(*v));
    if (!v) {
        flow_refuse_nomem(o, r, s);
        return true;
    }
    arena_init(&v->arena, REQUEST_MAX_BYTES);
    v->job.ops = &job_ops;
    v->inner.ops = &ops;
    v->sink = s;
    v->all = m;
    v->owner = o;
    v->request = r;
    v->acquire.owner = o;
    v->acquire.ready = on_ready;
    v->acquire.failed = on_refused;
    v->acquire.any = true;
    v->acquire.version = r->version;
    v->acquire.epoch = r->epoch;
    v->acquire.key = request_key(r);
    v->acquire.beginnings = r->beginnings;
    v->acquire.n_beginnings = r->n_beginnings;
    s->job = &v->job;
    o->n_jobs++;
    acquire_model(&v->acquire, r->model, kind_of(r));
    return true;
}

/* ---- connections ---- */

static void on_arrived(struct executor_task *t)
{
    struct worker_links *m = EXECUTOR_OF(t, struct worker_links, arrived);
    struct workers_conn c;
    struct err e = {0};
    while (workers_take(m->workers, m->port, &c)) {
        struct place *p = place_of(m, c.serial, c.family, c.name);
        int rc = p ? worker_link_connect(p->link, &c, &e)
                   : err_set(&e, SHOAL_ENOMEM, "out of memory for a worker");
        if (rc < 0)
            log_error("worker", "cannot use the worker of '%s': %s", c.name, e.msg);
        if (!p)
            workers_conn_close(&c);
    }
}

/* ---- lifetime ---- */

int worker_links_create(struct worker_links **out, struct loop *l, struct workers *w,
                        struct registry *r, uint32_t wait_ms, struct replica_counts *counts,
                        struct err *e)
{
    static const struct dispatch_ops ops = {.run = run};
    struct worker_links *m = mem_zalloc(sizeof(*m));
    *out = NULL;
    if (!m)
        return err_set(e, SHOAL_ENOMEM, "out of memory for workers");
    m->dispatch.ops = &ops;
    m->loop = l;
    m->workers = w;
    m->registry = r;
    m->wait_ms = wait_ms;
    m->counts = counts;
    m->arrived.fn = on_arrived;
    int rc = workers_join(w, loop_executor(l), &m->arrived, &m->port, e);
    m->joined = rc == 0;
    if (rc < 0) {
        worker_links_destroy(m);
        return rc;
    }
    *out = m;
    return 0;
}

void worker_links_destroy(struct worker_links *m)
{
    if (!m)
        return;
    if (m->joined) {
        workers_leave(m->workers, m->port);
        loop_flush(m->loop); /* `arrived` may have been posted */
    }
    while (m->places) {
        struct place *p = m->places;
        m->places = p->next;
        worker_link_destroy(p->link);
        mem_free(p);
    }
    mem_free(m);
}

struct dispatch *worker_links_dispatch(struct worker_links *m)
{
    return &m->dispatch;
}
