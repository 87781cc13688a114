/* door.c - see door.h. */
#include "gateway/call/door.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "gateway/api/own/api_deferred.h"
#include "gateway/call/api_key.h"
#include "gateway/call/assets.h"
#include "gateway/call/body.h"
#include "gateway/grpc/grpc_call.h"
#include "gateway/call/guard.h"
#include "gateway/call/traced.h"
#include "supply/audit_log.h"

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

/* W3C trace context: a new span in the caller's trace. */
static void read_trace(struct call *c)
{
    if (!trace_context_read(&c->caller, http_header(c->req, "traceparent"))) {
        c->caller.span = 0;
        return;
    }
    c->spans.context = c->caller;
    c->spans.context.span = trace_context_new_span();
}

/* A star at the end is any text, one between slashes is the text up to the next slash. */
static bool matches(const struct route *r, const char *path)
{
    const char *star = strchr(r->path, '*');
    if (!star)
        return strcmp(r->path, path) == 0;
    const size_t n = (size_t)(star - r->path);
    return strncmp(r->path, path, n) == 0 &&
           (!star[1] || strcmp(path + n + strcspn(path + n, "/"), star + 1) == 0);
}

/* NULL: none. allow: the methods of the path, if it exists; otherwise "". */
static const struct route *search_routes(const struct gw *gw, const struct http_req *r, char *allow,
                                         size_t cap)
{
    const char *method = r->head ? "GET" : r->method;
    size_t n = 0;
    allow[0] = '\0';
    for (size_t i = 0; i < gw->n_routes; i++) {
        const struct route *route = &gw->routes[i];
        if (!matches(route, r->path))
            continue;
        bool page = strcmp(route->path, "/*") == 0; /* after all others */
        if (page && n > 0)
            break; /* the path exists, but not for this method */
        if (strcmp(route->method, method) == 0)
            return route;
        if (page && !assets_has(r->path))
            break;
        int k = snprintf(allow + n, cap - n, "%s%s", n > 0 ? ", " : "",
                         strcmp(route->method, "GET") == 0 ? "GET, HEAD" : route->method);
        n += k > 0 && (size_t)k < cap - n ? (size_t)k : 0;
    }
    return NULL;
}

/* The same, from the routes that this loop found before: requests repeat. */
static const struct route *find_route(struct gw_loop *gl, const struct http_req *r, char *allow,
                                      size_t cap)
{
    const size_t n = strlen(r->path);
    const struct route **known = &gl->routes[(n + (uint8_t)r->path[n ? n - 1 : 0]) % GW_ROUTES];
    if (*known && strcmp((*known)->path, r->path) == 0 && strcmp((*known)->method, r->method) == 0)
        return *known;
    const struct route *found = search_routes(gl->gw, r, allow, cap);
    if (found)
        *known = found;
    return found;
}

/* Answers a request for which there is no route. */
static void refuse_route(struct call *c, const char *allow)
{
    const struct http_req *r = c->req;
    if (allow[0])
        call_fail_method(c, allow);
    else if (grpc_call_has_type(r))
        grpc_call_fail_plain(c, GRPC_UNIMPLEMENTED, "UNKNOWN_SERVICE", "there is no such service");
    else
        call_fail(c, 404, NULL, NULL, "not_found", "there is nothing at %.100s", r->path);
}

bool door_early(void *gw_loop, const char *path)
{
    const struct gw *gw = ((const struct gw_loop *)gw_loop)->gw;
    for (size_t i = 0; i < gw->n_routes; i++)
        if ((gw->routes[i].flags & ROUTE_EARLY) && matches(&gw->routes[i], path))
            return true;
    return false;
}

/* A line in the audit log about what happens before a request is read. */
static void audit(struct call *c, enum audit_kind kind, const char *reason)
{
    char act[256];
    if (!c->gl->gw->audit)
        return;
    snprintf(act, sizeof(act), "%s %s", c->route->method, c->route->path);
    audit_log_put(c->gl->gw->audit,
                  &(struct audit_entry){.kind = kind,
                                        .client = c->client ? c->client->name : NULL,
                                        .act = act,
                                        .reason = reason});
}

