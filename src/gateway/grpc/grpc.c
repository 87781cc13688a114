/* grpc.c - see grpc.h. */
#include "gateway/grpc/grpc.h"

#include <string.h>

#include "base/mem.h"
#include "flow/pool.h"
#include "flow/stages.h"
#include "gateway/api/openai/speech.h"
#include "gateway/grpc/grpc_answer.h"
#include "gateway/grpc/grpc_call.h"
#include "gateway/grpc/grpc_read.h"
#include "gateway/call/door.h"
#include "gateway/grpc/reflection.h"

#define MAX_MESSAGE_BYTES ((size_t)64 << 20)
#define MAX_BUDGET_MS 86400000.0
#define INLINE_BYTES ((size_t)64 << 10)       /* larger messages are read on the pool, */
#define INLINE_PACKED_BYTES ((size_t)4 << 10) /* compressed ones above this */
/* limit of a reflection request: far below a stream's window */
#define MAX_QUESTION_BYTES ((size_t)64 << 10)
#define OUT_BYTES ((size_t)128 << 10) /* bytes that wait for the client before we hold back */

/* ---- shoal.v1.Shoal ---- */

void grpc_fail(struct call *c, const struct call_error *e)
{
    const struct grpc_error g = {.status = grpc_status_of(e->status),
                                 .message = e->message,
                                 .reason = e->code,
                                 .field = e->param,
                                 .model = c->asked_model,
                                 .retry_s = e->retry_after_s};
    if (grpc_call_has_type(c->req))
        grpc_call_fail(c, &g);
    else
        call_send_error(c, e);
}

/* A message on its way into a request. */
struct grpc_reading {
    struct call *call;
    struct request *request;
    const struct grpc_method *method;
    struct grpc_frame frame; /* as it came */
    size_t max_bytes, max_fields;
    /* its outcome */
    uint32_t top;
    int rc;
    struct fields_error error;
    /* on the pool */
    struct pool_task pool_task;
    struct executor_task finished;
    char *body; /* NULL: the message is small, and read on the loop */
};

/* Any thread. */
static void read_message(struct grpc_reading *g)
{
    struct grpc_frame *f = &g->frame;
    struct buf plain;
    buf_init(&plain, MAX_MESSAGE_BYTES);
    g->rc = grpc_frame_unpack(f, &plain, g->max_bytes);
    if (g->rc >= 0 && g->body && !call_count_input(g->call, plain.len))
        g->rc = SHOAL_EBUSY;
    if (g->rc >= 0)
        g->rc = grpc_read(g->request, &g->top, g->method, f->p, f->n, g->max_fields, &g->error);
    buf_fini(&plain);
}

static void refuse_full(struct call *c)
{
    call_refuse(c, GW_REFUSED_BUSY, 503, 1,
                "the message does not fit into the memory for clients (limits.buffers, "
                "limits.client_buffers): try again later");
}

/* Runs the request, or answers with the error; takes the request. */
static void run(struct grpc_reading *g)
{
    struct call *c = g->call;
    struct request *r = g->request;
    bool ok = false;
    c->asked_model = r->model;
    if (!c->req)
        g->rc = SHOAL_ECANCELLED;
    else if (g->rc == SHOAL_EINVAL)
        call_fail_fields(c, &g->error);
    else if (g->rc == SHOAL_EBUSY)
        refuse_full(c);
    else if (g->rc < 0)
        grpc_call_fail_frame(c, g->rc);
    else
        ok = true;
    if (ok && g->method->kind == SHOAL_KIND_SPEAK)
        ok = speech_charge(c, r);
    if (!ok)
        flow_give_request(&c->gl->flow, r);
    else if (grpc_answer_open(c, g->method, r, g->top)) {
        r->streams = g->method->stream;
        stages_run(&c->gl->flow, r, c->sink);
        return;
    }
    c->asked_model = NULL; /* it is freed with the request */
}

