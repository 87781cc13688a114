/* http1.c - HTTP/1.1 on a connection: llhttp parses, one request at a time is handled; pipelined
 * ones wait in the socket's input until the earlier answers were passed to the kernel. */
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include <llhttp.h>

#include "base/ascii.h"
#include "base/mem.h"
#include "net/http_conn.h"

#define LINGER_MS 2000u
#define MAX_URL_BYTES ((size_t)8 << 10)
#define MAX_HEADERS 128u
#define PIPELINED_BYTES ((size_t)16 << 10) /* with more queued, a request waits */
#define PIPELINED_REQUESTS 8u              /* per turn, so that other connections get theirs */

enum h1_phase {
    H1_IDLE,    /* no byte of the next request yet */
    H1_READING, /* receiving a request */
    H1_BUSY,    /* a handler is working on it */
    H1_CLOSING, /* sending the last response */
};

struct h1 {
    llhttp_t parser;
    struct http_conn *conn;
    enum h1_phase phase;
    struct buf head, body; /* head: method, url, header names and values, each with its NUL */
    uint32_t n_headers;
    struct {
        uint32_t name, value;
    } at[MAX_HEADERS];
    struct http_header headers[MAX_HEADERS + 1]; /* with the host of an absolute target */
    struct http_req req;
    struct http_refusal refuse; /* why a callback stopped the parser; status 0: none did */
    uint32_t n_now;             /* requests begun in this turn */
    const char *gap; /* in the bytes being parsed: where the last piece of a header ended */
    bool gap_line;   /* a line ended between that piece and the bytes being parsed */
    bool value_done; /* the next value needs a name of its own */
    bool in_value, head_done, complete, chunked, keep, in_handler, ended, upgraded;
    bool expects;  /* the client waits for 100 Continue */
    bool admitted; /* the handler knows of the request and waits for its body */
    bool eof;      /* the client sends no more; its requests are still answered */
    int64_t left;  /* remaining bytes of a body of known length */
};

static struct h1 *state(struct http_conn *c)
{
    return c->state;
}

static struct h1 *of_parser(llhttp_t *p)
{
    return LOOP_OF(p, struct h1, parser);
}

static int refuse(struct h1 *h, int status, const char *why)
{
    h->refuse = (struct http_refusal){.status = status, .why = why};
    return HPE_USER;
}

/* ---- reading: llhttp's callbacks ---- */

static int on_begin(llhttp_t *p)
{
    struct h1 *h = of_parser(p);
    h->phase = H1_READING;
    h->n_headers = 0;
    h->in_value = h->head_done = h->complete = h->admitted = h->value_done = false;
    h->n_now++;
    buf_clear(&h->head);
    buf_clear(&h->body);
    http_conn_timer(h->conn, h->conn->server->limits.request_ms);
    return 0;
}

static int put_head(struct h1 *h, const char *p, size_t n)
{
    if (h->head.len + n > h->conn->server->limits.max_header_bytes)
        return refuse(h, 431, "the headers are larger than this server accepts");
    buf_put(&h->head, p, n);
    h->gap = p + n;
    h->gap_line = false;
    return h->head.rc < 0 ? refuse(h, 503, "out of memory") : 0;
}

static int on_url(llhttp_t *p, const char *at, size_t n)
{
    struct h1 *h = of_parser(p);
    if (h->head.len + n > MAX_URL_BYTES)
        return refuse(h, 414, "the address is longer than 8192 bytes");
    return put_head(h, at, n);
}

static int on_field(llhttp_t *p, const char *at, size_t n)
{
    struct h1 *h = of_parser(p);
    if (h->head_done)
        return 0; /* trailers are ignored */
    if (h->n_headers == 0 || h->in_value) {
        uint32_t most = h->conn->server->limits.max_headers;
        if (h->n_headers >= (most < MAX_HEADERS ? most : MAX_HEADERS))
            return refuse(h, 431, "more headers than this server accepts");
        buf_putc(&h->head, '\0'); /* terminates the URL or the previous value */
        h->in_value = h->value_done = false;
        h->at[h->n_headers].name = (uint32_t)h->head.len;
        h->at[h->n_headers++].value = 0;
    }
    return put_head(h, at, n);
}

