/* stream_ws.c - see stream_ws.h.
 *
 * A message becomes a call on an exchange of its own (struct http_req with our operations), so that
 * keys, limits, deadlines and handlers are the same as over HTTP.  Its body was parsed with the
 * message, and its events are sent as they are made: nothing is written as text to be read again.
 * A message above WS_CHECKED_BYTES is parsed on the pool. */
#include "gateway/ws/stream_ws.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "flow/pool.h"
#include "gateway/call/api_key.h"
#include "gateway/call/door.h"
#include "gateway/call/guard.h"
#include "net/peers.h"
#include "net/ws.h"
#include "wire/json_out.h"
#include "wire/json_scan.h"

#define MAX_MESSAGE_BYTES ((size_t)4 << 20)
#define MAX_OUT_BYTES ((size_t)64 << 20)
#define MAX_REQUESTS 64u              /* per connection */
#define KEEP_BYTES ((size_t)64 << 10) /* a larger buffer is freed after its message */

struct session;

struct ws_call {
    struct http_req req; /* first */
    struct session *session;
    struct ws_call *next;
    char id[64], path[128];
    struct http_header headers[3];
    struct buf text; /* the whole answer */
    enum { ANSWER_JSON, ANSWER_TEXT, ANSWER_EVENTS } kind;
};

/* A large message, parsed on the pool: one per session at a time; further ones wait. */
struct ws_job {
    struct pool_task pool_task;
    struct executor_task finished;
    struct gw_loop *gl;
    struct session *session; /* the loop's; NULL: the client has gone */
    struct peer *account;    /* held */
    char *text;
    size_t n, max_values;
    size_t input_bytes, json_bytes; /* counted to the account: the text, the values */
    bool is_utf8, is_full;          /* is_full: no memory is left for the values */
    const char *wrong;
    struct stream_ws_message message;
};

struct session {
    struct gw_loop *gl;
    struct ws_job *job; /* the job that reads a message, or NULL */
    struct ws *ws;
    struct ws_call *calls;
    uint32_t n_calls;
    char *authorization, *session_id, peer[56];
    struct buf out;
    bool draining; /* the server stops: no more requests */
};

/* ---- answers ---- */

static struct json_out begin_message(struct session *s, const char *id)
{
    buf_clear(&s->out);
    struct json_out j = json_out_make(&s->out);
    json_out_object(&j);
    json_out_member_str(&j, "id", id);
    return j;
}

static void send_message(struct session *s, struct json_out *j)
{
    json_out_object_end(j);
    if (!s->ws)
        return;
    if (s->out.rc < 0)
        ws_close(s->ws, 1011);
    else
        ws_send(s->ws, buf_str(&s->out), s->out.len);
    if (s->out.cap > KEEP_BYTES)
        buf_fini(&s->out), buf_init(&s->out, MAX_OUT_BYTES);
}

static void send_error(struct session *s, const char *id, int status, const char *msg)
{
    struct json_out j = begin_message(s, id);
    json_out_member_int(&j, "status", status);
    json_out_member_str(&j, "error", msg);
    send_message(s, &j);
}

static void drop(struct ws_call *c)
{
    struct ws_call **at = &c->session->calls;
    while (*at != c)
        at = &(*at)->next;
    *at = c->next;
    struct session *s = c->session;
    s->n_calls--;
    buf_fini(&c->text);
    mem_free(c);
    if (s->n_calls > 0 || !s->ws)
        return;
    ws_rest(s->ws);
    if (s->draining)
        ws_close(s->ws, 1001);
}

static void on_begin(struct http_req *r, int status, const struct http_header *headers, size_t n,
                     int64_t body_bytes)
{
    struct ws_call *c = (struct ws_call *)(void *)r;
    (void)status;
    (void)body_bytes;
    c->kind = ANSWER_TEXT;
    for (size_t i = 0; i < n; i++) {
        if (strcmp(headers[i].name, "content-type") != 0)
            continue;
        const char *type = headers[i].value;
        bool events = strncmp(type, SSE_TYPE, strlen(SSE_TYPE)) == 0 ||
                      strncmp(type, "application/x-ndjson", 20) == 0;
        c->kind = events                                       ? ANSWER_EVENTS
                  : strncmp(type, "application/json", 16) == 0 ? ANSWER_JSON
                                                               : ANSWER_TEXT;
    }
}

