/* http2.c - HTTP/2 on a connection: nghttp2 does the framing, one http_req per stream.
 *
 * Output of handlers waits in their stream until nghttp2 asks for it, which it does only while
 * the socket's output buffer is small.  A slow connection therefore holds at most the bytes of
 * its streams, and those count to its client's address (net/peers.h).  A connection handles a few
 * requests in a turn; the others wait for the next one. */
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include <nghttp2/nghttp2.h>

#include "base/mem.h"
#include "net/http_conn.h"

#define SOCKET_BYTES ((size_t)64 << 10) /* do not frame more while this much waits */
#define MAX_HEADERS 128u
#define MAX_TRAILERS 16u
#define STREAM_WINDOW (1 << 20)
#define CONN_WINDOW (4 << 20)
#define MAX_HANDLED 8u /* requests in a turn, */
#define MAX_OUT_NOW                                                                                \
    ((size_t)16 << 10) /* and bytes of answers: other connections get their turn                   \
                        */
#define KEEP_OUT_BYTES ((size_t)64 << 10) /* an empty stream frees larger buffers */
#define NOTICE_MS 1000u /* time for the client to receive the notice that we drain */

struct h2;

enum refusal {
    REFUSE_NONE,
    REFUSE_LARGE,
    REFUSE_MUCH,
    REFUSE_HEADERS,
    REFUSE_LATE,
    REFUSE_BAD,
    REFUSE_MEMORY,
    REFUSE_DRAINING,
    REFUSE_ALL_FULL,
    REFUSE_PEER_FULL
};

struct h2_stream {
    struct http_req req;
    struct h2 *h;
    struct h2_stream *prev, *next;
    int32_t id;
    struct buf head, body, out;
    size_t out_at;
    uint32_t n_headers;
    struct {
        uint32_t name, value;
    } at[MAX_HEADERS];
    struct http_header headers[MAX_HEADERS + 1];
    uint32_t method, path, authority; /* offsets in head; 0: missing */
    uint64_t began_ns, heard_ns;      /* heard: early, time of the last bytes of the body */
    uint64_t moved_ns;                /* when output was last framed, or began to wait */
    enum refusal refuse;              /* refusal to send instead of calling the handler */
    bool handled, ended, was_full;
    bool admitted;           /* the handler knows of the request and waits for its body */
    struct h2_stream *ready; /* the next complete request that waits for its turn */
    bool is_ready;
    struct buf trailers; /* name, NUL, value, NUL, ... */
    uint32_t n_trailers;
};

struct h2 {
    struct http_conn *conn;
    nghttp2_session *session;
    struct h2_stream *streams;
    uint32_t n_streams, n_handled; /* handled: of the streams */
    uint32_t n_now;                /* requests handled in this turn */
    size_t out_now;                /* bytes that they were answered with */
    size_t body_bytes;             /* of all incomplete requests */
    size_t held_bytes;             /* of all streams */
    struct h2_stream *ready, **ready_end;
    struct executor_task flush, more;
    uint64_t checked_ns; /* when the streams' times were last compared */
    bool idles;          /* the timer runs that ends a connection without streams */
    bool closing;
    bool knows; /* draining: the client has been notified and opens no more streams */
};

static struct h2 *state(struct http_conn *c)
{
    return c->state;
}

static void schedule(struct h2 *h)
{
    loop_later(h->conn->server->loop, &h->flush);
}

/* ---- streams ---- */

/* Appends to a buffer of the stream. */
static void put(struct h2_stream *s, struct buf *b, const void *p, size_t n)
{
    size_t before = b->cap;
    buf_put(b, p, n);
    s->h->held_bytes += b->cap - before;
}

static void drop(struct h2_stream *s, struct buf *b)
{
    size_t max = b->max;
    s->h->held_bytes -= b->cap;
    buf_fini(b);
    buf_init(b, max);
}

static struct h2_stream *stream_create(struct h2 *h, int32_t id)
{
    struct h2_stream *s = mem_zalloc(sizeof(*s));
    if (!s)
        return NULL;
    s->h = h;
    s->id = id;
    s->began_ns = loop_now(h->conn->server->loop);
    buf_init(&s->head, h->conn->server->limits.max_header_bytes + 4096);
    buf_init(&s->body, SIZE_MAX / 2);
    buf_init(&s->out, (size_t)256 << 20);
    buf_init(&s->trailers, 16384);
    s->next = h->streams;
    if (h->streams)
        h->streams->prev = s;
    h->streams = s;
    h->n_streams++;
    h->held_bytes += sizeof(*s);
    put(s, &s->head, "", 1); /* so that offset 0 is never used */
    return s;
}

