/* ws.c - see ws.h. */
#include "net/ws.h"

#include <stdio.h>
#include <string.h>

#include <openssl/evp.h>
#include <openssl/sha.h>

#include "base/mem.h"
#include "net/http_conn.h"

#define PING_MS 30000u
#define QUEUED_BYTES ((size_t)128 << 10) /* beyond this, messages wait too */
#define MAX_MESSAGES 16u                 /* per turn, so that other connections get theirs */
#define KEEP_BYTES ((size_t)64 << 10)    /* a larger buffer is freed after its message */
#define CLOSE_MS 3000u

struct ws {
    struct http_conn *conn;
    const struct ws_ops *ops;
    void *user;
    struct buf message; /* fragments of an incomplete message */
    size_t max_message;
    enum ws_op op; /* kind of that message; WS_CONTINUE: none is open */
    bool closing, pinged;
    bool taken; /* the text of the last message is still being read: the next ones wait */
};

struct ws_frame {
    enum ws_op op;
    bool last;          /* last frame of its message */
    size_t head, bytes; /* bytes of the frame's header and payload */
    uint8_t mask[4];
};

/* 1: *f describes the frame at p; 0: the header is incomplete; otherwise a close code (1002,
 * 1009). */
static int parse_frame(struct ws_frame *f, const char *p, size_t n, size_t max_bytes)
{
    const uint8_t *b = (const uint8_t *)p;
    if (n < 2)
        return 0;
    uint64_t bytes = b[1] & 127;
    size_t head = 2;
    f->op = (enum ws_op)(b[0] & 15);
    f->last = b[0] & 128;
    bool control = f->op >= WS_CLOSE;
    if ((b[0] & 0x70) || !(b[1] & 128) || (f->op > WS_BINARY && !control) || f->op > WS_PONG ||
        (control && (!f->last || bytes > 125)))
        return 1002; /* reserved bits, no mask, unknown opcode, or a fragmented control frame */
    if (bytes >= 126) {
        size_t k = bytes == 126 ? 2 : 8;
        if (n < head + k)
            return 0;
        bytes = 0;
        for (size_t i = 0; i < k; i++)
            bytes = bytes << 8 | b[head + i];
        head += k;
    }
    if (bytes > max_bytes)
        return 1009;
    if (n < head + 4)
        return 0;
    memcpy(f->mask, b + head, 4);
    f->head = head + 4;
    f->bytes = (size_t)bytes;
    return 1;
}

bool ws_utf8(const char *text, size_t n)
{
    const uint8_t *s = (const uint8_t *)text;
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    for (size_t i = 0; i < n;) {
        size_t len = s[i] < 0x80         ? 1
                     : (s[i] >> 5) == 6  ? 2
                     : (s[i] >> 4) == 14 ? 3
                     : (s[i] >> 3) == 30 ? 4
                                         : 0;
        if (len == 0 || len > n - i)
            return false;
        uint32_t cp = len == 1 ? s[i] : s[i] & (0xffu >> (len + 1));
        for (size_t k = 1; k < len; k++) {
            if ((s[i + k] & 0xc0) != 0x80)
                return false;
            cp = cp << 6 | (s[i + k] & 0x3f);
        }
        if (cp < least[len] || cp > 0x10ffff || (cp >= 0xd800 && cp <= 0xdfff))
            return false;
        i += len;
    }
    return true;
}

/* ---- out ---- */

static void put_frame(struct ws *w, enum ws_op op, const char *p, size_t n)
{
    uint8_t head[10] = {(uint8_t)(128 | op)};
    size_t k = 2;
    if (n < 126) {
        head[1] = (uint8_t)n;
    } else if (n < 65536) {
        head[1] = 126;
        head[2] = (uint8_t)(n >> 8);
        head[3] = (uint8_t)n;
        k = 4;
    } else {
        head[1] = 127;
        for (int i = 0; i < 8; i++)
            head[2 + i] = (uint8_t)((uint64_t)n >> (56 - 8 * i));
        k = 10;
    }
    struct buf *b = sock_put(&w->conn->sock);
    buf_put(b, head, k);
    buf_put(b, p, n);
    if (http_conn_count(w->conn) != PEERS_OK)
        b->rc = SHOAL_ELIMIT; /* the connection ends */
}