/* An event of a stream, as it is in the call's out. */
static void on_event(struct call *call)
{
    struct ws_call *c = (struct ws_call *)(void *)call->req;
    struct buf *event = &call->out;
    if (c && event->len > 0) {
        struct json_out j = begin_message(c->session, c->id);
        json_out_key(&j, "event");
        buf_put(&c->session->out, event->data, event->len);
        j.comma = true;
        if (event->rc < 0)
            c->session->out.rc = event->rc;
        send_message(c->session, &j);
    }
    buf_clear(event);
}

static void on_write(struct http_req *r, const void *p, size_t n)
{
    struct ws_call *c = (struct ws_call *)(void *)r;
    buf_put(&c->text, p, n);
}

static void on_end(struct http_req *r, const struct http_header *trailers, size_t n)
{
    struct ws_call *c = (struct ws_call *)(void *)r;
    struct session *s = c->session;
    (void)trailers;
    (void)n;
    struct json_out j = begin_message(s, c->id);
    json_out_member_int(&j, "status", r->status);
    json_out_key(&j, c->kind <= ANSWER_TEXT ? "body" : "done");
    if (c->kind == ANSWER_JSON) {
        while (c->text.len > 0 && c->text.data[c->text.len - 1] == '\n')
            c->text.len--;
        buf_put(&s->out, buf_str(&c->text), c->text.len);
        j.comma = true;
    } else if (c->kind == ANSWER_TEXT) {
        json_out_strn(&j, buf_str(&c->text), c->text.len);
    } else {
        json_out_bool(&j, true);
    }
    if (c->text.rc < 0)
        s->out.rc = c->text.rc;
    send_message(s, &j);
    drop(c);
}

static size_t on_queued(const struct http_req *r)
{
    const struct ws_call *c = (const struct ws_call *)(const void *)r;
    return c->session->ws ? ws_queued(c->session->ws) : 0;
}

static const struct http_ops ops = {on_begin, on_write, on_end, on_queued};

/* ---- messages ---- */

static struct ws_call *find(struct session *s, const char *id)
{
    struct ws_call *c = s->calls;
    while (c && strcmp(c->id, id) != 0)
        c = c->next;
    return c;
}

static void cancel(struct session *s, const char *id)
{
    struct ws_call *c = find(s, id);
    if (!c) {
        send_error(s, id, 400, "no request with this id is running");
        return;
    }
    c->req.cancelled(&c->req);
    drop(c);
    struct json_out j = begin_message(s, id);
    json_out_member_bool(&j, "cancelled", true);
    send_message(s, &j);
}

/* Takes the body.  job: that read it, or NULL. */
static void start(struct session *s, struct stream_ws_message *m, struct ws_job *job)
{
    struct ws_call *c = mem_zalloc(sizeof(*c));
    size_t n = 0;
    if (!c) {
        cJSON_Delete(m->body);
        send_error(s, m->id, 503, "out of memory");
        return;
    }
    memcpy(c->id, m->id, sizeof(c->id));
    memcpy(c->path, m->path, sizeof(c->path));
    buf_init(&c->text, MAX_OUT_BYTES);
    c->session = s;
    c->next = s->calls;
    s->calls = c;
    s->n_calls++;
    c->headers[n++] = (struct http_header){"host", "websocket"};
    if (s->authorization)
        c->headers[n++] = (struct http_header){"authorization", s->authorization};
    if (s->session_id)
        c->headers[n++] = (struct http_header){"x-session-id", s->session_id};
    c->req = (struct http_req){.method = "POST",
                               .path = c->path,
                               .query = "",
                               .headers = c->headers,
                               .n_headers = n,
                               .body = "",
                               .peer = s->peer,
                               .protocol = "websocket",
                               .received_ns = loop_now(s->gl->loop),
                               .server = s->gl->http,
                               .account = ws_account(s->ws),
                               .ops = &ops};
    struct call *call = call_create(s->gl, &c->req);
    if (!call) { /* call_create has answered c->req */
        cJSON_Delete(m->body);
        return;
    }
    call->event = on_event;
    if (job) { /* charged until the call ends */
        call->account = job->account;
        call->input_bytes = job->input_bytes;
        call->json_bytes = job->json_bytes;
        call->json_values = m->n_values;
        job->account = NULL;
    }
    call_hold(call);
    door_enter(call, m->body);
    call_release(call);
}