static void forget_ready(struct h2_stream *s)
{
    struct h2 *h = s->h;
    struct h2_stream **at = &h->ready;
    if (!s->is_ready)
        return;
    while (*at != s)
        at = &(*at)->ready;
    *at = s->ready;
    if (!*at)
        h->ready_end = at;
    s->is_ready = false;
}

/* The stream's request is with its handler, or is answered. */
static void set_handled(struct h2_stream *s)
{
    s->handled = true;
    s->h->n_handled++;
    http_conn_wait(s->h->conn, false);
}

static void stream_destroy(struct h2_stream *s)
{
    struct h2 *h = s->h;
    forget_ready(s);
    if ((s->handled || s->admitted) && !s->ended && s->req.cancelled) {
        s->ended = true;
        s->req.cancelled(&s->req);
    }
    if (s->prev)
        s->prev->next = s->next;
    else
        h->streams = s->next;
    if (s->next)
        s->next->prev = s->prev;
    h->n_streams--;
    h->body_bytes -= s->body.len;
    h->held_bytes -= sizeof(*s);
    drop(s, &s->head);
    drop(s, &s->body);
    drop(s, &s->out);
    drop(s, &s->trailers);
    if (s->handled && --h->n_handled == 0 && !h->conn->sock.dead)
        http_conn_wait(h->conn, true);
    mem_free(s);
}

/* ---- answering ---- */

static struct h2_stream *of_req(const struct http_req *r)
{
    return LOOP_OF((uintptr_t)r, struct h2_stream, req);
}

static nghttp2_nv pair(const char *name, const char *value)
{
    return (nghttp2_nv){(uint8_t *)(uintptr_t)name, (uint8_t *)(uintptr_t)value, strlen(name),
                        strlen(value), NGHTTP2_NV_FLAG_NONE};
}

/* Called after the last byte of the body; otherwise nghttp2 would send them before it. */
static void submit_trailers(struct h2_stream *s)
{
    nghttp2_nv nv[MAX_TRAILERS];
    size_t n = 0;
    for (const char *p = buf_str(&s->trailers); n < s->n_trailers; n++) {
        const char *value = p + strlen(p) + 1;
        nv[n] = pair(p, value);
        p = value + strlen(value) + 1;
    }
    nghttp2_submit_trailer(s->h->session, s->id, nv, n);
}

static ssize_t read_out(nghttp2_session *session, int32_t id, uint8_t *p, size_t n, uint32_t *flags,
                        nghttp2_data_source *source, void *user)
{
    struct h2_stream *s = source->ptr;
    size_t left = s->out.len - s->out_at, k = left < n ? left : n;
    (void)session;
    (void)id;
    (void)user;
    if (s->out.rc < 0)
        return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
    if (k > 0) {
        memcpy(p, s->out.data + s->out_at, k);
        s->moved_ns = loop_now(s->h->conn->server->loop);
    }
    s->out_at += k;
    if (s->out_at == s->out.len) {
        if (s->out.cap > KEEP_OUT_BYTES)
            drop(s, &s->out);
        else
            buf_clear(&s->out);
        s->out_at = 0;
        if (s->ended) {
            *flags |= NGHTTP2_DATA_FLAG_EOF;
            if (s->n_trailers > 0) {
                *flags |= NGHTTP2_DATA_FLAG_NO_END_STREAM;
                submit_trailers(s);
            }
        } else if (k == 0)
            return NGHTTP2_ERR_DEFERRED;
    }
    return (ssize_t)k;
}

static void h2_begin(struct http_req *r, int status, const struct http_header *headers, size_t n,
                     int64_t body_bytes)
{
    struct h2_stream *s = of_req(r);
    struct h2 *h = s->h;
    nghttp2_nv nv[40];
    size_t k = 0;
    char code[8], length[24];
    bool no_body = r->head || status == 204 || status == 304;
    snprintf(code, sizeof(code), "%d", status);
    nv[k++] = pair(":status", code);
    for (size_t i = 0; i < n && k < 36; i++)
        nv[k++] = pair(headers[i].name, headers[i].value);
    nv[k++] = pair("date", http_server_date(h->conn->server));
    if (body_bytes >= 0 && status != 204 && status != 304) {
        snprintf(length, sizeof(length), "%lld", (long long)body_bytes);
        nv[k++] = pair("content-length", length);
    }
    nghttp2_data_provider body = {.source.ptr = s, .read_callback = read_out};
    if (nghttp2_submit_response(h->session, s->id, nv, k, no_body ? NULL : &body) != 0)
        nghttp2_submit_rst_stream(h->session, NGHTTP2_FLAG_NONE, s->id, NGHTTP2_INTERNAL_ERROR);
    schedule(h);
}

