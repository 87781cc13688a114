/* library_flow.c - shoal_flow_* of include/shoal/shoal_flow.h: flows for programs that link the
 * library.  A request is a sink (flow/sink.h) on the site's thread; what the steps did is copied
 * into its own arena before the run is freed. */
#include "shoal/shoal_flow.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/arg.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/sized.h"
#include "flow/stages.h"
#include "library/library_site.h"
#include "pipeline/graph/graph_kind.h"
#include "pipeline/pipeline_report.h"
#include "wire/value_json.h"

#define MAX_TEXT_BYTES ((size_t)4 << 20)
#define MAX_OUTPUT_BYTES ((size_t)32 << 20)
#define MAX_ARENA_BYTES ((size_t)64 << 20)

struct shoal_flow {
    struct library_site site;
};

struct shoal_flow_request {
    struct sink sink; /* first */
    struct shoal_flow *flow;
    _Atomic uint32_t refs; /* the caller's, one until done was called, one of a queued cancel */
    _Atomic bool cancelled;
    struct executor_task start, cancel;
    struct arena arena; /* the input, and the result */
    const char *text;
    const struct value *input; /* NULL: none */
    uint64_t submitted_ns, deadline_ns;
    void (*done_fn)(void *ctx, const struct shoal_flow_result *result);
    void *done_ctx;
    /* the site's thread, until done */
    bool open;                   /* run, and not closed yet */
    struct buf said;             /* the text so far */
    struct buf json, json_steps; /* without and with the steps */
    struct shoal_flow_result result;
    pthread_mutex_t lock; /* guards done */
    pthread_cond_t finished;
    bool done;
};

int shoal_flow_open(struct shoal_flow **out, const char *path, const struct shoal_flow_opts *opts,
                    struct err *e)
{
    struct shoal_flow_opts o = {.size = sizeof(o)};
    struct err own;
    if (!e)
        e = &own;
    int rc = arg_check(out, "out", e);
    if (rc < 0)
        return rc;
    *out = NULL;
    rc = arg_check(path, "path", e);
    if (rc == 0 && opts)
        rc = sized_read(&o, sizeof(o), opts, "shoal_flow_opts", e);
    if (rc < 0)
        return rc;
    struct shoal_flow *f = mem_zalloc(sizeof(*f));
    if (!f)
        return err_set(e, SHOAL_ENOMEM, "out of memory for a flow");
    rc = library_site_open(&f->site, path, &o, e);
    if (rc < 0) {
        shoal_flow_close(f);
        return rc;
    }
    *out = f;
    return 0;
}

void shoal_flow_close(struct shoal_flow *f)
{
    if (!f)
        return;
    library_site_close(&f->site);
    mem_free(f);
}

/* ---- a request and its result ---- */

static void unref(struct shoal_flow_request *r)
{
    /* acq_rel: whoever frees sees everything the other side did */
    if (atomic_fetch_sub_explicit(&r->refs, 1, memory_order_acq_rel) != 1)
        return;
    buf_fini(&r->said);
    buf_fini(&r->json);
    buf_fini(&r->json_steps);
    arena_fini(&r->arena);
    pthread_mutex_destroy(&r->lock);
    pthread_cond_destroy(&r->finished);
    mem_free(r);
}

static struct shoal_flow_request *request_of(struct sink *s)
{
    return (struct shoal_flow_request *)(void *)s; /* its first member */
}

static void fail(struct shoal_flow_request *r, int code, const char *message)
{
    const char *copy = arena_copy(&r->arena, message, strlen(message) + 1);
    r->result = (struct shoal_flow_result){.size = sizeof(r->result),
                                           .code = code,
                                           .message = copy ? copy : "out of memory",
                                           .text = "",
                                           .output_json = ""};
}

/* NULL: out of memory. */
static const char *json_of(struct shoal_flow_request *r, const struct value *v)
{
    struct buf b;
    buf_init(&b, MAX_OUTPUT_BYTES);
    struct json_out j = json_out_make(&b);
    value_json_put(&j, v);
    const char *copy = b.rc < 0 ? NULL : arena_copy(&r->arena, buf_str(&b), b.len + 1);
    buf_fini(&b);
    return copy;
}

static enum shoal_flow_state state_of(enum pipeline_state s)
{
    switch (s) {
    case PIPELINE_UNUSED:
        return SHOAL_FLOW_UNUSED;
    case PIPELINE_DONE:
        return SHOAL_FLOW_DONE;
    case PIPELINE_SKIPPED:
        return SHOAL_FLOW_SKIPPED;
    case PIPELINE_FAILED:
        return SHOAL_FLOW_FAILED;
    default:
        return SHOAL_FLOW_BROKEN;
    }
}

