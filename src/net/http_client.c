/* http_client.c - see http_client.h: nghttp2 does the framing, sock.c the bytes.
 *
 * A client has at most one link for new calls and some older ones that finish theirs.  Calls wait
 * in the client until a link is open and the peer allows one more stream.  Callbacks of nghttp2 run
 * inside nghttp2_session_mem_recv, so a link is never freed there: see link_close. */
#include "net/http_client.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <nghttp2/nghttp2.h>

#include "base/clock.h"
#include "base/mem.h"
#include "net/dial.h"
#include "net/listen.h"
#include "net/loop.h"
#include "net/sock.h"
#include "net/tls.h"

#define SCRATCH_BYTES ((size_t)32 << 10)
#define SOCKET_BYTES ((size_t)64 << 10) /* do not frame more while this much waits */
#define STREAM_WINDOW (256 << 10)       /* bounds what a paused call keeps */
#define CONN_WINDOW (16 << 20)
#define MAX_HEADERS 100u
#define MAX_REQUEST_HEAD ((size_t)60 << 10) /* nghttp2 frames 64 KiB at most */
#define MAX_INTERIM 16u                     /* 1xx responses of one call */

enum link_state { LINK_DIALS, LINK_SECURES, LINK_OPEN, LINK_CLOSED };

struct http_link {
    struct http_client *client;
    struct http_link *prev, *next;
    enum link_state state;
    bool draining; /* the peer wants no more calls here */
    bool settled;  /* its settings have arrived: calls may begin */
    bool has_sock;
    struct dial dial;
    struct sock sock;
    nghttp2_session *session;
    struct http_call_node calls;
    uint32_t n_streams; /* as nghttp2 counts them: also of cancelled calls */
    struct executor_task flush, free;
    struct executor_timer timer;
    uint64_t heard_ns, pinged_ns; /* pinged: 0: no ping is out */
    char error[300];
};

struct http_client {
    struct loop *loop;
    struct http_client_opts opts;
    char *address, *authority, *tls_host;
    struct http_link *link, *links; /* the one for new calls, or NULL; all of them */
    struct http_call_node waiting;  /* for a link or a stream */
    struct http_call_node complete; /* paused, and all of the response is held */
    struct executor_task pump, free;
    uint32_t n_calls, n_refs; /* links that are not freed yet, plus 1 until destroy */
    size_t queued_bytes;
    uint64_t rtt_ns;
    bool destroyed;
    char error[300];
    char *scratch;
};

/* Not for a closed link, which may still be inside nghttp2_session_mem_recv. */
static void schedule(struct http_link *l)
{
    if (l->state != LINK_CLOSED)
        loop_later(l->client->loop, &l->flush);
}

static void schedule_pump(struct http_client *c)
{
    if (!c->destroyed)
        loop_later(c->loop, &c->pump);
}

/* ---- lists ---- */

static void list_init(struct http_call_node *list)
{
    list->prev = list->next = list;
}

static void list_append(struct http_call_node *list, struct http_call *k)
{
    k->node.next = list;
    k->node.prev = list->prev;
    list->prev->next = &k->node;
    list->prev = &k->node;
}

static void list_remove(struct http_call *k)
{
    k->node.prev->next = k->node.next;
    k->node.next->prev = k->node.prev;
    k->node.prev = k->node.next = NULL;
}

static struct http_call *list_first(struct http_call_node *list)
{
    return list->next == list ? NULL : LOOP_OF(list->next, struct http_call, node);
}

/* ---- the end of a call ---- */

/* Takes the call from its stream; the stream itself ends when nghttp2 says so. */
static void leave_stream(struct http_call *k)
{
    if (k->link && k->link->session)
        nghttp2_session_set_stream_user_data(k->link->session, k->id, NULL);
    k->link = NULL;
}

static void drop_out(struct http_call *k)
{
    k->client->queued_bytes -= k->out.len - k->out_at;
    buf_fini(&k->out);
    buf_init(&k->out, SIZE_MAX / 2);
    k->out_at = 0;
}

/* After this, only the caller owns the call. */
static void release(struct http_call *k)
{
    leave_stream(k);
    list_remove(k);
    loop_forget(k->client->loop, &k->again);
    drop_out(k);
    buf_fini(&k->out);
    buf_fini(&k->held);
    buf_fini(&k->head);
    k->client->n_calls--;
    k->client = NULL;
}

