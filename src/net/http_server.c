/* http_server.c - listeners and connections of one loop; detects the protocol of a connection. */
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mem.h"
#include "net/http_conn.h"
#include "net/tls.h"

#define SCRATCH_BYTES ((size_t)64 << 10)
#define ACCEPT_BURST 64
#define MAX_COMPARED 32u

struct peers_limits http_peers_limits(const struct http_limits *l)
{
    size_t bodies = 3 * l->max_body_bytes, least = (size_t)48 << 20;
    size_t peer = l->max_peer_held_bytes ? l->max_peer_held_bytes : bodies > least ? bodies : least;
    return (struct peers_limits){.max_bytes = l->max_held_bytes ? l->max_held_bytes : 3 * peer,
                                 .max_peer_bytes = peer,
                                 .max_resets = l->max_resets};
}

struct http_listener {
    struct http_listener *next;
    struct http_server *server;
    struct loop_io io;
    enum http_via via;
    bool tls, off;
};

/* ---- connections ---- */

static void conn_free(struct executor_task *t)
{
    struct http_conn *c = LOOP_OF(t, struct http_conn, free);
    struct http_server *s = c->server;
    if (c->prev)
        c->prev->next = c->next;
    else
        s->conns = c->next;
    if (c->next)
        c->next->prev = c->prev;
    s->stats.conns--;
    s->n_closed--;
    loop_timer_clear(s->loop, &c->timer);
    sock_fini(&c->sock);
    peers_give(c->account, c->counted);
    peers_leave(c->account);
    mem_free(c);
}

static size_t on_data(struct sock *st, const char *p, size_t n)
{
    struct http_conn *c = LOOP_OF(st, struct http_conn, sock);
    size_t used = c->proto->data(c, p, n);
    if (c->counted > 0 && !st->dead)
        (void)http_conn_count(c); /* less may be kept now; protocols ask where it grows */
    return used;
}

/* Reports certificates that were refused: at most one a second, or clients could fill the log. */
static void report_refused(struct http_conn *c)
{
    struct http_server *s = c->server;
    uint64_t now = loop_now(s->loop);
    if (now < s->next_report_ns) {
        s->n_unreported++;
        return;
    }
    log_warn("tls", "refused %s: %s unreported=%u", c->peer, sock_why(&c->sock), s->n_unreported);
    s->n_unreported = 0;
    s->next_report_ns = now + 1000000000u;
}

static void on_closed(struct sock *st, int why)
{
    struct http_conn *c = LOOP_OF(st, struct http_conn, sock);
    (void)why;
    if (sock_refused(st))
        report_refused(c);
    http_conn_wait(c, false);
    c->server->n_closed++;
    c->proto->destroy(c);
    c->state = NULL;
    loop_later(c->server->loop, &c->free);
}

static void on_ended(struct sock *st)
{
    struct http_conn *c = LOOP_OF(st, struct http_conn, sock);
    c->proto->eof(c);
}

static void on_drained(struct sock *st)
{
    struct http_conn *c = LOOP_OF(st, struct http_conn, sock);
    if (c->counted > 0)
        (void)http_conn_count(c);
    c->proto->drained(c);
}

/* Before the first bytes arrive: no protocol state is allocated yet. */

static bool start(struct http_conn *c, bool h2)
{
    if (h2 ? http2_start(c) : http1_start(c)) {
        if (c->draining)
            c->proto->drain(c);
        return true;
    }
    sock_break(&c->sock);
    return false;
}

static size_t sniff_data(struct http_conn *c, const char *p, size_t n)
{
    static const char preface[] = "PRI * HTTP/2.0";
    size_t k = n < sizeof(preface) - 1 ? n : sizeof(preface) - 1;
    bool h2 = memcmp(p, preface, k) == 0;
    if (h2 && k < 3)
        return 0; /* a single "P" may be the start of POST */
    if (!start(c, h2))
        return n;
    return c->proto->data(c, p, n);
}

static void sniff_end(struct http_conn *c)
{
    sock_break(&c->sock);
}

static void sniff_nothing(struct http_conn *c)
{
    (void)c;
}

static const struct http_proto sniff = {.data = sniff_data,
                                        .eof = sniff_end,
                                        .drained = sniff_nothing,
                                        .drain = sniff_end,
                                        .timeout = sniff_end,
                                        .destroy = sniff_nothing};

static void on_secured(struct sock *st, const char *protocol)
{
    struct http_conn *c = LOOP_OF(st, struct http_conn, sock);
    const struct http_server *s = c->server;
    if (strcmp(protocol, TLS_SHARD) != 0) {
        (void)start(c, strcmp(protocol, "h2") == 0);
        return;
    }
    if (!s->shard || c->draining) {
        sock_break(st);
        return;
    }
    struct tls_conn *tls;
    int fd;
    sock_take(st, &fd, &tls);
    s->shard(s->shard_ctx, fd, tls);
}