static void h2_write(struct http_req *r, const void *p, size_t n)
{
    struct h2_stream *s = of_req(r);
    if (r->head)
        return;
    if (s->out.len == s->out_at)
        s->moved_ns = loop_now(s->h->conn->server->loop);
    put(s, &s->out, p, n);
    s->h->out_now += n;
    if (http_conn_count(s->h->conn) != PEERS_OK)
        s->out.rc = SHOAL_ELIMIT; /* the stream is reset */
    s->was_full = true;
    nghttp2_session_resume_data(s->h->session, s->id);
    schedule(s->h);
}

static void h2_end(struct http_req *r, const struct http_header *trailers, size_t n)
{
    struct h2_stream *s = of_req(r);
    s->ended = true;
    r->more = false;
    for (size_t i = 0; i < n && i < MAX_TRAILERS; i++) {
        put(s, &s->trailers, trailers[i].name, strlen(trailers[i].name) + 1);
        put(s, &s->trailers, trailers[i].value, strlen(trailers[i].value) + 1);
        s->n_trailers++;
    }
    if (s->trailers.rc < 0)
        s->out.rc = s->trailers.rc; /* reset the stream: incomplete trailers would be wrong */
    nghttp2_session_resume_data(s->h->session, s->id);
    schedule(s->h);
}

static size_t h2_queued(const struct http_req *r)
{
    const struct h2_stream *s = of_req(r);
    return s->out.len - s->out_at + sock_queued(&s->h->conn->sock);
}

static const struct http_ops ops = {h2_begin, h2_write, h2_end, h2_queued};

static void show_body(struct h2_stream *s)
{
    s->req.body = buf_str(&s->body);
    s->req.body_bytes = s->body.len;
}

static char *h2_take_body(struct http_req *r)
{
    struct h2_stream *s = of_req(r);
    size_t before = s->body.cap, n;
    s->h->body_bytes -= s->body.len;
    char *body = buf_take(&s->body, &n);
    s->h->held_bytes += s->body.cap;
    s->h->held_bytes -= before;
    (void)http_conn_count(s->h->conn);
    return body;
}

static void h2_take(struct http_req *r, size_t n)
{
    struct h2_stream *s = of_req(r);
    if (n > s->body.len)
        n = s->body.len;
    if (n == 0)
        return;
    memmove(s->body.data, s->body.data + n, s->body.len - n + 1); /* including the NUL */
    s->body.len -= n;
    s->h->body_bytes -= n;
    show_body(s);
    nghttp2_session_consume_stream(s->h->session, s->id, n);
    schedule(s->h);
}

/* Ends the body of an early request: the client has ended it, or the server drains. */
static void end_body(struct h2_stream *s)
{
    s->req.more = false;
    if (s->req.arrived)
        s->req.arrived(&s->req);
}

static const char *text_at(const struct h2_stream *s, uint32_t at)
{
    return s->head.data + at;
}

static const char *find_header(const struct h2_stream *s, const char *name)
{
    for (uint32_t i = 0; s->head.rc == 0 && i < s->n_headers; i++)
        if (strcmp(text_at(s, s->at[i].name), name) == 0)
            return text_at(s, s->at[i].value);
    return NULL;
}

/* ---- refusals ---- */

static const struct http_refusal refusals[] = {
    [REFUSE_LARGE] = {413, "body_too_large", "the body is larger than this server accepts", 0},
    [REFUSE_MUCH] = {429, "overloaded", "too many large bodies at a time on this connection", 1},
    [REFUSE_HEADERS] = {431, "headers_too_large", "the headers are larger than this server accepts",
                        0},
    [REFUSE_LATE] = {408, "request_timeout", "the request did not arrive in time", 1},
    [REFUSE_BAD] = {400, "invalid_request", "the request is malformed", 0},
    [REFUSE_MEMORY] = {503, "out_of_memory", "out of memory", 1},
    [REFUSE_DRAINING] = {503, "draining", "the server is stopping", 1}};