const char *stream_ws_read(struct stream_ws_message *m, const char *p, size_t n, bool text,
                           size_t max_values)
{
    struct json_scan scan;
    *m = (struct stream_ws_message){.path = "/v1/chat/completions"};
    int rc = text ? json_scan(&scan, p, n, max_values, NULL) : 0;
    m->n_values = text ? scan.n_values : 0;
    if (rc == SHOAL_ELIMIT)
        return "the message holds more values than 'limits.values' allows";
    cJSON *json = text ? cJSON_ParseWithLength(p, n) : NULL;
    const char *id = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(json, "id"));
    const char *path = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(json, "path"));
    const char *wrong = NULL;
    m->cancel = cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(json, "cancel"));
    if (!id || !id[0] || strlen(id) >= sizeof(m->id))
        wrong = "a message must be a JSON object with an \"id\" of 1 to 63 bytes";
    else
        memcpy(m->id, id, strlen(id) + 1);
    if (!wrong && !m->cancel) {
        if (!cJSON_IsObject(cJSON_GetObjectItemCaseSensitive(json, "body")))
            wrong = "\"body\" must be an object, or \"cancel\" true";
        else if (path && (path[0] != '/' || strlen(path) >= sizeof(m->path)))
            wrong = "\"path\" must be a path of this server";
        else if (path)
            memcpy(m->path, path, strlen(path) + 1);
    }
    if (!wrong && rc < 0)
        wrong = "the message contains NUL (\\u0000), which is not allowed in a request";
    if (!wrong && !m->cancel)
        m->body = cJSON_DetachItemFromObjectCaseSensitive(json, "body");
    cJSON_Delete(json);
    return wrong;
}

/* Handles a message; takes its body. */
static void handle(struct session *s, struct stream_ws_message *m, const char *wrong,
                   struct ws_job *job)
{
    int status = 400;
    if (!wrong && m->cancel) {
        cancel(s, m->id);
        return;
    }
    if (!wrong && find(s, m->id))
        wrong = "a request with this id is running";
    else if (!wrong && s->draining)
        wrong = "the server is stopping", status = 503;
    else if (!wrong && s->n_calls >= MAX_REQUESTS)
        wrong = "too many requests on this connection";
    if (wrong) {
        send_error(s, m->id, status, wrong);
        cJSON_Delete(m->body);
    } else {
        start(s, m, job);
    }
    m->body = NULL;
}

/* ---- large messages ---- */

static void job_free(struct ws_job *j)
{
    j->gl->flow.n_jobs--;
    if (j->account)
        peers_give(j->account, j->input_bytes + j->json_bytes);
    peers_leave(j->account);
    cJSON_Delete(j->message.body);
    mem_free(j->text);
    mem_free(j);
}

static void on_pool(struct pool_task *t)
{
    struct ws_job *j = LOOP_OF(t, struct ws_job, pool_task);
    struct json_scan scan;
    j->is_utf8 = ws_utf8(j->text, j->n);
    if (j->is_utf8 && json_scan(&scan, j->text, j->n, j->max_values, NULL) == 0) {
        size_t bytes = scan.n_values * JSON_SCAN_VALUE_BYTES + j->n; /* plus their strings */
        j->is_full = peers_take(j->account, bytes) != PEERS_OK;
        j->json_bytes = j->is_full ? 0 : bytes;
    }
    if (j->is_utf8 && !j->is_full)
        j->wrong = stream_ws_read(&j->message, j->text, j->n, true, j->max_values);
    mem_free(j->text); /* here, since it takes a while */
    j->text = NULL;
    executor_post(j->gl->flow.executor, &j->finished);
}

