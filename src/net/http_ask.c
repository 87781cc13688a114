/* http_ask.c - see http_ask.h. */
#include "net/http_ask.h"

#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "net/http_answer.h"
#include "net/listen.h"
#include "net/tls.h"

#define MAX_HEAD_BYTES ((size_t)64 << 10)

struct talk {
    const struct http_ask *ask;
    char host[320]; /* HOST:PORT for the Host header */
    int fd;
    bool secure; /* https */
    struct tls_conn *tls;
    uint64_t until_ns;
    struct buf *body;
};

/* ---- the address ---- */

/* Text in the request's header must not contain line breaks. */
static bool is_plain(const char *s)
{
    for (; *s; s++)
        if ((unsigned char)*s <= ' ' || *s == 0x7f)
            return false;
    return true;
}

static int read_address(struct talk *t, struct err *e)
{
    const char *s = t->ask->server, *rest = s;
    t->secure = t->ask->tls && strncmp(s, "https://", 8) == 0;
    if (t->secure || strncmp(s, "http://", 7) == 0)
        rest = strstr(s, "//") + 2;
    if (!is_plain(s) && !listen_is_unix(s))
        return err_set(e, SHOAL_EINVAL, "the server's address contains blanks");
    if (t->ask->key && !is_plain(t->ask->key))
        return err_set(e, SHOAL_EINVAL, "the key contains blanks");
    if (listen_is_unix(s)) {
        snprintf(t->host, sizeof(t->host), "localhost");
        return 0;
    }
    size_t n = strcspn(rest, "/");
    if (rest == s && strstr(s, "://"))
        return err_set(e, SHOAL_EINVAL, "%.200s: only http:// and unix: are supported here", s);
    if (rest[n] && rest[n + 1])
        return err_set(e, SHOAL_EINVAL, "%.200s: nothing may follow the port", s);
    if (n == 0 || n >= sizeof(t->host) - 8)
        return err_set(e, SHOAL_EINVAL, "%.200s: write http://HOST:PORT or unix:PATH", s);
    memcpy(t->host, rest, n);
    const char *colon = strrchr(t->host, ':'), *bracket = strrchr(t->host, ']');
    if (rest != s && (!colon || (bracket && bracket > colon)))
        snprintf(t->host + n, sizeof(t->host) - n, ":%d", t->secure ? 443 : 80);
    return 0;
}

/* ---- the connection ---- */

static int late(const struct talk *t, struct err *e)
{
    return err_set(e, SHOAL_EDEADLINE, "no response from %.200s within %u s", t->ask->server,
                   t->ask->timeout_ms / 1000);
}

/* Waits for the descriptor until the deadline. */
static int await(struct talk *t, short events, struct err *e)
{
    for (;;) {
        uint64_t now = clock_ns();
        struct pollfd p[2] = {{.fd = t->fd, .events = events},
                              {.fd = t->ask->stop_fd ? *t->ask->stop_fd : -1, .events = POLLIN}};
        if (now >= t->until_ns)
            return late(t, e);
        int n = poll(p, 2, (int)((t->until_ns - now) / 1000000u) + 1);
        if (n > 0 && p[1].revents)
            return err_set(e, SHOAL_ECANCELLED, "cancelled");
        if (n > 0)
            return 0;
        if (n < 0 && errno != EINTR)
            return err_set(e, SHOAL_EIO, "cannot wait for %.200s: %s", t->ask->server,
                           strerror(errno));
    }
}

/* 0, or an errno. */
static int connect_to(struct talk *t, const struct sockaddr *addr, socklen_t n, struct err *e)
{
    int why = 0;
    socklen_t size = sizeof(why);
    t->fd = socket(addr->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (t->fd < 0)
        return errno;
    if (connect(t->fd, addr, n) == 0)
        return 0;
    if (errno != EINPROGRESS)
        why = errno;
    else if (await(t, POLLOUT, e) < 0)
        why = ETIMEDOUT;
    else if (getsockopt(t->fd, SOL_SOCKET, SO_ERROR, &why, &size) < 0)
        why = errno;
    if (why != 0) {
        close(t->fd);
        t->fd = -1;
    }
    return why;
}

static int open_connection(struct talk *t, struct err *e)
{
    struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM}, *list = NULL;
    const char *server = t->ask->server, *port = "";
    char host[256];
    int why = ECONNREFUSED;
    if (listen_is_unix(server)) {
        struct sockaddr_un addr;
        int rc = listen_unix(&addr, server, e);
        if (rc < 0)
            return rc;
        why = connect_to(t, (const struct sockaddr *)(const void *)&addr, sizeof(addr), e);
    } else {
        int rc = listen_split(t->host, host, sizeof(host), &port, e);
        if (rc < 0)
            return rc;
        rc = getaddrinfo(host[0] ? host : NULL, port, &hints, &list);
        if (rc != 0)
            return err_set(e, SHOAL_EINVAL, "%.200s: %s", server, gai_strerror(rc));
        for (struct addrinfo *i = list; i && t->fd < 0; i = i->ai_next)
            why = connect_to(t, i->ai_addr, i->ai_addrlen, e);
        freeaddrinfo(list);
    }
    if (t->fd >= 0)
        return 0;
    return err_set(e, why == ETIMEDOUT ? SHOAL_EDEADLINE : SHOAL_ENOTFOUND,
                   "cannot reach %.200s: %s", server, strerror(why));
}

/* ---- bytes, plain or encrypted ---- */

static int broken(const struct talk *t, const char *what, const char *why, struct err *e)
{
    return err_set(e, SHOAL_EIO, "%s %.200s: %s", what, t->ask->server, why);
}

