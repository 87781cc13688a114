/* call.c - see call.h. */
#include "gateway/call/call.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/mem.h"
#include "cluster/join.h"
#include "flow/pool.h"
#include "flow/stages.h"
#include "gateway/call/tags.h"
#include "host/sha256.h"
#include "net/peers.h"
#include "wire/json_out.h"
#include "trace/trace_words.h"

#define MAX_ONCE_KEY 255u /* characters of an idempotency key */
#define MAX_ANSWER_BYTES ((size_t)256 << 20)
#define MAX_HEADERS_OUT 16u
#define OUT_BYTES ((size_t)128 << 10) /* bytes that wait for the client before events wait */
#define SPARE_BYTES ((size_t)16 << 10)
#define MANY_VALUES 4096u
#define BYTES_PER_TOKEN 4u             /* roughly, of text */
#define SMALL_BYTES ((size_t)16 << 10) /* an answer that every connection may hold */

/* ---- lifetime ---- */

struct json_grave {
    struct pool_task task;
    cJSON *json;
};

static void on_grave(struct pool_task *t)
{
    struct json_grave *g = LOOP_OF(t, struct json_grave, task);
    cJSON_Delete(g->json);
    mem_free(g);
}

/* Freeing many values takes long: the pool does it. */
static bool bury(struct call *c)
{
    struct json_grave *g = c->json_values > MANY_VALUES ? mem_alloc(sizeof(*g)) : NULL;
    if (!g)
        return false;
    *g = (struct json_grave){.task.fn = on_grave, .json = c->json};
    if (pool_submit(c->gl->gw->pool, &g->task) == 0)
        return true;
    mem_free(g);
    return false;
}

void call_drop_json(struct call *c)
{
    if (c->json && !bury(c))
        cJSON_Delete(c->json);
    c->json = NULL;
    if (c->account)
        peers_give(c->account, c->json_bytes);
    c->json_bytes = 0;
}

bool call_count_input(struct call *c, size_t n)
{
    if (!c->account && c->req)
        c->account = peers_ref(c->req->account);
    if (!c->account)
        return true;
    if (peers_take(c->account, n) != PEERS_OK)
        return false;
    c->input_bytes += n;
    return true;
}

static void call_free(struct call *c)
{
    call_drop_json(c);
    trace_unref(c->spans.trace);
    if (c->account)
        peers_give(c->account, c->input_bytes);
    peers_leave(c->account);
    buf_fini(&c->plain);
    if (!c->gl->spare.data && c->out.cap <= SPARE_BYTES) {
        buf_clear(&c->out);
        c->gl->spare = c->out;
    } else {
        buf_fini(&c->out);
    }
    mem_free(c);
}

void call_hold(struct call *c)
{
    c->holds++;
}

void call_release(struct call *c)
{
    if (--c->holds == 0)
        call_free(c);
}

static size_t route_index(const struct call *c)
{
    const struct gw *gw = c->gl->gw;
    bool public = c->route >= gw->routes && c->route < gw->routes + gw->n_routes;
    return public ? (size_t)(c->route - gw->routes) : GW_MAX_ROUTES;
}

static void end_trace(struct call *c, int status, uint64_t bytes)
{
    struct trace *t = c->spans.trace;
    if (!t)
        return;
    trace_number(t, TRACE_ROOT, TRACE_STATUS, status);
    trace_number(t, TRACE_ROOT, TRACE_BYTES, (int64_t)bytes);
    trace_text(t, TRACE_ROOT, TRACE_MODEL, c->model_name);
    trace_text(t, TRACE_ROOT, TRACE_CACHE, c->cache_note);
    trace_text(t, TRACE_ROOT, TRACE_NODE, c->node_name);
    if (c->routed)
        trace_text(t, TRACE_ROOT, TRACE_ROUTE, c->routed->route);
    if (status >= 500 || status == 499)
        trace_fail(t, TRACE_ROOT, status == 499 ? "client_gone" : NULL);
    trace_end(t, TRACE_ROOT, clock_ns());
}