static void on_finished(struct executor_task *t)
{
    struct ws_job *j = LOOP_OF(t, struct ws_job, finished);
    struct session *s = j->session;
    if (s) {
        s->job = NULL;
        if (!j->is_utf8)
            ws_close(s->ws, 1007);
        else if (j->is_full)
            ws_close(s->ws, 1013);
        else
            handle(s, &j->message, j->wrong, j);
        ws_go_on(s->ws);
        ws_rest(s->ws);
        if (s->draining && s->n_calls == 0)
            ws_close(s->ws, 1001);
    }
    job_free(j);
}

static void read_large(struct session *s, size_t n)
{
    struct ws_job *j = mem_zalloc(sizeof(*j));
    char *text = j ? ws_take(s->ws) : NULL;
    if (!text) {
        mem_free(j);
        ws_close(s->ws, 1011);
        return;
    }
    *j = (struct ws_job){.pool_task.fn = on_pool,
                         .finished.fn = on_finished,
                         .gl = s->gl,
                         .session = s,
                         .account = peers_ref(ws_account(s->ws)),
                         .text = text,
                         .n = n,
                         .max_values = s->gl->config->max_values};
    s->gl->flow.n_jobs++;
    if (peers_take(j->account, n) == PEERS_OK) {
        j->input_bytes = n;
        s->job = j;
        if (pool_submit(s->gl->gw->pool, &j->pool_task) == 0)
            return;
        s->job = NULL;
    }
    job_free(j);
    ws_close(s->ws, 1013);
}

static void on_message(struct ws *w, const char *p, size_t n, bool text)
{
    struct session *s = ws_user(w);
    struct stream_ws_message m;
    if (text && n > WS_CHECKED_BYTES) {
        read_large(s, n);
        return;
    }
    const char *wrong = stream_ws_read(&m, p, n, text, s->gl->config->max_values);
    handle(s, &m, wrong, NULL);
}

static void on_drained(struct ws *w)
{
    struct session *s = ws_user(w);
    for (struct ws_call *c = s->calls, *next; c; c = next) {
        next = c->next;
        if (c->req.drained)
            c->req.drained(&c->req);
    }
}

static void session_free(struct session *s)
{
    if (!s)
        return;
    mem_free(s->authorization);
    mem_free(s->session_id);
    mem_free(s);
}

static void on_closed(struct ws *w)
{
    struct session *s = ws_user(w);
    s->ws = NULL;
    if (s->job)
        s->job->session = NULL;
    while (s->calls) {
        struct ws_call *c = s->calls;
        c->req.cancelled(&c->req);
        drop(c);
    }
    buf_fini(&s->out);
    session_free(s);
}

/* What runs is completed; the connection closes after that. */
static void on_drain(struct ws *w)
{
    struct session *s = ws_user(w);
    s->draining = true;
    if (s->n_calls == 0 && !s->job)
        ws_close(w, 1001);
}

static bool on_busy(struct ws *w)
{
    const struct session *s = ws_user(w);
    return s->n_calls > 0 || s->job;
}

static const struct ws_ops callbacks = {on_message, on_drained, on_closed, on_drain, on_busy};

void stream_ws(struct call *c)
{
    if (!guard_origin(c)) /* browsers let any page open a WebSocket to any server */
        return;
    struct session *s = mem_zalloc(sizeof(*s));
    const char *session_id = http_header(c->req, "x-session-id");
    if (s && session_id)
        s->session_id = mem_strdup(session_id);
    if (!s || api_key_header(&s->authorization, c->req) < 0 || (session_id && !s->session_id)) {
        session_free(s);
        call_fail_code(c, SHOAL_ENOMEM, "out of memory");
        return;
    }
    buf_init(&s->out, MAX_OUT_BYTES);
    s->gl = c->gl;
    snprintf(s->peer, sizeof(s->peer), "%s", c->req->peer);
    s->ws = ws_accept(c->req, &callbacks, s, MAX_MESSAGE_BYTES);
    if (s->ws) {
        call_detach(c, 101);
        return;
    }
    session_free(s);
    call_fail(c, 426, NULL, NULL, NULL, "this path needs WebSocket version 13 over HTTP/1.1");
}