static int shake_hands(struct talk *t, struct err *e)
{
    const char *port;
    char host[256];
    int rc = listen_split(t->host, host, sizeof(host), &port, e);
    if (rc == 0)
        rc = tls_conn_connect(&t->tls, t->ask->tls, t->fd, host, e);
    if (rc < 0)
        return rc;
    while ((rc = tls_conn_handshake(t->tls)) == SHOAL_EBUSY) {
        rc = await(t, tls_conn_wants_write(t->tls) ? POLLOUT : POLLIN, e);
        if (rc < 0)
            return rc;
    }
    if (rc == 0)
        return 0;
    const char *why = tls_conn_why(t->tls);
    return broken(t, "no TLS connection to", why[0] ? why : "it was closed", e);
}

/* The number of bytes (reading: 0 at the end), or a negative code; waits until there are some. */
static ssize_t send_some(struct talk *t, const char *p, size_t n, struct err *e)
{
    for (;;) {
        ssize_t sent = t->tls ? tls_conn_write(t->tls, p, n) : send(t->fd, p, n, MSG_NOSIGNAL);
        if (sent >= 0)
            return sent;
        bool later = t->tls ? sent == SHOAL_EBUSY : errno == EAGAIN || errno == EINTR;
        if (!later)
            return broken(t, "cannot send to", t->tls ? tls_conn_why(t->tls) : strerror(errno), e);
        int rc = await(t, t->tls && !tls_conn_wants_write(t->tls) ? POLLIN : POLLOUT, e);
        if (rc < 0)
            return rc;
    }
}

static bool is_stopped(const struct talk *t)
{
    struct pollfd p = {.fd = t->ask->stop_fd ? *t->ask->stop_fd : -1, .events = POLLIN};
    return poll(&p, 1, 0) > 0;
}

static ssize_t receive_some(struct talk *t, char *p, size_t n, struct err *e)
{
    for (;;) { /* both apply even if the server never stops sending */
        if (is_stopped(t))
            return err_set(e, SHOAL_ECANCELLED, "cancelled");
        if (clock_ns() >= t->until_ns)
            return late(t, e);
        ssize_t got = t->tls ? tls_conn_read(t->tls, p, n) : recv(t->fd, p, n, 0);
        if (got >= 0)
            return got;
        bool later = t->tls ? got == SHOAL_EBUSY : errno == EAGAIN || errno == EINTR;
        if (!later)
            return broken(t, "cannot read from", t->tls ? tls_conn_why(t->tls) : strerror(errno),
                          e);
        int rc = await(t, t->tls && tls_conn_wants_write(t->tls) ? POLLOUT : POLLIN, e);
        if (rc < 0)
            return rc;
    }
}

/* ---- request and response ---- */

static int send_all(struct talk *t, const char *p, size_t n, struct err *e)
{
    while (n > 0) {
        ssize_t sent = send_some(t, p, n, e);
        if (sent < 0)
            return (int)sent;
        p += sent;
        n -= (size_t)sent;
    }
    return 0;
}

static int send_request(struct talk *t, struct err *e)
{
    const struct http_ask *a = t->ask;
    struct buf b;
    buf_init(&b, MAX_HEAD_BYTES + a->content_bytes);
    buf_printf(&b, "%s %s HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n", a->method, a->path,
               t->host);
    if (a->key)
        buf_printf(&b, "Authorization: Bearer %s\r\n", a->key);
    if (a->header)
        buf_printf(&b, "%s\r\n", a->header);
    if (a->content_bytes > 0)
        buf_printf(&b, "Content-Type: %s\r\nContent-Length: %zu\r\n", a->content_type,
                   a->content_bytes);
    buf_puts(&b, "\r\n");
    buf_put(&b, a->content, a->content_bytes);
    int rc = b.rc < 0 ? err_set(e, b.rc, "request") : send_all(t, b.data, b.len, e);
    buf_fini(&b);
    return rc;
}

static int read_fault(const struct talk *t, int code, struct err *e)
{
    const char *server = t->ask->server;
    if (code == SHOAL_ELIMIT)
        return err_set(e, code, "the response of %.200s is larger than %zu bytes", server,
                       t->body->max);
    if (code == SHOAL_EFORMAT)
        return err_set(e, code, "%.200s does not respond like an HTTP server", server);
    return err_set(e, code, "cannot read the response of %.200s", server);
}

static int receive(struct talk *t, int *status, struct err *e)
{
    struct http_answer answer;
    char in[16 << 10];
    http_answer_init(&answer, t->body);
    while (!answer.complete) {
        ssize_t n = receive_some(t, in, sizeof(in), e);
        if (n < 0)
            return (int)n;
        int rc = http_answer_feed(&answer, in, (size_t)n);
        if (rc < 0)
            return read_fault(t, rc, e);
        if (t->ask->piece) {
            t->until_ns = clock_ns() + (uint64_t)t->ask->timeout_ms * 1000000u;
            t->ask->piece(t->ask->ctx, answer.status, t->body);
        }
    }
    *status = answer.status;
    return 0;
}

int http_ask(const struct http_ask *a, int *status, struct buf *body, struct err *e)
{
    struct talk t = {.ask = a,
                     .fd = -1,
                     .body = body,
                     .until_ns = clock_ns() + (uint64_t)a->timeout_ms * 1000000u};
    *status = 0;
    int rc = read_address(&t, e);
    if (rc == 0)
        rc = open_connection(&t, e);
    if (rc == 0 && t.secure)
        rc = shake_hands(&t, e);
    if (rc == 0)
        rc = send_request(&t, e);
    if (rc == 0)
        rc = receive(&t, status, e);
    tls_conn_destroy(t.tls);
    if (t.fd >= 0)
        close(t.fd);
    return rc;
}