static int begin_value(struct h1 *h)
{
    if (h->n_headers == 0 || h->value_done ||
        (!h->in_value && h->head.len == h->at[h->n_headers - 1].name))
        return refuse(h, 400, "a header has no name");
    if (!h->in_value) {
        buf_putc(&h->head, '\0');
        h->in_value = true;
        h->at[h->n_headers - 1].value = (uint32_t)h->head.len;
    }
    return 0;
}

static int on_value(llhttp_t *p, const char *at, size_t n)
{
    struct h1 *h = of_parser(p);
    if (h->head_done)
        return 0;
    /* A value that goes on in the next line is read in one way by some servers and in another by
     * others (RFC 9112, 5.2): a request could hide in the difference. */
    if (n > 0 && (h->gap_line || memchr(h->gap, '\n', (size_t)(at - h->gap))))
        return refuse(h, 400, "a header continues in the next line, which is obsolete");
    int rc = begin_value(h);
    return rc ? rc : put_head(h, at, n);
}

/* on_value is not called for an empty value.  Trailing white space is not part of a value.
 */
static int on_value_complete(llhttp_t *p)
{
    struct h1 *h = of_parser(p);
    int rc = h->head_done ? 0 : begin_value(h);
    if (rc != 0 || h->head_done)
        return rc;
    while (h->head.len > h->at[h->n_headers - 1].value &&
           strchr(" \t", h->head.data[h->head.len - 1]))
        h->head.len--;
    h->value_done = true;
    return h->head.rc < 0 ? refuse(h, 503, "out of memory") : 0;
}

static const char *find_header(const struct h1 *h, const char *name)
{
    for (uint32_t i = 0; i < h->n_headers; i++)
        if (strcasecmp(h->head.data + h->at[i].name, name) == 0)
            return h->head.data + h->at[i].value;
    return NULL;
}

static uint32_t count_header(const struct h1 *h, const char *name)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < h->n_headers; i++)
        n += strcasecmp(h->head.data + h->at[i].name, name) == 0;
    return n;
}

static int on_headers(llhttp_t *p)
{
    struct h1 *h = of_parser(p);
    const struct http_limits *lim = &h->conn->server->limits;
    buf_putc(&h->head, '\0');
    h->head_done = true;
    if (h->head.rc < 0)
        return refuse(h, 503, "out of memory");
    const char *up = find_header(h, "upgrade");
    p->upgrade = 0; /* only a handler upgrades, after it has responded with 101 */
    h->req.websocket = up && strcasecmp(up, "websocket") == 0 && p->method == HTTP_GET &&
                       (p->flags & F_CONNECTION_UPGRADE);
    h->keep = llhttp_should_keep_alive(p);
    if (p->http_major != 1 || p->http_minor > 1)
        return refuse(h, 505, "unsupported version of HTTP: use 1.0, 1.1 or 2");
    if (p->http_minor == 1 && !find_header(h, "host"))
        return refuse(h, 400, "the Host header is missing");
    if (count_header(h, "host") > 1)
        return refuse(h, 400, "there is more than one Host header");
    if (count_header(h, "transfer-encoding") > 0 && p->http_minor == 0)
        return refuse(h, 400, "HTTP/1.0 has no Transfer-Encoding: send Content-Length");
    if ((p->flags & F_CONTENT_LENGTH) && p->content_length > lim->max_body_bytes)
        return refuse(h, 413, "the body is larger than this server accepts");
    const char *expect = find_header(h, "expect");
    h->expects = expect && strcasecmp(expect, "100-continue") == 0;
    bool body = (p->flags & F_CHUNKED) || ((p->flags & F_CONTENT_LENGTH) && p->content_length > 0);
    return body ? HPE_PAUSED : 0; /* h1_data checks whether the body is admitted */
}

