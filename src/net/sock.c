/* sock.c - see sock.h. */
#include "net/sock.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "net/tls.h"

#define MAX_OUT_BYTES ((size_t)256 << 20)
#define MAX_IN_BYTES ((size_t)64 << 20) /* a hard bound; usually far less: see read_off */
#define KEEP_BYTES ((size_t)16 << 10)   /* an idle socket frees larger buffers */
#define MAX_READS 4                     /* per turn, so that other connections get theirs */

static void on_io(struct loop_io *io, uint32_t events);
static void on_flush(struct executor_task *t);
static void on_again(struct executor_task *t);

int sock_init(struct sock *s, struct loop *l, int fd, struct tls_conn *tls,
              const struct sock_ops *ops, char *scratch, size_t n_scratch, struct err *e)
{
    *s = (struct sock){.loop = l,
                       .io = {.fd = fd, .fn = on_io},
                       .ops = ops,
                       .tls = tls,
                       .handshaking = tls != NULL,
                       .scratch = scratch,
                       .n_scratch = n_scratch,
                       .flush = {.fn = on_flush},
                       .again = {.fn = on_again},
                       .progress_ns = loop_now(l)};
    buf_init(&s->in, MAX_IN_BYTES);
    buf_init(&s->out, MAX_OUT_BYTES);
    uint32_t begins = tls && tls_conn_wants_write(tls) ? EPOLLOUT : 0;
    int rc = loop_io_add(l, &s->io, EPOLLIN | EPOLLRDHUP | begins, e);
    if (rc < 0) {
        tls_conn_destroy(s->tls);
        close(fd);
        s->tls = NULL;
        s->io.fd = -1;
    }
    return rc;
}

void sock_fini(struct sock *s)
{
    loop_forget(s->loop, &s->flush);
    loop_forget(s->loop, &s->again);
    tls_conn_destroy(s->tls);
    if (s->io.fd >= 0) {
        loop_io_del(s->loop, &s->io);
        close(s->io.fd);
    }
    buf_fini(&s->in);
    buf_fini(&s->out);
    s->tls = NULL;
    s->io.fd = -1;
}

static void die(struct sock *s, int why)
{
    if (s->dead)
        return;
    s->dead = true;
    loop_io_del(s->loop, &s->io);
    s->ops->closed(s, why);
}

void sock_break(struct sock *s)
{
    die(s, SHOAL_EIO);
}

void sock_take(struct sock *s, int *fd, struct tls_conn **tls)
{
    *fd = s->io.fd;
    *tls = s->tls;
    s->dead = true;
    loop_io_del(s->loop, &s->io);
    s->io.fd = -1;
    s->tls = NULL;
    s->ops->closed(s, 0);
}

static void watch(struct sock *s)
{
    uint32_t events = s->eof ? 0 : EPOLLRDHUP;
    if (!s->read_off && !s->eof)
        events |= EPOLLIN;
    if (s->blocked || (s->tls && tls_conn_wants_write(s->tls)))
        events |= EPOLLOUT;
    if (!s->dead)
        loop_io_set(s->loop, &s->io, events);
}

/* > 0: bytes; 0: end of input; SHOAL_EBUSY: would block; SHOAL_EIO. */
static ssize_t read_some(struct sock *s)
{
    if (s->tls)
        return tls_conn_read(s->tls, s->scratch, s->n_scratch);
    ssize_t n;
    do {
        n = recv(s->io.fd, s->scratch, s->n_scratch, 0);
    } while (n < 0 && errno == EINTR);
    if (n >= 0)
        return n;
    if (errno == EAGAIN || errno == EWOULDBLOCK)
        return SHOAL_EBUSY;
    s->failure = errno;
    return SHOAL_EIO;
}

static ssize_t write_some(struct sock *s, const char *p, size_t n)
{
    if (s->tls)
        return tls_conn_write(s->tls, p, n);
    ssize_t k;
    do {
        k = send(s->io.fd, p, n, MSG_NOSIGNAL);
    } while (k < 0 && errno == EINTR);
    if (k >= 0)
        return k;
    if (errno == EAGAIN || errno == EWOULDBLOCK)
        return SHOAL_EBUSY;
    s->failure = errno;
    return SHOAL_EIO;
}

/* ---- in ---- */

static void offer(struct sock *s, const char *p, size_t n)
{
    bool kept = p == s->in.data;
    if (s->lingering) {
        buf_clear(&s->in);
        return;
    }
    size_t used = s->ops->data(s, p, n);
    if (s->dead)
        return;
    if (kept) {
        if (used > 0) {
            memmove(s->in.data, s->in.data + used, n - used);
            s->in.len = n - used;
        }
    } else {
        buf_put(&s->in, p + used, n - used);
    }
    if (s->in.rc < 0) {
        die(s, SHOAL_EIO);
        return;
    }
    if (s->in.len == 0 && s->in.cap > 0)
        buf_fini(&s->in), buf_init(&s->in, MAX_IN_BYTES);
    s->read_off = s->in.len >= SOCK_MAX_KEPT && s->in.len >= s->want;
}

/* Queued output is still sent: the peer may have closed only its sending side. */
static void end_of_input(struct sock *s)
{
    if (s->eof)
        return;
    s->eof = s->read_off = true;
    if (s->lingering)
        die(s, 0);
    else
        s->ops->ended(s);
    watch(s);
}

/* False: the connection is closed. */
static bool check_peer(struct sock *s)
{
    enum tls_verdict v = tls_conn_check(s->tls, loop_now(s->loop));
    if (v == TLS_BAD)
        die(s, SHOAL_EIO);
    else if (v == TLS_STALE)
        s->ops->stale(s);
    return !s->dead;
}

