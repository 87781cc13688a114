/* node_run.c - see node_run.h. */
#include "gateway/node/node_run.h"

#include <string.h>

#include "base/clock.h"
#include "cluster/affinity/prefix_chain.h"
#include "cluster/affinity/prefix_table.h"
#include "cluster/join.h"
#include "cluster/messages/event_pb.h"
#include "cluster/messages/request_pb.h"
#include "flow/flow_run.h"
#include "gateway/call/call.h"
#include "gateway/grpc/grpc_call.h"
#include "gateway/gw.h"
#include "gateway/call/traced.h"
#include "net/grpc_frame.h"

#define MAX_MESSAGE_BYTES ((size_t)64 << 20)

/* Turns events into messages: events that arrive together become one. */
struct answer {
    struct sink sink;
    struct call *call; /* held */
    bool may_be_old;   /* of the request */
    bool isolated;     /* when it came: its model may have been chosen then */
    struct buf events;
};

static struct answer *answer_of(struct sink *s)
{
    return (struct answer *)(void *)s; /* its first member */
}

/* Only headers that a member reads: varying headers cost both sides time. */
static void begin(struct call *c)
{
    static const struct http_header type = {"content-type", "application/grpc"};
    if (c->began)
        return;
    c->began = true;
    http_begin(c->req, 200, &type, 1, -1);
}

/* False: out of memory, and the call has failed. */
static bool send(struct answer *a)
{
    char head[GRPC_HEAD_BYTES];
    struct call *c = a->call;
    if (!c->req || a->events.len == 0)
        return c->req != NULL;
    if (a->events.rc < 0) {
        grpc_call_fail_plain(c, GRPC_UNAVAILABLE, NULL, "out of memory");
        return false;
    }
    begin(c);
    grpc_frame_head(head, a->events.len, false);
    call_write(c, head, sizeof(head));
    call_write(c, a->events.data, a->events.len);
    buf_clear(&a->events);
    return true;
}

static void finish(struct answer *a)
{
    if (send(a))
        grpc_call_finish(a->call);
}

static void on_start(struct sink *s, const struct sink_start *e)
{
    struct answer *a = answer_of(s);
    struct sink_start mine = *e;
    mine.isolated = a->isolated || join_is_isolated(a->call->gl->gw->join, a->may_be_old);
    event_pb_put_start(&a->events, &mine);
}

static void on_plan(struct sink *s, const struct sink_plan *e)
{
    event_pb_put_plan(&answer_of(s)->events, e);
}

static void on_prompt(struct sink *s, const struct sink_prompt *e)
{
    event_pb_put_prompt(&answer_of(s)->events, e);
}

static void on_token(struct sink *s, const struct sink_token *e)
{
    event_pb_put_token(&answer_of(s)->events, e);
}

static void on_result(struct sink *s, const struct sink_result *e)
{
    struct answer *a = answer_of(s);
    event_pb_put_result(&a->events, e);
    if (e->last)
        finish(a);
}

static void on_done(struct sink *s, const struct sink_done *e)
{
    struct answer *a = answer_of(s);
    event_pb_put_done(&a->events, e);
    if (e->last)
        finish(a);
}

static void on_fail(struct sink *s, const struct failure *f)
{
    struct answer *a = answer_of(s);
    event_pb_put_failure(&a->events, f);
    finish(a);
}

static void on_closed(struct sink *s)
{
    struct answer *a = answer_of(s);
    struct call *c = a->call;
    buf_fini(&a->events);
    call_unset_sink(c);
}

static void on_flush(struct sink *s)
{
    if (!send(answer_of(s)))
        flow_cancel(s);
}

static bool on_full(struct sink *s)
{
    return call_full(answer_of(s)->call);
}

static void fail_read(struct call *c, int rc, const char *msg)
{
    grpc_call_fail_plain(c, rc == SHOAL_ENOMEM ? GRPC_UNAVAILABLE : GRPC_INVALID_ARGUMENT,
                         "INVALID_MESSAGE", msg);
}

/* Gateways learn that this node has read such a prompt. */
static void note_prefix(struct gw *gw, struct request *r)
{
    if (r->kind != REQUEST_GENERATE)
        return;
    bool shared =
        r->shares_cache || registry_shares_cache(gw->registry, r->model, SHOAL_KIND_GENERATE);
    const struct prefix_chain *p = prefix_chain_make(&r->arena, r, shared);
    if (!p)
        return;
    prefix_table_note(gw->prefixes, p);
    prefix_chain_tell(p, r);
}

void node_run(struct call *c)
{
    static const struct sink_ops ops = {.start = on_start,
                                        .plan = on_plan,
                                        .prompt = on_prompt,
                                        .token = on_token,
                                        .result = on_result,
                                        .done = on_done,
                                        .fail = on_fail,
                                        .closed = on_closed,
                                        .flush = on_flush,
                                        .full = on_full};
    struct flow_owner *o = &c->gl->flow;
    struct grpc_frame f;
    struct buf plain;
    struct err e = {0};
    if (atomic_load(&c->gl->gw->draining)) {
        grpc_call_fail_plain(c, GRPC_UNAVAILABLE, "DRAINING", "this node is draining");
        return;
    }
    buf_init(&plain, MAX_MESSAGE_BYTES);
    if (!grpc_call_read_whole(c, &f, &plain)) {
        buf_fini(&plain);
        return;
    }
    struct request *r = flow_take_request(o);
    int rc = r ? request_pb_read(r, f.p, f.n, clock_ns(), &e)
               : err_set(&e, SHOAL_ENOMEM, "out of memory");
    buf_fini(&plain);
    struct answer *a = rc == 0 ? arena_zalloc(&r->arena, sizeof(*a)) : NULL;
    if (!a) {
        fail_read(c, rc < 0 ? rc : SHOAL_ENOMEM, rc < 0 ? e.msg : "out of memory");
        if (r)
            flow_give_request(o, r);
        return;
    }
    a->sink.ops = &ops;
    a->call = c;
    a->may_be_old = r->may_be_old;
    a->isolated = join_is_isolated(c->gl->gw->join, r->may_be_old);
    buf_init(&a->events, MAX_MESSAGE_BYTES);
    memcpy(c->id, r->id, sizeof(c->id));
    c->caller = r->spans.context;
    traced_begin(c);
    request_trace(r, &c->spans);
    call_set_sink(c, &a->sink);
    note_prefix(c->gl->gw, r);
    flow_run_here(o, r, &a->sink);
}
