/* grpc.c - see grpc.h. */
#include "gateway/grpc/grpc.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "gateway/grpc/grpc_call.h"
#include "gateway/grpc/grpc_codec.h"
#include "gateway/door.h"
#include "gateway/grpc/reflection.h"

#define MAX_JSON_BYTES ((size_t)64 << 20)
#define MAX_QUESTION_BYTES ((size_t)64 << 10) /* of reflection: far below a stream's window */
#define OUT_BYTES ((size_t)128 << 10) /* bytes that wait for the client before we hold back */

/* A request of our own to the HTTP interface, for a call that came by gRPC. */
struct inner {
    struct http_req req; /* first */
    struct call *outer;  /* held */
    const struct grpc_method *method;
    struct buf body, answer, out;
    struct http_header headers[5];
    char budget[24];
    uint32_t retry_s;
    bool events, failed;
};

/* ---- the inner request ---- */

static void inner_free(struct inner *in)
{
    struct call *c = in->outer;
    c->job = NULL;
    c->abandon = NULL;
    c->resume = NULL;
    buf_fini(&in->body);
    buf_fini(&in->answer);
    buf_fini(&in->out);
    mem_free(in);
    call_release(c);
}

static void on_begin(struct http_req *r, int status, const struct http_header *headers, size_t n,
                     int64_t body_bytes)
{
    struct inner *in = (struct inner *)(void *)r;
    (void)body_bytes;
    for (size_t i = 0; i < n; i++)
        if (strcmp(headers[i].name, "content-type") == 0)
            in->events = status == 200 && strncmp(headers[i].value, "text/event-stream", 17) == 0;
        else if (strcmp(headers[i].name, "retry-after") == 0)
            in->retry_s = (uint32_t)strtoul(headers[i].value, NULL, 10);
}

static const char *string_of(const cJSON *o, const char *name)
{
    return cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(o, name));
}

/* error: of the HTTP interface, or NULL. */
static void fail_with(struct inner *in, const cJSON *error, enum grpc_status status)
{
    const char *msg = string_of(error, "message"), *type = string_of(error, "type");
    if (in->failed)
        return;
    in->failed = true;
    if (status == GRPC_OK) /* inside of a stream only the type tells */
        status = type && strcmp(type, "timeout_error") == 0      ? GRPC_DEADLINE_EXCEEDED
                 : type && strcmp(type, "rate_limit_error") == 0 ? GRPC_RESOURCE_EXHAUSTED
                                                                 : GRPC_INTERNAL;
    cJSON *asked = cJSON_ParseWithLength(buf_str(&in->body), in->body.len);
    const struct grpc_error e = {.status = status,
                                 .message = msg ? msg : "the request failed",
                                 .reason = string_of(error, "code"),
                                 .field = string_of(error, "param"),
                                 .model = string_of(asked, "model"),
                                 .retry_s = in->retry_s};
    grpc_call_fail(in->outer, &e);
    cJSON_Delete(asked);
}

static void take_event(struct inner *in, const char *p, size_t n)
{
    if (in->failed || n < 6 || memcmp(p, "data: ", 6) != 0 || p[6] != '{')
        return;
    cJSON *event = cJSON_ParseWithLength(p + 6, n - 6);
    const cJSON *error = cJSON_GetObjectItemCaseSensitive(event, "error");
    buf_clear(&in->out);
    int rc = !event ? SHOAL_ENOMEM : error ? 1 : grpc_to_message(in->method, &in->out, event);
    if (error)
        fail_with(in, error, GRPC_OK);
    else if (rc == 0)
        grpc_call_send(in->outer, &in->out);
    else if (rc < 0)
        fail_with(in, NULL, GRPC_UNAVAILABLE);
    cJSON_Delete(event);
}

static void on_write(struct http_req *r, const void *p, size_t n)
{
    struct inner *in = (struct inner *)(void *)r;
    size_t at = 0;
    buf_put(&in->answer, p, n);
    if (!in->events)
        return;
    for (;;) {
        const char *from = buf_str(&in->answer) + at;
        const char *end = memmem(from, in->answer.len - at, "\n\n", 2);
        if (!end)
            break;
        take_event(in, from, (size_t)(end - from));
        at += (size_t)(end - from) + 2;
    }
    if (at == 0)
        return;
    memmove(in->answer.data, in->answer.data + at, in->answer.len - at);
    in->answer.len -= at;
}

