/* grpc.c - see grpc.h. */
#include "gateway/grpc.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <grpc/health/v1/health.pb-c.h>

#include "base/mem.h"
#include "gateway/grpc_codec.h"
#include "gateway/grpc_frame.h"
#include "gateway/grpc_status.h"
#include "gateway/gw.h"
#include "gateway/pb.h"
#include "gateway/reflection.h"

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

static void begin(struct call *c)
{
    bool gzip = grpc_accepts_gzip(http_header(c->req, "grpc-accept-encoding"));
    const struct http_header headers[] = {{"grpc-accept-encoding", GRPC_ENCODINGS},
                                          {"grpc-encoding", "gzip"}};
    if (!c->began)
        call_begin_with(c, "application/grpc", headers, gzip ? 2 : 1);
}

static void finish(struct call *c)
{
    const struct http_header ok = {"grpc-status", "0"};
    if (!c->req)
        return;
    begin(c);
    call_end_trailers(c, &ok, 1);
}

static void fail(struct call *c, const struct grpc_error *e)
{
    char code[8], text[512];
    struct buf details;
    if (!c->req)
        return;
    begin(c);
    snprintf(code, sizeof(code), "%d", (int)e->status);
    grpc_message_text(text, sizeof(text), e->message);
    buf_init(&details, (size_t)8 << 10);
    int rc = grpc_details(&details, e);
    const struct http_header trailers[] = {{"grpc-status", code},
                                           {"grpc-message", text},
                                           {"grpc-status-details-bin", buf_str(&details)}};
    call_end_trailers(c, trailers, rc == 0 ? 3 : 2); /* without memory, the code at least */
    buf_fini(&details);
}

static void fail_plain(struct call *c, enum grpc_status status, const char *reason, const char *msg)
{
    const struct grpc_error e = {.status = status, .reason = reason, .message = msg};
    fail(c, &e);
}

/* What is wrong with the bytes of a message. */
static void fail_frame(struct call *c, int rc)
{
    if (rc == SHOAL_ENOMEM)
        fail_plain(c, GRPC_UNAVAILABLE, NULL, "out of memory");
    else if (rc == SHOAL_ELIMIT)
        fail_plain(c, GRPC_RESOURCE_EXHAUSTED, "MESSAGE_TOO_LARGE",
                   "the message is larger than this server accepts");
    else
        fail_plain(c, GRPC_INVALID_ARGUMENT, "INVALID_MESSAGE",
                   "the body is not one message of this method");
}

static void send_message(struct call *c, const struct buf *message)
{
    char head[GRPC_HEAD_BYTES];
    struct buf zipped;
    if (!c->req)
        return;
    begin(c);
    buf_init(&zipped, MAX_JSON_BYTES);
    bool packed = grpc_accepts_gzip(http_header(c->req, "grpc-accept-encoding")) &&
                  grpc_zip(&zipped, buf_str(message), message->len);
    const struct buf *b = packed ? &zipped : message;
    grpc_frame_head(head, b->len, packed);
    call_write(c, head, GRPC_HEAD_BYTES);
    call_write(c, buf_str(b), b->len);
    buf_fini(&zipped);
}

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
    fail(in->outer, &e);
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
        send_message(in->outer, &in->out);
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
            send_message(in->outer, &in->out);
        cJSON_Delete(answer);
    }
    if (in->answer.rc < 0) /* events are missing */
        fail_with(in, NULL, GRPC_UNAVAILABLE);
    if (!in->failed)
        finish(in->outer);
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

/* "10S", "250m" (ms), ... to milliseconds; 0: none. */
static double timeout_ms(const char *text)
{
    char *end = NULL;
    double n = text ? strtod(text, &end) : 0;
    if (!text || end == text || !(n > 0))
        return 0;
    switch (*end) {
    case 'H':
        return n * 3600000;
    case 'M':
        return n * 60000;
    case 'S':
        return n * 1000;
    case 'm':
        return n;
    case 'u':
        return n / 1000;
    case 'n':
        return n / 1000000;
    default:
        return 0;
    }
}

/* Whether messages of this encoding can be read; if not, the call is answered. */
static bool read_encoding(struct call *c, bool *gzip)
{
    const char *name = http_header(c->req, "grpc-encoding");
    *gzip = name && strcasecmp(name, "gzip") == 0;
    if (!name || *gzip || strcasecmp(name, "identity") == 0)
        return true;
    fail_plain(c, GRPC_UNIMPLEMENTED, "UNSUPPORTED_ENCODING",
               "messages are read in these encodings: " GRPC_ENCODINGS);
    return false;
}

/* The first message of the bytes: 1, 0 when more are needed, or an error (the call is answered). */
static int read_frame(struct call *c, struct grpc_frame *f, struct buf *plain, size_t at,
                      size_t max)
{
    bool gzip;
    if (!read_encoding(c, &gzip))
        return SHOAL_EUNSUPPORTED;
    int rc = grpc_frame_next(f, (const uint8_t *)c->req->body + at, c->req->body_bytes - at, max);
    if (rc == 1 && f->packed && !gzip) {
        fail_plain(c, GRPC_INTERNAL, "INVALID_MESSAGE",
                   "the message is marked as compressed, and grpc-encoding does not say how");
        return SHOAL_EFORMAT;
    }
    buf_clear(plain);
    int unpacked = rc == 1 ? grpc_frame_unpack(f, plain, max) : 0;
    if (unpacked < 0)
        rc = unpacked;
    if (rc < 0)
        fail_frame(c, rc);
    return rc;
}