static void on_stale(struct sock *st)
{
    struct http_conn *c = LOOP_OF(st, struct http_conn, sock);
    if (c->proto->retire) {
        c->proto->retire(c);
    } else {
        c->draining = true;
        c->proto->drain(c);
    }
}

static const struct sock_ops sock_callbacks = {.data = on_data,
                                               .ended = on_ended,
                                               .closed = on_closed,
                                               .drained = on_drained,
                                               .secured = on_secured,
                                               .stale = on_stale};

static void on_timer(struct executor_timer *t)
{
    struct http_conn *c = LOOP_OF(t, struct http_conn, timer);
    if (!c->sock.dead)
        c->proto->timeout(c);
}

static void name_peer(struct http_conn *c, const struct sockaddr_storage *ss, socklen_t n)
{
    if (ss->ss_family == AF_UNIX)
        snprintf(c->peer, sizeof(c->peer), "unix");
    else if (getnameinfo((const struct sockaddr *)(const void *)ss, n, c->peer, sizeof(c->peer),
                         NULL, 0, NI_NUMERICHOST) != 0)
        snprintf(c->peer, sizeof(c->peer), "unknown"); /* never "unix", which has rights */
}

/* What kind of address a listener is bound to. */
static enum http_via via_of(int fd)
{
    struct sockaddr_storage ss;
    socklen_t n = sizeof(ss);
    const struct sockaddr_in *four = (const struct sockaddr_in *)(const void *)&ss;
    const struct sockaddr_in6 *six = (const struct sockaddr_in6 *)(const void *)&ss;
    bool loopback = false;
    if (getsockname(fd, (struct sockaddr *)(void *)&ss, &n) < 0)
        return HTTP_VIA_NETWORK;
    if (ss.ss_family == AF_UNIX)
        return HTTP_VIA_UNIX;
    if (ss.ss_family == AF_INET)
        loopback = ntohl(four->sin_addr.s_addr) >> 24 == 127;
    else if (ss.ss_family == AF_INET6)
        loopback = IN6_IS_ADDR_LOOPBACK(&six->sin6_addr) ||
                   (IN6_IS_ADDR_V4MAPPED(&six->sin6_addr) && six->sin6_addr.s6_addr[12] == 127);
    return loopback ? HTTP_VIA_LOOPBACK : HTTP_VIA_NETWORK;
}

static int adopt(struct http_server *s, int fd, enum http_via via, struct tls_server *tls,
                 const struct sockaddr_storage *ss, socklen_t n, struct err *e)
{
    struct http_conn *c = mem_zalloc(sizeof(*c));
    int on = 1;
    if (c && !(c->account = peers_join(s->peers, ss))) {
        mem_free(c);
        c = NULL;
    }
    if (!c) {
        close(fd);
        return err_set(e, SHOAL_ENOMEM, "connection");
    }
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    c->server = s;
    c->proto = &sniff;
    c->via = via;
    c->secure = tls != NULL;
    c->timer.fn = on_timer;
    c->free.fn = conn_free;
    name_peer(c, ss, n);
    struct tls_conn *secured = NULL;
    int rc = tls ? tls_conn_accept(&secured, tls, fd, e) : 0;
    if (rc < 0)
        close(fd);
    else
        rc =
            sock_init(&c->sock, s->loop, fd, secured, &sock_callbacks, s->scratch, s->n_scratch, e);
    if (rc < 0) {
        peers_leave(c->account);
        mem_free(c);
        return rc;
    }
    c->next = s->conns;
    if (s->conns)
        s->conns->prev = c;
    s->conns = c;
    s->stats.conns++;
    s->stats.accepted++;
    http_conn_wait(c, true);
    http_conn_timer(c, s->limits.request_ms);
    return 0;
}

int http_server_adopt(struct http_server *s, int fd, struct err *e)
{
    struct sockaddr_storage ss = {.ss_family = AF_UNIX};
    return adopt(s, fd, HTTP_VIA_UNIX, NULL, &ss, sizeof(ss), e);
}

/* Closes a connection that has waited long; false: none waits. Among those that have waited
 * longest, it is one of the client with the most connections, so that a client with many displaces
 * its own.
 */
static bool make_room(struct http_server *s)
{
    struct http_conn *found = NULL;
    uint32_t most = 0, n = 0;
    for (struct http_conn *c = s->longest_wait; c && n < MAX_COMPARED; c = c->waits_after, n++)
        if (peers_uses(c->account) > most) {
            most = peers_uses(c->account);
            found = c;
        }
    if (!found)
        return false;
    peers_displaced(s->peers);
    sock_break(&found->sock);
    return true;
}