static void fail_call(struct http_call *k, int code, const char *message)
{
    release(k);
    k->ops->failed(k, code, message);
}

static size_t list_headers(const struct http_call *k, struct http_header *out)
{
    const char *p = buf_str(&k->head);
    for (size_t i = 0; i < k->n_headers; i++) {
        out[i].name = p;
        out[i].value = p + strlen(p) + 1;
        p = out[i].value + strlen(out[i].value) + 1;
    }
    return k->n_headers;
}

static void end_call(struct http_call *k)
{
    struct http_header trailers[MAX_HEADERS];
    struct buf head = k->head; /* the trailers outlive the call's buffers */
    size_t n = k->has_trailers ? list_headers(k, trailers) : 0;
    buf_init(&k->head, 0);
    release(k);
    k->ops->ended(k, trailers, n);
    buf_fini(&head);
}

static void on_again(struct executor_task *t)
{
    struct http_call *k = LOOP_OF(t, struct http_call, again);
    if (k->paused)
        return;
    if (k->held.len == 0) {
        if (k->complete)
            end_call(k);
        return;
    }
    struct buf held = k->held;
    buf_init(&k->held, STREAM_WINDOW);
    if (k->link) {
        nghttp2_session_consume_stream(k->link->session, k->id, held.len);
        schedule(k->link);
    }
    if (k->complete)
        loop_later(k->client->loop, &k->again); /* data() may cancel it, which undoes this */
    k->ops->data(k, held.data, held.len);
    buf_fini(&held);
}

/* ---- the end of a link ---- */

static void client_unref(struct http_client *c)
{
    if (--c->n_refs == 0)
        loop_later(c->loop, &c->free);
}

static void client_free(struct executor_task *t)
{
    struct http_client *c = LOOP_OF(t, struct http_client, free);
    mem_free(c->address);
    mem_free(c->authority);
    mem_free(c->tls_host);
    mem_free(c->scratch);
    mem_free(c);
}

static void link_free(struct executor_task *t)
{
    struct http_link *l = LOOP_OF(t, struct http_link, free);
    struct http_client *c = l->client;
    if (l->session)
        nghttp2_session_del(l->session);
    if (l->has_sock)
        sock_fini(&l->sock);
    mem_free(l);
    client_unref(c);
}

/* Ends the link and, with `why`, its calls.  Safe inside callbacks: memory is freed at the end of
 * the turn. */
static void link_close(struct http_link *l, int code, const char *why)
{
    struct http_client *c = l->client;
    struct http_call *k;
    if (l->state == LINK_CLOSED)
        return;
    bool current = c->link == l;
    l->state = LINK_CLOSED;
    dial_cancel(&l->dial);
    loop_timer_clear(c->loop, &l->timer);
    loop_forget(c->loop, &l->flush);
    if (current)
        c->link = NULL;
    if (l->prev)
        l->prev->next = l->next;
    else
        c->links = l->next;
    if (l->next)
        l->next->prev = l->prev;
    if (!l->draining)
        snprintf(c->error, sizeof(c->error), "%s", why);
    if (l->has_sock)
        sock_break(&l->sock);
    loop_later(c->loop, &l->free);
    while ((k = list_first(&l->calls)))
        fail_call(k, code, why);
    /* Calls that waited for this link do not wait for another one: their callers may know better
     * peers.  New ones, started by the callbacks, are after the last of them. */
    struct http_call *last =
        c->waiting.prev == &c->waiting ? NULL : LOOP_OF(c->waiting.prev, struct http_call, node);
    while (current && last && !c->link && (k = list_first(&c->waiting))) {
        bool done = k == last;
        fail_call(k, code, why);
        if (done)
            break;
    }
}

static void link_fail(struct http_link *l, const char *why)
{
    char text[700];
    snprintf(text, sizeof(text), "%s %s: %s", l->state == LINK_OPEN ? "lost" : "cannot reach",
             l->client->address, why);
    link_close(l, SHOAL_EIO, text);
}

/* ---- sending ---- */

