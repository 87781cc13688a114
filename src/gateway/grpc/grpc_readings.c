/* grpc_readings.c - see grpc_readings.h.
 *
 * Each message becomes a call of Score on its own exchange (struct http_req with our operations),
 * one after the other, and its output goes to the client unchanged. */
#include "gateway/grpc/grpc_readings.h"

#include <string.h>

#include <shoal/v1/shoal.pb-c.h>

#include "base/arena.h"
#include "base/mem.h"
#include "gateway/call/call.h"
#include "gateway/call/inner_call.h"
#include "gateway/call/door.h"
#include "gateway/grpc/grpc_call.h"
#include "wire/pb.h"

#define MAX_MESSAGE_BYTES ((size_t)512 << 10) /* below a stream's window, which is 1 MiB */
#define MAX_ANSWER_BYTES ((size_t)64 << 20)
#define OUT_BYTES ((size_t)128 << 10) /* pending output at which we stop reading */
#define MAX_HEADERS 6u

struct readings;

/* One message on its way. */
struct reading_call {
    struct http_req req; /* first */
    struct readings *readings;
    char *body;
    struct buf answer;
};

struct readings {
    struct call *call;         /* the stream; held */
    struct reading_call *busy; /* or NULL */
    struct buf defaults;       /* fields that messages need not repeat, as the start of a message */
    bool has_first, pumping;
    size_t used; /* consumed bytes of the body */
    struct http_header headers[MAX_HEADERS];
    size_t n_headers;
};

static void pump(struct readings *s);

static void drop(struct reading_call *m)
{
    buf_fini(&m->answer);
    mem_free(m->body);
    mem_free(m);
}

/* The stream has ended, or its client is gone. */
static void end(struct readings *s)
{
    struct call *c = s->call;
    if (!c)
        return;
    s->call = NULL;
    c->job = NULL;
    c->arrived = c->resume = c->abandon = NULL;
    call_release(c);
}

/* Frees the readings once nothing uses them. */
static void settle(struct readings *s)
{
    if (s->call || s->busy || s->pumping)
        return;
    buf_fini(&s->defaults);
    mem_free(s);
}

/* ---- answers ---- */

static void on_write(struct http_req *r, const void *p, size_t n)
{
    struct reading_call *m = (struct reading_call *)(void *)r;
    buf_put(&m->answer, p, n);
}

static void on_end(struct http_req *r, const struct http_header *trailers, size_t n)
{
    struct reading_call *m = (struct reading_call *)(void *)r;
    struct readings *s = m->readings;
    struct call *c = s->call;
    bool ok = n > 0 && strcmp(trailers[0].name, "grpc-status") == 0 &&
              strcmp(trailers[0].value, "0") == 0 && m->answer.rc == 0;
    bool pumping = s->pumping;
    s->busy = NULL;
    s->pumping = true; /* writing may find that the client is gone: s must outlive that */
    if (c && ok) {
        call_write(c, buf_str(&m->answer), m->answer.len);
    } else if (c) {
        if (n > 0 && m->answer.rc == 0)
            call_end_trailers(c, trailers, n);
        else
            grpc_call_fail_plain(c, GRPC_UNAVAILABLE, NULL, "out of memory");
        end(s);
    }
    drop(m);
    s->pumping = pumping;
    pump(s);
}

static size_t on_queued(const struct http_req *r)
{
    const struct reading_call *m = (const struct reading_call *)(const void *)r;
    const struct call *c = m->readings->call;
    return c && c->req ? http_queued(c->req) : 0;
}

static char *on_take_body(struct http_req *r)
{
    struct reading_call *m = (struct reading_call *)(void *)r;
    char *body = m->body;
    m->body = NULL;
    r->body = "";
    r->body_bytes = 0;
    return body;
}

/* ---- messages ---- */

/* Reads the defaults from the first message. */
static void read_first(struct readings *s, const uint8_t *p, size_t n)
{
    Shoal__V1__ScoreRequest d = SHOAL__V1__SCORE_REQUEST__INIT;
    struct arena a;
    s->has_first = true;
    arena_init(&a, 16 * MAX_MESSAGE_BYTES);
    const Shoal__V1__ScoreRequest *m = pb_unpack(&shoal__v1__score_request__descriptor, &a, p, n);
    if (m) { /* otherwise it is refused where it is run */
        d.model = m->model;
        d.stream = m->stream;
        d.raw = m->raw;
        if (pb_put(&s->defaults, &d.base) < 0)
            buf_clear(&s->defaults);
    }
    arena_fini(&a);
}

/* The body of a call: the defaults, then the message.  Fields of both are merged, and the later
 * ones count: that is how protobuf reads two messages in a row. */