/* The one message of a body that is there in full; false: the call is answered. */
static bool read_whole(struct call *c, struct grpc_frame *f, struct buf *plain)
{
    int rc = read_frame(c, f, plain, 0, c->gl->config->limits.max_body_bytes);
    if (rc == 1 && f->bytes == c->req->body_bytes)
        return true;
    if (rc >= 0)
        fail_frame(c, SHOAL_EFORMAT);
    return false;
}

static void start(struct call *c, struct inner *in, const char *path)
{
    static const char *const passed[] = {"authorization", "x-api-key", "traceparent"};
    double ms = timeout_ms(http_header(c->req, "grpc-timeout"));
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
    gw_handle(c->gl, &in->req);
}

static bool is_grpc(struct call *c)
{
    const char *type = http_header(c->req, "content-type");
    if (type && strncmp(type, "application/grpc", 16) == 0)
        return true;
    call_fail(c, 415, NULL, NULL, NULL, "this path speaks gRPC: content-type application/grpc");
    return false;
}

/* false: the call is answered. */
static bool is_method(struct call *c, const char *name)
{
    const char *asked = strrchr(c->req->path, '/');
    if (!is_grpc(c))
        return false;
    if (strcmp(asked + 1, name) == 0)
        return true;
    fail_plain(c, GRPC_UNIMPLEMENTED, "UNKNOWN_METHOD", "there is no such method");
    return false;
}

static void read_request(struct inner *in)
{
    struct call *c = in->outer;
    struct grpc_frame f;
    struct buf plain;
    const char *path = "";
    buf_init(&plain, MAX_JSON_BYTES);
    bool ok = read_whole(c, &f, &plain);
    int rc = ok ? grpc_to_json(in->method, &in->body, &path, f.p, f.n) : 0;
    buf_fini(&plain);
    if (rc < 0)
        fail_frame(c, rc);
    if (!ok || rc < 0)
        inner_free(in);
    else
        start(c, in, path);
}

void grpc_handle(struct call *c)
{
    const struct grpc_method *m = grpc_method(c->req->path + strlen("/shoal.v1.Shoal/"));
    if (!is_method(c, m ? m->name : "/")) /* no method has that name */
        return;
    struct inner *in = mem_zalloc(sizeof(*in));
    if (!in) {
        fail_frame(c, SHOAL_ENOMEM);
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

/* ---- health ---- */

static void answer_health(struct call *c, const char *service)
{
    Grpc__Health__V1__HealthCheckResponse m = GRPC__HEALTH__V1__HEALTH_CHECK_RESPONSE__INIT;
    struct gw *gw = c->gl->gw;
    struct buf b;
    if (service[0] && !reflection_has_service(service)) {
        fail_plain(c, GRPC_NOT_FOUND, "SERVICE_NOT_FOUND", "there is no such service");
        return;
    }
    m.status = !atomic_load(&gw->draining) && models_ready(gw->models)
                   ? GRPC__HEALTH__V1__HEALTH_CHECK_RESPONSE__SERVING_STATUS__SERVING
                   : GRPC__HEALTH__V1__HEALTH_CHECK_RESPONSE__SERVING_STATUS__NOT_SERVING;
    buf_init(&b, 64);
    if (pb_put(&b, &m.base) < 0) {
        fail_frame(c, SHOAL_ENOMEM);
    } else {
        send_message(c, &b);
        finish(c);
    }
    buf_fini(&b);
}

void grpc_health(struct call *c)
{
    struct grpc_frame f;
    struct buf plain;
    if (!is_method(c, "Check"))
        return;
    buf_init(&plain, MAX_JSON_BYTES);
    if (read_whole(c, &f, &plain)) {
        Grpc__Health__V1__HealthCheckRequest *q =
            grpc__health__v1__health_check_request__unpack(pb_heap(), f.n, f.p);
        if (q)
            answer_health(c, q->service);
        else
            fail_frame(c, SHOAL_EFORMAT);
        if (q)
            grpc__health__v1__health_check_request__free_unpacked(q, pb_heap());
    }
    buf_fini(&plain);
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
        rc = read_frame(c, &f, &plain, used, MAX_QUESTION_BYTES);
        if (rc <= 0)
            break;
        used += f.bytes;
        buf_clear(&out);
        rc = reflection_answer(&out, f.p, f.n);
        if (rc < 0) {
            fail_frame(c, rc);
            break;
        }
        send_message(c, &out);
    }
    buf_fini(&plain);
    buf_fini(&out);
    if (rc >= 0 && room && !c->req->more) { /* the client has no more questions */
        if (used == c->req->body_bytes)
            finish(c);
        else
            fail_frame(c, SHOAL_EFORMAT);
    } else if (rc >= 0) {
        http_take(c->req, used);
    }
    call_release(c);
}

void grpc_reflection(struct call *c)
{
    if (!is_method(c, "ServerReflectionInfo"))
        return;
    begin(c);
    c->arrived = answer_questions;
    c->resume = answer_questions;
    answer_questions(c);
}