static bool copy_step(struct shoal_flow_request *r, struct shoal_flow_step *to,
                      const struct pipeline_report_step *from)
{
    const bool done = from->state == PIPELINE_DONE;
    *to = (struct shoal_flow_step){
        .name = arena_copy(&r->arena, from->name, strlen(from->name) + 1),
        .kind = graph_kinds[from->kind].name,
        .state = state_of(from->state),
        .degraded = from->degraded,
        .why = arena_copy(&r->arena, from->why, strlen(from->why) + 1),
        .start_ns = from->start_ns,
        .ns = from->ns,
        .value_json = done ? json_of(r, &from->value) : "",
    };
    return to->name && to->why && to->value_json;
}

static void put_json(struct shoal_flow_request *r, struct buf *b, const struct pipeline_report *p,
                     bool explain)
{
    struct json_out j = json_out_make(b);
    json_out_object(&j);
    json_out_member_strn(&j, "text", buf_str(&r->said), r->said.len);
    pipeline_report_json(&j, p, explain);
    json_out_object_end(&j);
}

static void keep_result(struct shoal_flow_request *r, const struct pipeline_report *p)
{
    struct shoal_flow_step *steps = arena_zalloc_n(&r->arena, p->n_steps, sizeof(*steps));
    const char *output = json_of(r, &p->output);
    bool ok = steps && output && r->said.rc == 0;
    for (uint32_t i = 0; ok && i < p->n_steps; i++)
        ok = copy_step(r, &steps[i], &p->steps[i]);
    if (!ok) {
        fail(r, SHOAL_ENOMEM, "out of memory for the result of the flow");
        return;
    }
    put_json(r, &r->json, p, false);
    put_json(r, &r->json_steps, p, true); /* their rc is reported by shoal_flow_json */
    r->result = (struct shoal_flow_result){.size = sizeof(r->result),
                                           .message = "",
                                           .text = buf_str(&r->said),
                                           .text_bytes = r->said.len,
                                           .output_json = output,
                                           .degraded = p->degraded,
                                           .total_ns = p->total_ns,
                                           .steps = steps,
                                           .n_steps = p->n_steps};
}

static void finish(struct shoal_flow_request *r)
{
    r->open = false;
    if (r->result.size == 0)
        fail(r, SHOAL_ECANCELLED, "the request was cancelled");
    if (r->done_fn)
        r->done_fn(r->done_ctx, &r->result);
    r->flow->site.n_running--;
    pthread_mutex_lock(&r->lock);
    r->done = true;
    pthread_cond_broadcast(&r->finished);
    pthread_mutex_unlock(&r->lock);
    unref(r);
}

/* ---- its events ---- */

static void on_start(struct sink *s, const struct sink_start *e)
{
    (void)s;
    (void)e;
}

static void on_token(struct sink *s, const struct sink_token *e)
{
    buf_put(&request_of(s)->said, e->text, e->text_bytes);
}

static void on_done(struct sink *s, const struct sink_done *d)
{
    keep_result(request_of(s), d->report);
}

static void on_fail(struct sink *s, const struct failure *f)
{
    fail(request_of(s), f->code, f->message);
}

static void on_closed(struct sink *s)
{
    finish(request_of(s));
}

static const struct sink_ops ops = {
    .start = on_start, .token = on_token, .done = on_done, .fail = on_fail, .closed = on_closed};

/* ---- tasks of the site's thread ---- */

static void start(struct executor_task *t)
{
    struct shoal_flow_request *r = EXECUTOR_OF(t, struct shoal_flow_request, start);
    struct library_site *s = &r->flow->site;
    s->n_running++;
    /* acquire: as in shoal_flow_cancel */
    if (atomic_load_explicit(&r->cancelled, memory_order_acquire)) {
        finish(r);
        return;
    }
    struct request *q = flow_take_request(&s->owner);
    if (!q) {
        fail(r, SHOAL_ENOMEM, "out of memory for a request");
        finish(r);
        return;
    }
    q->kind = REQUEST_ASK;
    q->model = s->graph->name;
    q->received_ns = r->submitted_ns;
    q->deadline_ns = r->deadline_ns;
    q->input = r->input;
    q->ask.text = r->text;
    snprintf(q->id, sizeof(q->id), "flow-%llx", (unsigned long long)r->submitted_ns);
    r->open = true;
    stages_run(&s->owner, q, &r->sink);
}

static void cancel(struct executor_task *t)
{
    struct shoal_flow_request *r = EXECUTOR_OF(t, struct shoal_flow_request, cancel);
    if (r->open)
        flow_cancel(&r->sink);
    unref(r);
}

/* ---- the interface ---- */

static int check(const struct shoal_flow_request_opts *o, struct err *e)
{
    int rc = arg_check_n(o->text, o->text_bytes, "text", e);
    if (rc == 0)
        rc = arg_check_n(o->input_json, o->input_bytes, "input_json", e);
    if (rc < 0)
        return rc;
    if (o->text_bytes > MAX_TEXT_BYTES || o->input_bytes > MAX_TEXT_BYTES)
        return err_set(e, SHOAL_ELIMIT, "the text has %zu bytes, the input %zu, at most %zu each",
                       o->text_bytes, o->input_bytes, MAX_TEXT_BYTES);
    if (o->text && memchr(o->text, '\0', o->text_bytes))
        return err_set(e, SHOAL_EINVAL, "the text contains NUL, which is not allowed: remove it");
    return 0;
}

