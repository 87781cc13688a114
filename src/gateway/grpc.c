/* grpc.c - see grpc.h. */
#include "gateway/grpc.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <grpc/health/v1/health.pb-c.h>
#include <zlib.h>

#include "base/mem.h"
#include "gateway/grpc_codec.h"
#include "gateway/gw.h"

#define HEAD_BYTES 5u
#define MAX_JSON_BYTES ((size_t)64 << 20)

enum status { /* of gRPC */
              STATUS_OK = 0,
              STATUS_CANCELLED = 1,
              STATUS_INVALID = 3,
              STATUS_DEADLINE = 4,
              STATUS_NOT_FOUND = 5,
              STATUS_DENIED = 7,
              STATUS_EXHAUSTED = 8,
              STATUS_UNIMPLEMENTED = 12,
              STATUS_INTERNAL = 13,
              STATUS_UNAVAILABLE = 14,
              STATUS_UNAUTHENTICATED = 16
};

/* A request of our own to the HTTP interface, for a call that came by gRPC. */
struct inner {
    struct http_req req; /* first */
    struct call *outer;  /* held */
    const struct grpc_method *method;
    struct buf body, answer, out;
    struct http_header headers[4];
    char budget[24];
    bool events, failed;
};

static enum status status_of(int http)
{
    switch (http) {
    case 200:
        return STATUS_OK;
    case 400:
    case 413:
        return STATUS_INVALID;
    case 401:
        return STATUS_UNAUTHENTICATED;
    case 403:
        return STATUS_DENIED;
    case 404:
        return STATUS_NOT_FOUND;
    case 429:
        return STATUS_EXHAUSTED;
    case 499:
        return STATUS_CANCELLED;
    case 503:
        return STATUS_UNAVAILABLE;
    case 504:
        return STATUS_DEADLINE;
    default:
        return STATUS_INTERNAL;
    }
}

/* grpc-message: printable ASCII as it is, the rest percent-encoded. */
static void encode_message(char *out, size_t cap, const char *msg)
{
    size_t n = 0;
    for (const unsigned char *p = (const unsigned char *)msg; *p && n + 4 < cap; p++)
        if (*p < 0x20 || *p > 0x7e || *p == '%')
            n += (size_t)snprintf(out + n, cap - n, "%%%02X", *p);
        else
            out[n++] = (char)*p;
    out[n] = '\0';
}

static void finish(struct call *c, enum status status, const char *msg)
{
    char code[8], text[512];
    if (!c->req)
        return;
    if (!c->began)
        call_begin(c, "application/grpc");
    snprintf(code, sizeof(code), "%d", (int)status);
    encode_message(text, sizeof(text), msg);
    const struct http_header trailers[] = {{"grpc-status", code}, {"grpc-message", text}};
    call_end_trailers(c, trailers, msg[0] ? 2 : 1);
}

static void send_message(struct call *c, const struct buf *message)
{
    size_t n = message->len;
    const char head[HEAD_BYTES] = {0, (char)(n >> 24), (char)(n >> 16), (char)(n >> 8), (char)n};
    if (!c->req)
        return;
    if (!c->began)
        call_begin(c, "application/grpc");
    call_write(c, head, HEAD_BYTES);
    call_write(c, buf_str(message), n);
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
}

static void fail_with(struct inner *in, const cJSON *error, enum status status)
{
    const char *msg = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(error, "message"));
    const char *type = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(error, "type"));
    if (in->failed)
        return;
    in->failed = true;
    if (status == STATUS_OK) /* inside of a stream only the type tells */
        status = type && strcmp(type, "timeout_error") == 0      ? STATUS_DEADLINE
                 : type && strcmp(type, "rate_limit_error") == 0 ? STATUS_EXHAUSTED
                                                                 : STATUS_INTERNAL;
    finish(in->outer, status, msg ? msg : "the request failed");
}

static void take_event(struct inner *in, const char *p, size_t n)
{
    if (in->failed || n < 6 || memcmp(p, "data: ", 6) != 0 || p[6] != '{')
        return;
    cJSON *event = cJSON_ParseWithLength(p + 6, n - 6);
    const cJSON *error = cJSON_GetObjectItemCaseSensitive(event, "error");
    buf_clear(&in->out);
    int rc = !event ? SHOAL_ENOMEM : error ? 1 : in->method->to_message(&in->out, event);
    if (error)
        fail_with(in, error, STATUS_OK);
    else if (rc == 0)
        send_message(in->outer, &in->out);
    else if (rc < 0)
        fail_with(in, NULL, STATUS_UNAVAILABLE);
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
    memmove(in->answer.data, in->answer.data + at, in->answer.len - at);
    in->answer.len -= at;
}

