/* node_fetch.c - see node_fetch.h. One step at a time: the readers' thread opens the file or reads
 * a piece of it, the loop sends the piece, waits until the other node has read and the rate allows
 * more, and requests the next one. */
#include "gateway/node/node_fetch.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "cluster/store/fetch_pb.h"
#include "depot/store/model_manifest.h"
#include "cluster/store/model_share.h"
#include "flow/pool.h"
#include "gateway/call/call.h"
#include "gateway/grpc/grpc_call.h"
#include "gateway/node/node_store.h"
#include "net/grpc_frame.h"

#define MAX_SHARES 16u /* concurrent transfers: other nodes come later, or ask another node */

struct share {
    struct call *call; /* held */
    struct node_store *store;
    struct fetch_request request;
    struct pool_task read;
    struct executor_task back;
    struct executor_timer timer;
    /* busy reading; waiting for the client; waiting for the rate limit */
    bool busy, waiting, timed;
    /* used by the reader while it is busy, otherwise by the loop */
    char path[PATH_MAX]; /* where the registry has the model; "": nowhere */
    bool opened;
    int fd;
    uint64_t bytes;
    struct buf out;
    uint8_t *block;
    struct err e;
    int rc;
};

/* ---- on the readers' thread ---- */

static int open_model(struct share *h)
{
    const struct model_share_from from = {.store = h->store->store,
                                          .path = h->path[0] ? h->path : NULL,
                                          .memo_dir =
                                              h->store->memo_dir[0] ? h->store->memo_dir : NULL,
                                          .stop = &h->store->stop};
    struct model_manifest m;
    int rc;
    h->opened = true;
    if (!h->request.manifest) {
        rc = model_share_open(&h->fd, &h->bytes, &from, h->request.model, h->request.file, &h->e);
        return rc == 0 && h->request.offset > h->bytes
                   ? err_set(&h->e, SHOAL_EINVAL, "the file has only %llu bytes",
                             (unsigned long long)h->bytes)
                   : rc;
    }
    model_manifest_init(&m);
    rc = model_share_manifest(&m, &from, h->request.model, &h->e);
    if (rc == 0)
        rc = fetch_pb_put_manifest(&h->out, &m);
    model_manifest_fini(&m);
    return rc;
}

static int read_piece(struct share *h)
{
    uint64_t left = h->bytes - h->request.offset;
    size_t n = left < FETCH_PB_DATA_BYTES ? (size_t)left : FETCH_PB_DATA_BYTES;
    if (n == 0)
        return 0;
    ssize_t got = pread(h->fd, h->block, n, (off_t)h->request.offset);
    if (got <= 0)
        return err_set(&h->e, SHOAL_EIO, "cannot read the model: %s",
                       got < 0 ? strerror(errno) : "it became shorter");
    h->request.offset += (uint64_t)got;
    return fetch_pb_put_data(&h->out, h->block, (size_t)got);
}

static void on_read(struct pool_task *t)
{
    struct share *h = EXECUTOR_OF(t, struct share, read);
    h->rc = h->opened ? 0 : open_model(h);
    if (h->rc == 0 && !h->request.manifest)
        h->rc = read_piece(h);
    loop_post(h->call->gl->loop, &h->back);
}

/* ---- on the loop ---- */

static void share_free(struct share *h)
{
    struct call *c = h->call;
    loop_timer_clear(c->gl->loop, &h->timer);
    if (h->fd >= 0)
        close(h->fd);
    atomic_fetch_sub(&h->store->n_shares, 1);
    buf_fini(&h->out);
    mem_free(h->block);
    mem_free(h);
    c->job = NULL;
    c->abandon = c->resume = NULL;
    call_release(c);
}

static void fail(struct share *h, int rc, const char *msg)
{
    enum grpc_status status = rc == SHOAL_ENOTFOUND || rc == SHOAL_ECHANGED ? GRPC_NOT_FOUND
                              : rc == SHOAL_EINVAL                          ? GRPC_INVALID_ARGUMENT
                              : rc == SHOAL_EBUSY || rc == SHOAL_ENOMEM     ? GRPC_UNAVAILABLE
                                                                            : GRPC_INTERNAL;
    grpc_call_fail_plain(h->call, status, rc == SHOAL_EBUSY ? "DRAINING" : "MODEL", msg);
    share_free(h);
}

