/* mcp.c - see mcp.h. */
#include "gateway/api/mcp/mcp.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "gateway/api/mcp/mcp_read.h"
#include "gateway/call/door.h"
#include "gateway/call/inner_call.h"
#include "gateway/call/guard.h"
#include "shoal/shoal.h"
#include "wire/json_out.h"

#define MAX_ANSWER_BYTES ((size_t)64 << 20)
#define MAX_HEADERS 5u
#define CACHED_MS 3600000u

/* ---- answers ---- */

/* Writes the message up to the answer's member. */
static struct json_out begin(struct buf *b, const char *id)
{
    buf_clear(b);
    struct json_out j = json_out_make(b);
    json_out_object(&j);
    json_out_member_str(&j, "jsonrpc", "2.0");
    json_out_key(&j, "id");
    buf_puts(b, id);
    j.comma = true;
    return j;
}

static void end(struct call *c, struct json_out *j)
{
    json_out_object_end(j);
    call_json(c, 200);
}

/* Opens the result. */
static struct json_out begin_result(struct buf *b, const char *id, bool stateless)
{
    struct json_out j = begin(b, id);
    json_out_member_object(&j, "result");
    if (stateless)
        json_out_member_str(&j, "resultType", "complete");
    return j;
}

/* What clients may keep for a while: it depends on the program, not on who asks. */
static void put_cached(struct json_out *j)
{
    json_out_member_uint(j, "ttlMs", CACHED_MS);
    json_out_member_str(j, "cacheScope", "public");
}

static void send_error(struct call *c, const char *id, const struct mcp_message *m)
{
    struct json_out j = begin(&c->out, id);
    json_out_member_object(&j, "error");
    json_out_member_int(&j, "code", m->error);
    json_out_member_str(&j, "message", m->text);
    if (m->error == MCP_READ_VERSION) {
        json_out_member_object(&j, "data");
        json_out_key(&j, "supported");
        mcp_put_versions(&c->out);
        j.comma = true;
        json_out_member_str(&j, "requested", m->asked);
        json_out_object_end(&j);
    }
    json_out_object_end(&j);
    json_out_object_end(&j);
    call_json(c, m->error == MCP_READ_VERSION ? 400 : 200);
}

/* The answer to initialize, or (version NULL) to server/discover. */
static void send_hello(struct call *c, const char *id, const char *version)
{
    struct json_out j = begin_result(&c->out, id, !version);
    if (version) {
        json_out_member_str(&j, "protocolVersion", version);
    } else {
        json_out_key(&j, "supportedVersions");
        mcp_put_versions(&c->out);
        j.comma = true;
        put_cached(&j);
    }
    json_out_member_object(&j, "capabilities");
    json_out_member_object(&j, "tools");
    json_out_object_end(&j);
    json_out_object_end(&j);
    json_out_member_object(&j, "serverInfo");
    json_out_member_str(&j, "name", "shoal");
    json_out_member_str(&j, "version", shoal_version());
    json_out_object_end(&j);
    json_out_object_end(&j);
    end(c, &j);
}

/* The answer to tools/list, or to ping. */
static void send_plain(struct call *c, const char *id, const struct mcp_message *m)
{
    struct json_out j = begin_result(&c->out, id, m->stateless);
    if (m->method == MCP_LIST) {
        json_out_key(&j, "tools");
        mcp_put_tools(&c->out);
        j.comma = true;
        if (m->stateless)
            put_cached(&j);
    }
    json_out_object_end(&j);
    end(c, &j);
}

/* ---- tool calls ---- */

/* A call of this server's own interface, whose answer is the result of a tool. */
struct inner {
    struct http_req req; /* first */
    struct call *outer;  /* held */
    char id[80];         /* of the message, as JSON */
    char path[32];
    struct http_header headers[MAX_HEADERS];
    struct buf text; /* the answer */
    cJSON *texts;    /* a search: the texts to sort; otherwise NULL */
    uint32_t top;
    bool stateless; /* see mcp_read.h */
};

