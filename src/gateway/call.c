/* call.c - one request from the door to its end: route, key, limits, answer, log. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/mem.h"
#include "gateway/generate.h"
#include "gateway/gw.h"
#include "wire/json_out.h"

#define MAX_ANSWER_BYTES ((size_t)256 << 20)
#define MAX_HEADERS_OUT 16u
#define LONG_BODY_BYTES ((size_t)64 << 10)
#define SPARE_BYTES ((size_t)16 << 10)

/* ---- lifetime ---- */

void *gw_take(struct gw_spares *s, size_t bytes)
{
    return s->n > 0 ? memset(s->list[--s->n], 0, bytes) : mem_zalloc(bytes);
}

void gw_give(struct gw_spares *s, void *p)
{
    if (s->n != GW_MAX_SPARES)
        s->list[s->n++] = p;
    else
        mem_free(p);
}

void gw_spares_fini(struct gw_spares *s)
{
    while (s->n > 0)
        mem_free(s->list[--s->n]);
}

static void call_free(struct call *c)
{
    cJSON_Delete(c->json);
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
    return c->route ? (size_t)(c->route - gw_routes) : GW_MAX_ROUTES;
}

/* The HTTP side is over, one way or the other. */
static void account(struct call *c, int status, uint64_t bytes)
{
    struct gw *gw = c->gl->gw;
    uint64_t took = clock_ns() - c->start_ns;
    int kind = status / 100;
    counter_add(&gw->responses[kind >= 1 && kind <= 5 ? kind : 0], 1);
    if (status != 499)
        histogram_add(&gw->call_time[route_index(c)], took);
    if (c->places > 0)
        admission_leave(gw->admission, c->client, c->places);
    if (c->gl->config->log_requests)
        log_info("http",
                 "req=%s method=%s path=%s status=%d bytes=%" PRIu64 " us=%" PRIu64 "%s%s%s%s%s%s",
                 c->id, c->route ? c->route->method : "-", c->route ? c->route->path : "-", status,
                 bytes, took / 1000, c->client ? " key=" : "", c->client ? c->client->name : "",
                 c->model_name ? " model=" : "", c->model_name ? c->model_name : "",
                 c->trace[0] ? " trace=" : "", c->trace);
    c->gl->n_calls--;
}

static void on_cancelled(struct http_req *r)
{
    struct call *c = r->user;
    c->req = NULL;
    account(c, 499, r->sent_bytes);
    if (c->abandon)
        c->abandon(c);
    call_release(c);
}

static void on_drained(struct http_req *r)
{
    struct call *c = r->user;
    if (c->resume)
        c->resume(c);
}

static void on_arrived(struct http_req *r)
{
    struct call *c = r->user;
    if (c->arrived)
        c->arrived(c);
}

/* ---- answers ---- */

struct head {
    struct http_header h[MAX_HEADERS_OUT];
    size_t n;
};

static void add(struct head *head, const char *name, const char *value)
{
    if (head->n < MAX_HEADERS_OUT)
        head->h[head->n++] = (struct http_header){name, value};
}

static const char *allowed_origin(const struct call *c)
{
    const char *origin = http_header(c->req, "origin");
    const struct gw_config *cfg = c->gl->config;
    for (uint32_t i = 0; origin && i < cfg->n_origins; i++)
        if (strcmp(cfg->origins[i], "*") == 0 || strcasecmp(cfg->origins[i], origin) == 0)
            return origin;
    return NULL;
}

