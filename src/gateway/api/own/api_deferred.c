/* api_deferred.c - see api_deferred.h. */
#include "gateway/api/own/api_deferred.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "host/sha256.h"
#include "knowledge/offload.h"
#include "site/deferred/deferred.h"
#include "store/deferred_store.h"
#include "wire/json_out.h"

#define NAME_CHARACTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-"
#define MAX_NAME_BYTES 64u
#define FULL_ID_BYTES (DEFERRED_STORE_ID_BYTES + MAX_NAME_BYTES + 1)
#define PREFIX "/v1/deferred/"
#define HEADER "x-shoal-defer"
#define MAX_HEADER_BYTES ((size_t)16 << 10)
#define MAX_ANSWER_BYTES ((size_t)256 << 20)
#define SECOND_MS 1000.0

enum deed { DEED_PUT, DEED_SHOW, DEED_DROP };

/* One call of a client and what the pool does for it. */
struct work {
    struct call *call; /* held */
    struct deferred *deferred;
    struct offload offload;
    enum deed deed;
    char client[64];
    char id[DEFERRED_STORE_ID_BYTES];
    struct buf headers; /* DEED_PUT, like the next fields */
    const char *path, *query;
    int64_t now_ms, expires_ms;
    uint8_t key[DEFERRED_STORE_DIGEST_BYTES];
    bool has_key;
    struct deferred_view view;
    struct buf out;
    int rc;
    struct err error;
};

bool api_deferred_asked(const struct call *c)
{
    return http_header(c->req, HEADER) != NULL;
}

/* ---- on the pool ---- */

static int digest_of(uint8_t out[SHA256_BYTES], const struct work *w, const char *body)
{
    struct sha256 h;
    sha256_begin(&h);
    sha256_add(&h, w->path, strlen(w->path) + 1);
    sha256_add(&h, w->query, strlen(w->query) + 1);
    sha256_add(&h, body, strlen(body));
    return sha256_end(&h, out) ? 0 : SHOAL_ENOMEM;
}

static int keep(struct work *w)
{
    uint8_t digest[SHA256_BYTES];
    char *body =
        cJSON_PrintUnformatted(w->call->json); /* the call does not use it in the meantime */
    int rc = body ? digest_of(digest, w, body) : SHOAL_ENOMEM;
    if (rc < 0) {
        cJSON_free(body);
        return err_set(&w->error, rc, "out of memory");
    }
    const struct deferred_item item = {.client = w->client,
                                       .path = w->path,
                                       .query = w->query,
                                       .headers = buf_str(&w->headers),
                                       .n_headers = w->headers.len,
                                       .body = body,
                                       .n_body = strlen(body)};
    rc = deferred_store_put(w->deferred->store, &item, digest, w->has_key ? w->key : NULL,
                            w->now_ms, w->expires_ms, w->id, &w->error);
    cJSON_free(body);
    if (rc == 0)
        atomic_fetch_add(&w->deferred->n_put, 1);
    if (rc >= 0) /* the runner may not have seen it */
        atomic_store(&w->deferred->next_ms, 0);
    if (rc == 1)
        rc =
            deferred_store_show(w->deferred->store, w->client, w->id, &w->view, &w->out, &w->error);
    return rc;
}

static void do_it(void *ctx)
{
    struct work *w = ctx;
    struct deferred_store *s = w->deferred->store;
    if (w->deed == DEED_PUT)
        w->rc = keep(w);
    else if (w->deed == DEED_SHOW)
        w->rc = deferred_store_show(s, w->client, w->id, &w->view, &w->out, &w->error);
    else
        w->rc = deferred_store_drop(s, w->client, w->id, &w->error);
}

/* ---- answers ---- */

static void fail(struct call *c, const struct work *w)
{
    if (w->rc == SHOAL_ENOTFOUND)
        call_fail(c, 404, NULL, NULL, "not_found", "%s", w->error.msg);
    else if (w->rc == SHOAL_ELIMIT)
        call_refuse(c, GW_REFUSED_BUSY, 429, 60, "%s", w->error.msg);
    else if (w->rc == SHOAL_EINVAL)
        call_fail(c, 409, NULL, "idempotency-key", "idempotency_key_reused", "%s", w->error.msg);
    else
        call_fail_code(c, w->rc, w->error.msg);
}

static const char *state_name(enum deferred_state s)
{
    static const char *const names[] = {"waiting", "running", "done", "expired"};
    return names[s];
}

/* The part of ids that tells several gateways apart; "": there is only one, or its name does not
 * fit into an id. */