static void on_end(struct http_req *r, const struct http_header *trailers, size_t n)
{
    struct inner *in = (struct inner *)(void *)r;
    enum grpc_status status = grpc_status_of(r->status);
    (void)trailers;
    (void)n;
    if (!in->events) {
        cJSON *answer = cJSON_ParseWithLength(buf_str(&in->answer), in->answer.len);
        if (status != GRPC_OK)
            fail_with(in, cJSON_GetObjectItemCaseSensitive(answer, "error"), status);
        else if (!answer || grpc_to_message(in->method, &in->out, answer) < 0)
            fail_with(in, NULL, GRPC_UNAVAILABLE);
        else
            grpc_call_send(in->outer, &in->out);
        cJSON_Delete(answer);
    }
    if (in->answer.rc < 0) /* events are missing */
        fail_with(in, NULL, GRPC_UNAVAILABLE);
    if (!in->failed)
        grpc_call_finish(in->outer);
    inner_free(in);
}

static size_t on_queued(const struct http_req *r)
{
    const struct inner *in = (const struct inner *)(const void *)r;
    return in->outer->req ? http_queued(in->outer->req) : 0;
}

static const struct http_ops ops = {on_begin, on_write, on_end, on_queued};

static void on_abandon(struct call *c)
{
    struct inner *in = c->job;
    in->req.cancelled(&in->req);
    inner_free(in);
}

static void on_resume(struct call *c)
{
    struct inner *in = c->job;
    if (in && in->req.drained)
        in->req.drained(&in->req);
}

/* ---- the call ---- */

static void start(struct call *c, struct inner *in, const char *path)
{
    static const char *const passed[] = {"authorization", "x-api-key", "traceparent"};
    double ms = grpc_call_timeout_ms(http_header(c->req, "grpc-timeout"));
    size_t n = 0;
    in->headers[n++] = (struct http_header){"x-request-id", c->id};
    for (size_t i = 0; i < sizeof(passed) / sizeof(passed[0]); i++) {
        const char *value = http_header(c->req, passed[i]);
        if (value)
            in->headers[n++] = (struct http_header){passed[i], value};
    }
    if (ms > 0) {
        ms = ms < 0.001 ? 0.001 : ms < 86400000.0 ? ms : 86400000.0;
        snprintf(in->budget, sizeof(in->budget), "%.3f", ms);
        in->headers[n++] = (struct http_header){"x-latency-budget-ms", in->budget};
    }
    in->req = (struct http_req){.method = "POST",
                                .path = path,
                                .query = "",
                                .headers = in->headers,
                                .n_headers = n,
                                .body = buf_str(&in->body),
                                .body_bytes = in->body.len,
                                .peer = c->req->peer,
                                .peer_name = c->req->peer_name,
                                .protocol = "grpc",
                                .secure = c->req->secure,
                                .received_ns = c->start_ns,
                                .server = c->req->server,
                                .ops = &ops};
    c->job = in;
    c->abandon = on_abandon;
    c->resume = on_resume;
    door_handle(c->gl, &in->req);
}

static void read_request(struct inner *in)
{
    struct call *c = in->outer;
    struct grpc_frame f;
    struct buf plain;
    const char *path = "";
    buf_init(&plain, MAX_JSON_BYTES);
    bool ok = grpc_call_read_whole(c, &f, &plain);
    int rc = ok ? grpc_to_json(in->method, &in->body, &path, f.p, f.n) : 0;
    buf_fini(&plain);
    if (rc < 0)
        grpc_call_fail_frame(c, rc);
    if (!ok || rc < 0)
        inner_free(in);
    else
        start(c, in, path);
}

void grpc_handle(struct call *c)
{
    const struct grpc_method *m = grpc_method(c->req->path + strlen("/shoal.v1.Shoal/"));
    if (!grpc_call_is(c, m ? m->name : "/")) /* no method has that name */
        return;
    struct inner *in = mem_zalloc(sizeof(*in));
    if (!in) {
        grpc_call_fail_frame(c, SHOAL_ENOMEM);
        return;
    }
    in->outer = c;
    in->method = m;
    call_hold(c);
    buf_init(&in->body, MAX_JSON_BYTES);
    buf_init(&in->answer, MAX_JSON_BYTES);
    buf_init(&in->out, MAX_JSON_BYTES);
    read_request(in);
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
    buf_init(&out, MAX_JSON_BYTES);
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