static ssize_t read_out(nghttp2_session *session, int32_t id, uint8_t *p, size_t n, uint32_t *flags,
                        nghttp2_data_source *source, void *user)
{
    struct http_call *k = nghttp2_session_get_stream_user_data(session, id);
    (void)source; /* the call may have ended; the stream knows */
    (void)user;
    if (!k)
        return NGHTTP2_ERR_DEFERRED; /* its reset is queued */
    size_t left = k->out.len - k->out_at, m = left < n ? left : n;
    if (m > 0)
        memcpy(p, k->out.data + k->out_at, m);
    k->out_at += m;
    k->client->queued_bytes -= m;
    if (k->out_at == k->out.len) {
        buf_clear(&k->out);
        k->out_at = 0;
        if (k->end)
            *flags |= NGHTTP2_DATA_FLAG_EOF;
        else if (m == 0)
            return NGHTTP2_ERR_DEFERRED;
    } else if (k->out_at > k->out.len / 2) {
        memmove(k->out.data, k->out.data + k->out_at, k->out.len - k->out_at);
        k->out.len -= k->out_at;
        k->out_at = 0;
    }
    return (ssize_t)m;
}

static void submit(struct http_link *l, struct http_call *k)
{
    struct http_header headers[MAX_HEADERS];
    nghttp2_nv nv[MAX_HEADERS];
    size_t n = list_headers(k, headers);
    for (size_t i = 0; i < n; i++)
        nv[i] = (nghttp2_nv){(uint8_t *)(uintptr_t)headers[i].name,
                             (uint8_t *)(uintptr_t)headers[i].value, strlen(headers[i].name),
                             strlen(headers[i].value), NGHTTP2_NV_FLAG_NONE};
    nghttp2_data_provider body = {.read_callback = read_out};
    bool has_body = k->out.len > 0 || !k->end;
    int32_t id = nghttp2_submit_request(l->session, NULL, nv, n, has_body ? &body : NULL, k);
    if (id < 0) {
        l->draining = true; /* out of stream numbers or of memory: continue on another link */
        l->client->link = NULL;
        fail_call(k, SHOAL_EBUSY, nghttp2_strerror(id));
        return;
    }
    list_remove(k);
    list_append(&l->calls, k);
    k->id = id;
    k->link = l;
    l->n_streams++;
    buf_clear(&k->head);
    k->n_headers = 0;
    schedule(l);
}

static void link_open(struct http_client *c);

/* Starts waiting calls as far as the peer allows. */
static void pump(struct executor_task *t)
{
    struct http_client *c = LOOP_OF(t, struct http_client, pump);
    struct http_call *k;
    while (!c->destroyed && (k = list_first(&c->waiting))) {
        struct http_link *l = c->link;
        if (!l) {
            link_open(c);
            return;
        }
        if (l->state != LINK_OPEN || !l->settled)
            return;
        uint32_t most = nghttp2_session_get_remote_settings(
            l->session, NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS);
        if (l->n_streams >= most)
            return;
        submit(l, k);
    }
}

/* Tells calls whose bytes are all framed.  A callback may end any call, so the search begins again
 * after each. */
static void tell_drained(struct http_link *l)
{
    for (struct http_call_node *at = l->calls.next; at != &l->calls;) {
        struct http_call *k = LOOP_OF(at, struct http_call, node);
        at = at->next;
        if (!k->was_full || k->out.len > 0 || k->end)
            continue;
        k->was_full = false;
        if (k->ops->drained) {
            k->ops->drained(k);
            if (l->state == LINK_CLOSED)
                return;
            at = l->calls.next;
        }
    }
}

static void on_flush(struct executor_task *t)
{
    struct http_link *l = LOOP_OF(t, struct http_link, flush);
    if (l->state != LINK_OPEN)
        return;
    while (sock_queued(&l->sock) < SOCKET_BYTES) {
        const uint8_t *p;
        ssize_t n = nghttp2_session_mem_send(l->session, &p);
        if (n < 0) {
            link_fail(l, nghttp2_strerror((int)n));
            return;
        }
        if (n == 0)
            break;
        sock_write(&l->sock, p, (size_t)n);
    }
    tell_drained(l);
    if (l->state != LINK_OPEN)
        return;
    if (!nghttp2_session_want_read(l->session) && !nghttp2_session_want_write(l->session))
        link_fail(l, l->error[0] ? l->error : "the peer closed the connection");
    else if (l->draining && l->n_streams == 0)
        link_close(l, SHOAL_EIO, "the peer asked for another connection");
}

