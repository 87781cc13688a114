/* node_watch.c - see node_watch.h. */
#include "gateway/node/node_watch.h"

#include <shoal/node/v1/node.pb-c.h>

#include "cluster/messages/node_state.h"
#include "gateway/call/call.h"
#include "gateway/grpc/grpc_call.h"
#include "gateway/node/node_self.h"
#include "gateway/call/ticker.h"
#include "wire/pb.h"

#define MIN_INTERVAL_MS 20u
#define MAX_INTERVAL_MS 10000u

static void send_state(struct call *c)
{
    struct buf b;
    buf_init(&b, NODE_STATE_MAX_BYTES);
    if (node_self_put(&b, c->gl, ticker_seen(c)) < 0)
        grpc_call_fail_frame(c, SHOAL_ENOMEM);
    else
        grpc_call_send(c, &b);
    buf_fini(&b);
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
    static const struct ticker_ops ops = {send_state, grpc_call_finish};
    uint32_t ms;
    if (!read_interval(c, &ms))
        return;
    ms = ms == 0 ? c->gl->config->cluster.heartbeat_ms : ms;
    ms = ms < MIN_INTERVAL_MS ? MIN_INTERVAL_MS : ms > MAX_INTERVAL_MS ? MAX_INTERVAL_MS : ms;
    if (!ticker_start(c, ms, &ops))
        grpc_call_fail_plain(c, GRPC_RESOURCE_EXHAUSTED, "OVERLOADED",
                             "too many gateways watch this node");
}
