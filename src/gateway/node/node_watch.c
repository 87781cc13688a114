/* node_watch.c - see node_watch.h. */
#include "gateway/node/node_watch.h"

#include <shoal/node/v1/node.pb-c.h>

#include "base/clock.h"
#include "base/mem.h"
#include "cluster/node_state.h"
#include "gateway/call.h"
#include "gateway/grpc/grpc_call.h"
#include "gateway/node/node_self.h"
#include "wire/pb.h"

#define MIN_INTERVAL_MS 20u
#define MAX_INTERVAL_MS 10000u
#define MAX_WATCHERS 1024u /* per loop */
#define MS_NS 1000000u

struct node_watcher {
    struct node_watcher *prev, *next;
    struct call *call; /* held */
    uint64_t interval_ns;
    bool waiting; /* the last state was not read yet: the next one replaces it */
    struct executor_timer timer;
};

/* ---- watchers ---- */

static void watcher_free(struct node_watcher *w)
{
    struct call *c = w->call;
    struct gw_loop *gl = c->gl;
    if (w->prev)
        w->prev->next = w->next;
    else
        gl->node_watchers = w->next;
    if (w->next)
        w->next->prev = w->prev;
    atomic_fetch_sub(&gl->n_watchers, 1);
    loop_timer_clear(gl->loop, &w->timer);
    c->job = NULL;
    c->abandon = NULL;
    c->resume = NULL;
    mem_free(w);
    call_release(c);
}

static void tell(struct node_watcher *w)
{
    struct call *c = w->call;
    struct buf b;
    if (w->waiting)
        return;
    buf_init(&b, NODE_STATE_MAX_BYTES);
    w->waiting = true;
    if (node_self_put(&b, c->gl) < 0)
        grpc_call_fail_frame(c, SHOAL_ENOMEM);
    else
        grpc_call_send(c, &b);
    buf_fini(&b);
    if (!c->req)
        watcher_free(w);
}

static void on_timer(struct executor_timer *t)
{
    struct node_watcher *w = LOOP_OF(t, struct node_watcher, timer);
    loop_timer_set(w->call->gl->loop, t, clock_ns() + w->interval_ns);
    tell(w);
}

static void on_read(struct call *c)
{
    ((struct node_watcher *)c->job)->waiting = false;
}

static void on_gone(struct call *c)
{
    watcher_free(c->job);
}

static bool read_interval(struct call *c, uint32_t *ms)
{
    struct grpc_frame f;
    struct buf plain;
    buf_init(&plain, 4096);
    bool ok = grpc_call_read_whole(c, &f, &plain);
    Shoal__Node__V1__WatchRequest *m =
        ok ? shoal__node__v1__watch_request__unpack(pb_heap(), f.n, f.p) : NULL;
    buf_fini(&plain);
    if (ok && !m)
        grpc_call_fail_frame(c, SHOAL_EFORMAT);
    *ms = m ? m->interval_ms : 0;
    if (m)
        shoal__node__v1__watch_request__free_unpacked(m, pb_heap());
    return m != NULL;
}

void node_watch(struct call *c)
{
    struct gw_loop *gl = c->gl;
    uint32_t ms;
    if (!read_interval(c, &ms))
        return;
    ms = ms == 0 ? gl->config->cluster.heartbeat_ms : ms;
    ms = ms < MIN_INTERVAL_MS ? MIN_INTERVAL_MS : ms > MAX_INTERVAL_MS ? MAX_INTERVAL_MS : ms;
    struct node_watcher *w = mem_zalloc(sizeof(*w));
    if (!w || atomic_load(&gl->n_watchers) >= MAX_WATCHERS) {
        mem_free(w);
        grpc_call_fail_plain(c, GRPC_RESOURCE_EXHAUSTED, "OVERLOADED", "too many watch this node");
        return;
    }
    w->call = c;
    w->interval_ns = (uint64_t)ms * MS_NS;
    w->timer.fn = on_timer;
    w->next = gl->node_watchers;
    if (w->next)
        w->next->prev = w;
    gl->node_watchers = w;
    atomic_fetch_add(&gl->n_watchers, 1);
    call_hold(c);
    c->job = w;
    c->abandon = on_gone;
    c->resume = on_read;
    loop_timer_set(gl->loop, &w->timer, clock_ns() + w->interval_ns);
    tell(w);
}

void node_watch_tell(struct gw_loop *gl)
{
    struct node_watcher *next;
    for (struct node_watcher *w = gl->node_watchers; w; w = next) {
        next = w->next;
        tell(w);
    }
}

void node_watch_end(struct gw_loop *gl)
{
    while (gl->node_watchers) {
        struct node_watcher *w = gl->node_watchers;
        struct call *c = w->call;
        call_hold(c);
        watcher_free(w);
        grpc_call_finish(c);
        call_release(c);
    }
}