/* ---- receiving ---- */

/* Pushes are forbidden by our settings, which the peer has read before it sees a call.  nghttp2
 * would answer each with a reset, without a limit. */
static int on_frame_head(nghttp2_session *session, const nghttp2_frame_hd *head, void *user)
{
    struct http_link *l = user;
    (void)session;
    if (head->type != NGHTTP2_PUSH_PROMISE)
        return 0;
    snprintf(l->error, sizeof(l->error), "the peer sent an unexpected push");
    return NGHTTP2_ERR_CALLBACK_FAILURE;
}

static int on_begin(nghttp2_session *session, const nghttp2_frame *frame, void *user)
{
    struct http_call *k = nghttp2_session_get_stream_user_data(session, frame->hd.stream_id);
    (void)user;
    if (k) {
        buf_clear(&k->head);
        k->n_headers = 0;
    }
    return 0;
}

/* Ends a call whose response is not acceptable. */
static void refuse(struct http_call *k, const char *why)
{
    char text[300];
    snprintf(text, sizeof(text), "the response of %s %s", k->client->address, why);
    nghttp2_submit_rst_stream(k->link->session, NGHTTP2_FLAG_NONE, k->id,
                              NGHTTP2_ENHANCE_YOUR_CALM);
    schedule(k->link);
    fail_call(k, SHOAL_ELIMIT, text);
}

static int on_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name,
                     size_t n_name, const uint8_t *value, size_t n_value, uint8_t flags, void *user)
{
    struct http_call *k = nghttp2_session_get_stream_user_data(session, frame->hd.stream_id);
    (void)flags;
    (void)user;
    if (!k)
        return 0;
    if (n_name == 7 && memcmp(name, ":status", 7) == 0) {
        k->status = 0;
        for (size_t i = 0; i < n_value && i < 3; i++) /* nghttp2 has checked: three digits */
            k->status = k->status * 10 + (value[i] - '0');
        return 0;
    }
    if (k->n_headers >= MAX_HEADERS ||
        k->head.len + n_name + n_value + 2 > k->client->opts.max_header_bytes) {
        refuse(k, "has too many headers");
        return 0;
    }
    if (memchr(value, '\0', n_value)) /* nghttp2 refuses those too */
        return 0;
    buf_put(&k->head, name, n_name);
    buf_putc(&k->head, '\0');
    buf_put(&k->head, value, n_value);
    buf_putc(&k->head, '\0');
    if (k->head.rc < 0)
        refuse(k, "does not fit into memory");
    else
        k->n_headers++;
    return 0;
}

static int on_data(nghttp2_session *session, uint8_t flags, int32_t id, const uint8_t *p, size_t n,
                   void *user)
{
    struct http_call *k = nghttp2_session_get_stream_user_data(session, id);
    (void)flags;
    (void)user;
    /* A paused call must not hold up the others, so only its own window stays closed. */
    nghttp2_session_consume_connection(session, n);
    if (!k)
        return 0;
    if (k->paused || k->held.len > 0) {
        buf_put(&k->held, p, n);
        if (k->held.rc < 0)
            refuse(k, "does not fit into memory");
        return 0;
    }
    nghttp2_session_consume_stream(session, id, n);
    k->ops->data(k, (const char *)p, n);
    return 0;
}

/* The peer has sent all of the response. */
static void complete(struct http_call *k)
{
    struct http_link *l = k->link;
    k->complete = true;
    if (nghttp2_session_get_stream_local_close(l->session, k->id) == 0)
        nghttp2_submit_rst_stream(l->session, NGHTTP2_FLAG_NONE, k->id, NGHTTP2_CANCEL);
    if (!k->paused && k->held.len == 0) {
        end_call(k);
        return;
    }
    leave_stream(k);
    drop_out(k);
    list_remove(k);
    list_append(&k->client->complete, k);
}

static void on_headers(struct http_call *k)
{
    struct http_header headers[MAX_HEADERS];
    if (k->has_head) {
        k->has_trailers = true;
        return;
    }
    if (k->status < 200) {
        if (++k->n_interim > MAX_INTERIM)
            refuse(k, "does not begin");
        return;
    }
    k->has_head = true;
    k->ops->head(k, k->status, headers, list_headers(k, headers));
}