static int on_body(llhttp_t *p, const char *at, size_t n)
{
    struct h1 *h = of_parser(p);
    if (h->body.len + n > h->conn->server->limits.max_body_bytes)
        return refuse(h, 413, "the body is larger than this server accepts");
    buf_put(&h->body, at, n);
    if (h->body.rc < 0)
        return refuse(h, 503, "out of memory");
    enum peers_verdict v = http_conn_count(h->conn);
    if (v == PEERS_OK)
        return 0;
    h->refuse = *http_conn_full(v);
    return HPE_USER;
}

static int on_complete(llhttp_t *p)
{
    of_parser(p)->complete = true;
    return HPE_PAUSED; /* the handler runs outside the parser */
}

static const llhttp_settings_t settings = {.on_message_begin = on_begin,
                                           .on_url = on_url,
                                           .on_header_field = on_field,
                                           .on_header_value = on_value,
                                           .on_header_value_complete = on_value_complete,
                                           .on_headers_complete = on_headers,
                                           .on_body = on_body,
                                           .on_message_complete = on_complete};

/* ---- answering ---- */

static void put_header_n(struct buf *b, const char *name, const char *value, size_t n_value)
{
    size_t n_name = strlen(name);
    char *at = buf_room(b, n_name + n_value + 4);
    if (!at)
        return;
    memcpy(at, name, n_name);
    memcpy(at + n_name, ": ", 2);
    memcpy(at + n_name + 2, value, n_value);
    memcpy(at + n_name + 2 + n_value, "\r\n", 2);
    buf_used(b, n_name + n_value + 4);
}

static void put_header(struct buf *b, const char *name, const char *value)
{
    put_header_n(b, name, value, strlen(value));
}

static void put_number(struct buf *b, const char *name, uint64_t v)
{
    char text[24];
    size_t at = sizeof(text);
    do {
        text[--at] = (char)('0' + v % 10);
        v /= 10;
    } while (v > 0);
    put_header_n(b, name, text + at, sizeof(text) - at);
}

static struct h1 *of_req(const struct http_req *r)
{
    return LOOP_OF((uintptr_t)r, struct h1, req);
}

static void h1_begin(struct http_req *r, int status, const struct http_header *headers, size_t n,
                     int64_t body_bytes)
{
    struct h1 *h = of_req(r);
    struct buf *b = sock_put(&h->conn->sock);
    bool no_body = status == 204 || status == 304 || status < 200;
    const char code[4] = {(char)('0' + status / 100 % 10), (char)('0' + status / 10 % 10),
                          (char)('0' + status % 10), ' '};
    if (h->conn->draining || h->conn->server->leaving)
        h->keep = false; /* the client connects again, elsewhere */
    buf_put(b, "HTTP/1.1 ", 9);
    buf_put(b, code, sizeof(code));
    buf_puts(b, http_status_text(status));
    buf_put(b, "\r\n", 2);
    for (size_t i = 0; i < n; i++)
        put_header(b, headers[i].name, headers[i].value);
    put_header(b, "date", http_server_date(h->conn->server));
    h->chunked = false;
    if (body_bytes >= 0 && !no_body) {
        put_number(b, "content-length", (uint64_t)body_bytes);
    } else if (!no_body && h->parser.http_minor == 1) {
        h->chunked = true;
        put_header(b, "transfer-encoding", "chunked");
    } else if (!no_body) {
        h->keep = false; /* HTTP/1.0: the body ends when the connection closes */
    }
    if (status != 101)
        put_header(b, "connection", h->keep ? "keep-alive" : "close");
    buf_put(b, "\r\n", 2);
}

static void h1_write(struct http_req *r, const void *p, size_t n)
{
    struct h1 *h = of_req(r);
    struct buf *b = sock_put(&h->conn->sock);
    char line[24];
    if (r->head)
        return;
    int k = h->chunked ? snprintf(line, sizeof(line), "%zx\r\n", n) : 0;
    buf_put(b, line, (size_t)k);
    buf_put(b, p, n);
    if (h->chunked)
        buf_put(b, "\r\n", 2);
    if (http_conn_count(h->conn) != PEERS_OK)
        b->rc = SHOAL_ELIMIT; /* the connection ends */
}