void ws_send(struct ws *w, const char *text, size_t n)
{
    if (!w->closing)
        put_frame(w, WS_TEXT, text, n);
}

void ws_close(struct ws *w, uint16_t code)
{
    const char payload[2] = {(char)(code >> 8), (char)(code & 255)};
    if (w->closing)
        return;
    w->closing = true;
    put_frame(w, WS_CLOSE, payload, 2);
    sock_finish(&w->conn->sock, true);
    http_conn_timer(w->conn, CLOSE_MS);
}

size_t ws_queued(const struct ws *w)
{
    return sock_queued(&w->conn->sock);
}

struct peer *ws_account(const struct ws *w)
{
    return w->conn->account;
}

void *ws_user(const struct ws *w)
{
    return w->user;
}

char *ws_take(struct ws *w)
{
    size_t n;
    char *text = buf_take(&w->message, &n);
    buf_init(&w->message, w->max_message);
    w->taken = text != NULL;
    return text;
}

void ws_go_on(struct ws *w)
{
    w->taken = false;
    if (!w->closing)
        sock_again(&w->conn->sock);
}

/* ---- in ---- */

static void unmask(char *p, size_t n, const uint8_t mask[4])
{
    for (size_t i = 0; i < n; i++)
        p[i] = (char)(p[i] ^ (char)mask[i & 3]);
}

static void control(struct ws *w, const struct ws_frame *f, const char *p)
{
    char payload[125];
    memcpy(payload, p, f->bytes);
    unmask(payload, f->bytes, f->mask);
    if (f->op == WS_PING)
        put_frame(w, WS_PONG, payload, f->bytes);
    else if (f->op == WS_CLOSE)
        ws_close(w, f->bytes == 1 ? 1002 : 1000);
    w->pinged = false;
}

void ws_rest(struct ws *w)
{
    bool busy = w->ops->busy(w);
    if (!busy && w->conn->waits)
        http_conn_wait(w->conn, false); /* it was active: move it to the end of the list */
    http_conn_wait(w->conn, !busy);
}

/* Handles a fragment of a message, possibly the last. */
static void part(struct ws *w, const struct ws_frame *f, const char *p)
{
    bool begins = f->op != WS_CONTINUE;
    if (begins == (w->op != WS_CONTINUE)) { /* a new message inside another, or a fragment without
                                             * a message */
        ws_close(w, 1002);
        return;
    }
    if (begins)
        w->op = f->op;
    size_t at = w->message.len;
    if (at + f->bytes > w->max_message) {
        ws_close(w, 1009);
        return;
    }
    buf_put(&w->message, p, f->bytes);
    if (w->message.rc < 0) {
        ws_close(w, 1011);
        return;
    }
    if (http_conn_count(w->conn) != PEERS_OK) {
        buf_fini(&w->message);
        buf_init(&w->message, w->max_message);
        ws_close(w, 1013);
        return;
    }
    if (f->bytes > 0)
        unmask(w->message.data + at, f->bytes, f->mask);
    if (!f->last)
        return;
    bool text = w->op == WS_TEXT;
    w->op = WS_CONTINUE;
    if (text && w->message.len <= WS_CHECKED_BYTES &&
        !ws_utf8(buf_str(&w->message), w->message.len))
        ws_close(w, 1007);
    else
        w->ops->message(w, buf_str(&w->message), w->message.len, text);
    if (w->message.cap > KEEP_BYTES)
        buf_fini(&w->message), buf_init(&w->message, w->max_message);
    else
        buf_clear(&w->message);
}

/* Whether the next message has to wait, for its turn or until the client has read. */
static bool holds_back(struct ws *w, uint32_t n_messages)
{
    if (w->taken || ws_queued(w) > QUEUED_BYTES)
        return true; /* ws_go_on or on_drained continues */
    if (n_messages < MAX_MESSAGES)
        return false;
    sock_again(&w->conn->sock);
    return true;
}