/* New calls use another link; this one ends with its last call. */
static void retire(struct http_link *l)
{
    l->draining = true;
    if (l->client->link == l)
        l->client->link = NULL;
    schedule_pump(l->client);
}

static int on_frame(nghttp2_session *session, const nghttp2_frame *frame, void *user)
{
    struct http_link *l = user;
    int32_t id = frame->hd.stream_id;
    struct http_call *k = nghttp2_session_get_stream_user_data(session, id);
    if (l->state == LINK_CLOSED)
        return 0; /* closed by a callback for an earlier frame */
    switch (frame->hd.type) {
    case NGHTTP2_HEADERS:
    case NGHTTP2_DATA:
        if (k && frame->hd.type == NGHTTP2_HEADERS) {
            on_headers(k);
            k = nghttp2_session_get_stream_user_data(session, id); /* it may have been cancelled */
        }
        if (k && (frame->hd.flags & NGHTTP2_FLAG_END_STREAM))
            complete(k);
        break;
    case NGHTTP2_SETTINGS:
        l->settled |= !(frame->hd.flags & NGHTTP2_FLAG_ACK);
        schedule_pump(l->client);
        break;
    case NGHTTP2_PING:
        if ((frame->hd.flags & NGHTTP2_FLAG_ACK) && l->pinged_ns) {
            l->client->rtt_ns = clock_ns() - l->pinged_ns;
            l->pinged_ns = 0;
            loop_timer_set(l->client->loop, &l->timer,
                           loop_now(l->client->loop) + l->client->opts.ping_ms * 1000000ull);
        }
        break;
    case NGHTTP2_GOAWAY:
        if (frame->goaway.error_code != NGHTTP2_NO_ERROR)
            snprintf(l->error, sizeof(l->error), "the peer closed the connection: %s",
                     nghttp2_http2_strerror(frame->goaway.error_code));
        retire(l);
        break;
    default:
        break;
    }
    return 0;
}

static int on_close(nghttp2_session *session, int32_t id, uint32_t code, void *user)
{
    struct http_link *l = user;
    struct http_call *k = nghttp2_session_get_stream_user_data(session, id);
    char text[300];
    if (id % 2 == 1 && l->n_streams > 0)
        l->n_streams--;
    schedule_pump(l->client);
    schedule(l);
    if (!k)
        return 0;
    if (code == NGHTTP2_REFUSED_STREAM)
        snprintf(text, sizeof(text), "%s did not process the call", l->client->address);
    else
        snprintf(text, sizeof(text), "%s aborted the response: %s", l->client->address,
                 nghttp2_http2_strerror(code));
    fail_call(k, code == NGHTTP2_REFUSED_STREAM ? SHOAL_EBUSY : SHOAL_EIO, text);
    return 0;
}

static int on_protocol_error(nghttp2_session *session, int code, const char *text, size_t n,
                             void *user)
{
    struct http_link *l = user;
    (void)session;
    (void)code;
    snprintf(l->error, sizeof(l->error), "the peer does not follow HTTP/2: %.*s", (int)n, text);
    return 0;
}

/* ---- the connection ---- */

static size_t sock_data(struct sock *s, const char *p, size_t n)
{
    struct http_link *l = LOOP_OF(s, struct http_link, sock);
    l->heard_ns = loop_now(l->client->loop);
    ssize_t used = nghttp2_session_mem_recv(l->session, (const uint8_t *)p, n);
    if (l->state == LINK_CLOSED) /* a callback destroyed the client */
        return n;
    if (used < 0)
        link_fail(l, l->error[0] ? l->error : nghttp2_strerror((int)used));
    else
        schedule(l);
    return n;
}

static void sock_ended(struct sock *s)
{
    struct http_link *l = LOOP_OF(s, struct http_link, sock);
    link_fail(l, l->error[0] ? l->error : "the peer closed the connection");
}

static void sock_closed(struct sock *s, int why)
{
    struct http_link *l = LOOP_OF(s, struct http_link, sock);
    const char *text = sock_why(s);
    (void)why;
    link_fail(l, l->error[0] ? l->error : text[0] ? text : "the connection broke");
}

static void sock_drained(struct sock *s)
{
    struct http_link *l = LOOP_OF(s, struct http_link, sock);
    schedule(l);
}

