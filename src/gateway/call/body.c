/* body.c - see body.h. */
#include "gateway/call/body.h"

#include <string.h>

#include "base/mem.h"
#include "flow/pool.h"
#include "net/coding.h"
#include "net/peers.h"
#include "wire/json_scan.h"

#define INLINE_BYTES ((size_t)64 << 10)

enum wrong { WRONG_NOTHING, WRONG_NUL, WRONG_VALUES, WRONG_MEMORY, WRONG_JSON, WRONG_TYPE };

/* The outcome of a body. */
struct parsed {
    cJSON *json;
    enum wrong wrong;
    struct json_scan scan;
    struct err error; /* error of the scan */
    size_t at;        /* position of the syntax error */
};

struct body_job {
    struct pool_task pool_task;
    struct executor_task finished;
    struct call *call;
    void (*next)(struct call *c);
    char *text;
    size_t n, max_values;
    size_t value_bytes; /* charged to the call's account */
    struct parsed parsed;
};

/* ---- parsing: any thread ---- */

static bool scan(struct parsed *p, const char *text, size_t n, size_t max_values)
{
    int rc = json_scan(&p->scan, text, n, max_values, &p->error);
    if (rc < 0)
        p->wrong = rc == SHOAL_ELIMIT ? WRONG_VALUES : WRONG_NUL;
    return rc == 0;
}

static void parse(struct parsed *p, const char *text, size_t n)
{
    const char *end = NULL;
    p->json = cJSON_ParseWithLengthOpts(text, n, &end, false);
    p->at = end ? (size_t)(end - text) : 0;
    if (p->json) /* nothing but white space may follow */
        while (p->at < n && strchr(" \t\r\n", text[p->at]))
            p->at++;
    if (!p->json || p->at < n)
        p->wrong = WRONG_JSON;
    else if (!cJSON_IsObject(p->json))
        p->wrong = WRONG_TYPE;
}

/* ---- the loop ---- */

static void refuse_full(struct call *c)
{
    call_refuse(c, GW_REFUSED_BUSY, 503, 1,
                "the body does not fit into the memory for clients (limits.buffers, "
                "limits.client_buffers): try again later");
}

static void refuse(struct call *c, const struct parsed *p)
{
    switch (p->wrong) {
    case WRONG_NUL:
        call_fail(c, 400, NULL, p->scan.path[0] ? p->scan.path : NULL, "invalid_value", "%s",
                  p->error.msg);
        return;
    case WRONG_VALUES:
        call_fail(c, 413, NULL, NULL, "too_many_values",
                  "%s: send less at a time, or raise 'limits.values' in the configuration",
                  p->error.msg);
        return;
    case WRONG_MEMORY:
        refuse_full(c);
        return;
    case WRONG_JSON:
        call_fail(c, 400, NULL, NULL, "invalid_json", "the body is not valid JSON (near byte %zu)",
                  p->at);
        return;
    default:
        call_fail(c, 400, NULL, NULL, "invalid_type", "the body must be a JSON object");
    }
}

static void use(struct call *c, struct parsed *p, void (*next)(struct call *c))
{
    c->json = p->json;
    c->json_values = p->scan.n_values;
    if (!c->req)
        return; /* the client is gone */
    if (p->wrong)
        refuse(c, p);
    else
        next(c);
}

static void job_free(struct body_job *j)
{
    struct call *c = j->call;
    mem_free(j->text);
    c->gl->flow.n_jobs--;
    mem_free(j);
    call_release(c);
}

static void on_finished(struct executor_task *t)
{
    struct body_job *j = LOOP_OF(t, struct body_job, finished);
    struct call *c = j->call;
    c->json_bytes = j->value_bytes;
    use(c, &j->parsed, j->next);
    job_free(j);
}

static void on_pool(struct pool_task *t)
{
    struct body_job *j = LOOP_OF(t, struct body_job, pool_task);
    struct parsed *p = &j->parsed;
    if (scan(p, j->text, j->n, j->max_values)) {
        size_t bytes = p->scan.n_values * JSON_SCAN_VALUE_BYTES + j->n; /* plus their strings */
        struct peer *account = j->call->account;
        if (account && peers_take(account, bytes) == PEERS_OK)
            j->value_bytes = bytes;
        else if (account)
            p->wrong = WRONG_MEMORY;
        if (!p->wrong)
            parse(p, j->text, j->n);
    }
    mem_free(j->text); /* here, since it takes a while */
    j->text = NULL;
    executor_post(j->call->gl->flow.executor, &j->finished);
}

static void read_large(struct call *c, void (*next)(struct call *c))
{
    size_t n = c->req->body_bytes;
    struct body_job *j = mem_zalloc(sizeof(*j));
    char *text = j ? http_take_body(c->req) : NULL;
    if (!text) {
        mem_free(j);
        call_fail_code(c, SHOAL_ENOMEM, "out of memory");
        return;
    }
    *j = (struct body_job){.pool_task.fn = on_pool,
                           .finished.fn = on_finished,
                           .call = c,
                           .next = next,
                           .text = text,
                           .n = n,
                           .max_values = c->gl->config->max_values};
    call_hold(c);
    c->gl->flow.n_jobs++;
    if (!call_count_input(c, n)) { /* the text, and later the request that is made from it */
        refuse_full(c);
        job_free(j);
    } else if (pool_submit(c->gl->gw->pool, &j->pool_task) < 0) {
        call_refuse(c, GW_REFUSED_BUSY, 429, 1, "too many large bodies are waiting");
        job_free(j);
    }
}