static void on_accept(struct loop_io *io, uint32_t events)
{
    struct http_listener *ln = LOOP_OF(io, struct http_listener, io);
    struct http_server *s = ln->server;
    (void)events;
    for (int i = 0; i < ACCEPT_BURST && !ln->off; i++) {
        struct sockaddr_storage ss;
        socklen_t n = sizeof(ss);
        int fd = accept4(io->fd, (struct sockaddr *)(void *)&ss, &n, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd < 0) { /* EAGAIN, or an error of that client only, or no descriptors are left */
            if (errno == EMFILE || errno == ENFILE)
                (void)make_room(s); /* the connection is accepted in the next turn */
            return;
        }
        if (s->stats.conns - s->n_closed >= s->limits.max_conns && !make_room(s)) {
            s->stats.refused++;
            close(fd);
        } else if (adopt(s, fd, ln->via, ln->tls ? s->tls : NULL, &ss, n, NULL) < 0) {
            s->stats.refused++;
        }
    }
}

/* ---- server ---- */

int http_server_create(struct http_server **out, struct loop *l, const struct http_limits *limits,
                       http_handler handler, void *ctx, struct err *e)
{
    struct http_server *s = mem_zalloc(sizeof(*s));
    *out = NULL;
    if (s)
        s->scratch = mem_alloc(SCRATCH_BYTES);
    if (!s || !s->scratch) {
        mem_free(s);
        return err_set(e, SHOAL_ENOMEM, "out of memory for the HTTP server");
    }
    s->loop = l;
    s->limits = limits ? *limits : http_default_limits;
    s->handler = handler;
    s->ctx = ctx;
    s->n_scratch = SCRATCH_BYTES;
    const struct peers_limits pl = http_peers_limits(&s->limits);
    int rc = peers_create(&s->own_peers, &pl, e);
    if (rc < 0) {
        http_server_destroy(s);
        return rc;
    }
    s->peers = s->own_peers;
    *out = s;
    return 0;
}

static void close_listener(struct http_server *s, struct http_listener *ln)
{
    if (ln->off)
        return;
    ln->off = true;
    loop_io_del(s->loop, &ln->io);
    close(ln->io.fd);
}

void http_server_destroy(struct http_server *s)
{
    if (!s)
        return;
    while (s->conns) {
        struct http_conn *c = s->conns;
        if (!c->sock.dead) {
            c->sock.dead = true;
            c->server->n_closed++;
            http_conn_wait(c, false);
            c->proto->destroy(c);
        }
        conn_free(&c->free);
    }
    while (s->listeners) {
        struct http_listener *ln = s->listeners;
        s->listeners = ln->next;
        close_listener(s, ln);
        mem_free(ln);
    }
    peers_destroy(s->own_peers);
    mem_free(s->scratch);
    mem_free(s);
}

int http_server_listen(struct http_server *s, int fd, struct tls_server *tls, struct err *e)
{
    struct http_listener *ln = mem_zalloc(sizeof(*ln));
    int rc = 0;
    if (!ln)
        rc = err_set(e, SHOAL_ENOMEM, "listener");
    if (rc == 0) {
        *ln = (struct http_listener){
            .server = s, .io = {.fd = fd, .fn = on_accept}, .via = via_of(fd), .tls = tls != NULL};
        rc = loop_io_add(s->loop, &ln->io, EPOLLIN, e);
    }
    if (rc < 0) {
        mem_free(ln);
        close(fd);
        return rc;
    }
    if (tls)
        s->tls = tls;
    ln->next = s->listeners;
    s->listeners = ln;
    return 0;
}

void http_server_set_tls(struct http_server *s, struct tls_server *tls)
{
    s->tls = tls;
}

void http_server_set_early(struct http_server *s, bool (*early)(void *ctx, const char *path))
{
    s->early = early;
}

void http_server_set_admit(struct http_server *s, bool (*admit)(void *ctx, struct http_req *r))
{
    s->admit = admit;
}

void http_server_set_shard(struct http_server *s, http_shard_fn fn, void *ctx)
{
    s->shard = fn;
    s->shard_ctx = ctx;
}

void http_server_set_refuse(struct http_server *s,
                            void (*refuse)(struct http_req *r, const struct http_refusal *why))
{
    s->refuse = refuse;
}

void http_server_set_limits(struct http_server *s, const struct http_limits *limits)
{
    const struct peers_limits pl = http_peers_limits(limits);
    s->limits = *limits;
    if (s->own_peers)
        peers_set_limits(s->own_peers, &pl);
}

void http_server_share_peers(struct http_server *s, struct peers *peers)
{
    peers_destroy(s->own_peers);
    s->own_peers = NULL;
    s->peers = peers;
}

void http_server_leave(struct http_server *s)
{
    s->leaving = true;
}

void http_server_drain(struct http_server *s)
{
    s->draining = true;
    for (struct http_listener *ln = s->listeners; ln; ln = ln->next)
        close_listener(s, ln);
    for (struct http_conn *c = s->conns, *next; c; c = next) {
        next = c->next;
        c->draining = true;
        if (!c->sock.dead)
            c->proto->drain(c);
    }
}

void http_server_stats(const struct http_server *s, struct http_stats *out)
{
    *out = s->stats;
}