/* False: the request is refused and answered. */
static bool check_key(struct call *c)
{
    struct gw *gw = c->gl->gw;
    if (c->route->flags & ROUTE_OPEN)
        return true;
    /* Any page may post to any server: it cannot read the answer, but a command acts. */
    if (!admission_needed(gw->admission))
        return c->route->flags & ROUTE_ADMIN
                   ? guard_admin(c)
                   : strcmp(c->route->method, "GET") == 0 || guard_origin(c);
    char found[API_KEY_MAX];
    if (api_key_twice(c->req)) {
        call_fail(c, 400, NULL, NULL, "invalid_value",
                  "there is more than one key: send one Authorization or x-api-key header");
        return false;
    }
    const char *key = api_key_of(c->req, found);
    if (key)
        c->client = admission_find(gw->admission, key, strlen(key));
    if (!c->client) {
        audit(c, AUDIT_REFUSED, "invalid_api_key");
        call_refuse(c, GW_REFUSED_AUTH, 401, 0,
                    key ? "unknown API key"
                        : "no API key: send Authorization: "
                          "Bearer KEY");
        return false;
    }
    if ((c->route->flags & ROUTE_ADMIN) && !c->client->admin) {
        audit(c, AUDIT_REFUSED, "no_admin_rights");
        call_fail(c, 403, NULL, NULL, NULL, "the key '%s' has no administration rights",
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
    audit(c, AUDIT_REFUSED,
          a == ADMISSION_QUOTA  ? "insufficient_quota"
          : a == ADMISSION_RATE ? "rate_limit_exceeded"
                                : "overloaded");
    if (a == ADMISSION_QUOTA) {
        call_refuse(c, GW_REFUSED_QUOTA, 429, (retry_ms + 999) / 1000,
                    "the key '%s' has used its tokens for today: try again in %u s, or raise its "
                    "'tokens_per_day' in the configuration",
                    c->client->name, (retry_ms + 999) / 1000);
        return false;
    }
    call_refuse(c, a == ADMISSION_RATE ? GW_REFUSED_RATE : GW_REFUSED_BUSY, 429,
                (retry_ms + 999) / 1000,
                a == ADMISSION_RATE ? "too many requests with this key: try again later"
                                    : "too many requests in flight");
    return false;
}

bool door_enter_more(struct call *c, uint32_t n_prompts)
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
        call_refuse(c, GW_REFUSED_BUSY, 429, 1,
                    "too many requests in flight: no room for %u more prompts", more);
    return false;
}

void door_set_budget(struct call *c, double ms)
{
    const double most = c->gl->config->max_deadline_ms;
    if (most > 0 && (ms <= 0 || ms > most))
        ms = most;
    c->deadline_ns = ms > 0 ? c->start_ns + (uint64_t)(ms * 1e6) : 0;
}

static bool read_deadline(struct call *c)
{
    const char *text = http_header(c->req, "x-latency-budget-ms");
    if (text) {
        char *end;
        double v = strtod(text, &end);
        if (end == text || *end || !(v > 0 && v <= 86400000.0)) {
            call_fail(c, 400, NULL, "x-latency-budget-ms", "invalid_value",
                      "x-latency-budget-ms must be a number of milliseconds above 0");
            return false;
        }
        door_set_budget(c, v);
    } else {
        door_set_budget(c, c->gl->config->default_deadline_ms);
    }
    return true;
}

/* Headers of every answer, including refusals. */
static void greet(struct call *c)
{
    struct http_req *r = c->req;
    const char *lenient = http_header(r, "x-shoal-lenient");
    c->lenient = c->gl->config->lenient || (lenient && strcmp(lenient, "1") == 0);
    make_id(c);
    read_trace(c);
    c->ollama = strncmp(r->path, "/api/", 5) == 0;
    c->anthropic = strncmp(r->path, "/v1/messages", 12) == 0;
}

/* Checks based only on the headers: whether the route exists and the client may use it. False: the
 * call is answered. */
static bool identify(struct call *c)
{
    char allow[64];
    if (strcmp(c->req->method, "OPTIONS") == 0) {
        call_preflight(c);
        return false;
    }
    c->route = find_route(c->gl, c->req, allow, sizeof(allow));
    if (!c->route)
        refuse_route(c, allow);
    return c->route && check_key(c);
}

/* The body is complete: passes the call to its handler. */
static void run(struct call *c)
{
    if ((c->route->flags & ROUTE_ADMIN) && strcmp(c->route->method, "GET") != 0)
        audit(c, AUDIT_ADMIN, NULL);
    c->route->handle(c);
    if (!(c->route->flags & ROUTE_KEEPS_JSON))
        call_drop_json(c);
}

/* The body is plain: reads it and hands the call on. */
static void read_on(struct call *c)
{
    const cJSON *json = c->json;
    bool later = (c->route->flags & ROUTE_WORK) && api_deferred_asked(c);
    if (later && (json || !(c->route->flags & ROUTE_JSON)))
        call_fail(c, 400, NULL, "x-shoal-defer", "invalid_value",
                  "only requests over HTTP with JSON can be deferred");
    else if (later)
        body_read(c, api_deferred_take);
    else if (json || !(c->route->flags & ROUTE_JSON))
        run(c);
    else if (!c->route->recall || c->gl->gw->audit || http_header(c->req, "x-shoal-version") ||
             !c->route->recall(c))
        body_read(c, run);
}

/* json: the body, taken; NULL: the request's own is read. */
static void pass(struct call *c, cJSON *json)
{
    c->json = json; /* freed with the call */
    if (!enter(c) || !read_deadline(c))
        return;
    if (c->route->flags & ROUTE_WORK)
        traced_begin(c);
    if (json)
        read_on(c);
    else
        body_unpack(c, read_on);
}

void door_enter(struct call *c, cJSON *json)
{
    greet(c);
    if (identify(c))
        pass(c, json);
    else
        cJSON_Delete(json);
}

void door_enter_as(struct call *c, struct admission_client *client, cJSON *json)
{
    char allow[64];
    greet(c);
    c->client = client;
    c->route = find_route(c->gl, c->req, allow, sizeof(allow));
    if (c->route && !(c->route->flags & ROUTE_ADMIN)) {
        pass(c, json);
        return;
    }
    cJSON_Delete(json);
    refuse_route(c, "");
}

bool door_admit(void *gw_loop, struct http_req *r)
{
    struct call *c = call_create(gw_loop, r);
    if (!c)
        return false;
    call_hold(c);
    greet(c);
    bool ok = guard_host(c) && identify(c);
    call_release(c);
    return ok;
}

void door_handle(void *gw_loop, struct http_req *r)
{
    struct gw_loop *gl = gw_loop;
    struct call *admitted = r->user, *c = admitted ? admitted : call_create(gl, r);
    if (!c)
        return;
    call_hold(c); /* while the handler runs */
    c->start_ns = r->received_ns;
    if (!admitted)
        greet(c);
    if (admitted || (guard_host(c) && identify(c)))
        pass(c, NULL);
    call_release(c);
}

void door_refuse(struct http_req *r, const struct http_refusal *why)
{
    struct http_header headers[] = {{"content-type", "application/json"}, {"retry-after", NULL}};
    const struct call_error e = {.type = why->status < 500 || !why->code ? "invalid_request_error"
                                                                         : "server_error",
                                 .code = why->code,
                                 .message = why->why};
    const uint32_t retry_s = call_retry_after(why->status, why->retry_s);
    char retry[16];
    struct buf body;
    if (grpc_call_refuse(r, why))
        return;
    buf_init(&body, 1024);
    call_put_error(&body, &e, false);
    buf_putc(&body, '\n');
    snprintf(retry, sizeof(retry), "%u", retry_s);
    headers[1].value = retry;
    http_begin(r, why->status, headers, retry_s ? 2 : 1, (int64_t)body.len);
    http_write(r, buf_str(&body), body.len);
    http_end(r);
    buf_fini(&body);
}
