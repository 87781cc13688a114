/* deferred_door.c - see deferred_door.h. */
#include "gateway/server/deferred_door.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "cluster/members.h"
#include "gateway/call/call.h"
#include "gateway/call/door.h"
#include "site/deferred/deferred_runner.h"

#define MAX_HEADERS 64u

/* A request from the file, as the call sees it. */
struct entered {
    struct http_req req; /* first */
    struct deferred_run *run;
    struct http_header headers[MAX_HEADERS];
};

struct gw_deferred {
    struct deferred_door door; /* first */
    struct gw_loop *gl;
    struct deferred_runner *runner;
};

/* ---- the answer ---- */

static struct deferred_run *run_of(struct http_req *q)
{
    return ((struct entered *)(void *)q)->run; /* its first member */
}

static void on_begin(struct http_req *q, int status, const struct http_header *h, size_t n,
                     int64_t body_bytes)
{
    struct deferred_run *r = run_of(q);
    (void)body_bytes;
    r->status = status;
    for (size_t i = 0; i < n; i++)
        if (strcmp(h[i].name, "content-type") == 0)
            snprintf(r->type, sizeof(r->type), "%s", h[i].value);
}

static void on_write(struct http_req *q, const void *p, size_t n)
{
    buf_put(&run_of(q)->text, p, n);
}

static void on_end(struct http_req *q, const struct http_header *trailers, size_t n)
{
    (void)trailers;
    (void)n;
    deferred_runner_answered(run_of(q));
}

static size_t on_queued(const struct http_req *q)
{
    (void)q;
    return 0;
}

/* ---- entering ---- */

static size_t list_headers(struct entered *in)
{
    const struct deferred_item *item = &in->run->item;
    const char *p = item->headers, *end = p + item->n_headers;
    size_t n = 0;
    in->headers[n++] = (struct http_header){"host", "deferred"};
    /* the same for every attempt, also after a crash: idempotency keys of calls are made of it */
    in->headers[n++] = (struct http_header){"x-request-id", item->id};
    while (p < end && n < MAX_HEADERS) { /* a NUL follows the last */
        const char *value = p + strlen(p) + 1;
        if (value > end)
            break;
        in->headers[n++] = (struct http_header){p, value};
        p = value + strlen(value) + 1;
    }
    return n;
}

static void on_enter(struct deferred_door *d, struct deferred_run *r,
                     struct admission_client *client)
{
    static const struct http_ops ops = {on_begin, on_write, on_end, on_queued};
    struct gw_loop *gl = ((struct gw_deferred *)(void *)d)->gl;
    struct entered *in = arena_zalloc(&r->arena, sizeof(*in));
    r->entered = in;
    if (!in) { /* status 0: it is tried again */
        deferred_runner_answered(r);
        return;
    }
    in->run = r;
    in->req = (struct http_req){.method = "POST",
                                .path = r->item.path,
                                .query = r->item.query,
                                .headers = in->headers,
                                .n_headers = list_headers(in),
                                .body = r->item.body,
                                .body_bytes = r->item.n_body,
                                .peer = "deferred",
                                .protocol = "deferred",
                                .via = HTTP_VIA_NETWORK,
                                .received_ns = clock_ns(),
                                .server = gl->http,
                                .ops = &ops};
    struct call *c = call_create(gl, &in->req);
    if (!c) /* call_create has answered in->req */
        return;
    call_hold(c);
    door_enter_as(c, client, NULL);
    call_release(c);
}

static void on_cancel(struct deferred_door *d, struct deferred_run *r)
{
    struct entered *in = r->entered;
    (void)d;
    if (in->req.cancelled)
        in->req.cancelled(&in->req);
}

struct heard {
    uint32_t n_nodes, n_ready;
};

static void look(void *ctx, const struct node_link *k)
{
    struct heard *h = ctx;
    h->n_nodes++;
    h->n_ready += node_link_ready(k, clock_ns());
}

static bool on_hears_all(struct deferred_door *d)
{
    const struct gw_loop *gl = ((struct gw_deferred *)(void *)d)->gl;
    struct heard h = {0, 0};
    if (!gl->members)
        return true;
    members_each(gl->members, look, &h);
    return h.n_nodes > 0 && h.n_ready == h.n_nodes;
}

static bool on_is_draining(struct deferred_door *d)
{
    return atomic_load(&((struct gw_deferred *)(void *)d)->gl->gw->draining);
}

/* ---- life ---- */

int deferred_door_create(struct gw *gw, struct err *e)
{
    if (!gw->deferred)
        return 0;
    struct gw_deferred *x = gw->deferred_door = mem_zalloc(sizeof(*x));
    if (!x)
        return err_set(e, SHOAL_ENOMEM, "out of memory for deferred requests");
    x->gl = &gw->loops[0];
    x->door = (struct deferred_door){on_enter, on_cancel, on_hears_all, on_is_draining};
    const struct deferred_runner_opts o = {.deferred = gw->deferred,
                                           .door = &x->door,
                                           .admission = gw->admission,
                                           .owner = &x->gl->flow,
                                           .loop = x->gl->loop};
    return deferred_runner_create(&x->runner, &o, e);
}

void deferred_door_end(struct gw_loop *gl)
{
    struct gw_deferred *x = gl->gw->deferred_door;
    if (x && x->gl == gl)
        deferred_runner_end(x->runner);
}

void deferred_door_destroy(struct gw *gw)
{
    struct gw_deferred *x = gw->deferred_door;
    if (x)
        deferred_runner_destroy(x->runner);
    mem_free(x);
    gw->deferred_door = NULL;
}
