/* grpc.c - see grpc.h. */
#include "gateway/grpc/grpc.h"

#include <string.h>

#include "flow/run.h"
#include "gateway/grpc/grpc_answer.h"
#include "gateway/grpc/grpc_call.h"
#include "gateway/grpc/grpc_read.h"
#include "gateway/door.h"
#include "gateway/grpc/reflection.h"

#define MAX_MESSAGE_BYTES ((size_t)64 << 20)
#define MAX_BUDGET_MS 86400000.0
#define MAX_QUESTION_BYTES ((size_t)64 << 10) /* of reflection: far below a stream's window */
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

/* The message into the request; false: the call is answered. */
static bool read_message(struct call *c, struct request *r, uint32_t *top,
                         const struct grpc_method *m)
{
    struct fields_error e = {{0}, {0}, NULL};
    struct grpc_frame f;
    struct buf plain;
    buf_init(&plain, MAX_MESSAGE_BYTES);
    bool ok = grpc_call_read_whole(c, &f, &plain);
    int rc = ok ? grpc_read(r, top, m, f.p, f.n, c->gl->config->max_values, &e) : 0;
    buf_fini(&plain);
    c->asked_model = r->model;
    if (rc == SHOAL_EINVAL)
        call_fail_fields(c, &e);
    else if (rc < 0)
        grpc_call_fail_frame(c, rc);
    return ok && rc == 0;
}

void grpc_handle(struct call *c)
{
    const struct grpc_method *m = grpc_method(c->req->path + strlen("/shoal.v1.Shoal/"));
    double ms = grpc_call_timeout_ms(http_header(c->req, "grpc-timeout"));
    if (!grpc_call_is(c, m ? m->name : "/")) /* no method has that name */
        return;
    if (ms > 0)
        door_set_budget(c, ms < MAX_BUDGET_MS ? ms : MAX_BUDGET_MS);
    struct request *r = call_request(c);
    uint32_t top = 0;
    if (!r)
        return;
    bool ok = read_message(c, r, &top, m);
    struct grpc_answer *a = ok ? grpc_answer_open(c, m, r, top) : NULL;
    if (ok && !a)
        grpc_call_fail_frame(c, SHOAL_ENOMEM);
    if (!a) {
        c->asked_model = NULL; /* it goes with the request */
        flow_give_request(&c->gl->flow, r);
    } else {
        flow_run(&c->gl->flow, r, &a->sink);
    }
}

/* ---- reflection ---- */

/* Answers what has come, as long as the client reads what it gets. */
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