static void next(struct share *h)
{
    struct call *c = h->call;
    if (atomic_load(&c->gl->gw->draining)) {
        fail(h, SHOAL_EBUSY, "this node is draining");
        return;
    }
    h->busy = true;
    if (!h->store->readers || pool_submit(h->store->readers, &h->read) < 0) {
        h->busy = false;
        fail(h, SHOAL_EBUSY, "too many models are being read");
    }
}

/* Both the client and the rate allow more. */
static void go_on(struct share *h)
{
    if (!h->busy && !h->waiting && !h->timed)
        next(h);
}

static void on_time(struct executor_timer *t)
{
    struct share *h = LOOP_OF(t, struct share, timer);
    h->timed = false;
    go_on(h);
}

static void on_room(struct call *c)
{
    struct share *h = c->job;
    h->waiting = false;
    go_on(h);
}

static void on_gone(struct call *c)
{
    struct share *h = c->job;
    if (!h->busy)
        share_free(h);
}

static void on_back(struct executor_task *t)
{
    struct share *h = EXECUTOR_OF(t, struct share, back);
    struct call *c = h->call;
    size_t n = h->out.len;
    h->busy = false;
    if (!c->req) {
        share_free(h);
        return;
    }
    if (h->rc < 0) {
        fail(h, h->rc, h->e.code == h->rc ? h->e.msg : err_text(h->rc));
        return;
    }
    if (n > 0)
        grpc_call_send(c, &h->out);
    buf_clear(&h->out);
    if (h->request.manifest || h->request.offset == h->bytes) {
        grpc_call_finish(c);
        share_free(h);
        return;
    }
    uint64_t now = clock_ns(), wait = byte_rate_take(&h->store->rate, n, now);
    h->waiting = call_full(c);
    h->timed = wait > 0;
    if (wait > 0)
        loop_timer_set(c->gl->loop, &h->timer, now + wait);
    go_on(h);
}

/* ---- the call ---- */

struct search {
    const uint8_t *sum;
    char *path;
};

static void compare(void *ctx, const struct registry_model *m)
{
    struct search *s = ctx;
    const uint8_t *sum = registry_sum(m);
    if (!s->path[0] && sum && memcmp(sum, s->sum, SHA256_BYTES) == 0)
        snprintf(s->path, PATH_MAX, "%s", m->slot->path);
}

static bool read_request(struct call *c, struct fetch_request *r)
{
    struct grpc_frame f;
    struct buf plain;
    struct err e = {0};
    buf_init(&plain, FETCH_PB_MAX_REQUEST);
    bool ok = grpc_call_read_whole(c, &f, &plain);
    if (ok && fetch_pb_read_request(r, f.p, f.n, &e) < 0) {
        grpc_call_fail_plain(c, GRPC_INVALID_ARGUMENT, "INVALID_MESSAGE", e.msg);
        ok = false;
    }
    buf_fini(&plain);
    return ok;
}

void node_fetch(struct call *c)
{
    struct gw *gw = c->gl->gw;
    struct fetch_request r;
    if (!gw->store) {
        grpc_call_fail_plain(c, GRPC_UNAVAILABLE, "MODEL", "this node shares no models");
        return;
    }
    if (!read_request(c, &r))
        return;
    if (atomic_fetch_add(&gw->store->n_shares, 1) >= MAX_SHARES) {
        atomic_fetch_sub(&gw->store->n_shares, 1);
        grpc_call_fail_plain(c, GRPC_RESOURCE_EXHAUSTED, "OVERLOADED",
                             "this node is already sending models to others: try again later");
        return;
    }
    struct share *h = mem_zalloc(sizeof(*h));
    uint8_t *block = h && !r.manifest ? mem_alloc(FETCH_PB_DATA_BYTES) : NULL;
    if (!h || (!r.manifest && !block)) {
        mem_free(h);
        atomic_fetch_sub(&gw->store->n_shares, 1);
        grpc_call_fail_plain(c, GRPC_UNAVAILABLE, NULL, "out of memory");
        return;
    }
    struct search s = {r.model, h->path};
    registry_each_version(gw->registry, compare, &s);
    h->call = c;
    h->store = gw->store;
    h->request = r;
    h->block = block;
    h->fd = -1;
    h->read.fn = on_read;
    h->back.fn = on_back;
    h->timer.fn = on_time;
    buf_init(&h->out, FETCH_PB_MAX_CHUNK);
    call_hold(c);
    c->job = h;
    c->abandon = on_gone;
    c->resume = on_room;
    next(h);
}