static int read_input(struct shoal_flow_request *r, const struct shoal_flow_request_opts *o,
                      struct err *e)
{
    char *text = arena_zalloc(&r->arena, o->text_bytes + 1);
    struct value *v = o->input_json ? arena_zalloc(&r->arena, sizeof(*v)) : NULL;
    if (!text || (o->input_json && !v))
        return err_set(e, SHOAL_ENOMEM, "out of memory for a request");
    if (o->text_bytes > 0)
        memcpy(text, o->text, o->text_bytes);
    r->text = text;
    r->input = v;
    if (v &&
        (value_json_read(v, &r->arena, o->input_json, o->input_bytes) < 0 || v->kind != VALUE_MAP))
        return err_set(e, SHOAL_EFORMAT, "input_json must be a JSON object");
    return 0;
}

int shoal_flow_submit(struct shoal_flow *f, const struct shoal_flow_request_opts *opts,
                      struct shoal_flow_request **request, struct err *e)
{
    struct shoal_flow_request_opts o;
    int rc = arg_check(request, "request", e);
    if (rc < 0)
        return rc;
    *request = NULL;
    rc = arg_check(f, "flow", e);
    if (rc == 0)
        rc = sized_read(&o, sizeof(o), opts, "shoal_flow_request_opts", e);
    if (rc == 0)
        rc = check(&o, e);
    if (rc < 0)
        return rc;
    struct shoal_flow_request *r = mem_zalloc(sizeof(*r));
    if (!r)
        return err_set(e, SHOAL_ENOMEM, "out of memory for a request");
    r->sink.ops = &ops;
    r->flow = f;
    atomic_init(&r->refs, 1);
    pthread_mutex_init(&r->lock, NULL);
    pthread_cond_init(&r->finished, NULL);
    arena_init(&r->arena, MAX_ARENA_BYTES);
    buf_init(&r->said, MAX_OUTPUT_BYTES);
    buf_init(&r->json, MAX_OUTPUT_BYTES);
    buf_init(&r->json_steps, MAX_OUTPUT_BYTES);
    r->submitted_ns = clock_ns();
    r->deadline_ns = o.deadline_ns;
    r->done_fn = o.done;
    r->done_ctx = o.done_ctx;
    r->start.fn = start;
    r->cancel.fn = cancel;
    rc = read_input(r, &o, e);
    if (rc < 0) {
        unref(r);
        return rc;
    }
    /* not shared with other threads yet */
    atomic_store_explicit(&r->refs, 2, memory_order_relaxed);
    *request = r;
    executor_post(&f->site.queue.executor, &r->start);
    return 0;
}

void shoal_flow_cancel(struct shoal_flow_request *r)
{
    /* acq_rel: only the first call posts the task */
    if (!r || atomic_exchange_explicit(&r->cancelled, true, memory_order_acq_rel))
        return;
    atomic_fetch_add_explicit(&r->refs, 1, memory_order_relaxed);
    executor_post(&r->flow->site.queue.executor, &r->cancel);
}

static bool is_done(const struct shoal_flow_request *r)
{
    pthread_mutex_t *lock = (pthread_mutex_t *)(uintptr_t)&r->lock;
    pthread_mutex_lock(lock);
    const bool done = r->done;
    pthread_mutex_unlock(lock);
    return done;
}

int shoal_flow_wait(struct shoal_flow_request *r)
{
    if (!r)
        return SHOAL_EINVAL;
    pthread_mutex_lock(&r->lock);
    while (!r->done)
        pthread_cond_wait(&r->finished, &r->lock);
    pthread_mutex_unlock(&r->lock);
    return r->result.code;
}

void shoal_flow_free(struct shoal_flow_request *r)
{
    if (!r)
        return;
    if (!is_done(r))
        shoal_flow_cancel(r);
    unref(r);
}

const struct shoal_flow_result *shoal_flow_result(const struct shoal_flow_request *r)
{
    return r ? &r->result : NULL;
}

int shoal_flow_json(const struct shoal_flow_request *r, unsigned flags, char **json, size_t *n,
                    struct err *e)
{
    if (n)
        *n = 0;
    int rc = arg_check(json, "json", e);
    if (rc < 0)
        return rc;
    *json = NULL;
    rc = arg_check(r, "request", e);
    if (rc < 0)
        return rc;
    const struct buf *b = flags & SHOAL_FLOW_EXPLAIN ? &r->json_steps : &r->json;
    if (r->result.code < 0)
        return err_set(e, r->result.code, "%s", r->result.message);
    if (b->rc < 0)
        return err_set(e, b->rc, "cannot write the result as JSON: %s", err_text(b->rc));
    char *copy = mem_alloc(b->len + 1);
    if (!copy)
        return err_set(e, SHOAL_ENOMEM, "out of memory for the result as JSON");
    memcpy(copy, b->data, b->len);
    copy[b->len] = '\0';
    *json = copy;
    if (n)
        *n = b->len;
    return 0;
}