static void job_free(struct grpc_reading *g)
{
    struct call *c = g->call;
    mem_free(g->body);
    mem_free(g);
    c->gl->flow.n_jobs--;
    call_release(c);
}

static void on_finished(struct executor_task *t)
{
    struct grpc_reading *g = LOOP_OF(t, struct grpc_reading, finished);
    run(g);
    job_free(g);
}

static void on_pool(struct pool_task *t)
{
    struct grpc_reading *g = LOOP_OF(t, struct grpc_reading, pool_task);
    read_message(g);
    executor_post(g->call->gl->flow.executor, &g->finished);
}

/* Reads a large message on the pool.  False: the call is answered, and the request is not taken. */
static bool start_job(const struct grpc_reading *from)
{
    struct call *c = from->call;
    size_t n = c->req->body_bytes;
    struct grpc_reading *g = mem_alloc(sizeof(*g));
    char *body = g ? http_take_body(c->req) : NULL;
    if (!body) {
        mem_free(g);
        grpc_call_fail_frame(c, SHOAL_ENOMEM);
        return false;
    }
    *g = *from; /* its frame points into the body, which does not move */
    g->body = body;
    g->pool_task.fn = on_pool;
    g->finished.fn = on_finished;
    call_hold(c);
    c->gl->flow.n_jobs++;
    if (call_count_input(c, n) && pool_submit(c->gl->gw->pool, &g->pool_task) == 0)
        return true;
    refuse_full(c);
    job_free(g);
    return false;
}

void grpc_handle(struct call *c)
{
    const struct grpc_method *m = grpc_method(c->req->path + strlen("/shoal.v1.Shoal/"));
    double ms;
    struct grpc_reading g = {.call = c,
                             .method = m,
                             .max_bytes = c->gl->config->limits.max_body_bytes,
                             .max_fields = c->gl->config->max_values};
    if (!grpc_call_is(c, m ? m->name : "/") || !grpc_call_find_whole(c, &g.frame) ||
        !grpc_call_timeout_ms(c, &ms))
        return;
    if (ms > 0)
        door_set_budget(c, ms < MAX_BUDGET_MS ? ms : MAX_BUDGET_MS);
    g.request = call_request(c);
    if (!g.request)
        return;
    if (g.frame.n <= (g.frame.packed ? INLINE_PACKED_BYTES : INLINE_BYTES)) {
        read_message(&g);
        run(&g);
    } else if (!start_job(&g)) {
        flow_give_request(&c->gl->flow, g.request);
    }
}

/* ---- reflection ---- */

/* Answers pending requests, as long as the client reads. */
static void answer_questions(struct call *c)
{
    struct buf plain, out;
    size_t used = 0;
    int rc = 1;
    if (!c->req)
        return;
    call_hold(c);
    buf_init(&plain, 2 * MAX_QUESTION_BYTES);
    buf_init(&out, MAX_MESSAGE_BYTES);
    bool room;
    while ((room = http_queued(c->req) <= OUT_BYTES)) {
        struct grpc_frame f;
        rc = grpc_call_read(c, &f, &plain, used, MAX_QUESTION_BYTES);
        if (rc <= 0)
            break;
        used += f.bytes;
        buf_clear(&out);
        rc = reflection_answer(&out, f.p, f.n);
        if (rc < 0) {
            grpc_call_fail_frame(c, rc);
            break;
        }
        grpc_call_send(c, &out);
    }
    buf_fini(&plain);
    buf_fini(&out);
    if (rc >= 0 && room && !c->req->more) { /* the client has no more questions */
        if (used == c->req->body_bytes)
            grpc_call_finish(c);
        else
            grpc_call_fail_frame(c, SHOAL_EFORMAT);
    } else if (rc >= 0) {
        http_take(c->req, used);
    }
    call_release(c);
}

void grpc_reflection(struct call *c)
{
    if (!grpc_call_is(c, "ServerReflectionInfo"))
        return;
    grpc_call_begin(c);
    c->arrived = answer_questions;
    c->resume = answer_questions;
    answer_questions(c);
}
