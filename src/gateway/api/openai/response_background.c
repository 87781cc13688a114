/* response_background.c - see response_background.h. */
#include "gateway/api/openai/response_background.h"

#include <cjson/cJSON.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "gateway/api/openai/response_store.h"
#include "gateway/call/call.h"
#include "gateway/call/inner_call.h"
#include "gateway/gw.h"

#define MAX_ERROR_BYTES 65536u

struct background {
    struct http_req req;     /* first */
    struct response_run run; /* id "": not begun */
    struct response_store *store;
    struct buf text; /* of an error */
    bool over;       /* the call has ended; the task that cancels it is still to run */
};

static struct background *of_req(struct http_req *r)
{
    return (struct background *)(void *)r;
}

static void background_free(struct background *x)
{
    buf_fini(&x->text);
    mem_free(x);
}

/* The call is over. */
static void finish(struct background *x)
{
    x->over = true;
    if (!response_store_remove_run(x->store, &x->run))
        background_free(x);
}

static void on_write(struct http_req *r, const void *p, size_t n)
{
    if (r->status >= 400)
        buf_put(&of_req(r)->text, p, n);
}

static const char *text_of(const cJSON *object, const char *key, const char *missing)
{
    const char *text = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(object, key));
    return text ? text : missing;
}

/* A complete answer is in the store already; an error is put there. */
static void on_end(struct http_req *r, const struct http_header *trailers, size_t n)
{
    struct background *x = of_req(r);
    (void)trailers;
    (void)n;
    if (r->status >= 400 && x->run.id[0]) {
        cJSON *json = cJSON_ParseWithLength(buf_str(&x->text), x->text.len);
        const cJSON *e = cJSON_GetObjectItemCaseSensitive(json, "error");
        (void)response_background_settle(x->store, x->run.id, x->run.owner, "failed",
                                         text_of(e, "code", "server_error"),
                                         text_of(e, "message", "the response failed"), NULL);
        cJSON_Delete(json);
    } else if (x->run.id[0]) {
        (void)response_background_settle(
            x->store, x->run.id, x->run.owner, "failed", "not_stored",
            "the response is complete but must not be stored: it holds "
            "personal data, or is too large",
            NULL);
    }
    finish(x);
}

static void on_cancel(struct executor_task *t)
{
    struct background *x = EXECUTOR_OF(t, struct background, run.cancel);
    if (!x->over) {
        if (x->req.cancelled)
            x->req.cancelled(&x->req);
        (void)response_store_remove_run(x->store, &x->run);
    }
    background_free(x);
}

struct call *response_background_open(struct call *outer)
{
    static const struct http_ops ops = {inner_call_ignore_begin, on_write, on_end,
                                        inner_call_none_queued};
    struct background *x = mem_zalloc(sizeof(*x));
    if (!x)
        return NULL;
    x->store = outer->gl->gw->response_store;
    x->run.executor = outer->gl->flow.executor;
    x->run.cancel.fn = on_cancel;
    x->req = (struct http_req){.method = "POST",
                               .path = "/v1/responses",
                               .query = "",
                               .body = "",
                               .peer = "background",
                               .protocol = "background",
                               .via = outer->req->via,
                               .secure = outer->req->secure,
                               .received_ns = outer->req->received_ns,
                               .server = outer->req->server,
                               .ops = &ops};
    buf_init(&x->text, MAX_ERROR_BYTES);
    response_store_add_run(x->store, &x->run);
    struct call *c = call_create(outer->gl, &x->req);
    if (!c)
        return NULL; /* call_create has answered x->req, which freed x */
    memcpy(c->id, outer->id, sizeof(c->id));
    c->spans = outer->spans;
    (void)trace_ref(c->spans.trace);
    c->route = outer->route;
    c->client = outer->client;
    c->lenient = outer->lenient;
    c->places = outer->places; /* it goes on after the other call */
    outer->places = 0;
    c->start_ns = outer->start_ns;
    c->deadline_ns = outer->deadline_ns;
    return c;
}

void response_background_begin(struct call *c, const char *id)
{
    struct background *x = of_req(c->req);
    const char *owner = c->client ? c->client->name : "";
    memcpy(x->run.owner, owner, strnlen(owner, sizeof(x->run.owner) - 1));
    memcpy(x->run.id, id, strnlen(id, sizeof(x->run.id) - 1));
}

/* The response with another status. */
static char *with_status(const struct response_entry *e, const char *status, const char *code,
                         const char *message)
{
    cJSON *json = cJSON_ParseWithLength(e->json, e->json_bytes);
    cJSON *error = code ? cJSON_CreateObject() : NULL;
    char *text = NULL;
    if (error && (!cJSON_AddStringToObject(error, "code", code) ||
                  !cJSON_AddStringToObject(error, "message", message))) {
        cJSON_Delete(error);
        error = NULL;
    }
    if (json &&
        cJSON_ReplaceItemInObjectCaseSensitive(json, "status", cJSON_CreateString(status)) &&
        (!code || (error && cJSON_ReplaceItemInObjectCaseSensitive(json, "error", error))))
        text = cJSON_PrintUnformatted(json);
    cJSON_Delete(json);
    return text;
}

bool response_background_settle(struct response_store *s, const char *id, const char *owner,
                                const char *status, const char *code, const char *message,
                                struct buf *out)
{
    const struct response_entry *e = response_store_get(s, id, owner, clock_ns());
    const bool running = e && e->running;
    char *text = running ? with_status(e, status, code, message) : NULL;
    if (text) {
        struct response_entry next = *e;
        next.running = false;
        next.json = text;
        next.json_bytes = strlen(text);
        (void)response_store_put(s, &next, clock_ns());
        if (out)
            buf_put(out, text, next.json_bytes);
    }
    if (e)
        response_store_unref(s, e);
    const bool settled = text != NULL;
    cJSON_free(text);
    return settled;
}