static void read_in(struct sock *s)
{
    int n_reads = 0;
    do {
        ssize_t n = read_some(s);
        if (n == SHOAL_EBUSY)
            break;
        if (n < 0) {
            die(s, SHOAL_EIO);
            return;
        }
        if (n == 0) {
            end_of_input(s);
            return;
        }
        if (s->tls && !check_peer(s))
            return;
        if (s->in.len > 0) {
            buf_put(&s->in, s->scratch, (size_t)n);
            if (s->in.rc < 0)
                die(s, SHOAL_EIO);
            else
                offer(s, s->in.data, s->in.len);
        } else {
            offer(s, s->scratch, (size_t)n);
        }
        /* TLS may hold bytes that epoll does not report */
    } while (s->tls && !s->dead && !s->read_off && tls_conn_pending(s->tls) &&
             ++n_reads < MAX_READS);
    if (n_reads == MAX_READS)
        sock_again(s);
    watch(s);
}

static void on_again(struct executor_task *t)
{
    struct sock *s = LOOP_OF(t, struct sock, again);
    if (s->dead)
        return;
    if (s->in.len > 0)
        offer(s, s->in.data, s->in.len);
    if (s->tls && !s->dead && !s->read_off && !s->handshaking)
        read_in(s);
    watch(s);
}

void sock_again(struct sock *s)
{
    loop_next(s->loop, &s->again);
}

/* ---- out ---- */

struct buf *sock_put(struct sock *s)
{
    loop_later(s->loop, &s->flush);
    return &s->out;
}

void sock_write(struct sock *s, const void *p, size_t n)
{
    buf_put(sock_put(s), p, n);
}

size_t sock_queued(const struct sock *s)
{
    return s->out.len - s->out_at;
}

bool sock_stalled(const struct sock *s, uint32_t ms)
{
    /* output that was queued in this turn has not been offered to the kernel yet */
    return s->blocked && loop_now(s->loop) - s->progress_ns >= (uint64_t)ms * 1000000u;
}

static void send_out(struct sock *s)
{
    bool had = sock_queued(s) > 0;
    s->blocked = false;
    while (s->out_at < s->out.len) {
        ssize_t n = write_some(s, s->out.data + s->out_at, s->out.len - s->out_at);
        if (n == SHOAL_EBUSY) {
            s->blocked = true;
            break;
        }
        if (n < 0) {
            die(s, SHOAL_EIO);
            return;
        }
        s->out_at += (size_t)n;
        s->progress_ns = loop_now(s->loop);
    }
    if (s->out_at == s->out.len) {
        s->out_at = 0;
        if (s->out.cap > KEEP_BYTES)
            buf_fini(&s->out), buf_init(&s->out, MAX_OUT_BYTES);
        else
            buf_clear(&s->out);
        if (had)
            s->ops->drained(s);
    } else if (s->out_at > s->out.len / 2) {
        memmove(s->out.data, s->out.data + s->out_at, s->out.len - s->out_at);
        s->out.len -= s->out_at;
        s->out_at = 0;
    }
    if (!s->dead && s->finishing && sock_queued(s) == 0) {
        if (s->tls)
            tls_conn_bye(s->tls);
        shutdown(s->io.fd, SHUT_WR);
        if (!s->linger) {
            die(s, 0);
            return;
        }
        s->finishing = s->read_off = false;
        s->lingering = true;
        if (s->eof) {
            die(s, 0);
            return;
        }
    }
    watch(s);
}

static void on_flush(struct executor_task *t)
{
    struct sock *s = LOOP_OF(t, struct sock, flush);
    if (s->dead || s->handshaking)
        return;
    if (s->out.rc < 0) /* part of the output is lost: the connection cannot continue */
        die(s, SHOAL_EIO);
    else if (!s->blocked)
        send_out(s);
}

void sock_finish(struct sock *s, bool linger)
{
    s->finishing = true;
    s->linger = linger;
    loop_later(s->loop, &s->flush);
}

/* ---- events ---- */

static void handshake(struct sock *s)
{
    int rc = tls_conn_handshake(s->tls);
    if (rc == SHOAL_EBUSY) {
        watch(s);
        return;
    }
    if (rc < 0) {
        die(s, SHOAL_EIO);
        return;
    }
    s->handshaking = false;
    s->ops->secured(s, tls_conn_protocol(s->tls));
    if (!s->dead)
        read_in(s); /* the request may have arrived with the end of the handshake */
}

static void on_io(struct loop_io *io, uint32_t events)
{
    struct sock *s = LOOP_OF(io, struct sock, io);
    if (s->dead)
        return;
    if (s->handshaking) {
        if ((events & (EPOLLERR | EPOLLHUP)) && !(events & EPOLLIN))
            die(s, SHOAL_EIO);
        else
            handshake(s); /* the peer's last bytes may explain why it closed */
        return;
    }
    if ((events & EPOLLOUT) && !s->dead)
        send_out(s);
    if (s->dead)
        return;
    if (events & EPOLLIN)
        read_in(s);
    else if (events & (EPOLLHUP | EPOLLERR))
        die(s, SHOAL_EIO);
    else if (events & EPOLLRDHUP) /* reading is off, so the rest of the input is not needed */
        end_of_input(s);
    else if (s->tls && (events & EPOLLOUT) && !s->read_off)
        read_in(s);
}

const struct tls_peer *sock_peer(const struct sock *s)
{
    return s->tls && !s->handshaking ? tls_conn_peer(s->tls) : NULL;
}

const char *sock_why(const struct sock *s)
{
    const char *why = s->tls ? tls_conn_why(s->tls) : "";
    return why[0] ? why : s->failure ? strerror(s->failure) : "";
}

bool sock_refused(const struct sock *s)
{
    return s->tls && tls_conn_refused(s->tls);
}
