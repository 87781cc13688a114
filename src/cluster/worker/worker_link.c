/* worker_link.c - see worker_link.h. */
#include "cluster/worker/worker_link.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "cluster/messages/event_feed.h"
#include "cluster/messages/request_pb.h"
#include "cluster/worker/ring.h"
#include "cluster/worker/worker_frame.h"
#include "cluster/worker/workers.h"
#include "flow/flow.h"

#define READ_BYTES ((size_t)64 << 10)
#define MAX_HELD_BYTES ((size_t)128 << 20) /* limit of events that a slow reader has not taken */
#define MAX_OUT_BYTES ((size_t)512 << 20)
#define MAX_READS 16 /* ring reads per turn, so that others get their turn */

/* One request that the worker works on. */
struct errand {
    struct flow_job job; /* first */
    struct event_feed feed;
    struct worker_link *link;
    struct flow_owner *owner;
    struct errand *prev, *next;
    uint64_t id;
    struct buf held; /* frames that wait for the sink */
    bool paused;     /* the worker was told to wait */
    bool over;       /* the worker no longer knows it */
    bool closing;    /* `closed` is due */
    struct executor_task close;
};

struct worker_link {
    struct replica replica; /* first */
    struct loop *loop;
    char name[160];
    struct loop_io sock, wake;
    bool connected;
    struct ring ring;
    int ring_fd;
    struct buf in, out; /* bytes of the ring not read yet; bytes for the socket */
    struct errand *errands;
    uint64_t next_id;
    struct executor_task more; /* reads on in the next turn */
};

static void disconnect(struct worker_link *k, const char *why);

/* ---- sending ---- */

