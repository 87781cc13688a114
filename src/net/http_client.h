/* http_client.h - an HTTP/2 client on the event loop: one address, one connection, many calls.
 *
 * The connection is opened by the first call and again by the first call after a break. When it
 * breaks, every call on it fails at once with SHOAL_EIO; nothing is retried here. A silent peer is
 * detected by pings. After a GOAWAY, new calls use a new connection while the old one finishes its
 * own.
 *
 * Thread:    the loop's.
 * Ownership: the caller's http_call is linked, not copied. It must stay valid until ended() or
 *            failed(), which may free it, or until http_call_cancel.
 * Failure:   a call that was started gets exactly one of ended() and failed(), never from inside
 *            http_call_start; after http_call_cancel it gets none. */
#ifndef SHOAL_NET_HTTP_CLIENT_H
#define SHOAL_NET_HTTP_CLIENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/thread/executor.h"
#include "net/http.h"

struct http_client;
struct http_call;
struct tls_client;
struct tls_peer;

struct http_client_opts {
    const char *address;    /* "HOST:PORT" or "unix:PATH" */
    struct tls_client *tls; /* borrowed; NULL: plain, with prior knowledge */
    const char *tls_host;   /* must be in the peer's certificate; NULL: any certificate of the CA */
    const char *authority;  /* value of :authority; NULL: from the address */
    uint32_t connect_ms;    /* for lookup, connect and handshake; 0: 3000 */
    uint32_t ping_ms;       /* a ping this often while connected; 0: 2000 */
    uint32_t ping_timeout_ms; /* nothing arrives for this long after a ping: broken; 0: 3000 */
    uint32_t max_calls;       /* running and waiting; 0: 1000 */
    size_t max_queued_bytes;  /* of request bodies that are not sent yet; 0: 16 MiB */
    size_t max_header_bytes;  /* of a response, and of its trailers; 0: 32 KiB */
    /* Whether this peer may be used, before anything is sent to it; NULL: every verified one. */
    int (*check_peer)(void *ctx, const struct tls_peer *peer, struct err *e);
    void *ctx;
};

struct http_client_state {
    bool connected;
    uint32_t n_calls;
    uint64_t rtt_ns;             /* of the last answered ping; 0: none yet */
    const struct tls_peer *peer; /* of the open connection; NULL: none, or plain */
    const char *error;           /* why the last connection failed; "" if none did */
};

SHOAL_MUST_CHECK int http_client_create(struct http_client **out, struct loop *l,
                                        const struct http_client_opts *o, struct err *e);
/* Fails every call with SHOAL_ECANCELLED.  The memory is freed at the end of the loop's turn: run a
 * turn or loop_flush before loop_destroy.  NULL is fine. */
void http_client_destroy(struct http_client *c);
/* Closes the connections and fails their calls with SHOAL_EIO: for a caller who knows that the peer
 * does not answer.  The next call opens a new connection. */
void http_client_reset(struct http_client *c, const char *why);
void http_client_state(const struct http_client *c, struct http_client_state *out);

struct http_call_ops {
    /* The status and the headers of the response; names and values are borrowed for the call. */
    void (*head)(struct http_call *k, int status, const struct http_header *headers, size_t n);
    void (*data)(struct http_call *k, const char *p, size_t n);
    /* The response is complete.  n is 0 if it has no trailers. */
    void (*ended)(struct http_call *k, const struct http_header *trailers, size_t n);
    /* SHOAL_EIO: broken or reset. SHOAL_EBUSY: the peer did not process the call, so it may be
     * retried. SHOAL_ELIMIT: the response exceeds a limit. */
    void (*failed)(struct http_call *k, int code, const char *message);
    void (*drained)(struct http_call *k); /* everything written is on its way; NULL: not needed */
};

struct http_call_node {
    struct http_call_node *prev, *next;
};

struct http_call {
    const struct http_call_ops *ops; /* set by the caller; everything else is private */
    struct http_call_node node;
    struct http_client *client; /* NULL: not started, or ended */
    struct http_link *link;     /* the connection it runs on; NULL: waits for one */
    int32_t id;
    int status;
    struct buf head; /* first of the request, then of the response: name, NUL, value, NUL, ... */
    struct buf out;  /* of the request's body */
    size_t out_at;
    struct buf held; /* of the response's body, while paused */
    struct executor_task again;
    uint16_t n_headers, n_interim;
    bool end, was_full, paused, complete, has_head, has_trailers;
};

/* Starts a call.  The arguments are copied, body too; headers must be in lower case, without the
 * pseudo headers.  end: there is no more of the body.  SHOAL_EBUSY: too many calls or queued bytes;
 * then, as after every other code, nothing was started. */
SHOAL_MUST_CHECK int http_call_start(struct http_client *c, struct http_call *k, const char *method,
                                     const char *path, const struct http_header *headers, size_t n,
                                     const void *body, size_t body_bytes, bool end);
/* More of the body.  SHOAL_EBUSY: too much is queued, nothing was added: wait for drained(). */
SHOAL_MUST_CHECK int http_call_write(struct http_call *k, const void *p, size_t n, bool end);
/* Bytes of the body that are not sent yet. */
size_t http_call_queued(const struct http_call *k);
/* Resets the call; no callback follows.  A call that is over or was never started is ignored. */
void http_call_cancel(struct http_call *k);
/* Between pause and resume there is no data() and no ended(); the peer can send one window more
 * (256 KiB), which is kept. */
void http_call_pause(struct http_call *k);
void http_call_resume(struct http_call *k);

#endif
