/* inner_call.c - see inner_call.h: an exchange of its own (struct http_req with our operations). */
#include "gateway/call/inner_call.h"

#include "base/mem.h"
#include "gateway/call/door.h"

#define MAX_BODY_BYTES ((size_t)4 << 20)

struct inner_call {
    struct http_req req; /* first */
    struct http_header headers[2];
    struct inner_call **self; /* the caller's, until the end */
    const struct inner_call_ops *ops;
    void *ctx;
    struct buf body;
};

void inner_call_ignore_begin(struct http_req *r, int status, const struct http_header *headers,
                             size_t n, int64_t body_bytes)
{
    (void)r;
    (void)status;
    (void)headers;
    (void)n;
    (void)body_bytes;
}

size_t inner_call_none_queued(const struct http_req *r)
{
    (void)r;
    return 0;
}

static void on_write(struct http_req *r, const void *p, size_t n)
{
    buf_put(&((struct inner_call *)(void *)r)->body, p, n);
}

static void on_end(struct http_req *r, const struct http_header *trailers, size_t n)
{
    struct inner_call *c = (struct inner_call *)(void *)r;
    (void)trailers;
    (void)n;
    if (c->self)
        *c->self = NULL;
    c->ops->end(c->ctx, c->body.rc < 0 ? 500 : r->status, buf_str(&c->body), c->body.len);
    buf_fini(&c->body);
    mem_free(c);
}

static void on_event(struct call *call)
{
    struct inner_call *c = (struct inner_call *)(void *)call->req;
    struct buf *event = &call->out;
    if (c && event->len > 0 && event->rc == 0)
        c->ops->event(c->ctx, event->data, event->len);
    buf_clear(event);
}

void inner_call_start(struct inner_call **out, struct gw_loop *gl, const struct inner_call_opts *o,
                      cJSON *body, const struct inner_call_ops *ops, void *ctx)
{
    static const struct http_ops exchange = {inner_call_ignore_begin, on_write, on_end,
                                             inner_call_none_queued};
    struct inner_call *c = mem_zalloc(sizeof(*c));
    size_t n = 0;
    *out = NULL;
    if (!c || !body) {
        mem_free(c);
        cJSON_Delete(body);
        ops->end(ctx, 503, "", 0);
        return;
    }
    buf_init(&c->body, MAX_BODY_BYTES);
    c->self = out;
    c->ops = ops;
    c->ctx = ctx;
    c->headers[n++] = (struct http_header){"host", o->protocol};
    if (o->authorization)
        c->headers[n++] = (struct http_header){"authorization", o->authorization};
    c->req = (struct http_req){.method = "POST",
                               .path = o->path,
                               .query = "",
                               .headers = c->headers,
                               .n_headers = n,
                               .body = "",
                               .peer = o->peer,
                               .protocol = o->protocol,
                               .received_ns = loop_now(gl->loop),
                               .server = gl->http,
                               .account = o->account,
                               .ops = &exchange};
    *out = c;
    struct call *call = call_create(gl, &c->req);
    if (!call) { /* call_create has answered c->req */
        cJSON_Delete(body);
        return;
    }
    call->event = on_event;
    call_hold(call);
    if (o->trusted)
        door_enter_as(call, NULL, body);
    else
        door_enter(call, body);
    call_release(call);
}

void inner_call_cancel(struct inner_call *c)
{
    if (c->req.cancelled)
        c->req.cancelled(&c->req);
    buf_fini(&c->body);
    mem_free(c);
}