/* The exchange with the client has ended. */
static void account(struct call *c, int status, uint64_t bytes)
{
    struct gw *gw = c->gl->gw;
    uint64_t took = clock_ns() - c->start_ns;
    char trace[TRACE_CONTEXT_CHARS + 1];
    int kind = status / 100;
    counter_add(&gw->responses[kind >= 1 && kind <= 5 ? kind : 0], 1);
    if (status != 499)
        histogram_add(&gw->call_time[route_index(c)], took);
    if (status != 499 && c->spans.trace) {
        trace_at_write(&c->spans, trace); /* 00-ID-... */
        histogram_exemplar(&gw->call_traces[route_index(c)], took, trace + 3, clock_unix_ms());
    }
    if (c->places > 0)
        admission_leave(gw->admission, c->client, c->places);
    end_trace(c, status, bytes);
    if (c->gl->config->log_requests) {
        trace_at_write(&c->spans, trace);
        log_info("http",
                 "req=%s method=%s path=%s status=%d bytes=%" PRIu64 " us=%" PRIu64 "%s%s%s%s%s%s",
                 c->id, c->route ? c->route->method : "-", c->route ? c->route->path : "-", status,
                 bytes, took / 1000, c->client ? " key=" : "", c->client ? c->client->name : "",
                 c->model_name ? " model=" : "", c->model_name ? c->model_name : "",
                 trace[0] ? " trace=" : "", trace);
    }
    c->gl->n_calls--;
    *(c->prev ? &c->prev->next : &c->gl->calls) = c->next;
    if (c->next)
        c->next->prev = c->prev;
}

static void on_cancelled(struct http_req *r)
{
    struct call *c = r->user;
    c->req = NULL;
    account(c, 499, r->sent_bytes);
    if (c->sink)
        flow_cancel(c->sink);
    else if (c->abandon)
        c->abandon(c);
    call_release(c);
}

static void on_drained(struct http_req *r)
{
    struct call *c = r->user;
    if (c->sink)
        flow_resume(c->sink);
    else if (c->resume)
        c->resume(c);
}

static void on_arrived(struct http_req *r)
{
    struct call *c = r->user;
    if (c->arrived)
        c->arrived(c);
}

struct call *call_create(struct gw_loop *gl, struct http_req *r)
{
    struct call *c = mem_zalloc(sizeof(*c));
    if (!c) {
        http_begin(r, 503, NULL, 0, 0);
        http_end(r);
        return NULL;
    }
    buf_init(&c->out, MAX_ANSWER_BYTES);
    if (gl->spare.data) {
        c->out = gl->spare;
        gl->spare.data = NULL;
    }
    c->gl = gl;
    c->req = r;
    c->holds = 1;
    c->start_ns = r->received_ns;
    r->user = c;
    r->cancelled = on_cancelled;
    r->drained = on_drained;
    r->arrived = on_arrived;
    gl->n_calls++;
    c->next = gl->calls;
    if (gl->calls)
        gl->calls->prev = c;
    gl->calls = c;
    return c;
}