static char *make_body(const struct readings *s, const struct grpc_frame *f, size_t *n)
{
    size_t merged = s->defaults.len + f->n;
    char *body = mem_alloc(GRPC_HEAD_BYTES + merged + 1);
    if (!body)
        return NULL;
    grpc_frame_head(body, merged, false);
    memcpy(body + GRPC_HEAD_BYTES, buf_str(&s->defaults), s->defaults.len);
    if (f->n)
        memcpy(body + GRPC_HEAD_BYTES + s->defaults.len, f->p, f->n);
    *n = GRPC_HEAD_BYTES + merged;
    body[*n] = '\0';
    return body;
}

static void start(struct readings *s, const struct grpc_frame *f)
{
    static const struct http_ops ops = {inner_call_ignore_begin, on_write, on_end, on_queued};
    struct http_req *outer = s->call->req;
    size_t n = 0;
    if (!s->has_first)
        read_first(s, f->p, f->n);
    struct reading_call *m = mem_zalloc(sizeof(*m));
    char *body = m ? make_body(s, f, &n) : NULL;
    if (!body) {
        mem_free(m);
        grpc_call_fail_frame(s->call, SHOAL_ENOMEM);
        end(s);
        return;
    }
    buf_init(&m->answer, MAX_ANSWER_BYTES);
    m->readings = s;
    m->body = body;
    m->req = (struct http_req){.method = "POST",
                               .path = "/shoal.v1.Shoal/Score",
                               .query = "",
                               .headers = s->headers,
                               .n_headers = s->n_headers,
                               .body = body,
                               .body_bytes = n,
                               .peer = outer->peer,
                               .peer_cert = outer->peer_cert,
                               .protocol = outer->protocol,
                               .via = outer->via,
                               .secure = outer->secure,
                               .received_ns = loop_now(s->call->gl->loop),
                               .server = outer->server,
                               .account = outer->account,
                               .ops = &ops,
                               .take_body = on_take_body};
    s->busy = m;
    struct call *call = call_create(s->call->gl, &m->req);
    if (!call)
        return; /* call_create has answered m->req */
    call_hold(call);
    door_enter(call, NULL);
    call_release(call);
}

/* Starts the next message, if there is one and the client keeps reading. */
static void next(struct readings *s, struct buf *plain)
{
    struct call *c = s->call;
    struct grpc_frame f;
    int rc = grpc_call_read(c, &f, plain, s->used, MAX_MESSAGE_BYTES);
    if (rc < 0) {
        end(s);
    } else if (rc == 1) {
        s->used += f.bytes;
        start(s, &f);
    } else if (!c->req->more) {
        if (s->used == c->req->body_bytes)
            grpc_call_finish(c);
        else
            grpc_call_fail_frame(c, SHOAL_EFORMAT);
        end(s);
    }
    s->pumping = rc == 1;
}

static void pump(struct readings *s)
{
    struct buf plain;
    if (s->pumping)
        return;
    s->pumping = true;
    buf_init(&plain, 2 * MAX_MESSAGE_BYTES);
    while (s->pumping && s->call && !s->busy && http_queued(s->call->req) <= OUT_BYTES)
        next(s, &plain);
    buf_fini(&plain);
    s->pumping = false;
    if (s->call && s->call->req->more && s->used > 0) {
        size_t used = s->used;
        s->used = 0;
        http_take(s->call->req, used);
    }
    settle(s);
}

/* ---- the stream ---- */

static void on_bytes(struct call *c)
{
    if (c->job && c->req)
        pump(c->job);
}

static void on_gone(struct call *c)
{
    struct readings *s = c->job;
    if (!s)
        return;
    end(s);
    struct reading_call *m = s->busy;
    s->busy = NULL;
    if (m) {
        m->req.cancelled(&m->req);
        drop(m);
    }
    settle(s);
}

void grpc_readings(struct call *c)
{
    static const char *const passed[] = {"authorization", "x-api-key", "x-session-id",
                                         "x-latency-budget-ms", "traceparent"};
    if (!grpc_call_is(c, "ScoreStream"))
        return;
    struct readings *s = mem_zalloc(sizeof(*s));
    if (!s) {
        grpc_call_fail_frame(c, SHOAL_ENOMEM);
        return;
    }
    buf_init(&s->defaults, MAX_MESSAGE_BYTES);
    s->headers[s->n_headers++] = (struct http_header){"content-type", "application/grpc"};
    for (size_t i = 0; i < sizeof(passed) / sizeof(passed[0]); i++) {
        const char *value = http_header(c->req, passed[i]);
        if (value)
            s->headers[s->n_headers++] = (struct http_header){passed[i], value};
    }
    s->call = c;
    c->job = s;
    c->arrived = c->resume = on_bytes;
    c->abandon = on_gone;
    call_hold(c);
    grpc_call_begin(c);
    pump(s);
}