static const struct http_refusal *refusal_of(enum refusal why)
{
    return why == REFUSE_ALL_FULL    ? http_conn_full(PEERS_ALL_FULL)
           : why == REFUSE_PEER_FULL ? http_conn_full(PEERS_PEER_FULL)
                                     : &refusals[why];
}

static size_t list_headers(struct h2_stream *s)
{
    size_t n = 0;
    if (s->head.rc < 0)
        return 0;
    for (; n < s->n_headers; n++)
        s->headers[n] = (struct http_header){text_at(s, s->at[n].name), text_at(s, s->at[n].value)};
    if (s->authority)
        s->headers[n++] = (struct http_header){"host", text_at(s, s->authority)};
    return n;
}

static void refuse(struct h2_stream *s)
{
    if (s->admitted && s->req.cancelled) /* its body will not arrive */
        s->req.cancelled(&s->req);
    s->admitted = false;
    s->h->body_bytes -= s->body.len;
    drop(s, &s->body);
    forget_ready(s);
    set_handled(s);
    s->req = (struct http_req){.method = "",
                               .path = "",
                               .query = "",
                               .headers = s->headers,
                               .n_headers = list_headers(s),
                               .ops = &ops};
    http_refuse(s->h->conn->server, &s->req, refusal_of(s->refuse));
}

/* ---- requests ---- */

/* Whether a host header contradicts :authority or another one. */
static bool has_other_host(const struct h2_stream *s)
{
    const char *host = s->authority ? text_at(s, s->authority) : NULL;
    for (size_t i = 0; i < s->n_headers; i++) {
        if (strcmp(text_at(s, s->at[i].name), "host") != 0)
            continue;
        const char *other = text_at(s, s->at[i].value);
        if (host && strcasecmp(host, other) != 0)
            return true;
        host = other;
    }
    return false;
}

/* Whether the headers make a request; if not, it is refused. */
static bool is_request(struct h2_stream *s)
{
    if (s->head.rc < 0)
        s->refuse = s->head.rc == SHOAL_ELIMIT ? REFUSE_HEADERS : REFUSE_MEMORY;
    if (!s->refuse && (!s->method || !s->path || has_other_host(s)))
        s->refuse = REFUSE_BAD;
    if (s->refuse)
        refuse(s);
    return !s->refuse;
}

/* Once for each request, when its headers are complete. */
static void fill_request(struct h2_stream *s)
{
    struct http_conn *c = s->h->conn;
    char *path = s->head.data + s->path, *q = strchr(path, '?');
    if (q)
        *q = '\0';
    s->req = (struct http_req){.method = text_at(s, s->method),
                               .path = path,
                               .query = q ? q + 1 : "",
                               .headers = s->headers,
                               .n_headers = list_headers(s),
                               .body = "",
                               .peer = c->peer,
                               .peer_cert = sock_peer(&c->sock),
                               .protocol = "h2",
                               .via = c->via,
                               .secure = c->secure,
                               .head = strcmp(text_at(s, s->method), "HEAD") == 0,
                               .received_ns = loop_now(c->server->loop),
                               .server = c->server,
                               .account = c->account,
                               .ops = &ops,
                               .take_body = h2_take_body};
}

static void handle(struct h2_stream *s, bool early)
{
    struct http_conn *c = s->h->conn;
    if (s->handled || (!s->admitted && !is_request(s)))
        return;
    if (!s->admitted)
        fill_request(s);
    s->admitted = false;
    set_handled(s);
    show_body(s);
    s->req.received_ns = loop_now(c->server->loop);
    s->req.more = early;
    s->req.take = early ? h2_take : NULL;
    s->heard_ns = s->req.received_ns;
    s->h->n_now++;
    c->server->stats.requests++;
    c->server->stats.h2++;
    c->server->handler(c->server->ctx, &s->req);
}

static bool has_turn(const struct h2 *h)
{
    return h->n_now < MAX_HANDLED && h->out_now < MAX_OUT_NOW;
}

/* A complete request: now, or in a later turn if this one has had enough. */
static void handle_in_turn(struct h2_stream *s)
{
    struct h2 *h = s->h;
    if (s->handled || s->is_ready)
        return;
    if (has_turn(h) && !h->ready) {
        handle(s, false);
        return;
    }
    s->is_ready = true;
    s->ready = NULL;
    *h->ready_end = s;
    h->ready_end = &s->ready;
    loop_next(h->conn->server->loop, &h->more);
}