struct hit {
    double score;
    uint32_t index;
};

static struct inner *inner_of(struct http_req *r)
{
    return (struct inner *)(void *)r;
}

static void inner_free(struct inner *x)
{
    struct call *outer = x->outer;
    outer->job = NULL;
    outer->abandon = NULL;
    buf_fini(&x->text);
    cJSON_Delete(x->texts);
    mem_free(x);
    call_release(outer);
}

static void on_write(struct http_req *r, const void *p, size_t n)
{
    buf_put(&inner_of(r)->text, p, n);
}

static int by_score(const void *a, const void *b)
{
    const struct hit *x = a, *y = b;
    return x->score > y->score ? -1 : x->score < y->score ? 1 : x->index < y->index ? -1 : 1;
}

/* Of two lists of numbers. */
static double cosine(const cJSON *a, const cJSON *b)
{
    double ab = 0, aa = 0, bb = 0;
    for (a = a->child, b = b->child; a && b; a = a->next, b = b->next) {
        ab += a->valuedouble * b->valuedouble;
        aa += a->valuedouble * a->valuedouble;
        bb += b->valuedouble * b->valuedouble;
    }
    return aa > 0 && bb > 0 ? ab / sqrt(aa * bb) : 0;
}

/* The embeddings of the query and the texts become the texts in order. */
static void sort_texts(struct inner *x)
{
    struct hit hits[MCP_READ_MAX_TEXTS];
    cJSON *root = cJSON_ParseWithLength(buf_str(&x->text), x->text.len);
    const cJSON *data = cJSON_GetObjectItemCaseSensitive(root, "data"), *v;
    const cJSON *query = data ? cJSON_GetObjectItemCaseSensitive(data->child, "embedding") : NULL;
    const char *model = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(root, "model"));
    uint32_t n = 0;
    for (v = query ? data->child->next : NULL; v && n < MCP_READ_MAX_TEXTS; v = v->next) {
        const cJSON *e = cJSON_GetObjectItemCaseSensitive(v, "embedding");
        hits[n] = (struct hit){e ? cosine(query, e) : 0, n};
        n++;
    }
    if (n > 1)
        qsort(hits, n, sizeof(*hits), by_score);
    buf_clear(&x->text);
    struct json_out j = json_out_make(&x->text);
    json_out_object(&j);
    json_out_member_str(&j, "model", model ? model : "");
    json_out_member_array(&j, "results");
    for (uint32_t i = 0; i < n && (x->top == 0 || i < x->top); i++) {
        const cJSON *text = cJSON_GetArrayItem(x->texts, (int)hits[i].index);
        json_out_object(&j);
        json_out_member_uint(&j, "index", hits[i].index);
        json_out_member_num(&j, "score", hits[i].score);
        json_out_member_str(&j, "text", text ? text->valuestring : "");
        json_out_object_end(&j);
    }
    json_out_array_end(&j);
    json_out_object_end(&j);
    cJSON_Delete(root);
}

/* The answer as text, which every client shows, and as JSON, for programs. */
static void on_end(struct http_req *r, const struct http_header *trailers, size_t n)
{
    struct inner *x = inner_of(r);
    struct call *c = x->outer;
    (void)trailers;
    (void)n;
    while (x->text.len > 0 && x->text.data[x->text.len - 1] == '\n')
        x->text.len--;
    bool failed = r->status >= 400;
    if (!failed && x->texts && x->text.rc == 0)
        sort_texts(x);
    struct json_out j = begin_result(&c->out, x->id, x->stateless);
    json_out_member_array(&j, "content");
    json_out_object(&j);
    json_out_member_str(&j, "type", "text");
    json_out_member_strn(&j, "text", buf_str(&x->text), x->text.len);
    json_out_object_end(&j);
    json_out_array_end(&j);
    if (!failed && x->text.len > 0) {
        json_out_key(&j, "structuredContent");
        buf_put(&c->out, x->text.data, x->text.len);
        j.comma = true;
    }
    json_out_member_bool(&j, "isError", failed);
    json_out_object_end(&j);
    if (x->text.rc < 0)
        c->out.rc = x->text.rc;
    if (c->req)
        end(c, &j);
    inner_free(x);
}

