/* http1_client.c - see http1_client.h: llhttp parses, sock.c has the bytes.
 *
 * A connection is dialling, busy with one call, idle, or closed; memory is freed at the end of the
 * loop's turn, since callbacks of sock and llhttp may be on the stack. */
#include "net/http1_client.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <llhttp.h>

#include "base/clock.h"
#include "base/mem.h"
#include "net/dial.h"
#include "net/listen.h"
#include "net/sock.h"
#include "net/tls.h"

#define SCRATCH_BYTES ((size_t)32 << 10)

struct http1_conn {
    struct http1_client *client;
    struct http1_conn *prev, *next; /* all of the client */
    struct http1_conn *next_idle;
    struct http1_call *call;
    struct dial dial;
    struct sock sock;
    llhttp_t parser;
    struct executor_task free;
    bool has_sock, is_idle, used, got_bytes, complete, closed;
};

struct http1_client {
    struct loop *loop;
    char *address, host[256];
    struct tls_client *tls;
    uint32_t max, n, n_refs; /* refs: connections that are not freed yet, plus 1 until destroy */
    struct http1_conn *conns, *idle;
    struct http1_call *first, *last; /* waiting */
    struct executor_task pump, free;
    bool destroyed;
    char *scratch;
};

static void client_unref(struct http1_client *c)
{
    if (--c->n_refs == 0)
        loop_later(c->loop, &c->free);
}

static void client_free(struct executor_task *t)
{
    struct http1_client *c = LOOP_OF(t, struct http1_client, free);
    mem_free(c->address);
    mem_free(c->scratch);
    mem_free(c);
}

/* ---- waiting calls ---- */

static void wait_add(struct http1_client *c, struct http1_call *k)
{
    k->conn = NULL;
    k->prev = c->last;
    k->next = NULL;
    if (c->last)
        c->last->next = k;
    else
        c->first = k;
    c->last = k;
    loop_later(c->loop, &c->pump);
}

static void wait_remove(struct http1_client *c, struct http1_call *k)
{
    if (k->prev)
        k->prev->next = k->next;
    else
        c->first = k->next;
    if (k->next)
        k->next->prev = k->prev;
    else
        c->last = k->prev;
    k->prev = k->next = NULL;
}

/* ---- the end of a connection ---- */

static void conn_free(struct executor_task *t)
{
    struct http1_conn *n = LOOP_OF(t, struct http1_conn, free);
    struct http1_client *c = n->client;
    if (n->has_sock)
        sock_fini(&n->sock);
    mem_free(n);
    client_unref(c);
}

static void idle_remove(struct http1_conn *n)
{
    struct http1_conn **at = &n->client->idle;
    while (n->is_idle && *at != n)
        at = &(*at)->next_idle;
    if (n->is_idle)
        *at = n->next_idle;
    n->is_idle = false;
}

/* Ends the connection; its call fails, or waits for another connection. */
static void conn_close(struct http1_conn *n, int code, const char *why)
{
    struct http1_client *c = n->client;
    struct http1_call *k = n->call;
    if (n->closed)
        return;
    n->closed = true;
    n->call = NULL;
    idle_remove(n);
    dial_cancel(&n->dial);
    if (n->has_sock)
        sock_break(&n->sock);
    if (n->prev)
        n->prev->next = n->next;
    else
        c->conns = n->next;
    if (n->next)
        n->next->prev = n->prev;
    c->n--;
    loop_later(c->loop, &n->free);
    if (c->destroyed)
        return;
    loop_later(c->loop, &c->pump);
    if (k && n->used && !n->got_bytes && !k->again) {
        k->again = true;
        wait_add(c, k);
    } else if (k) {
        k->client = NULL;
        k->ops->failed(k, code, why);
    }
}

/* ---- responses ---- */

static int on_body(llhttp_t *p, const char *at, size_t n)
{
    struct http1_conn *conn = p->data;
    if (conn->call)
        conn->call->ops->data(conn->call, p->status_code, at, n);
    return 0;
}

static int on_complete(llhttp_t *p)
{
    struct http1_conn *n = p->data;
    n->complete = p->status_code >= 200; /* 1xx: the final response follows */
    return n->complete ? HPE_PAUSED : 0;
}

static const llhttp_settings_t settings = {.on_body = on_body, .on_message_complete = on_complete};

static void conn_done(struct http1_conn *n)
{
    struct http1_client *c = n->client;
    struct http1_call *k = n->call;
    int status = n->parser.status_code;
    n->call = NULL;
    n->used = true;
    if (llhttp_should_keep_alive(&n->parser) && !n->sock.eof) {
        n->is_idle = true;
        n->next_idle = c->idle;
        c->idle = n;
        loop_later(c->loop, &c->pump);
    } else {
        conn_close(n, 0, "");
    }
    if (k) {
        k->client = NULL;
        k->ops->ended(k, status);
    }
}

static size_t on_data(struct sock *s, const char *p, size_t n_bytes)
{
    struct http1_conn *n = LOOP_OF(s, struct http1_conn, sock);
    if (n->is_idle || !n->call) { /* nobody asked */
        conn_close(n, SHOAL_EIO, "unexpected bytes");
        return n_bytes;
    }
    n->got_bytes = true;
    llhttp_errno_t rc = llhttp_execute(&n->parser, p, n_bytes);
    if (n->closed) /* cancelled by a callback */
        return n_bytes;
    if (n->complete)
        conn_done(n);
    else if (rc != HPE_OK)
        conn_close(n, SHOAL_EFORMAT, "the response is not HTTP/1.1");
    return n_bytes;
}