static int open_session(struct http_link *l)
{
    nghttp2_session_callbacks *cb;
    nghttp2_option *opt;
    if (nghttp2_session_callbacks_new(&cb) != 0)
        return SHOAL_ENOMEM;
    if (nghttp2_option_new(&opt) != 0) {
        nghttp2_session_callbacks_del(cb);
        return SHOAL_ENOMEM;
    }
    nghttp2_session_callbacks_set_on_begin_frame_callback(cb, on_frame_head);
    nghttp2_session_callbacks_set_on_begin_headers_callback(cb, on_begin);
    nghttp2_session_callbacks_set_on_header_callback(cb, on_header);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(cb, on_data);
    nghttp2_session_callbacks_set_on_frame_recv_callback(cb, on_frame);
    nghttp2_session_callbacks_set_on_stream_close_callback(cb, on_close);
    nghttp2_session_callbacks_set_error_callback2(cb, on_protocol_error);
    nghttp2_option_set_max_outbound_ack(opt, 200);
    nghttp2_option_set_max_settings(opt, 32);
    nghttp2_option_set_no_auto_window_update(opt, 1); /* done in on_data and on_again */
    int rc = nghttp2_session_client_new2(&l->session, cb, l, opt);
    nghttp2_option_del(opt);
    nghttp2_session_callbacks_del(cb);
    const nghttp2_settings_entry settings[] = {
        {NGHTTP2_SETTINGS_ENABLE_PUSH, 0},
        {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, STREAM_WINDOW},
        {NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, (uint32_t)l->client->opts.max_header_bytes}};
    if (rc != 0 || nghttp2_submit_settings(l->session, NGHTTP2_FLAG_NONE, settings, 3) != 0 ||
        nghttp2_session_set_local_window_size(l->session, NGHTTP2_FLAG_NONE, 0, CONN_WINDOW) != 0)
        return SHOAL_ENOMEM;
    return 0;
}

static void link_ready(struct http_link *l)
{
    struct http_client *c = l->client;
    if (open_session(l) < 0) {
        link_fail(l, "out of memory");
        return;
    }
    l->state = LINK_OPEN;
    l->heard_ns = loop_now(c->loop);
    c->error[0] = '\0';
    loop_timer_set(c->loop, &l->timer, l->heard_ns + c->opts.ping_ms * 1000000ull);
    schedule_pump(c);
    schedule(l);
}

static void sock_secured(struct sock *s, const char *protocol)
{
    struct http_link *l = LOOP_OF(s, struct http_link, sock);
    struct http_client *c = l->client;
    struct err e = {0};
    if (strcmp(protocol, "h2") != 0)
        link_fail(l, "the peer does not speak HTTP/2");
    else if (c->opts.check_peer && c->opts.check_peer(c->opts.ctx, sock_peer(s), &e) < 0)
        link_fail(l, e.msg);
    else
        link_ready(l);
}

static void sock_stale(struct sock *s)
{
    struct http_link *l = LOOP_OF(s, struct http_link, sock);
    retire(l);
    schedule(l);
}

static const struct sock_ops sock_callbacks = {.data = sock_data,
                                               .ended = sock_ended,
                                               .closed = sock_closed,
                                               .drained = sock_drained,
                                               .secured = sock_secured,
                                               .stale = sock_stale};

static void on_connected(struct http_link *l, int fd)
{
    struct http_client *c = l->client;
    struct tls_conn *tls = NULL;
    struct err e = {0};
    int on = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)); /* fails on unix sockets */
    int rc = c->opts.tls ? tls_conn_connect(&tls, c->opts.tls, fd, c->tls_host, &e) : 0;
    if (rc < 0)
        close(fd);
    else
        rc = sock_init(&l->sock, c->loop, fd, tls, &sock_callbacks, c->scratch, SCRATCH_BYTES, &e);
    if (rc < 0) {
        link_fail(l, e.msg);
        return;
    }
    l->has_sock = true;
    l->state = LINK_SECURES;
    if (!tls)
        link_ready(l);
}

static void on_dialed(void *ctx, int fd, const char *why)
{
    struct http_link *l = ctx;
    if (fd < 0)
        link_fail(l, why);
    else
        on_connected(l, fd);
}