static void on_more(struct executor_task *t)
{
    struct h2 *h = LOOP_OF(t, struct h2, more);
    h->n_now = 0;
    h->out_now = 0;
    while (h->ready && has_turn(h)) {
        struct h2_stream *s = h->ready;
        forget_ready(s);
        handle(s, false);
    }
    if (h->ready)
        loop_next(h->conn->server->loop, &h->more);
}

/* The headers are complete and a body follows. */
static void admit(struct h2_stream *s)
{
    struct http_server *server = s->h->conn->server;
    if (!server->admit || !is_request(s))
        return;
    fill_request(s);
    s->req.more = true;
    s->admitted = server->admit(server->ctx, &s->req);
    s->req.more = false;
    if (!s->admitted)
        set_handled(s); /* answered */
}

static int on_begin(nghttp2_session *session, const nghttp2_frame *frame, void *user)
{
    struct h2 *h = user;
    if (frame->hd.type != NGHTTP2_HEADERS || frame->headers.cat != NGHTTP2_HCAT_REQUEST)
        return 0;
    struct h2_stream *s = stream_create(h, frame->hd.stream_id);
    if (!s)
        return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
    nghttp2_session_set_stream_user_data(session, s->id, s);
    if (h->conn->draining)
        s->refuse = REFUSE_DRAINING; /* the client has not received the drain notice yet */
    return 0;
}

static uint32_t put_text(struct h2_stream *s, const uint8_t *p, size_t n)
{
    uint32_t at = (uint32_t)s->head.len;
    put(s, &s->head, p, n);
    put(s, &s->head, "", 1);
    return at;
}

static int on_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name,
                     size_t n_name, const uint8_t *value, size_t n_value, uint8_t flags, void *user)
{
    struct h2_stream *s = nghttp2_session_get_stream_user_data(session, frame->hd.stream_id);
    struct h2 *h = user;
    (void)flags;
    if (!s || s->handled || frame->headers.cat != NGHTTP2_HCAT_REQUEST)
        return 0; /* request trailers are ignored */
    if (s->head.len + n_name + n_value > h->conn->server->limits.max_header_bytes ||
        memchr(value, '\0', n_value)) {
        s->refuse = REFUSE_HEADERS;
        return 0;
    }
    if (name[0] == ':') {
        uint32_t at = put_text(s, value, n_value);
        if (n_name == 7 && memcmp(name, ":method", 7) == 0)
            s->method = at;
        else if (n_name == 5 && memcmp(name, ":path", 5) == 0)
            s->path = at;
        else if (n_name == 10 && memcmp(name, ":authority", 10) == 0)
            s->authority = at;
        return 0;
    }
    uint32_t most = h->conn->server->limits.max_headers;
    if (s->n_headers >= (most < MAX_HEADERS ? most : MAX_HEADERS)) {
        s->refuse = REFUSE_HEADERS;
        return 0;
    }
    s->at[s->n_headers].name = put_text(s, name, n_name);
    s->at[s->n_headers++].value = put_text(s, value, n_value);
    return 0;
}

static int on_data(nghttp2_session *session, uint8_t flags, int32_t id, const uint8_t *p, size_t n,
                   void *user)
{
    struct h2_stream *s = nghttp2_session_get_stream_user_data(session, id);
    struct h2 *h = user;
    size_t most = h->conn->server->limits.max_body_bytes;
    bool early = s && s->handled && s->req.more;
    (void)flags;
    if (s && s->handled) /* early: the stream's window opens when the handler consumes; otherwise
                          * the request is answered and more of its body is not wanted */
        nghttp2_session_consume_connection(session, n);
    else
        nghttp2_session_consume(session, id, n);
    if (!s || (s->handled && !early))
        return 0;
    /* All streams of a connection together may buffer two bodies of maximum size. */
    enum refusal why = s->body.len + n > most         ? REFUSE_LARGE
                       : h->body_bytes + n > 2 * most ? REFUSE_MUCH
                                                      : REFUSE_NONE;
    size_t before = s->body.len;
    if (!why)
        put(s, &s->body, p, n);
    if (!why && s->body.rc < 0)
        why = REFUSE_MEMORY;
    h->body_bytes += s->body.len - before;
    enum peers_verdict full = why ? PEERS_OK : http_conn_count(h->conn);
    if (full != PEERS_OK)
        why = full == PEERS_ALL_FULL ? REFUSE_ALL_FULL : REFUSE_PEER_FULL;
    if (early && why) {
        nghttp2_submit_rst_stream(session, NGHTTP2_FLAG_NONE, id, NGHTTP2_ENHANCE_YOUR_CALM);
    } else if (why) {
        s->refuse = why;
        refuse(s);
    } else if (early) {
        s->heard_ns = loop_now(h->conn->server->loop);
        show_body(s);
        if (s->req.arrived)
            s->req.arrived(&s->req);
    }
    return 0;
}