static void next_request(struct h1 *h)
{
    h->ended = false;
    h->chunked = false;
    if (h->body.cap > 65536)
        buf_fini(&h->body), buf_init(&h->body, SIZE_MAX / 2);
    if (!h->keep || h->conn->draining) {
        h->phase = H1_CLOSING;
        sock_finish(&h->conn->sock, true);
        http_conn_timer(h->conn, h->conn->server->limits.write_ms);
        return;
    }
    h->phase = H1_IDLE;
    http_conn_wait(h->conn, true);
    http_conn_timer(h->conn, h->conn->server->limits.idle_ms);
}

static void h1_end(struct http_req *r, const struct http_header *trailers, size_t n)
{
    struct h1 *h = of_req(r);
    (void)trailers;
    (void)n;
    if (h->chunked && !r->head)
        sock_write(&h->conn->sock, "0\r\n\r\n", 5);
    if (h->in_handler) {
        h->ended = true; /* feed() continues */
        return;
    }
    next_request(h);
    if (h->phase == H1_IDLE && h->conn->sock.in.len > 0)
        sock_again(&h->conn->sock);
    else if (h->phase == H1_IDLE && h->eof)
        sock_finish(&h->conn->sock, false);
}

static size_t h1_queued(const struct http_req *r)
{
    return sock_queued(&of_req(r)->conn->sock);
}

static char *h1_take_body(struct http_req *r)
{
    struct h1 *h = of_req(r);
    size_t n;
    char *body = buf_take(&h->body, &n);
    (void)http_conn_count(h->conn);
    return body;
}

static const struct http_ops ops = {h1_begin, h1_write, h1_end, h1_queued};

static void ignore_end(struct http_req *r, const struct http_header *trailers, size_t n)
{
    (void)r;
    (void)trailers;
    (void)n;
}

/* The handler waits for a body that will not arrive. */
static void cancel_admitted(struct h1 *h)
{
    if (h->admitted && h->req.cancelled)
        h->req.cancelled(&h->req);
    h->admitted = false;
}

/* Ends a broken connection; sends an error if no response has started. */
static void give_up(struct h1 *h, const struct http_refusal *why)
{
    /* Its end is the connection's, below. */
    static const struct http_ops last = {h1_begin, h1_write, ignore_end, h1_queued};
    cancel_admitted(h);
    buf_fini(&h->body); /* first: the answer may need the room */
    buf_init(&h->body, SIZE_MAX / 2);
    h->req = (struct http_req){.method = "", .path = "", .query = "", .ops = &last};
    h->keep = false;
    h->parser.http_minor = 1;
    http_refuse(h->conn->server, &h->req, why);
    h->phase = H1_CLOSING;
    sock_finish(&h->conn->sock, true);
    http_conn_timer(h->conn, LINGER_MS);
}

/* ---- a whole request to the handler ---- */

/* A target in the absolute form, as sent to a proxy: its host counts, whatever the Host header says
 * (RFC 9112, 3.2.2).  Returns where its path begins. */
static char *read_absolute(struct h1 *h, char *url, uint32_t *n_headers)
{
    char *from = strstr(url, "://") + 3;
    const size_t n = strcspn(from, "/");
    uint32_t i = 0;
    memmove(url, from, n); /* in front of the path, with room for a NUL */
    url[n] = '\0';
    while (i < *n_headers && strcmp(h->headers[i].name, "host") != 0)
        i++;
    h->headers[i] = (struct http_header){"host", url};
    *n_headers += i == *n_headers;
    return from + n;
}