static void on_timer(struct executor_timer *t)
{
    struct http_link *l = LOOP_OF(t, struct http_link, timer);
    struct http_client *c = l->client;
    uint64_t timeout_ns = c->opts.ping_timeout_ms * 1000000ull, now = loop_now(c->loop);
    char text[80];
    if (l->state != LINK_OPEN) {
        snprintf(text, sizeof(text), "no connection within %u ms", c->opts.connect_ms);
        link_fail(l, text);
        return;
    }
    if (!l->pinged_ns) {
        l->pinged_ns = clock_ns();
        nghttp2_submit_ping(l->session, NGHTTP2_FLAG_NONE, NULL);
        schedule(l);
        now = l->pinged_ns;
    } else if (l->heard_ns <= l->pinged_ns) {
        snprintf(text, sizeof(text), "the peer is silent: no answer to a ping within %u ms",
                 c->opts.ping_timeout_ms);
        link_fail(l, text);
        return;
    } /* otherwise data is arriving, and the answer may follow it */
    loop_timer_set(c->loop, t, now + timeout_ns);
}

static void link_open(struct http_client *c)
{
    struct http_link *l = mem_zalloc(sizeof(*l));
    struct http_call *k;
    if (!l) {
        while ((k = list_first(&c->waiting)))
            fail_call(k, SHOAL_ENOMEM, "out of memory for a connection");
        return;
    }
    l->client = c;
    l->flush.fn = on_flush;
    l->free.fn = link_free;
    l->timer.fn = on_timer;
    list_init(&l->calls);
    l->next = c->links;
    if (c->links)
        c->links->prev = l;
    c->links = c->link = l;
    c->n_refs++;
    loop_timer_set(c->loop, &l->timer, loop_now(c->loop) + c->opts.connect_ms * 1000000ull);
    dial_start(&l->dial, c->loop, c->address, on_dialed, l);
}

/* ---- the client ---- */

static char *default_authority(const struct http_client_opts *o)
{
    return mem_strdup(o->authority                 ? o->authority
                      : listen_is_unix(o->address) ? "localhost"
                                                   : o->address);
}

int http_client_create(struct http_client **out, struct loop *l, const struct http_client_opts *o,
                       struct err *e)
{
    struct http_client *c;
    char host[256];
    const char *port;
    struct sockaddr_un addr;
    *out = NULL;
    int rc = listen_is_unix(o->address) ? listen_unix(&addr, o->address, e)
                                        : listen_split(o->address, host, sizeof(host), &port, e);
    if (rc < 0)
        return rc;
    c = mem_zalloc(sizeof(*c));
    if (!c)
        return err_set(e, SHOAL_ENOMEM, "out of memory for an HTTP client");
    c->loop = l;
    c->opts = *o;
    c->opts.connect_ms = o->connect_ms ? o->connect_ms : 3000;
    c->opts.ping_ms = o->ping_ms ? o->ping_ms : 2000;
    c->opts.ping_timeout_ms = o->ping_timeout_ms ? o->ping_timeout_ms : 3000;
    c->opts.max_calls = o->max_calls ? o->max_calls : 1000;
    c->opts.max_queued_bytes = o->max_queued_bytes ? o->max_queued_bytes : (size_t)16 << 20;
    c->opts.max_header_bytes = o->max_header_bytes ? o->max_header_bytes : (size_t)32 << 10;
    c->n_refs = 1;
    c->pump.fn = pump;
    c->free.fn = client_free;
    list_init(&c->waiting);
    list_init(&c->complete);
    c->address = mem_strdup(o->address);
    c->authority = default_authority(o);
    c->tls_host = o->tls_host ? mem_strdup(o->tls_host) : NULL;
    c->scratch = mem_alloc(SCRATCH_BYTES);
    if (!c->address || !c->authority || (o->tls_host && !c->tls_host) || !c->scratch) {
        client_free(&c->free);
        return err_set(e, SHOAL_ENOMEM, "out of memory for an HTTP client");
    }
    *out = c;
    return 0;
}

void http_client_destroy(struct http_client *c)
{
    static const char why[] = "the client is closed";
    struct http_call *k;
    if (!c || c->destroyed)
        return;
    c->destroyed = true;
    loop_forget(c->loop, &c->pump);
    while (c->links)
        link_close(c->links, SHOAL_ECANCELLED, why);
    while ((k = list_first(&c->waiting)) || (k = list_first(&c->complete)))
        fail_call(k, SHOAL_ECANCELLED, why);
    client_unref(c);
}