/* A stream was reset, by the client or by us because of what the client sent. */
static void count_reset(struct h2 *h)
{
    if (!peers_reset(h->conn->account, loop_now(h->conn->server->loop)))
        nghttp2_session_terminate_session(h->session, NGHTTP2_ENHANCE_YOUR_CALM);
}

static int on_frame(nghttp2_session *session, const nghttp2_frame *frame, void *user)
{
    struct h2 *h = user;
    struct h2_stream *s = nghttp2_session_get_stream_user_data(session, frame->hd.stream_id);
    if (frame->hd.type == NGHTTP2_HEADERS && s && !s->handled && s->head.rc == 0 &&
        frame->headers.cat == NGHTTP2_HCAT_REQUEST &&
        !(frame->hd.flags & NGHTTP2_FLAG_END_STREAM)) {
        const struct http_server *server = h->conn->server;
        if (s->refuse)
            handle(s, false); /* the body is not needed */
        else if (server->early && s->path && server->early(server->ctx, text_at(s, s->path)))
            handle(s, true);
        else
            admit(s);
        const char *expect = s->ended ? NULL : find_header(s, "expect");
        nghttp2_nv go_on = pair(":status", "100");
        if (expect && strcmp(expect, "100-continue") == 0)
            nghttp2_submit_headers(session, NGHTTP2_FLAG_NONE, s->id, NULL, &go_on, 1, NULL);
    }
    if ((frame->hd.type == NGHTTP2_HEADERS || frame->hd.type == NGHTTP2_DATA) && s &&
        (frame->hd.flags & NGHTTP2_FLAG_END_STREAM)) {
        if (s->handled && s->req.more)
            end_body(s);
        else
            handle_in_turn(s);
    }
    if (frame->hd.type == NGHTTP2_PING && (frame->hd.flags & NGHTTP2_FLAG_ACK))
        h->knows |= h->conn->draining;
    if (frame->hd.type == NGHTTP2_RST_STREAM)
        count_reset(h);
    return 0;
}

/* Early and refused requests may be answered before their end: the client need not send the rest.
 * That is not an error; every other reset that we send is due to the client. */
static int on_sent(nghttp2_session *session, const nghttp2_frame *frame, void *user)
{
    int32_t id = frame->hd.stream_id;
    struct h2_stream *s = nghttp2_session_get_stream_user_data(session, id);
    if (frame->hd.type == NGHTTP2_RST_STREAM && frame->rst_stream.error_code != NGHTTP2_NO_ERROR)
        count_reset(user);
    if ((frame->hd.type == NGHTTP2_HEADERS || frame->hd.type == NGHTTP2_DATA) && s &&
        (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) &&
        nghttp2_session_get_stream_remote_close(session, id) == 0)
        nghttp2_submit_rst_stream(session, NGHTTP2_FLAG_NONE, id, NGHTTP2_NO_ERROR);
    return 0;
}

static void watch_time(struct h2 *h)
{
    const struct http_limits *lim = &h->conn->server->limits;
    h->idles = h->n_streams == 0;
    http_conn_timer(h->conn, h->conn->draining && !h->knows    ? NOTICE_MS
                             : h->n_streams == 0               ? lim->idle_ms
                             : lim->request_ms < lim->write_ms ? lim->request_ms
                                                               : lim->write_ms);
}

static int on_close(nghttp2_session *session, int32_t id, uint32_t code, void *user)
{
    struct h2_stream *s = nghttp2_session_get_stream_user_data(session, id);
    struct h2 *h = user;
    (void)code;
    if (s) {
        nghttp2_session_set_stream_user_data(session, id, NULL);
        stream_destroy(s);
        if (h->n_streams == 0)
            watch_time(h); /* from now on it is idle */
    }
    return 0;
}