static const char *own_name(const struct call *c)
{
    const struct config_cluster *k = &c->gl->gw->config->cluster;
    bool alone = k->nodes.n == 0 && k->nats.n == 0;
    const char *name = k->name ? k->name : "";
    size_t n = strspn(name, NAME_CHARACTERS);
    return alone || n > MAX_NAME_BYTES || name[n] ? "" : name;
}

/* The public id: with the gateway that keeps the request. */
static void full_id(char out[FULL_ID_BYTES], const struct call *c, const char *id)
{
    const char *name = own_name(c);
    snprintf(out, FULL_ID_BYTES, "%s%s%s", id, name[0] ? "." : "", name);
}

/* 202 with where the answer will be. */
static void answer_later(struct call *c, const struct work *w)
{
    const struct deferred_view *v = &w->view;
    char id[FULL_ID_BYTES], where[sizeof(PREFIX) + FULL_ID_BYTES];
    struct json_out j = json_out_make(&c->out);
    full_id(id, c, w->id);
    snprintf(where, sizeof(where), PREFIX "%s", id);
    buf_clear(&c->out);
    json_out_object(&j);
    json_out_member_str(&j, "id", id);
    json_out_member_str(&j, "object", "deferred");
    json_out_member_str(&j, "state", state_name(v->state));
    json_out_member_num(&j, "created", (double)v->created_ms / SECOND_MS);
    json_out_member_num(&j, "expires", (double)v->expires_ms / SECOND_MS);
    json_out_member_uint(&j, "tries", v->n_tries);
    if (v->why[0])
        json_out_member_str(&j, "last_error", v->why);
    json_out_object_end(&j);
    const struct http_header headers[] = {
        {"location", where}, {"retry-after", "1"}, {"x-shoal-deferred", state_name(v->state)}};
    call_file(c, 202, "application/json", headers, 3, buf_str(&c->out), c->out.len);
}

static void answer(struct call *c, const struct work *w)
{
    static const struct http_header done = {"x-shoal-deferred", "done"};
    if (w->deed == DEED_DROP) {
        char id[FULL_ID_BYTES];
        full_id(id, c, w->id);
        buf_clear(&c->out);
        buf_printf(&c->out, "{\"id\":\"%s\",\"deleted\":true}", id);
        call_json(c, 200);
    } else if (w->deed == DEED_PUT || w->view.state <= DEFERRED_RUNNING) {
        answer_later(c, w);
    } else if (w->view.state == DEFERRED_EXPIRED) {
        call_fail(c, 410, NULL, NULL, "deferred_expired",
                  "the request found no answer before it expired%s%s", w->view.why[0] ? ": " : "",
                  w->view.why);
    } else {
        call_file(c, w->view.status, w->view.type, &done, 1, buf_str(&w->out), w->out.len);
    }
}

static void on_done(void *ctx)
{
    struct work *w = ctx;
    struct call *c = w->call;
    if (c->req && w->rc < 0)
        fail(c, w);
    else if (c->req)
        answer(c, w);
    buf_fini(&w->headers);
    buf_fini(&w->out);
    mem_free(w);
    call_release(c);
}

/* ---- calls ---- */

/* NULL: the call is answered. */
static struct work *work_create(struct call *c, enum deed deed)
{
    struct work *w = mem_zalloc(sizeof(*w));
    if (!w) {
        call_fail_code(c, SHOAL_ENOMEM, "out of memory");
        return NULL;
    }
    w->call = c;
    w->deferred = c->gl->gw->deferred;
    w->deed = deed;
    if (c->client)
        memcpy(w->client, c->client->name, sizeof(w->client));
    buf_init(&w->headers, MAX_HEADER_BYTES);
    buf_init(&w->out, MAX_ANSWER_BYTES);
    w->offload = (struct offload){.work = do_it, .then = on_done, .ctx = w};
    call_hold(c);
    return w;
}

static void work_run(struct work *w)
{
    if (offload_run(&w->offload, &w->call->gl->flow) < 0) {
        w->rc = err_set(&w->error, SHOAL_EBUSY, "too much work is waiting: try again later");
        on_done(w);
    }
}

/* A time with a unit, such as 90s, 10m or 2h, in milliseconds; 0: invalid. */
static double read_ttl(const char *text)
{
    static const struct {
        char unit;
        double ms;
    } units[] = {{'s', 1e3}, {'m', 6e4}, {'h', 3.6e6}};
    char *end;
    double v = strtod(text, &end);
    if (end == text || !(v > 0 && v < 1e9) || !end[0] || end[1])
        return 0;
    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++)
        if (units[i].unit == end[0])
            return v * units[i].ms;
    return 0;
}