void http_client_reset(struct http_client *c, const char *why)
{
    struct http_link *next;
    for (struct http_link *l = c->links; l; l = next) {
        next = l->next; /* callbacks open links in front */
        link_close(l, SHOAL_EIO, why);
    }
}

void http_client_state(const struct http_client *c, struct http_client_state *out)
{
    bool connected = c->link && c->link->state == LINK_OPEN && c->link->settled;
    *out = (struct http_client_state){.connected = connected,
                                      .n_calls = c->n_calls,
                                      .rtt_ns = c->rtt_ns,
                                      .peer = connected ? sock_peer(&c->link->sock) : NULL,
                                      .error = c->error};
}

/* ---- calls ---- */

static void put_header(struct http_call *k, const char *name, const char *value)
{
    buf_put(&k->head, name, strlen(name) + 1);
    buf_put(&k->head, value, strlen(value) + 1);
    k->n_headers++;
}

static int add_body(struct http_call *k, const void *p, size_t n)
{
    struct http_client *c = k->client;
    if (n > c->opts.max_queued_bytes)
        return SHOAL_ELIMIT;
    if (n > c->opts.max_queued_bytes - c->queued_bytes)
        return SHOAL_EBUSY;
    buf_put(&k->out, p, n);
    if (k->out.rc < 0) {
        k->out.rc = 0; /* nothing was added */
        return SHOAL_ENOMEM;
    }
    c->queued_bytes += n;
    k->was_full |= n > 0;
    return 0;
}

int http_call_start(struct http_client *c, struct http_call *k, const char *method,
                    const char *path, const struct http_header *headers, size_t n, const void *body,
                    size_t body_bytes, bool end)
{
    if (c->destroyed)
        return SHOAL_ECANCELLED;
    if (n + 4 > MAX_HEADERS)
        return SHOAL_EINVAL;
    if (c->n_calls >= c->opts.max_calls)
        return SHOAL_EBUSY;
    *k = (struct http_call){
        .ops = k->ops, .client = c, .id = -1, .end = end, .again = {.fn = on_again}};
    buf_init(&k->head, MAX_REQUEST_HEAD);
    buf_init(&k->out, SIZE_MAX / 2);
    buf_init(&k->held, STREAM_WINDOW);
    put_header(k, ":method", method);
    put_header(k, ":scheme", c->opts.tls ? "https" : "http");
    put_header(k, ":authority", c->authority);
    put_header(k, ":path", path);
    for (size_t i = 0; i < n; i++)
        put_header(k, headers[i].name, headers[i].value);
    int rc = k->head.rc < 0 ? k->head.rc : add_body(k, body, body_bytes);
    if (rc < 0) {
        buf_fini(&k->head);
        buf_fini(&k->out);
        k->client = NULL;
        return rc;
    }
    /* the request's headers are complete: from now on the limit of the response's */
    k->head.max = c->opts.max_header_bytes + 4096;
    c->n_calls++;
    list_append(&c->waiting, k);
    loop_later(c->loop, &c->pump);
    return 0;
}

int http_call_write(struct http_call *k, const void *p, size_t n, bool end)
{
    if (!k->client)
        return SHOAL_EIO;
    if (k->end)
        return SHOAL_EINVAL;
    if (k->complete)
        return 0; /* it is no longer needed */
    int rc = add_body(k, p, n);
    if (rc < 0)
        return rc;
    k->end = end;
    if (k->link) {
        nghttp2_session_resume_data(k->link->session, k->id);
        schedule(k->link);
    }
    return 0;
}

size_t http_call_queued(const struct http_call *k)
{
    return k->client ? k->out.len - k->out_at : 0;
}

void http_call_cancel(struct http_call *k)
{
    if (!k->client)
        return;
    if (k->link) {
        nghttp2_submit_rst_stream(k->link->session, NGHTTP2_FLAG_NONE, k->id, NGHTTP2_CANCEL);
        schedule(k->link);
    }
    release(k);
}

void http_call_pause(struct http_call *k)
{
    k->paused = true;
}

void http_call_resume(struct http_call *k)
{
    if (!k->paused)
        return;
    k->paused = false;
    if (k->client)
        loop_later(k->client->loop, &k->again);
}