/* ---- the connection ---- */

/* Notifies streams whose bytes are all framed. */
static void tell_drained(struct h2 *h)
{
    struct h2_stream *s = h->streams;
    while (s) {
        struct h2_stream *next = s->next; /* a handler can only end its own stream, and that is
                                           * deferred */
        if (s->was_full && s->out.len == 0 && s->handled && !s->ended) {
            s->was_full = false;
            if (s->req.drained)
                s->req.drained(&s->req);
        }
        s = next;
    }
}

static void on_flush(struct executor_task *t)
{
    struct h2 *h = LOOP_OF(t, struct h2, flush);
    struct http_conn *c = h->conn;
    if (c->sock.dead)
        return;
    while (sock_queued(&c->sock) < SOCKET_BYTES) {
        const uint8_t *p;
        ssize_t n = nghttp2_session_mem_send(h->session, &p);
        if (n < 0) {
            sock_break(&c->sock);
            return;
        }
        if (n == 0)
            break;
        sock_write(&c->sock, p, (size_t)n);
    }
    tell_drained(h);
    if (c->draining && h->knows && h->n_streams == 0 && !h->closing) {
        h->closing = true;
        nghttp2_session_terminate_session(h->session, NGHTTP2_NO_ERROR);
        schedule(h);
    }
    if (!nghttp2_session_want_read(h->session) && !nghttp2_session_want_write(h->session))
        sock_finish(&c->sock, false);
}

/* The client has left no window for a stream that has something to send, for too long. */
static bool is_stalled(const struct h2_stream *s, uint64_t now)
{
    const struct h2 *h = s->h;
    const uint64_t most = (uint64_t)h->conn->server->limits.write_ms * 1000000u;
    return s->out.len > s->out_at && now - s->moved_ns >= most &&
           (nghttp2_session_get_remote_window_size(h->session) <= 0 ||
            nghttp2_session_get_stream_remote_window_size(h->session, s->id) <= 0);
}

/* Ends what has waited too long for the client. False: the connection is closed. */
static bool check_streams(struct h2 *h)
{
    const struct http_limits *lim = &h->conn->server->limits;
    const uint64_t now = loop_now(h->conn->server->loop);
    uint32_t n_stalled = 0;
    h->checked_ns = now;
    for (struct h2_stream *s = h->streams; s; s = s->next)
        if (is_stalled(s, now)) {
            n_stalled++;
            nghttp2_submit_rst_stream(h->session, NGHTTP2_FLAG_NONE, s->id, NGHTTP2_CANCEL);
            schedule(h);
        } else if (!s->handled && now - s->began_ns >= (uint64_t)lim->request_ms * 1000000u) {
            s->refuse = REFUSE_LATE;
            refuse(s);
        } else if (s->handled && s->req.more &&
                   now - s->heard_ns >= (uint64_t)lim->idle_ms * 1000000u) {
            nghttp2_submit_rst_stream(h->session, NGHTTP2_FLAG_NONE, s->id, NGHTTP2_CANCEL);
            schedule(h);
        }
    if (n_stalled > 0 && n_stalled == h->n_streams) {
        sock_break(&h->conn->sock); /* the client reads nothing at all */
        return false;
    }
    return true;
}

static size_t h2_data(struct http_conn *c, const char *p, size_t n)
{
    struct h2 *h = state(c);
    h->n_now = 0;
    h->out_now = 0;
    ssize_t k = nghttp2_session_mem_recv(h->session, (const uint8_t *)p, n);
    if (k < 0) /* not HTTP/2: first send nghttp2's error */
        sock_finish(&c->sock, false);
    schedule(h);
    /* Every frame restarts the timer: a client that sends pings must not outlive its time. */
    const uint64_t apart = (uint64_t)c->server->limits.write_ms * 1000000u / 4;
    if (loop_now(c->server->loop) - h->checked_ns >= apart && !check_streams(h))
        return n;
    if (h->n_streams > 0 || !h->idles) /* pings and leftovers of streams do not prolong idleness */
        watch_time(h);
    return n;
}

static void h2_eof(struct http_conn *c)
{
    sock_break(&c->sock);
}

static void h2_drained(struct http_conn *c)
{
    struct h2 *h = state(c);
    if (nghttp2_session_want_write(h->session))
        schedule(h);
    else
        tell_drained(h);
}