static void fill_request(struct h1 *h)
{
    struct http_conn *c = h->conn;
    bool websocket = h->req.websocket;
    uint32_t n_headers = h->n_headers;
    for (uint32_t i = 0; i < h->n_headers; i++) {
        char *name = h->head.data + h->at[i].name;
        for (char *p = name; *p; p++)
            *p = ascii_lower(*p);
        h->headers[i] = (struct http_header){name, h->head.data + h->at[i].value};
    }
    char *url = h->head.data, *q = strchr(url, '?');
    if (q)
        *q = '\0';
    if (strncasecmp(url, "http://", 7) == 0 || strncasecmp(url, "https://", 8) == 0)
        url = read_absolute(h, url, &n_headers);
    h->req = (struct http_req){.method = llhttp_method_name((llhttp_method_t)h->parser.method),
                               .path = url[0] ? url : "/",
                               .query = q ? q + 1 : "",
                               .headers = h->headers,
                               .n_headers = n_headers,
                               .body = "",
                               .peer = c->peer,
                               .peer_cert = sock_peer(&c->sock),
                               .protocol = "http/1.1",
                               .via = c->via,
                               .secure = c->secure,
                               .head = h->parser.method == HTTP_HEAD,
                               .websocket = websocket,
                               .received_ns = loop_now(c->server->loop),
                               .server = c->server,
                               .account = c->account,
                               .ops = &ops,
                               .take_body = h1_take_body};
}

/* The headers are complete and a body follows, of which n_left bytes are there.  False: the request
 * is answered. */
static bool admit(struct h1 *h, size_t n_left)
{
    struct http_server *s = h->conn->server;
    bool whole = (h->parser.flags & F_CONTENT_LENGTH) && n_left >= h->parser.content_length;
    if (s->admit && !whole) {
        bool keep = h->keep;
        fill_request(h);
        h->req.more = true;
        h->keep = false; /* the body of a refused request is not read */
        h->in_handler = true;
        h->admitted = s->admit(s->ctx, &h->req);
        h->in_handler = h->req.more = false;
        if (!h->admitted) {
            next_request(h);
            return false;
        }
        h->keep = keep;
    }
    if (h->expects)
        sock_write(&h->conn->sock, "HTTP/1.1 100 Continue\r\n\r\n", 25);
    return true;
}

static void handle(struct h1 *h)
{
    struct http_conn *c = h->conn;
    if (!h->admitted)
        fill_request(h);
    h->admitted = false;
    h->req.body = buf_str(&h->body);
    h->req.body_bytes = h->body.len;
    h->req.received_ns = loop_now(c->server->loop);
    http_conn_wait(c, false);
    h->phase = H1_BUSY;
    h->in_handler = true;
    h->ended = false;
    http_conn_timer(c, c->server->limits.write_ms);
    c->server->stats.requests++;
    c->server->handler(c->server->ctx, &h->req);
    h->in_handler = false;
    if (h->ended && !h->upgraded)
        next_request(h);
}

/* Whether the next pipelined request has to wait, for its turn or until answers are sent. */
static bool holds_back(struct h1 *h)
{
    struct sock *s = &h->conn->sock;
    if (h->phase != H1_IDLE)
        return false;
    if (s->blocked || sock_queued(s) > PIPELINED_BYTES)
        return true; /* h1_drained continues */
    if (h->n_now < PIPELINED_REQUESTS)
        return false;
    sock_again(s);
    return true;
}

static size_t h1_data(struct http_conn *c, const char *p, size_t n)
{
    struct h1 *h = state(c);
    size_t used = 0;
    h->n_now = 0;
    while (used < n && (h->phase == H1_IDLE || h->phase == H1_READING) && !holds_back(h)) {
        h->gap = p + used;
        llhttp_errno_t rc = llhttp_execute(&h->parser, p + used, n - used);
        if (rc == HPE_OK && !h->head_done && memchr(h->gap, '\n', (size_t)(p + n - h->gap)))
            h->gap_line = true;
        if (rc == HPE_PAUSED && h->complete) {
            used = (size_t)(llhttp_get_error_pos(&h->parser) - p);
            llhttp_resume(&h->parser);
            handle(h);
            if (h->upgraded) {
                mem_free(h);
                return used;
            }
            continue;
        }
        if (rc == HPE_PAUSED) { /* at the end of the headers */
            used = (size_t)(llhttp_get_error_pos(&h->parser) - p);
            llhttp_resume(&h->parser);
            if (!admit(h, n - used))
                return n;
            continue;
        }
        if (rc != HPE_OK) {
            static const struct http_refusal bad = {.status = 400,
                                                    .why = "this is not an HTTP request"};
            give_up(h, h->refuse.status ? &h->refuse : &bad);
            return n;
        }
        used = n;
    }
    if (h->eof && used == n && h->phase <= H1_READING)
        sock_finish(&c->sock, false);
    return h->phase == H1_CLOSING ? n : used;
}