static void on_end(struct http_req *r, const struct http_header *trailers, size_t n)
{
    struct inner *in = (struct inner *)(void *)r;
    enum status status = status_of(r->status);
    (void)trailers;
    (void)n;
    if (!in->events) {
        cJSON *answer = cJSON_ParseWithLength(buf_str(&in->answer), in->answer.len);
        if (status != STATUS_OK)
            fail_with(in, cJSON_GetObjectItemCaseSensitive(answer, "error"), status);
        else if (!answer || in->method->to_message(&in->out, answer) < 0)
            fail_with(in, NULL, STATUS_UNAVAILABLE);
        else
            send_message(in->outer, &in->out);
        cJSON_Delete(answer);
    }
    if (!in->failed)
        finish(in->outer, STATUS_OK, "");
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

static int unzip(struct buf *out, const uint8_t *p, size_t n, size_t max)
{
    uint8_t block[16384];
    z_stream z = {.next_in = (Bytef *)(uintptr_t)p, .avail_in = (uInt)n};
    int rc = inflateInit2(&z, 15 + 32);
    if (rc != Z_OK)
        return SHOAL_ENOMEM;
    do {
        z.next_out = block;
        z.avail_out = sizeof(block);
        rc = inflate(&z, Z_NO_FLUSH);
        buf_put(out, block, sizeof(block) - z.avail_out);
    } while (rc == Z_OK && out->len <= max);
    inflateEnd(&z);
    if (out->rc < 0)
        return out->rc;
    return out->len > max ? SHOAL_ELIMIT : rc == Z_STREAM_END ? 0 : SHOAL_EFORMAT;
}

/* The one message of the body, unpacked where it was compressed. */
static int read_frame(const struct call *c, struct buf *plain, const uint8_t **p, size_t *n)
{
    const uint8_t *b = (const uint8_t *)c->req->body;
    size_t have = c->req->body_bytes;
    if (have < HEAD_BYTES || b[0] > 1)
        return SHOAL_EFORMAT;
    size_t bytes = (size_t)b[1] << 24 | (size_t)b[2] << 16 | (size_t)b[3] << 8 | b[4];
    if (bytes != have - HEAD_BYTES)
        return SHOAL_EFORMAT;
    *p = b + HEAD_BYTES;
    *n = bytes;
    if (b[0] == 0)
        return 0;
    int rc = unzip(plain, *p, *n, c->gl->config->limits.max_body_bytes);
    *p = (const uint8_t *)buf_str(plain);
    *n = plain->len;
    return rc;
}

static void start(struct call *c, struct inner *in, const char *path)
{
    const char *auth = http_header(c->req, "authorization");
    double ms = timeout_ms(http_header(c->req, "grpc-timeout"));
    size_t n = 0;
    in->headers[n++] = (struct http_header){"x-request-id", c->id};
    if (auth)
        in->headers[n++] = (struct http_header){"authorization", auth};
    if (ms > 0) {
        snprintf(in->budget, sizeof(in->budget), "%.3f", ms < 86400000.0 ? ms : 86400000.0);
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

void grpc_handle(struct call *c)
{
    if (!is_grpc(c))
        return;
    const struct grpc_method *m = grpc_method(c->req->path + strlen("/shoal.v1.Shoal/"));
    if (!m) {
        finish(c, STATUS_UNIMPLEMENTED, "there is no such method");
        return;
    }
    struct inner *in = mem_zalloc(sizeof(*in));
    if (!in) {
        finish(c, STATUS_UNAVAILABLE, "out of memory");
        return;
    }
    struct buf plain;
    const uint8_t *p = NULL;
    const char *path = "";
    size_t n = 0;
    in->outer = c;
    in->method = m;
    call_hold(c);
    buf_init(&plain, MAX_JSON_BYTES);
    buf_init(&in->body, MAX_JSON_BYTES);
    buf_init(&in->answer, MAX_JSON_BYTES);
    buf_init(&in->out, MAX_JSON_BYTES);
    int rc = read_frame(c, &plain, &p, &n);
    if (rc == 0)
        rc = m->to_json(&in->body, &path, p, n);
    buf_fini(&plain);
    if (rc < 0) {
        finish(c, rc == SHOAL_ENOMEM ? STATUS_UNAVAILABLE : STATUS_INVALID,
               "the body is not one message of this method");
        inner_free(in);
        return;
    }
    start(c, in, path);
}

void grpc_health(struct call *c)
{
    Grpc__Health__V1__HealthCheckResponse m = GRPC__HEALTH__V1__HEALTH_CHECK_RESPONSE__INIT;
    uint8_t packed[16];
    struct buf b;
    if (!is_grpc(c))
        return;
    if (strcmp(c->req->path, "/grpc.health.v1.Health/Check") != 0) {
        finish(c, STATUS_UNIMPLEMENTED, "there is no such method");
        return;
    }
    struct gw *gw = c->gl->gw;
    m.status = !atomic_load(&gw->draining) && models_ready(gw->models)
                   ? GRPC__HEALTH__V1__HEALTH_CHECK_RESPONSE__SERVING_STATUS__SERVING
                   : GRPC__HEALTH__V1__HEALTH_CHECK_RESPONSE__SERVING_STATUS__NOT_SERVING;
    size_t n = grpc__health__v1__health_check_response__pack(&m, packed);
    buf_init(&b, 64);
    buf_put(&b, packed, n);
    send_message(c, &b);
    finish(c, STATUS_OK, "");
    buf_fini(&b);
}