/* ---- compressed bodies ---- */

struct unpack_job {
    struct pool_task pool_task;
    struct executor_task finished;
    struct call *call;
    void (*next)(struct call *c);
    char *text;
    size_t n, max;
    enum coding coding;
    struct buf plain;
    int rc;
};

static char *take_plain(struct http_req *r)
{
    struct call *c = r->user;
    size_t n;
    return buf_take(&c->plain, &n);
}

static void use_plain(struct call *c, struct unpack_job *j)
{
    if (!c->req)
        return; /* the client is gone */
    if (j->rc == 0 && !call_count_input(c, j->plain.len)) {
        refuse_full(c);
    } else if (j->rc == 0) {
        c->plain = j->plain;
        j->plain = (struct buf){.rc = 0};
        c->req->body = buf_str(&c->plain);
        c->req->body_bytes = c->plain.len;
        c->req->take_body = take_plain;
        j->next(c);
    } else if (j->rc == SHOAL_ELIMIT) {
        call_fail(c, 413, NULL, NULL, "body_too_large",
                  "the body unpacks to more than the %zu bytes that this server accepts: send less "
                  "at a time, or raise 'limits.body' in the configuration",
                  j->max);
    } else if (j->rc == SHOAL_EFORMAT) {
        call_fail(c, 400, NULL, "content-encoding", "invalid_value",
                  "the body is not what Content-Encoding says: it is damaged, cut off or followed "
                  "by something else");
    } else {
        call_fail_code(c, j->rc, "out of memory for the body");
    }
}

static void unpack_free(struct unpack_job *j)
{
    struct call *c = j->call;
    buf_fini(&j->plain);
    mem_free(j->text);
    c->gl->flow.n_jobs--;
    mem_free(j);
    call_release(c);
}

static void on_unpacked(struct executor_task *t)
{
    struct unpack_job *j = LOOP_OF(t, struct unpack_job, finished);
    use_plain(j->call, j);
    unpack_free(j);
}

static void on_unpack(struct pool_task *t)
{
    struct unpack_job *j = LOOP_OF(t, struct unpack_job, pool_task);
    j->rc = coding_decode(&j->plain, j->coding, j->text, j->n, j->max);
    mem_free(j->text);
    j->text = NULL;
    executor_post(j->call->gl->flow.executor, &j->finished);
}

void body_unpack(struct call *c, void (*next)(struct call *c))
{
    const enum coding coding = coding_of(http_header(c->req, "content-encoding"));
    if (coding == CODING_NONE || c->req->more || c->req->body_bytes == 0) {
        next(c);
        return;
    }
    if (coding == CODING_UNKNOWN) {
        call_fail(c, 415, NULL, "content-encoding", "unsupported_encoding",
                  "unknown Content-Encoding: send one of " CODING_NAMES
                  ", or the body as it is, without that header");
        return;
    }
    const size_t n = c->req->body_bytes;
    struct unpack_job *j = mem_zalloc(sizeof(*j));
    char *text = j ? http_take_body(c->req) : NULL;
    if (!text) {
        mem_free(j);
        call_fail_code(c, SHOAL_ENOMEM, "out of memory");
        return;
    }
    *j = (struct unpack_job){.pool_task.fn = on_unpack,
                             .finished.fn = on_unpacked,
                             .call = c,
                             .next = next,
                             .text = text,
                             .n = n,
                             .max = c->gl->config->limits.max_body_bytes,
                             .coding = coding};
    buf_init(&j->plain, SIZE_MAX / 2);
    call_hold(c);
    c->gl->flow.n_jobs++;
    if (!call_count_input(c, n)) {
        refuse_full(c);
        unpack_free(j);
    } else if (pool_submit(c->gl->gw->pool, &j->pool_task) < 0) {
        call_refuse(c, GW_REFUSED_BUSY, 429, 1, "too many large bodies are waiting");
        unpack_free(j);
    }
}

void body_read(struct call *c, void (*next)(struct call *c))
{
    struct parsed p = {.json = NULL};
    if (c->req->body_bytes > INLINE_BYTES) {
        read_large(c, next);
        return;
    }
    if (c->req->body_bytes == 0) {
        call_fail(c, 400, NULL, NULL, NULL, "the body is empty: send a JSON object");
        return;
    }
    if (scan(&p, c->req->body, c->req->body_bytes, c->gl->config->max_values))
        parse(&p, c->req->body, c->req->body_bytes);
    use(c, &p, next);
}

cJSON *body_parse_small(struct call *c, bool *answered)
{
    const size_t n = c->req->body_bytes;
    struct parsed p = {.json = NULL};
    *answered = true;
    if (n > INLINE_BYTES) {
        call_fail(c, 413, NULL, NULL, "body_too_large",
                  "the body has %zu bytes, and at most %zu are read here", n, INLINE_BYTES);
        return NULL;
    }
    if (!scan(&p, c->req->body, n, c->gl->config->max_values)) {
        refuse(c, &p);
        return NULL;
    }
    *answered = false;
    return n > 0 ? cJSON_ParseWithLength(c->req->body, n) : NULL;
}