static void h1_eof(struct http_conn *c)
{
    struct h1 *h = state(c);
    if (h->phase == H1_BUSY) {
        /* It has closed its sending side only, or has gone. To write is the way to find out: the
         * kernel of one that has gone answers with a reset. 1.0 knows no interim answers. */
        h->eof = true;
        if (h->req.status == 0 && h->parser.http_minor == 1)
            sock_write(&c->sock, "HTTP/1.1 102 Processing\r\n\r\n", 27);
    } else if (h->phase == H1_IDLE && c->sock.in.len > 0)
        h->eof = true;
    else
        sock_finish(&c->sock, false);
}

static void h1_drained(struct http_conn *c)
{
    struct h1 *h = state(c);
    if (h->phase == H1_BUSY && h->req.drained && !h->in_handler)
        h->req.drained(&h->req);
    else if (h->phase == H1_IDLE && c->sock.in.len > 0)
        sock_again(&c->sock);
}

static void h1_drain(struct http_conn *c)
{
    struct h1 *h = state(c);
    if (h->phase == H1_IDLE) {
        h->phase = H1_CLOSING;
        sock_finish(&c->sock, true);
        http_conn_timer(c, LINGER_MS);
    }
}

static void h1_timeout(struct http_conn *c)
{
    struct h1 *h = state(c);
    const struct http_limits *lim = &c->server->limits;
    if (h->phase == H1_READING) {
        const struct http_refusal late = {.status = 408,
                                          .why = "the request did not arrive in time"};
        give_up(h, &late);
        return;
    }
    if (h->phase == H1_BUSY || (h->phase == H1_IDLE && sock_queued(&c->sock) > 0)) {
        if (sock_stalled(&c->sock, lim->write_ms))
            sock_break(&c->sock); /* the client does not read */
        else
            http_conn_timer(c, lim->write_ms);
        return;
    }
    sock_break(&c->sock);
}

static void h1_destroy(struct http_conn *c)
{
    struct h1 *h = state(c);
    cancel_admitted(h);
    if (h->phase == H1_BUSY && !h->ended && h->req.cancelled)
        h->req.cancelled(&h->req);
    buf_fini(&h->head);
    buf_fini(&h->body);
    mem_free(h);
}

static size_t h1_held(const struct http_conn *c)
{
    const struct h1 *h = c->state;
    return h->head.cap + http_conn_bytes(&h->body);
}

static const struct http_proto proto = {h1_data,    h1_eof,     h1_drained, h1_drain,
                                        h1_timeout, h1_destroy, h1_held,    NULL};

bool http1_start(struct http_conn *c)
{
    struct h1 *h = mem_zalloc(sizeof(*h));
    if (!h)
        return false;
    llhttp_init(&h->parser, HTTP_REQUEST, &settings);
    h->conn = c;
    buf_init(&h->head, (size_t)1 << 20);
    buf_init(&h->body, SIZE_MAX / 2);
    http_conn_switch(c, &proto, h);
    http_conn_timer(c, c->server->limits.request_ms);
    return true;
}

struct http_conn *http1_upgrade(struct http_req *r)
{
    struct h1 *h = of_req(r);
    struct http_conn *c = h->conn;
    c->state = NULL;
    h->phase = H1_CLOSING;
    buf_fini(&h->head);
    buf_fini(&h->body);
    /* h is still in use by h1_data when the handler calls this */
    h->upgraded = true;
    return c;
}