/* A frame is consumed as a whole; the socket keeps incomplete ones. */
static size_t on_data(struct http_conn *c, const char *p, size_t n)
{
    struct ws *w = c->state;
    size_t used = 0;
    uint32_t n_messages = 0;
    while (used < n && !w->closing && !holds_back(w, n_messages)) {
        struct ws_frame f = {.op = WS_CONTINUE};
        int rc = parse_frame(&f, p + used, n - used, w->max_message);
        if (rc == 0)
            break;
        if (rc != 1) {
            ws_close(w, (uint16_t)rc);
            break;
        }
        if (n - used < f.head + f.bytes) {
            c->sock.want = f.head + f.bytes;
            break;
        }
        c->sock.want = 0;
        if (f.op >= WS_CLOSE)
            control(w, &f, p + used + f.head);
        else
            part(w, &f, p + used + f.head);
        used += f.head + f.bytes;
        n_messages++;
    }
    if (n - used > HTTP_CONN_FREE_BYTES && http_conn_count(c) != PEERS_OK)
        ws_close(w, 1013);
    ws_rest(w);
    http_conn_timer(c, w->closing ? CLOSE_MS : PING_MS);
    return w->closing ? n : used;
}

static void on_eof(struct http_conn *c)
{
    sock_break(&c->sock);
}

static void on_drained(struct http_conn *c)
{
    struct ws *w = c->state;
    if (w->closing)
        return;
    w->ops->drained(w);
    if (c->sock.in.len > 0)
        sock_again(&c->sock);
}

static void on_drain(struct http_conn *c)
{
    struct ws *w = c->state;
    w->ops->drain(w);
}

static void on_timeout(struct http_conn *c)
{
    struct ws *w = c->state;
    if (w->closing || sock_stalled(&c->sock, c->server->limits.write_ms) ||
        (w->pinged && !w->taken && ws_queued(w) == 0)) {
        sock_break(&c->sock); /* the client is gone, or does not read */
        return;
    }
    w->pinged = true;
    put_frame(w, WS_PING, "", 0);
    http_conn_timer(c, PING_MS);
}

static void on_destroy(struct http_conn *c)
{
    struct ws *w = c->state;
    w->closing = true;
    w->ops->closed(w);
    buf_fini(&w->message);
    mem_free(w);
}

static size_t on_held(const struct http_conn *c)
{
    const struct ws *w = c->state;
    return http_conn_bytes(&w->message);
}

static const struct http_proto proto = {on_data,    on_eof,     on_drained, on_drain,
                                        on_timeout, on_destroy, on_held,    NULL};

/* The first one offered: browsers close a connection on which none was chosen. */
static bool choose_protocol(const struct http_req *r, char *out, size_t cap)
{
    const char *offered = http_header(r, "sec-websocket-protocol");
    const size_t n = offered ? strcspn(offered, ", \t") : 0;
    if (n == 0 || n >= cap)
        return false;
    memcpy(out, offered, n);
    out[n] = '\0';
    return true;
}

struct ws *ws_accept(struct http_req *r, const struct ws_ops *ops, void *user, size_t max_message)
{
    static const char magic[] = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
    const char *key = http_header(r, "sec-websocket-key");
    const char *version = http_header(r, "sec-websocket-version");
    char text[128], accept[64], protocol[64];
    unsigned char md[SHA_DIGEST_LENGTH];
    if (!r->websocket || !key || strlen(key) != 24 || !version || strcmp(version, "13") != 0)
        return NULL;
    struct ws *w = mem_zalloc(sizeof(*w));
    if (!w)
        return NULL;
    int n = snprintf(text, sizeof(text), "%s%s", key, magic);
    SHA1((const unsigned char *)text, (size_t)n, md);
    EVP_EncodeBlock((unsigned char *)accept, md, sizeof(md));
    const bool chosen = choose_protocol(r, protocol, sizeof(protocol));
    const struct http_header headers[] = {{"upgrade", "websocket"},
                                          {"connection", "Upgrade"},
                                          {"sec-websocket-accept", accept},
                                          {"sec-websocket-protocol", protocol}};
    http_begin(r, 101, headers, chosen ? 4 : 3, -1);
    w->conn = http1_upgrade(r);
    w->ops = ops;
    w->user = user;
    w->max_message = max_message;
    buf_init(&w->message, max_message);
    http_conn_switch(w->conn, &proto, w);
    http_conn_timer(w->conn, PING_MS);
    http_conn_wait(w->conn, true);
    sock_again(&w->conn->sock); /* frames may have arrived with the request */
    return w;
}