/* Headers that affect the request. Not the client's key: the client is stored by name. */
static bool is_kept(const char *name)
{
    static const char *const others[] = {"content-language", "idempotency-key", "traceparent"};
    static const char *const not_kept[] = {HEADER, "x-api-key", "x-latency-budget-ms",
                                           "x-request-id"};
    for (size_t i = 0; i < sizeof(not_kept) / sizeof(not_kept[0]); i++)
        if (strcmp(name, not_kept[i]) == 0)
            return false;
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
        if (strcmp(name, others[i]) == 0)
            return true;
    return strncmp(name, "x-", 2) == 0 && strncmp(name, "x-forwarded-", 12) != 0;
}

static void copy_headers(struct work *w)
{
    const struct http_req *r = w->call->req;
    for (size_t i = 0; i < r->n_headers; i++) {
        const struct http_header *h = &r->headers[i];
        if (!is_kept(h->name))
            continue;
        buf_put(&w->headers, h->name, strlen(h->name) + 1);
        buf_put(&w->headers, h->value, strlen(h->value) + 1);
    }
}

static bool read_key(struct work *w)
{
    const char *key = call_once_key(w->call);
    struct sha256 h;
    if (!key)
        return true;
    sha256_begin(&h);
    sha256_add(&h, key, strlen(key));
    w->has_key = sha256_end(&h, w->key);
    return w->has_key;
}

/* Rejects calls that cannot be deferred; false: the call is answered. */
static bool check(struct call *c)
{
    const cJSON *stream = cJSON_GetObjectItemCaseSensitive(c->json, "stream");
    if (!c->gl->gw->deferred)
        call_fail(c, 400, NULL, HEADER, "deferred_off",
                  "this server keeps no deferred requests: set deferred.file in the configuration");
    else if (strncmp(c->req->path, "/v1/", 4) != 0 || c->route->fail)
        call_fail(c, 400, NULL, HEADER, "invalid_value",
                  "only POST requests with JSON to paths under /v1/ can be deferred");
    else if (cJSON_IsTrue(stream))
        call_fail(c, 400, NULL, "stream", "invalid_value",
                  "a deferred answer cannot be streamed: leave out 'stream'");
    else
        return true;
    return false;
}

void api_deferred_take(struct call *c)
{
    double ms = read_ttl(http_header(c->req, HEADER));
    if (!check(c))
        return;
    double most = c->gl->gw->deferred->max_ttl_ms;
    if (ms < 1 || ms > most) {
        call_fail(c, 400, NULL, HEADER, "invalid_value",
                  HEADER " must be how long the answer is useful, such as 10m or 2h, and at most "
                         "%.0fs (deferred.ttl)",
                  most / SECOND_MS);
        return;
    }
    struct work *w = work_create(c, DEED_PUT);
    if (!w)
        return;
    w->now_ms = deferred_now_ms();
    w->expires_ms = w->now_ms + (int64_t)ms;
    w->view = (struct deferred_view){.created_ms = w->now_ms, .expires_ms = w->expires_ms};
    w->path = c->req->path;
    w->query = c->req->query;
    copy_headers(w);
    if (w->headers.rc < 0 || !read_key(w)) {
        w->rc = err_set(&w->error, SHOAL_ENOMEM, "the headers are too long to be kept");
        on_done(w);
        return;
    }
    work_run(w);
}

static void by_id(struct call *c, enum deed deed)
{
    const char *id = c->req->path + strlen(PREFIX);
    size_t n = strspn(id, "abcdefghijklmnopqrstuvwxyz0123456789_");
    const char *name = id[n] == '.' ? id + n + 1 : "";
    size_t n_name = strspn(name, NAME_CHARACTERS);
    bool wrong = n == 0 || n >= DEFERRED_STORE_ID_BYTES || (id[n] && n_name == 0) || name[n_name] ||
                 n_name > MAX_NAME_BYTES;
    if (!wrong && name[0] && strcmp(name, own_name(c)) != 0) {
        call_fail(c, 421, NULL, NULL, "deferred_elsewhere",
                  "gateway %s keeps this deferred request and its answer: send the request there",
                  name);
        return;
    }
    if (!c->gl->gw->deferred || wrong) {
        call_fail(c, 404, NULL, NULL, "not_found", "there is no such deferred request");
        return;
    }
    struct work *w = work_create(c, deed);
    if (!w)
        return;
    memcpy(w->id, id, n);
    work_run(w);
}

void api_deferred_show(struct call *c)
{
    by_id(c, DEED_SHOW);
}

void api_deferred_drop(struct call *c)
{
    by_id(c, DEED_DROP);
}