static void h2_retire(struct http_conn *c)
{
    struct h2 *h = state(c);
    nghttp2_submit_shutdown_notice(h->session);
    schedule(h);
}

static void h2_drain(struct http_conn *c)
{
    struct h2 *h = state(c);
    /* Streams that the client opened before it received the notice are refused with a response.
     * Once the client answers the ping, it has received the notice and opens no more. */
    nghttp2_submit_shutdown_notice(h->session);
    nghttp2_submit_ping(h->session, NGHTTP2_FLAG_NONE, NULL);
    for (struct h2_stream *s = h->streams; s; s = s->next)
        if (s->handled && s->req.more)
            end_body(s);
    schedule(h);
    watch_time(h);
}

static void h2_timeout(struct http_conn *c)
{
    struct h2 *h = state(c);
    const struct http_limits *lim = &c->server->limits;
    if (c->draining && !h->knows) { /* the client does not answer pings */
        h->knows = true;
        schedule(h);
    }
    if (sock_stalled(&c->sock, lim->write_ms)) {
        sock_break(&c->sock); /* the client does not read */
        return;
    }
    if (h->n_streams == 0) {
        nghttp2_session_terminate_session(h->session, NGHTTP2_NO_ERROR);
        schedule(h);
        http_conn_timer(c, lim->request_ms);
        return;
    }
    if (check_streams(h))
        watch_time(h);
}

static void h2_destroy(struct http_conn *c)
{
    struct h2 *h = state(c);
    while (h->streams)
        stream_destroy(h->streams);
    nghttp2_session_del(h->session);
    h->session = NULL;
    loop_forget(c->server->loop, &h->flush);
    loop_forget(c->server->loop, &h->more);
    mem_free(h);
}

static size_t h2_held(const struct http_conn *c)
{
    const struct h2 *h = c->state;
    return h->held_bytes;
}

static const struct http_proto proto = {h2_data,    h2_eof,     h2_drained, h2_drain,
                                        h2_timeout, h2_destroy, h2_held,    h2_retire};

static int open_session(struct h2 *h)
{
    const struct http_limits *lim = &h->conn->server->limits;
    nghttp2_session_callbacks *cb;
    nghttp2_option *opt;
    if (nghttp2_session_callbacks_new(&cb) != 0)
        return SHOAL_ENOMEM;
    if (nghttp2_option_new(&opt) != 0) {
        nghttp2_session_callbacks_del(cb);
        return SHOAL_ENOMEM;
    }
    nghttp2_session_callbacks_set_on_begin_headers_callback(cb, on_begin);
    nghttp2_session_callbacks_set_on_header_callback(cb, on_header);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(cb, on_data);
    nghttp2_session_callbacks_set_on_frame_recv_callback(cb, on_frame);
    nghttp2_session_callbacks_set_on_frame_send_callback(cb, on_sent);
    nghttp2_session_callbacks_set_on_stream_close_callback(cb, on_close);
    nghttp2_option_set_max_outbound_ack(opt, 200);
    nghttp2_option_set_max_settings(opt, 32);
    nghttp2_option_set_no_auto_window_update(opt, 1); /* done in on_data */
    int rc = nghttp2_session_server_new2(&h->session, cb, h, opt);
    nghttp2_option_del(opt);
    nghttp2_session_callbacks_del(cb);
    if (rc != 0)
        return SHOAL_ENOMEM;
    const nghttp2_settings_entry settings[] = {
        {NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, lim->max_streams},
        {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, STREAM_WINDOW},
        {NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, (uint32_t)lim->max_header_bytes}};
    if (nghttp2_submit_settings(h->session, NGHTTP2_FLAG_NONE, settings, 3) != 0 ||
        nghttp2_session_set_local_window_size(h->session, NGHTTP2_FLAG_NONE, 0, CONN_WINDOW) != 0)
        return SHOAL_ENOMEM;
    return 0;
}

bool http2_start(struct http_conn *c)
{
    struct h2 *h = mem_zalloc(sizeof(*h));
    if (!h)
        return false;
    h->conn = c;
    h->flush.fn = on_flush;
    h->more.fn = on_more;
    h->ready_end = &h->ready;
    h->checked_ns = loop_now(c->server->loop);
    if (open_session(h) < 0) {
        if (h->session)
            nghttp2_session_del(h->session);
        mem_free(h);
        return false;
    }
    http_conn_switch(c, &proto, h);
    watch_time(h);
    schedule(h);
    return true;
}