static void on_abandoned(struct call *c)
{
    struct inner *x = c->job;
    if (x->req.cancelled)
        x->req.cancelled(&x->req);
    inner_free(x);
}

static void run_tool(struct call *c, struct mcp_message *m, const char *id)
{
    static const struct http_ops ops = {inner_call_ignore_begin, on_write, on_end,
                                        inner_call_none_queued};
    static const char *const passed[] = {"host", "authorization", "x-api-key", "x-session-id",
                                         "x-latency-budget-ms"};
    struct inner *x = mem_zalloc(sizeof(*x));
    size_t n = 0;
    if (!x) {
        cJSON_Delete(m->body);
        call_fail_code(c, SHOAL_ENOMEM, "out of memory");
        return;
    }
    snprintf(x->id, sizeof(x->id), "%s", id);
    snprintf(x->path, sizeof(x->path), "%s", m->path);
    for (size_t i = 0; i < MAX_HEADERS; i++) {
        const char *v = http_header(c->req, passed[i]);
        if (v)
            x->headers[n++] = (struct http_header){passed[i], v};
    }
    buf_init(&x->text, MAX_ANSWER_BYTES);
    x->req = (struct http_req){.method = "POST",
                               .path = x->path,
                               .query = "",
                               .headers = x->headers,
                               .n_headers = n,
                               .body = "",
                               .peer = c->req->peer,
                               .peer_cert = c->req->peer_cert,
                               .protocol = c->req->protocol,
                               .via = c->req->via,
                               .secure = c->req->secure,
                               .received_ns = c->req->received_ns,
                               .server = c->req->server,
                               .account = c->req->account,
                               .ops = &ops};
    x->outer = c;
    x->top = m->top;
    x->stateless = m->stateless;
    x->texts = m->texts ? cJSON_Duplicate(m->texts, true) : NULL;
    c->job = x;
    c->abandon = on_abandoned;
    call_hold(c);
    struct call *inner = call_create(c->gl, &x->req);
    if (!inner) { /* call_create has answered x->req */
        cJSON_Delete(m->body);
        return;
    }
    call_hold(inner);
    door_enter(inner, m->body);
    call_release(inner);
}

/* ---- handlers ---- */

void mcp_post(struct call *c)
{
    struct mcp_message m;
    if (!guard_origin(c)) /* as the protocol demands it, also with a key */
        return;
    mcp_read(&m, c->json, http_header(c->req, "mcp-protocol-version"));
    char id[80] = "null";
    if (m.id && !cJSON_PrintPreallocated((cJSON *)(uintptr_t)m.id, id, sizeof(id), false)) {
        snprintf(id, sizeof(id), "null");
        m.error = MCP_READ_INVALID_REQUEST;
        snprintf(m.text, sizeof(m.text), "the id of the message is too long");
    }
    if (m.error || m.method != MCP_CALL) {
        cJSON_Delete(m.body);
        m.body = NULL;
    }
    if (m.error)
        send_error(c, id, &m);
    else if (m.method == MCP_NOTIFICATION)
        call_text(c, 202, "text/plain", "", 0);
    else if (m.method == MCP_INITIALIZE)
        send_hello(c, id, m.version);
    else if (m.method == MCP_DISCOVER)
        send_hello(c, id, NULL);
    else if (m.method == MCP_CALL)
        run_tool(c, &m, id);
    else
        send_plain(c, id, &m);
}

void mcp_get(struct call *c)
{
    call_fail_method(c, "POST");
}