static void common_headers(const struct call *c, struct head *head)
{
    const char *origin = allowed_origin(c);
    add(head, "x-request-id", c->id);
    if (c->trace[0])
        add(head, "traceparent", c->trace);
    if (c->model_name)
        add(head, "x-shoal-model", c->model_name);
    if (c->cache_note)
        add(head, "x-shoal-cache", c->cache_note);
    if (origin) {
        add(head, "access-control-allow-origin", origin);
        add(head, "access-control-expose-headers", "x-request-id, x-shoal-cache, x-shoal-model");
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

int call_status_of(int code)
{
    switch (code) {
    case SHOAL_EINVAL:
    case SHOAL_EFORMAT:
    case SHOAL_ELIMIT:
    case SHOAL_EUNSUPPORTED:
        return 400;
    case SHOAL_ENOTFOUND:
        return 404;
    case SHOAL_EBUSY:
        return 429;
    case SHOAL_EDEADLINE:
        return 504;
    case SHOAL_ENOMEM:
        return 503;
    case SHOAL_ECANCELLED:
        return 503;
    default:
        return 500;
    }
}

static void put_or_null(struct json_out *j, const char *key, const char *value)
{
    json_out_key(j, key);
    if (value && value[0])
        json_out_str(j, value);
    else
        json_out_null(j);
}

void call_put_error(const struct call *c, struct buf *b, const char *type, const char *param,
                    const char *code, const char *msg)
{
    struct json_out j = json_out_make(b);
    json_out_object(&j);
    json_out_key(&j, "error");
    if (c->ollama) {
        json_out_str(&j, msg);
    } else {
        json_out_object(&j);
        json_out_key(&j, "message");
        json_out_str(&j, msg);
        json_out_key(&j, "type");
        json_out_str(&j, type);
        put_or_null(&j, "param", param);
        put_or_null(&j, "code", code);
        json_out_object_end(&j);
    }
    json_out_object_end(&j);
    buf_putc(b, '\n');
}

static void fail_with(struct call *c, int status, const char *type, const char *param,
                      const char *code, const char *retry_after, const char *msg)
{
    struct head head = {.n = 0};
    if (status == 400 || status == 404 || status == 405 || status == 413)
        counter_add(&c->gl->gw->refused[GW_REFUSED_INVALID], 1);
    buf_clear(&c->out);
    call_put_error(c, &c->out, type, param, code, msg);
    add(&head, "content-type", "application/json");
    if (retry_after)
        add(&head, "retry-after", retry_after);
    if (status == 401)
        add(&head, "www-authenticate", "Bearer");
    send_whole(c, status, &head, buf_str(&c->out), c->out.len);
}

void call_fail(struct call *c, int status, const char *type, const char *param, const char *code,
               const char *fmt, ...)
{
    char msg[512];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(msg, sizeof(msg), fmt, ap);
    va_end(ap);
    fail_with(c, status, type ? type : call_type_of(status), param, code, NULL, msg);
}

void call_fail_fields(struct call *c, const struct fields_error *e)
{
    call_fail(c, 400, NULL, e->param, e->code, "%s", e->msg);
}

void call_fail_code(struct call *c, int code, const char *msg)
{
    int status = call_status_of(code);
    if (code == SHOAL_EBUSY)
        call_refuse(c, GW_REFUSED_BUSY, 429, 1, "%s", msg);
    else if (code == SHOAL_EDEADLINE)
        call_fail_late(c, false, false, msg);
    else
        call_fail(c, status, NULL, NULL,
                  code == SHOAL_ELIMIT      ? "context_length_exceeded"
                  : code == SHOAL_ENOTFOUND ? "model_not_found"
                                            : NULL,
                  "%s", msg);
}

static void refuse_with(struct call *c, enum gw_refusal why, const char *code, int status,
                        uint32_t retry_after_s, const char *msg)
{
    char retry[16];
    counter_add(&c->gl->gw->refused[why], 1);
    snprintf(retry, sizeof(retry), "%u", retry_after_s);
    fail_with(c, status, call_type_of(status), NULL, code, retry_after_s ? retry : NULL, msg);
}

void call_refuse(struct call *c, enum gw_refusal why, int status, uint32_t retry_after_s,
                 const char *fmt, ...)
{
    static const char *const codes[GW_N_REFUSED] = {
        "invalid_api_key", "rate_limit_exceeded", "overloaded", "deadline", "draining", NULL,
        "model_loading"};
    char msg[512];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(msg, sizeof(msg), fmt, ap);
    va_end(ap);
    refuse_with(c, why, codes[why], status, retry_after_s, msg);
}

void call_fail_late(struct call *c, bool refused, bool others, const char *msg)
{
    refuse_with(c, GW_REFUSED_DEADLINE, refused && !others ? "deadline_unreachable" : "deadline",
                504, others ? 1 : 0, msg);
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
    add(&head, "x-accel-buffering", "no"); /* proxies: do not gather */
    common_headers(c, &head);
    c->began = true;
    http_begin(c->req, 200, head.h, head.n, -1);
}

void call_write(struct call *c, const char *p, size_t n)
{
    if (c->req)
        http_write(c->req, p, n);
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

/* ---- the door ---- */

static void make_id(struct call *c)
{
    const char *given = http_header(c->req, "x-request-id");
    size_t n = given ? strspn(given, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                     "0123456789._:-")
                     : 0;
    if (n > 0 && given[n] == '\0' && n < sizeof(c->id)) {
        memcpy(c->id, given, n + 1);
        return;
    }
    struct gw_loop *gl = c->gl;
    uint64_t seed[2] = {gl->gw->id_salt, ((uint64_t)(gl - gl->gw->loops) << 48) + gl->next_id++};
    memcpy(c->id, "req_", 4);
    hash_hex(c->id + 4, hash_bytes(seed, sizeof(seed), 7));
}

/* W3C trace context: ours goes on with the caller's trace. */
static void read_trace(struct call *c)
{
    const char *tp = http_header(c->req, "traceparent");
    if (!tp || strlen(tp) != 55 || strspn(tp, "0123456789abcdef-") != 55 || tp[2] != '-' ||
        tp[35] != '-' || tp[52] != '-')
        return;
    uint64_t span = hash_bytes(c->id, strlen(c->id), c->gl->gw->id_salt);
    snprintf(c->trace, sizeof(c->trace), "%.35s-%016" PRIx64 "%s", tp, span, tp + 52);
}

static bool matches(const struct route *r, const char *path)
{
    size_t n = strlen(r->path);
    if (n > 0 && r->path[n - 1] == '*')
        return strncmp(r->path, path, n - 1) == 0;
    return strcmp(r->path, path) == 0;
}

static const struct route *find_route(const struct http_req *r, bool *wrong_method)
{
    const char *method = r->head ? "GET" : r->method;
    *wrong_method = false;
    for (size_t i = 0; i < gw_n_routes; i++) {
        if (!matches(&gw_routes[i], r->path))
            continue;
        if (*wrong_method && strcmp(gw_routes[i].path, "/*") == 0)
            break; /* the path is there, only not for this method */
        if (strcmp(gw_routes[i].method, method) == 0)
            return &gw_routes[i];
        *wrong_method = true;
    }
    return NULL;
}

bool gw_early(const char *path)
{
    for (size_t i = 0; i < gw_n_routes; i++)
        if ((gw_routes[i].flags & ROUTE_EARLY) && matches(&gw_routes[i], path))
            return true;
    return false;
}

static void preflight(struct call *c)
{
    struct head head = {.n = 0};
    if (allowed_origin(c)) {
        const char *asked = http_header(c->req, "access-control-request-headers");
        add(&head, "access-control-allow-methods", "GET, POST, DELETE, OPTIONS");
        add(&head, "access-control-allow-headers", asked ? asked : "authorization, content-type");
        add(&head, "access-control-max-age", "600");
    }
    send_whole(c, 204, &head, "", 0);
}

/* Where no keys are configured, only this machine's own people administer: not other machines, and
 * not pages of other sites in a browser here (which may send to us, and say where they come from).
 */
static bool check_local(struct call *c)
{
    static const char *const peers[] = {"unix", "127.0.0.1", "::1", "::ffff:127.0.0.1"};
    static const char *const hosts[] = {"localhost", "127.0.0.1", "[::1]"};
    const char *origin = http_header(c->req, "origin");
    bool peer_ok = false, origin_ok = !origin || allowed_origin(c);
    for (size_t i = 0; i < sizeof(peers) / sizeof(peers[0]); i++)
        peer_ok |= strcmp(c->req->peer, peers[i]) == 0;
    const char *host = origin ? strstr(origin, "://") : NULL;
    for (size_t i = 0; host && i < sizeof(hosts) / sizeof(hosts[0]); i++) {
        size_t n = strlen(hosts[i]);
        origin_ok |=
            strncasecmp(host + 3, hosts[i], n) == 0 && (host[3 + n] == ':' || host[3 + n] == '\0');
    }
    if (peer_ok && origin_ok)
        return true;
    call_fail(c, 403, NULL, NULL, NULL,
              "without keys in the configuration, only this machine may administer");
    return false;
}

/* true: the caller may go on. */
static bool check_key(struct call *c)
{
    struct gw *gw = c->gl->gw;
    if (c->route->flags & ROUTE_OPEN)
        return true;
    if (!admission_needed(gw->admission))
        return !(c->route->flags & ROUTE_ADMIN) || check_local(c);
    const char *auth = http_header(c->req, "authorization"),
               *key = http_header(c->req, "x-api-key");
    if (auth && strncasecmp(auth, "bearer ", 7) == 0)
        key = auth + 7;
    if (key)
        c->client = admission_find(gw->admission, key, strlen(key));
    if (!c->client) {
        call_refuse(c, GW_REFUSED_AUTH, 401, 0,
                    key ? "this API key is not known here"
                        : "no API key: send Authorization: "
                          "Bearer KEY");
        return false;
    }
    if ((c->route->flags & ROUTE_ADMIN) && !c->client->admin) {
        call_fail(c, 403, NULL, NULL, NULL, "the key '%s' may not administer this server",
                  c->client->name);
        return false;
    }
    return true;
}

static bool enter(struct call *c)
{
    uint32_t retry_ms;
    if (!(c->route->flags & ROUTE_WORK))
        return true;
    enum admission_verdict a = admission_enter(c->gl->gw->admission, c->client, &retry_ms);
    c->places = a == ADMISSION_OK;
    if (c->places > 0)
        return true;
    call_refuse(c, a == ADMISSION_RATE ? GW_REFUSED_RATE : GW_REFUSED_BUSY, 429,
                (retry_ms + 999) / 1000,
                a == ADMISSION_RATE ? "too many requests: this key may send no more now"
                                    : "too many requests in flight");
    return false;
}

bool call_enter_more(struct call *c, uint32_t n_prompts)
{
    uint32_t most, more = n_prompts - 1;
    if (c->places == 0 || more == 0)
        return true;
    if (admission_enter_more(c->gl->gw->admission, c->client, more, &most) == ADMISSION_OK) {
        c->places += more;
        return true;
    }
    if (n_prompts > most)
        call_fail(c, 400, NULL, "prompt", "invalid_value",
                  "'prompt' holds %u prompts, and only %u requests may be in flight", n_prompts,
                  most);
    else
        call_refuse(c, GW_REFUSED_BUSY, 429, 1, "too many requests in flight for %u prompts more",
                    more);
    return false;
}

static bool read_deadline(struct call *c)
{
    const struct gw_config *cfg = c->gl->config;
    const char *text = http_header(c->req, "x-latency-budget-ms");
    uint64_t ms = cfg->default_deadline_ms;
    if (text) {
        char *end;
        double v = strtod(text, &end);
        if (end == text || *end || !(v > 0 && v <= 86400000.0)) {
            call_fail(c, 400, NULL, "x-latency-budget-ms", "invalid_value",
                      "x-latency-budget-ms must be a number of milliseconds above 0");
            return false;
        }
        ms = (uint64_t)v > 0 ? (uint64_t)v : 1;
    }
    if (cfg->max_deadline_ms && (ms == 0 || ms > cfg->max_deadline_ms))
        ms = cfg->max_deadline_ms;
    c->deadline_ns = ms ? c->start_ns + ms * 1000000u : 0;
    return true;
}

void call_set_budget(struct call *c, double ms)
{
    uint64_t at = c->start_ns + (uint64_t)(ms * 1e6);
    if (ms > 0 && (c->deadline_ns == 0 || at < c->deadline_ns))
        c->deadline_ns = at;
}

static bool read_json(struct call *c)
{
    const char *end = NULL;
    if (!(c->route->flags & ROUTE_JSON))
        return true;
    if (c->req->body_bytes == 0) {
        call_fail(c, 400, NULL, NULL, NULL, "the body is empty: send a JSON object");
        return false;
    }
    c->json = cJSON_ParseWithLengthOpts(c->req->body, c->req->body_bytes, &end, false);
    if (c->json && end) { /* nothing but white space may follow */
        end += strspn(end, " \t\r\n");
        if (end < c->req->body + c->req->body_bytes) {
            cJSON_Delete(c->json);
            c->json = NULL;
        }
    }
    if (!c->json) {
        size_t at = end ? (size_t)(end - c->req->body) : 0;
        call_fail(c, 400, NULL, NULL, "invalid_json", "the body is not valid JSON (near byte %zu)",
                  at);
        return false;
    }
    if (!cJSON_IsObject(c->json)) {
        call_fail(c, 400, NULL, NULL, "invalid_type", "the body must be a JSON object");
        return false;
    }
    return true;
}

void gw_handle(void *gw_loop, struct http_req *r)
{
    struct gw_loop *gl = gw_loop;
    struct call *c = mem_zalloc(sizeof(*c));
    bool wrong_method;
    if (!c) {
        http_begin(r, 503, NULL, 0, 0);
        http_end(r);
        return;
    }
    if (r->body_bytes > LONG_BODY_BYTES) /* those of this turn do not wait until it is parsed */
        acquire_wake(&gl->wake_engines);
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
    const char *lenient = http_header(r, "x-shoal-lenient");
    c->lenient = lenient && strcmp(lenient, "1") == 0;
    make_id(c);
    read_trace(c);
    c->ollama = strncmp(r->path, "/api/", 5) == 0;
    call_hold(c); /* while the handler runs */
    if (strcmp(r->method, "OPTIONS") == 0) {
        preflight(c);
    } else if (!(c->route = find_route(r, &wrong_method))) {
        if (wrong_method)
            call_fail(c, 405, NULL, NULL, NULL, "%s cannot be used with %.100s", r->method,
                      r->path);
        else
            call_fail(c, 404, NULL, NULL, "not_found", "there is nothing at %.100s", r->path);
    } else if (check_key(c) && enter(c) && read_deadline(c)) {
        bool known = (c->route->flags & ROUTE_RECALL) && gen_recall(c);
        if (!known && read_json(c))
            c->route->handle(c);
    }
    call_release(c);
}