static void send_out(struct worker_link *k)
{
    size_t at = 0;
    while (k->connected && at < k->out.len) {
        ssize_t n =
            send(k->sock.fd, k->out.data + at, k->out.len - at, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            break; /* full, or gone: the event says which */
        at += (size_t)n;
    }
    if (at == k->out.len) {
        buf_clear(&k->out);
    } else if (at > 0) {
        memmove(k->out.data, k->out.data + at, k->out.len - at);
        k->out.len -= at;
    }
    if (k->connected)
        loop_io_set(k->loop, &k->sock, k->out.len > 0 ? EPOLLIN | EPOLLOUT : EPOLLIN);
}

static void tell(struct worker_link *k, enum worker_frame_kind kind, uint64_t id)
{
    if (!k->connected)
        return;
    worker_frame_put(&k->out, kind, id, NULL, 0);
    send_out(k);
}

/* ---- one request ---- */

static void errand_close(struct errand *q)
{
    struct worker_link *k = q->link;
    struct flow_owner *o = q->owner;
    struct sink *s = q->feed.sink;
    if (q->prev)
        q->prev->next = q->next;
    else
        k->errands = q->next;
    if (q->next)
        q->next->prev = q->prev;
    s->job = NULL;
    s->ops->closed(s);
    event_feed_fini(&q->feed);
    buf_fini(&q->held);
    mem_free(q);
    o->n_jobs--;
}

static void on_close(struct executor_task *t)
{
    errand_close(EXECUTOR_OF(t, struct errand, close));
}

/* Ends it, from within its own events or not. */
static void close_later(struct errand *q)
{
    if (q->closing)
        return;
    q->closing = true;
    if (!q->over)
        tell(q->link, WORKER_FRAME_CANCEL, q->id);
    loop_later(q->link->loop, &q->close);
}

static void fail_lost(struct errand *q, bool ended, const char *why)
{
    struct failure f;
    failure_set(&f, FAILURE_UNAVAILABLE, SHOAL_EIO, NULL, ended ? REPLICA_ENDED : REPLICA_LOST,
                "%.160s: %.200s", q->link->name, why);
    event_feed_fail(&q->feed, &f);
}

/* Passes frames to the sink as long as it has room; the rest waits. */
static int pump(struct errand *q)
{
    struct worker_frame f;
    size_t at = 0;
    int rc = 0;
    while (rc == 0 && !q->closing && at < q->held.len && !event_feed_full(&q->feed)) {
        if (worker_frame_next(&f, q->held.data + at, q->held.len - at) <= 0)
            return SHOAL_EINTERNAL; /* we have put them there */
        at += f.bytes;
        if (f.kind == WORKER_FRAME_EVENTS) {
            rc = event_feed_put(&q->feed, f.p, f.n);
        } else { /* CLOSED */
            q->over = true;
            if (!q->feed.quiet)
                fail_lost(q, false, "it broke off");
            close_later(q);
        }
    }
    if (at > 0) {
        memmove(q->held.data, q->held.data + at, q->held.len - at);
        q->held.len -= at;
        event_feed_flush(&q->feed);
    }
    if (!q->closing && !q->over && q->paused != (q->held.len > 0)) {
        q->paused = !q->paused;
        tell(q->link, q->paused ? WORKER_FRAME_PAUSE : WORKER_FRAME_RESUME, q->id);
    }
    return rc;
}

static void on_cancel(struct flow_job *j)
{
    struct errand *q = (struct errand *)(void *)j;
    q->feed.quiet = true;
    close_later(q);
}

static void on_resume(struct flow_job *j)
{
    struct errand *q = (struct errand *)(void *)j;
    if (!q->closing && q->held.len > 0 && pump(q) < 0) {
        fail_lost(q, false, "it sent a damaged message");
        close_later(q);
    }
}

static int send_request(struct worker_link *k, struct errand *q, const struct request *r)
{
    struct buf b;
    if (!k->connected)
        return SHOAL_EIO;
    buf_init(&b, WORKER_FRAME_MAX_BYTES);
    int rc = request_pb_put(&b, r, clock_ns());
    if (rc == 0) {
        size_t before = k->out.len;
        worker_frame_put(&k->out, WORKER_FRAME_RUN, q->id, b.data, b.len);
        if (k->out.rc < 0) { /* whole frames or none */
            rc = k->out.rc;
            k->out.len = before;
            k->out.rc = 0;
        }
    }
    buf_fini(&b);
    if (rc == 0)
        send_out(k);
    return rc;
}

static void run(struct replica *p, struct flow_owner *o, const struct request *r, struct sink *s)
{
    static const struct flow_job_ops ops = {on_cancel, on_resume};
    struct worker_link *k = (struct worker_link *)(void *)p;
    struct errand *q = mem_zalloc(sizeof(*q));
    struct failure f;
    if (!q) {
        flow_refuse_nomem(o, NULL, s);
        return;
    }
    q->job.ops = &ops;
    q->link = k;
    q->owner = o;
    q->id = ++k->next_id;
    q->close.fn = on_close;
    event_feed_init(&q->feed, s);
    buf_init(&q->held, MAX_HELD_BYTES);
    q->next = k->errands;
    if (q->next)
        q->next->prev = q;
    k->errands = q;
    o->n_jobs++;
    s->job = &q->job;
    int rc = send_request(k, q, r);
    if (rc == 0)
        return;
    q->over = true;
    if (rc == SHOAL_ENOMEM || rc == SHOAL_ELIMIT) {
        failure_of(&f, rc, "the request is too large to be sent to a worker");
        event_feed_fail(&q->feed, &f);
    } else {
        fail_lost(q, false, "it is not running");
    }
    errand_close(q);
}

/* ---- reading ---- */

static struct errand *find(struct worker_link *k, uint64_t id)
{
    struct errand *q = k->errands;
    while (q && q->id != id)
        q = q->next;
    return q;
}

static int take_frame(struct worker_link *k, const struct worker_frame *f)
{
    if (f->kind != WORKER_FRAME_EVENTS && f->kind != WORKER_FRAME_CLOSED)
        return SHOAL_EFORMAT;
    struct errand *q = find(k, f->id);
    if (!q || q->closing)
        return 0; /* cancelled: it did not know yet */
    worker_frame_put(&q->held, (enum worker_frame_kind)f->kind, f->id, f->p, f->n);
    if (q->held.rc < 0)
        return q->held.rc;
    return q->paused ? 0 : pump(q);
}

static int take_frames(struct worker_link *k)
{
    struct worker_frame f;
    size_t at = 0;
    int rc;
    while ((rc = worker_frame_next(&f, (const uint8_t *)k->in.data + at, k->in.len - at)) > 0) {
        rc = take_frame(k, &f);
        if (rc < 0 || !k->connected)
            return rc;
        at += f.bytes;
    }
    if (at > 0) {
        memmove(k->in.data, k->in.data + at, k->in.len - at);
        k->in.len -= at;
    }
    return rc;
}

/* False: everything was read, and the worker will wake us. */
static bool read_some(struct worker_link *k, int *rc)
{
    bool wake;
    size_t n;
    char *room = buf_room(&k->in, READ_BYTES);
    *rc = room ? ring_read(&k->ring, room, READ_BYTES, &n, &wake) : k->in.rc;
    if (*rc < 0)
        return false;
    if (n == 0)
        return !ring_sleep(&k->ring);
    buf_used(&k->in, n);
    if (wake)
        tell(k, WORKER_FRAME_ROOM, 0);
    *rc = take_frames(k);
    return *rc == 0;
}

static void read_ring(struct worker_link *k)
{
    int rc = 0, i = 0;
    if (!k->connected)
        return;
    while (k->connected && i < MAX_READS && read_some(k, &rc))
        i++;
    if (rc < 0)
        disconnect(k, "it sent a damaged message");
    else if (k->connected && i == MAX_READS)
        loop_next(k->loop, &k->more);
}

static void on_more(struct executor_task *t)
{
    read_ring(EXECUTOR_OF(t, struct worker_link, more));
}

static void on_wake(struct loop_io *io, uint32_t events)
{
    (void)events; /* the counter is never read: only its edges count */
    read_ring(LOOP_OF(io, struct worker_link, wake));
}

static void on_sock(struct loop_io *io, uint32_t events)
{
    struct worker_link *k = LOOP_OF(io, struct worker_link, sock);
    char byte;
    if (!k->connected)
        return;
    if (events & EPOLLOUT)
        send_out(k);
    if (!(events & (EPOLLIN | EPOLLHUP | EPOLLERR)))
        return;
    ssize_t n = recv(io->fd, &byte, 1, MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n == 0)
        read_ring(k); /* events written before it ended */
    disconnect(k, n > 0 ? "it sent an unexpected message" : "it ended");
}

/* ---- lifetime ---- */

/* The worker is gone: every request continues elsewhere, or when it is back. */
static void disconnect(struct worker_link *k, const char *why)
{
    struct errand *next;
    if (!k->connected)
        return;
    k->connected = false;
    loop_forget(k->loop, &k->more);
    loop_io_del(k->loop, &k->sock);
    loop_io_del(k->loop, &k->wake);
    close(k->sock.fd);
    close(k->wake.fd);
    close(k->ring_fd);
    ring_close(&k->ring);
    buf_clear(&k->in);
    buf_clear(&k->out);
    for (struct errand *q = k->errands; q; q = q->next)
        k->replica.n_ended += !q->closing;
    for (struct errand *q = k->errands; q; q = next) {
        next = q->next;
        q->over = true;
        if (q->closing)
            continue;
        fail_lost(q, true, why);
        close_later(q);
    }
    k->replica.n_ended = 0;
}

int worker_link_create(struct worker_link **out, struct loop *l, const char *name, struct err *e)
{
    static const struct replica_ops ops = {.run = run};
    struct worker_link *k = mem_zalloc(sizeof(*k));
    *out = NULL;
    if (!k)
        return err_set(e, SHOAL_ENOMEM, "out of memory for a worker");
    k->replica = (struct replica){.ops = &ops, .name = k->name};
    snprintf(k->name, sizeof(k->name), "the worker of the model '%.100s'", name);
    k->loop = l;
    k->more.fn = on_more;
    buf_init(&k->in, WORKER_FRAME_MAX_BYTES + WORKER_FRAME_HEAD_BYTES + READ_BYTES);
    buf_init(&k->out, MAX_OUT_BYTES);
    *out = k;
    return 0;
}

int worker_link_connect(struct worker_link *k, const struct workers_conn *c, struct err *e)
{
    disconnect(k, "it was started again");
    int rc = ring_open(&k->ring, c->ring_fd, e);
    k->sock = (struct loop_io){.fd = c->sock, .fn = on_sock};
    k->wake = (struct loop_io){.fd = c->wake_fd, .fn = on_wake};
    k->ring_fd = c->ring_fd;
    if (rc == 0)
        rc = loop_io_add(k->loop, &k->sock, EPOLLIN, e);
    if (rc == 0 && (rc = loop_io_add(k->loop, &k->wake, EPOLLIN | EPOLLET, e)) < 0)
        loop_io_del(k->loop, &k->sock);
    if (rc < 0) {
        ring_close(&k->ring);
        close(c->sock);
        close(c->wake_fd);
        close(c->ring_fd);
        return rc;
    }
    k->connected = true;
    read_ring(k); /* goes to sleep */
    return 0;
}

void worker_link_destroy(struct worker_link *k)
{
    if (!k)
        return;
    disconnect(k, "this server stops");
    while (k->errands) { /* not later: this memory is freed */
        loop_forget(k->loop, &k->errands->close);
        errand_close(k->errands);
    }
    buf_fini(&k->in);
    buf_fini(&k->out);
    mem_free(k);
}

struct replica *worker_link_replica(struct worker_link *k)
{
    return &k->replica;
}

bool worker_link_ready(const struct worker_link *k)
{
    return k->connected;
}