bool call_session_ok(const char *id)
{
    size_t n = strspn(id, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._:-");
    return n > 0 && id[n] == '\0' && n < sizeof(((struct request *)0)->session);
}

/* The conversation that the server is to continue: of the body, or of a header; NULL: none, "" if
 * it is not a text. */
static const char *kept_session(const struct call *c)
{
    /* together with `chat_id` it is Open WebUI's, which sends the whole conversation itself */
    const cJSON *v = c->json && !cJSON_HasObjectItem(c->json, "chat_id")
                         ? cJSON_GetObjectItemCaseSensitive(c->json, "session_id")
                         : NULL;
    if (v && !cJSON_IsNull(v))
        return cJSON_IsString(v) ? v->valuestring : "";
    return c->req ? http_header(c->req, "x-shoal-session") : NULL;
}

/* The client's conversation or device. Returns the name of the parameter that is wrong, or NULL. */
static const char *read_session(const struct call *c, struct request *r)
{
    const char *kept = kept_session(c), *id = kept;
    if (!id)
        id = c->req ? http_header(c->req, "x-session-id") : NULL;
    if (!id)
        return NULL;
    if (!call_session_ok(id))
        return kept ? "session_id" : "x-session-id";
    memcpy(r->session, id, strlen(id) + 1);
    r->remembered = kept != NULL;
    return NULL;
}

/* The version of the model that must answer, as 64 hex digits.  False: the header is wrong. */
static bool read_version(const struct call *c, struct request *r)
{
    const char *given = c->req ? http_header(c->req, "x-shoal-version") : NULL;
    if (!given)
        return true;
    uint8_t *sum = arena_zalloc(&r->arena, SHA256_BYTES);
    r->version = sum;
    return sum && strlen(given) == 2 * SHA256_BYTES && sha256_read_hex(sum, given);
}

const char *call_once_key(const struct call *c)
{
    const char *given = c->req ? http_header(c->req, "idempotency-key") : NULL;
    return given || !c->req ? given : http_header(c->req, "x-idempotency-key");
}

/* The client's idempotency key, if it has one.  False: the header is wrong. */
static bool read_once_key(const struct call *c, struct request *r)
{
    const char *given = call_once_key(c);
    size_t n = given ? strlen(given) : 0;
    struct sha256 h;
    if (!given)
        return true;
    if (n == 0 || n > MAX_ONCE_KEY)
        return false;
    sha256_begin(&h); /* keys of different clients are unrelated */
    sha256_add(&h, r->client.name, strlen(r->client.name) + 1);
    sha256_add(&h, given, n);
    r->has_once_key = sha256_end(&h, r->once_key);
    return r->has_once_key;
}

/* Calls of other kinds are not begun, or end by themselves (health, reflection). */
static void fail_one(struct call *c)
{
    struct failure f;
    failure_set(&f, FAILURE_UNAVAILABLE, SHOAL_ECANCELLED, NULL, "draining",
                "the server is stopping");
    f.retry_after_s = 1;
    call_hold(c);
    struct sink *s = c->sink;
    if (s) {
        s->ops->fail(s, &f);
        if (c->sink == s)
            flow_cancel(s);
    } else if (!c->began) {
        call_fail_with(c, &f);
    }
    call_release(c);
}

void call_fail_all(struct gw_loop *gl)
{
    for (struct call *c = gl->calls, *next; c; c = next) {
        next = c->next;
        fail_one(c);
    }
}

struct request *call_request(struct call *c)
{
    struct request *r = flow_take_request(&c->gl->flow);
    if (!r) {
        call_fail_code(c, SHOAL_ENOMEM, "out of memory");
        return NULL;
    }
    memcpy(r->id, c->id, sizeof(r->id));
    request_trace(r, &c->spans);
    if (c->client) {
        memcpy(r->client.name, c->client->name, sizeof(r->client.name));
        r->client.priority = c->client->priority;
        r->client.weight = c->client->weight;
    }
    if (c->req->peer)
        r->from = hash_bytes(c->req->peer, strlen(c->req->peer), 0) | 1u;
    r->received_ns = c->start_ns;
    r->deadline_ns = c->deadline_ns;
    tags_read(r, &c->gl->config->router, c->req, c->json);
    r->path = c->route ? c->route->path : NULL; /* a constant */
    const char *wrong = read_session(c, r);
    bool version = !wrong && read_version(c, r);
    if (version && read_once_key(c, r))
        return r;
    flow_give_request(&c->gl->flow, r);
    if (version)
        call_fail(c, 400, NULL, "idempotency-key", "invalid_value",
                  "idempotency-key must have 1 to %u characters", MAX_ONCE_KEY);
    else if (!wrong)
        call_fail(c, 400, NULL, "x-shoal-version", "invalid_value",
                  "x-shoal-version must be the SHA-256 of a model, 64 hex digits");
    else
        call_fail(c, 400, NULL, wrong, "invalid_value",
                  "'%s' must be 1 to 63 letters, digits or ._:-", wrong);
    return NULL;
}

void call_set_sink(struct call *c, struct sink *s)
{
    call_hold(c);
    c->sink = s;
    if (!c->client || !c->client->account)
        return;
    meter_init(&c->meter, s, c->gl->gw->admission, c->client,
               c->req ? (uint32_t)(c->req->body_bytes / BYTES_PER_TOKEN) : 0);
    c->sink = &c->meter.front.sink;
}

void call_unset_sink(struct call *c)
{
    c->sink = NULL;
    c->routed = NULL;
    call_release(c);
}

void call_set_model(struct call *c, const struct sink_start *e)
{
    c->model_name = e->model;
    c->node_name = e->node;
    c->routed = c->sink ? c->sink->routed : NULL;
    c->isolated = e->isolated || (!e->node && join_is_isolated(c->gl->gw->join, false));
    c->session_away = e->session_away;
    c->n_dropped = e->n_dropped;
    if (e->cache != SINK_CACHE_OFF)
        c->cache_note = e->cache == SINK_CACHE_HIT    ? "hit"
                        : e->cache == SINK_CACHE_MISS ? "miss"
                                                      : "similar";
}

/* ---- answers ---- */

struct head {
    struct http_header h[MAX_HEADERS_OUT];
    size_t n;
    char stages[256], dropped[12], trace[TRACE_CONTEXT_CHARS + 1]; /* texts of headers */
};

static void add(struct head *head, const char *name, const char *value)
{
    if (head->n < MAX_HEADERS_OUT)
        head->h[head->n++] = (struct http_header){name, value};
}

bool call_is_local_page(const char *origin)
{
    static const char *const hosts[] = {"localhost", "127.0.0.1", "[::1]"};
    const char *host = strstr(origin, "://");
    for (size_t i = 0; host && i < sizeof(hosts) / sizeof(hosts[0]); i++) {
        size_t n = strlen(hosts[i]);
        if (strncasecmp(host + 3, hosts[i], n) == 0 && (host[3 + n] == ':' || host[3 + n] == '\0'))
            return true;
    }
    return false;
}

const char *call_origin(const struct call *c)
{
    const char *origin = http_header(c->req, "origin");
    const struct config *cfg = c->gl->config;
    for (uint32_t i = 0; origin && i < cfg->cors.n; i++)
        if (strcmp(cfg->cors.v[i], "*") == 0 || strcasecmp(cfg->cors.v[i], origin) == 0 ||
            (strcmp(cfg->cors.v[i], "localhost") == 0 && call_is_local_page(origin)))
            return origin;
    return NULL;
}

/* The stages of a request that asked for an explanation, with their times in milliseconds. */
static void add_stages(const struct call *c, struct head *head)
{
    const struct stage_log *log = c->sink ? c->sink->stages : NULL;
    const uint64_t now = log ? clock_ns() : 0;
    size_t n = 0;
    for (uint32_t i = 0; log && i < STAGE_N; i++)
        if (log->entered_ns[i])
            n += (size_t)snprintf(head->stages + n, sizeof(head->stages) - n, "%s%s;dur=%.3f",
                                  n ? ", " : "", stages_name(i),
                                  (double)stages_time(log, i, now) / 1e6);
    if (n > 0)
        add(head, "server-timing", head->stages);
}

static void common_headers(const struct call *c, struct head *head)
{
    const char *origin = call_origin(c);
    add(head, "x-request-id", c->id);
    if (c->caller.span)
        trace_at_write(&c->spans, head->trace);
    if (c->caller.span && head->trace[0])
        add(head, "traceparent", head->trace);
    bool plain = !c->route || !c->route->fail; /* gRPC has metadata of its own */
    if (c->model_name && plain)
        add(head, "x-shoal-model", c->model_name);
    if (c->node_name)
        add(head, "x-shoal-node", c->node_name);
    if (c->isolated)
        add(head, "x-shoal-isolated", "1");
    if (c->session_away)
        add(head, "x-shoal-session", "degraded");
    if (c->n_dropped > 0) {
        snprintf(head->dropped, sizeof(head->dropped), "%u", c->n_dropped);
        add(head, "x-shoal-dropped-messages", head->dropped);
    }
    if (c->cache_note && plain)
        add(head, "x-shoal-cache", c->cache_note);
    add_stages(c, head);
    if (c->routed) {
        add(head, "x-shoal-route", c->routed->route);
        if (!plain) /* not every gRPC message names a model */
            add(head, "x-shoal-model", c->model_name);
        if (c->routed->ensemble)
            add(head, "x-shoal-ensemble", c->routed->ensemble->kind);
        if (c->routed->degraded)
            add(head, "x-shoal-degraded", "1");
    }
    if (origin) {
        add(head, "access-control-allow-origin", origin);
        add(head, "access-control-expose-headers",
            "server-timing, x-request-id, x-shoal-cache, x-shoal-degraded, "
            "x-shoal-dropped-messages, x-shoal-ensemble, x-shoal-isolated, "
            "x-shoal-model, "
            "x-shoal-node, "
            "x-shoal-route, x-shoal-session");
        add(head, "vary", "origin");
    }
}

static void over(struct call *c, const struct http_header *trailers, size_t n_trailers)
{
    struct http_req *r = c->req;
    int status = r->status;
    uint64_t bytes = r->sent_bytes;
    c->req = NULL;
    http_end_trailers(r, trailers, n_trailers);
    account(c, status, bytes);
    call_release(c);
}

static void send_whole(struct call *c, int status, struct head *head, const char *body, size_t n)
{
    if (!c->req)
        return;
    if (n > SMALL_BYTES && c->req->account && !peers_has_room(c->req->account, n)) {
        call_refuse(c, GW_REFUSED_BUSY, 503, 1,
                    "the answer of %zu bytes does not fit into the memory for clients "
                    "(limits.buffers, limits.client_buffers)",
                    n);
        return;
    }
    common_headers(c, head);
    c->began = true;
    http_begin(c->req, status, head->h, head->n, (int64_t)n);
    http_write(c->req, body, n);
    over(c, NULL, 0);
}

void call_text(struct call *c, int status, const char *type, const char *body, size_t n)
{
    struct head head = {.n = 0};
    add(&head, "content-type", type);
    send_whole(c, status, &head, body, n);
}

void call_file(struct call *c, int status, const char *type, const struct http_header *extra,
               size_t n_extra, const char *body, size_t n)
{
    struct head head = {.n = 0};
    add(&head, "content-type", type);
    for (size_t i = 0; i < n_extra; i++)
        add(&head, extra[i].name, extra[i].value);
    send_whole(c, status, &head, body, n);
}

void call_json(struct call *c, int status)
{
    if (c->out.rc < 0) {
        buf_clear(&c->out);
        call_fail(c, 503, "server_error", NULL, NULL, "out of memory");
        return;
    }
    call_text(c, status, "application/json", buf_str(&c->out), c->out.len);
}

const char *call_type_of(int status)
{
    switch (status) {
    case 401:
        return "authentication_error";
    case 403:
        return "permission_error";
    case 404:
        return "not_found_error";
    case 429:
        return "rate_limit_error";
    case 504:
        return "timeout_error";
    default:
        return status < 500 ? "invalid_request_error" : "server_error";
    }
}

static int status_of(const struct failure *f)
{
    static const int statuses[] = {
        [FAILURE_INVALID] = 400,  [FAILURE_NOT_FOUND] = 404,  [FAILURE_BUSY] = 429,
        [FAILURE_DEADLINE] = 504, [FAILURE_NOT_LOADED] = 503, [FAILURE_UNAVAILABLE] = 503,
        [FAILURE_INTERNAL] = 500, [FAILURE_CONFLICT] = 409};
    return statuses[f->kind];
}

static void put_or_null(struct json_out *j, const char *key, const char *value)
{
    json_out_key(j, key);
    if (value && value[0])
        json_out_str(j, value);
    else
        json_out_null(j);
}

void call_put_error(struct buf *b, const struct call_error *e, bool ollama)
{
    struct json_out j = json_out_make(b);
    json_out_object(&j);
    json_out_key(&j, "error");
    if (ollama) {
        json_out_str(&j, e->message);
    } else {
        json_out_object(&j);
        json_out_member_str(&j, "message", e->message);
        json_out_member_str(&j, "type", e->type);
        put_or_null(&j, "param", e->param);
        put_or_null(&j, "code", e->code);
        json_out_object_end(&j);
    }
    json_out_object_end(&j);
}

/* Anthropic's own names of errors; others are OpenAI's. */
static void put_anthropic_error(struct call *c, const struct call_error *e, int status)
{
    struct json_out j = json_out_make(&c->out);
    json_out_object(&j);
    json_out_member_str(&j, "type", "error");
    json_out_member_object(&j, "error");
    json_out_member_str(&j, "type",
                        status == 503   ? "overloaded_error"
                        : status >= 500 ? "api_error"
                                        : e->type);
    json_out_member_str(&j, "message", e->message);
    json_out_object_end(&j);
    json_out_member_str(&j, "request_id", c->id);
    json_out_object_end(&j);
}

/* In the form of the call's interface. */
static void put_error(struct call *c, const struct call_error *e, int status)
{
    if (c->anthropic)
        put_anthropic_error(c, e, status);
    else
        call_put_error(&c->out, e, c->ollama);
}

void call_put_failure(struct call *c, const struct failure *f)
{
    const struct call_error e = {.type = call_type_of(status_of(f)),
                                 .code = f->reason ? f->reason : err_name(f->code),
                                 .message = f->message};
    trace_fail(c->spans.trace, TRACE_ROOT, e.code);
    put_error(c, &e, status_of(f));
}

uint32_t call_retry_after(int status, uint32_t stated_s)
{
    const bool not_now = status == 429 || status == 503 || status == 504;
    return stated_s == 0 && not_now ? 1 : stated_s;
}

void call_send_error(struct call *c, const struct call_error *e)
{
    struct head head = {.n = 0};
    char retry[16];
    buf_clear(&c->out);
    put_error(c, e, e->status);
    buf_putc(&c->out, '\n');
    add(&head, "content-type", "application/json");
    const uint32_t retry_s = call_retry_after(e->status, e->retry_after_s);
    snprintf(retry, sizeof(retry), "%u", retry_s);
    if (retry_s)
        add(&head, "retry-after", retry);
    if (e->allow)
        add(&head, "allow", e->allow);
    if (e->status == 401)
        add(&head, "www-authenticate", "Bearer");
    send_whole(c, e->status, &head, buf_str(&c->out), c->out.len);
}

static void fail_with(struct call *c, const struct call_error *e)
{
    if (e->status == 400 || e->status == 404 || e->status == 405 || e->status == 413)
        counter_add(&c->gl->gw->refused[GW_REFUSED_INVALID], 1);
    if (c->route && c->route->fail)
        c->route->fail(c, e);
    else
        call_send_error(c, e);
}

void call_fail(struct call *c, int status, const char *type, const char *param, const char *code,
               const char *fmt, ...)
{
    char msg[512];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(msg, sizeof(msg), fmt, ap);
    va_end(ap);
    const struct call_error e = {.status = status,
                                 .type = type ? type : call_type_of(status),
                                 .param = param,
                                 .code = code,
                                 .message = msg};
    fail_with(c, &e);
}

bool call_query_bool(struct call *c, const char *name, bool *out)
{
    char text[256];
    const bool given = http_query(c->req, name, text, sizeof(text));
    *out = given && strcmp(text, "true") == 0;
    if (!given || *out || strcmp(text, "false") == 0)
        return true;
    call_fail(c, 400, NULL, name, "invalid_value", "'%s' must be true or false", name);
    return false;
}

void call_fail_method(struct call *c, const char *allow)
{
    char msg[256];
    snprintf(msg, sizeof(msg), "method %s is not allowed for %.100s; allowed: %s", c->req->method,
             c->req->path, allow);
    const struct call_error e = {
        .status = 405, .type = call_type_of(405), .message = msg, .allow = allow};
    fail_with(c, &e);
}

void call_fail_fields(struct call *c, const struct fields_error *e)
{
    call_fail(c, 400, NULL, e->param, e->code, "%s", e->msg);
}

void call_fail_with(struct call *c, const struct failure *f)
{
    int status = status_of(f);
    const struct call_error e = {.status = status,
                                 .type = call_type_of(status),
                                 .param = f->param,
                                 .code = f->reason,
                                 .message = f->message,
                                 .retry_after_s = f->retry_after_s};
    if (f->kind == FAILURE_BUSY || f->kind == FAILURE_DEADLINE || f->kind == FAILURE_NOT_LOADED)
        counter_add(&c->gl->gw->refused[f->kind == FAILURE_BUSY       ? GW_REFUSED_BUSY
                                        : f->kind == FAILURE_DEADLINE ? GW_REFUSED_DEADLINE
                                                                      : GW_REFUSED_NOT_LOADED],
                    1);
    fail_with(c, &e);
}

void call_fail_code(struct call *c, int code, const char *msg)
{
    struct failure f;
    failure_of(&f, code, msg);
    call_fail_with(c, &f);
}

void call_refuse(struct call *c, enum gw_refusal why, int status, uint32_t retry_after_s,
                 const char *fmt, ...)
{
    static const char *const codes[GW_N_REFUSED] = {
        "invalid_api_key", "rate_limit_exceeded", "overloaded", "deadline", "draining", NULL,
        "model_loading",   "insufficient_quota"};
    char msg[512];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(msg, sizeof(msg), fmt, ap);
    va_end(ap);
    const struct call_error e = {.status = status,
                                 .type = call_type_of(status),
                                 .code = codes[why],
                                 .message = msg,
                                 .retry_after_s = retry_after_s};
    counter_add(&c->gl->gw->refused[why], 1);
    fail_with(c, &e);
}

void call_preflight(struct call *c)
{
    struct head head = {.n = 0};
    if (call_origin(c)) {
        const char *asked = http_header(c->req, "access-control-request-headers");
        add(&head, "access-control-allow-methods", "GET, POST, DELETE, OPTIONS");
        add(&head, "access-control-allow-headers", asked ? asked : "authorization, content-type");
        add(&head, "access-control-max-age", "600");
    }
    send_whole(c, 200, &head, "", 0);
}

void call_begin(struct call *c, const char *type)
{
    call_begin_with(c, type, NULL, 0);
}

void call_begin_with(struct call *c, const char *type, const struct http_header *extra,
                     size_t n_extra)
{
    struct head head = {.n = 0};
    if (!c->req)
        return;
    add(&head, "content-type", type);
    for (size_t i = 0; i < n_extra; i++)
        add(&head, extra[i].name, extra[i].value);
    add(&head, "cache-control", "no-cache");
    add(&head, "x-accel-buffering", "no"); /* proxies must not buffer events */
    common_headers(c, &head);
    c->began = true;
    http_begin(c->req, 200, head.h, head.n, -1);
}

void call_begin_sized(struct call *c, int status, const char *type, const struct http_header *extra,
                      size_t n_extra, uint64_t bytes)
{
    struct head head = {.n = 0};
    if (!c->req)
        return;
    add(&head, "content-type", type);
    for (size_t i = 0; i < n_extra; i++)
        add(&head, extra[i].name, extra[i].value);
    common_headers(c, &head);
    c->began = true;
    http_begin(c->req, status, head.h, head.n, (int64_t)bytes);
}

void call_write(struct call *c, const char *p, size_t n)
{
    if (c->req)
        http_write(c->req, p, n);
}

void call_flush(struct call *c)
{
    if (!c->began || c->out.len == 0)
        return;
    call_write(c, buf_str(&c->out), c->out.len);
    buf_clear(&c->out);
}

bool call_full(const struct call *c)
{
    if (!c->req)
        return false;
    size_t n = http_queued(c->req);
    return n > OUT_BYTES ||
           (n > SMALL_BYTES && c->req->account && !peers_has_room(c->req->account, OUT_BYTES));
}

void call_end_flushed(struct call *c)
{
    call_write(c, buf_str(&c->out), c->out.len);
    call_end(c);
}

void call_end(struct call *c)
{
    if (c->req)
        over(c, NULL, 0);
}

void call_end_trailers(struct call *c, const struct http_header *trailers, size_t n)
{
    if (c->req)
        over(c, trailers, n);
}

void call_detach(struct call *c, int status)
{
    c->req = NULL;
    account(c, status, 0);
    call_release(c);
}
