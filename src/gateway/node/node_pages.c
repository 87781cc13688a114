/* node_pages.c - see node_pages.h.  Pages are sent one by one, as the other node reads them. */
#include "gateway/node/node_pages.h"

#include "base/mem.h"
#include "cluster/affinity/page_share.h"
#include "cluster/messages/pages_pb.h"
#include "gateway/call/call.h"
#include "gateway/grpc/grpc_call.h"

struct sending {
    struct call *call; /* held */
    struct page_share *share;
    struct buf out;
    bool ready;
};

static void sending_free(struct sending *s)
{
    struct call *c = s->call;
    page_share_free(s->share);
    buf_fini(&s->out);
    mem_free(s);
    c->job = NULL;
    c->abandon = c->resume = NULL;
    call_release(c);
}

static void send_more(struct sending *s)
{
    struct call *c = s->call;
    int rc = 1;
    while (rc > 0 && !call_full(c)) {
        buf_clear(&s->out);
        rc = page_share_next(s->share, &s->out);
        if (rc > 0)
            grpc_call_send(c, &s->out);
    }
    if (rc > 0)
        return; /* until the other node has read */
    if (rc < 0)
        grpc_call_fail_plain(c, GRPC_INTERNAL, "PAGES", err_text(rc));
    else
        grpc_call_finish(c);
    sending_free(s);
}

static void on_room(struct call *c)
{
    struct sending *s = c->job;
    if (s->ready)
        send_more(s);
}

static void on_gone(struct call *c)
{
    struct sending *s = c->job;
    if (s->ready)
        sending_free(s);
}

static void on_ready(void *ctx)
{
    struct sending *s = ctx;
    s->ready = true;
    if (!s->call->req)
        sending_free(s);
    else
        send_more(s);
}

static void refuse(struct call *c, int rc, const char *msg)
{
    enum grpc_status status = rc == SHOAL_ENOMEM || rc == SHOAL_EBUSY     ? GRPC_UNAVAILABLE
                              : rc == SHOAL_EFORMAT || rc == SHOAL_ELIMIT ? GRPC_INVALID_ARGUMENT
                                                                          : GRPC_NOT_FOUND;
    grpc_call_fail_plain(c, status, "PAGES", msg);
}

void node_pages(struct call *c)
{
    struct sending *s = mem_zalloc(sizeof(*s));
    struct grpc_frame f;
    struct buf plain;
    struct err e = {0};
    if (!s) {
        refuse(c, SHOAL_ENOMEM, "out of memory");
        return;
    }
    buf_init(&s->out, PAGES_PB_MAX_CHUNK);
    buf_init(&plain, PAGES_PB_MAX_REQUEST);
    s->call = c;
    bool read = grpc_call_read_whole(c, &f, &plain);
    int rc = read ? page_share_start(&s->share, c->gl->gw->registry, f.p, f.n,
                                     loop_executor(c->gl->loop), on_ready, s, &e)
                  : 0;
    buf_fini(&plain);
    if (read && rc == 0) {
        call_hold(c);
        c->job = s;
        c->abandon = on_gone;
        c->resume = on_room;
        return;
    }
    if (rc < 0)
        refuse(c, rc, e.code ? e.msg : err_text(rc));
    buf_fini(&s->out);
    mem_free(s);
}