/* A response without a length ends with the connection. */
static void on_ended(struct sock *s)
{
    struct http1_conn *n = LOOP_OF(s, struct http1_conn, sock);
    if (n->call && n->got_bytes)
        llhttp_finish(&n->parser);
    if (n->closed)
        return;
    if (n->complete && n->call)
        conn_done(n);
    else
        conn_close(n, SHOAL_EIO, "the server closed the connection before the end of the answer");
}

static void on_closed(struct sock *s, int why)
{
    struct http1_conn *n = LOOP_OF(s, struct http1_conn, sock);
    (void)why;
    conn_close(n, SHOAL_EIO, sock_why(s)[0] ? sock_why(s) : "the connection broke");
}

/* ---- requests ---- */

static void conn_send(struct http1_conn *n)
{
    struct http1_call *k = n->call;
    llhttp_init(&n->parser, HTTP_RESPONSE, &settings);
    n->parser.data = n;
    n->complete = n->got_bytes = false;
    k->sent_ns = clock_ns();
    sock_write(&n->sock, k->request, k->n_request);
}

static void on_drained(struct sock *s)
{
    (void)s;
}

static void on_secured(struct sock *s, const char *protocol)
{
    (void)protocol;
    conn_send(LOOP_OF(s, struct http1_conn, sock));
}

static void on_stale(struct sock *s)
{
    (void)s;
}

static const struct sock_ops sock_ops = {.data = on_data,
                                         .ended = on_ended,
                                         .closed = on_closed,
                                         .drained = on_drained,
                                         .secured = on_secured,
                                         .stale = on_stale};

static void on_dialled(void *ctx, int fd, const char *why)
{
    struct http1_conn *n = ctx;
    struct http1_client *c = n->client;
    struct tls_conn *tls = NULL;
    struct err e = {0};
    const int one = 1;
    if (fd < 0) {
        conn_close(n, SHOAL_ENOTFOUND, why);
        return;
    }
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one)); /* not for unix sockets */
    int rc = c->tls ? tls_conn_connect(&tls, c->tls, fd, c->host, &e) : 0;
    if (rc == 0) {
        n->has_sock = true;
        rc = sock_init(&n->sock, c->loop, fd, tls, &sock_ops, c->scratch, SCRATCH_BYTES, &e);
    } else {
        close(fd);
    }
    if (rc < 0)
        conn_close(n, SHOAL_EIO, e.msg);
    else if (!c->tls)
        conn_send(n);
}

static void open_for(struct http1_client *c, struct http1_call *k)
{
    struct http1_conn *n = mem_zalloc(sizeof(*n));
    if (!n) {
        k->client = NULL;
        k->ops->failed(k, SHOAL_ENOMEM, "out of memory");
        return;
    }
    *n = (struct http1_conn){.client = c, .next = c->conns, .call = k, .free = {.fn = conn_free}};
    if (c->conns)
        c->conns->prev = n;
    c->conns = n;
    c->n++;
    c->n_refs++;
    k->conn = n;
    dial_start(&n->dial, c->loop, c->address, on_dialled, n);
}

static void pump(struct executor_task *t)
{
    struct http1_client *c = LOOP_OF(t, struct http1_client, pump);
    struct http1_call *k;
    while (!c->destroyed && (k = c->first) && (c->n < c->max || c->idle)) {
        struct http1_conn *n = k->again ? NULL : c->idle;
        if (!n && c->n >= c->max) { /* a fresh one is needed: make room */
            conn_close(c->idle, SHOAL_EIO, "");
            continue;
        }
        wait_remove(c, k);
        if (!n) {
            open_for(c, k);
            continue;
        }
        idle_remove(n);
        n->call = k;
        k->conn = n;
        conn_send(n);
    }
}

void http1_call_start(struct http1_client *c, struct http1_call *k)
{
    k->client = c;
    k->again = false;
    k->sent_ns = 0;
    wait_add(c, k);
}

void http1_call_cancel(struct http1_call *k)
{
    struct http1_client *c = k->client;
    if (!c)
        return;
    k->client = NULL;
    if (!k->conn) {
        wait_remove(c, k);
        return;
    }
    k->conn->call = NULL;
    conn_close(k->conn, SHOAL_ECANCELLED, "");
}

int http1_client_create(struct http1_client **out, struct loop *l,
                        const struct http1_client_opts *o, struct err *e)
{
    struct http1_client *c = mem_zalloc(sizeof(*c));
    const char *port;
    int rc = 0;
    *out = NULL;
    if (!c)
        return err_set(e, SHOAL_ENOMEM, "HTTP client");
    *c = (struct http1_client){.loop = l,
                               .tls = o->tls,
                               .max = o->max_connections ? o->max_connections : 100,
                               .n_refs = 1,
                               .pump = {.fn = pump},
                               .free = {.fn = client_free},
                               .address = mem_strdup(o->address),
                               .scratch = mem_alloc(SCRATCH_BYTES)};
    if (!c->address || !c->scratch)
        rc = err_set(e, SHOAL_ENOMEM, "HTTP client");
    else if (!listen_is_unix(o->address))
        rc = listen_split(o->address, c->host, sizeof(c->host), &port, e);
    if (rc < 0) {
        client_free(&c->free);
        return rc;
    }
    *out = c;
    return 0;
}

void http1_client_destroy(struct http1_client *c)
{
    if (!c)
        return;
    c->destroyed = true;
    loop_forget(c->loop, &c->pump);
    for (struct http1_call *k = c->first; k; k = k->next)
        k->client = NULL;
    while (c->conns) {
        if (c->conns->call)
            c->conns->call->client = NULL;
        conn_close(c->conns, SHOAL_ECANCELLED, "");
    }
    client_unref(c);
}
