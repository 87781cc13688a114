/* http.h - an HTTP exchange as seen by a handler, the same for HTTP/1.1 and HTTP/2.
 *
 * The handler gets a request with its complete body (or reads the body as it arrives, see
 * http_server_set_early) and responds with begin, write..., end, now or later.  From the call of
 * the handler until http_end or cancelled(), whichever comes first, the request and everything
 * it points to stay valid; afterwards they are freed.
 *
 * Thread:    the loop's.
 * Failure:   responding cannot fail for the handler: if the connection is lost or memory runs out,
 *            cancelled() is called. */
#ifndef SHOAL_NET_HTTP_H
#define SHOAL_NET_HTTP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct http_req;
struct http_server;
struct loop;
struct peer;
struct peers;
struct peers_limits;
struct tls_peer;

struct http_header { /* in requests both are NUL-terminated and the name is in lower case */
    const char *name, *value;
};

struct http_ops { /* what a protocol does; others than HTTP may bring their own */
    void (*begin)(struct http_req *r, int status, const struct http_header *headers, size_t n,
                  int64_t body_bytes);
    void (*write)(struct http_req *r, const void *p, size_t n);
    void (*end)(struct http_req *r, const struct http_header *trailers, size_t n);
    size_t (*queued)(const struct http_req *r);
};

enum http_via { HTTP_VIA_UNIX, HTTP_VIA_LOOPBACK, HTTP_VIA_NETWORK }; /* kind of listener */

struct http_req {
    const char *method, *path; /* path: as received, without the query */
    const char *query;         /* the part after '?', or "" */
    const struct http_header *headers;
    size_t n_headers;
    const char *body; /* NUL-terminated; body_bytes does not count the NUL */
    size_t body_bytes;
    const char *peer;                 /* address of the client, or "unix" */
    const struct tls_peer *peer_cert; /* its verified certificate (net/tls.h); NULL: plain */
    const char *protocol;             /* "http/1.1", "h2" */
    enum http_via via;
    bool secure, head, websocket;
    bool more;            /* early: the body is not complete yet */
    uint64_t received_ns; /* when its last byte arrived */
    struct http_server *server;
    struct peer *account; /* of the client's address: what it holds in memory; NULL: not counted */

    /* set by the handler */
    void *user;
    void (*cancelled)(struct http_req *r); /* the client is gone; r is freed after this call */
    void (*drained)(struct http_req *r);   /* everything written so far was passed to the socket */
    void (*arrived)(struct http_req *r);   /* early: more of the body arrived, or (`more` is
                                            * false) its end */

    /* of the response, for logs */
    int status;
    uint64_t sent_bytes;
    const struct http_ops *ops;
    void (*take)(struct http_req *r, size_t n); /* set by the protocol; NULL: not early */
    char *(*take_body)(struct http_req *r);     /* set by the protocol; NULL: none */
};

typedef void (*http_handler)(void *ctx, struct http_req *r);

/* Why a request is refused before a handler sees it. */
struct http_refusal {
    int status;
    const char *code, *why; /* code: for programs; NULL: none */
    uint32_t retry_s;       /* seconds until a retry may succeed; 0: never */
};

/* NULL if the request has no such header; name must be in lower case. */
const char *http_header(const struct http_req *r, const char *name);
/* Percent-decodes a query parameter into out; false if it is missing or too long. */
bool http_query(const struct http_req *r, const char *name, char *out, size_t cap);
const char *http_status_text(int status);

/* body_bytes: -1 if unknown.  The protocol adds the headers that frame the message. */
void http_begin(struct http_req *r, int status, const struct http_header *headers, size_t n,
                int64_t body_bytes);
void http_write(struct http_req *r, const void *p, size_t n);
void http_end(struct http_req *r);
/* Ends the response with trailers (HTTP/2; omitted in HTTP/1.1). */
void http_end_trailers(struct http_req *r, const struct http_header *trailers, size_t n);
/* Bytes of this response that wait for the client; for back-pressure: stop writing while it is
 * large. */
size_t http_queued(const struct http_req *r);
/* Early: consumes the first n bytes of the body, so that the client may send as many more.
 * Without it, at most one stream window (1 MiB) is buffered. */
void http_take(struct http_req *r, size_t n);

/* Takes the complete body out of the request, to be freed with mem_free: for work on other threads,
 * which may outlive the request.  NULL: out of memory.  r->body is empty afterwards. */
char *http_take_body(struct http_req *r);

/* ---- server: listeners and limits of a loop ---- */

struct tls_server;

struct http_limits {
    size_t max_header_bytes, max_body_bytes;
    uint32_t max_headers, max_conns, max_streams; /* streams: per HTTP/2 connection */
    uint32_t request_ms;                          /* from the first to the last byte of a request */
    uint32_t idle_ms;                             /* between requests */
    uint32_t write_ms;                            /* while responses wait and the client reads
                                                   * nothing */
    /* Over all connections, and over those of one client address (net/peers.h). */
    size_t max_held_bytes;      /* input, bodies, output; 0: three times the next */
    size_t max_peer_held_bytes; /* 0: 48 MiB, or three bodies if that is more */
    uint32_t max_resets;        /* of HTTP/2 streams, in 10 seconds; 0: no limit */
};
extern const struct http_limits http_default_limits;

#include "base/err.h"

struct http_stats {
    uint64_t accepted, refused, requests, h2;
    uint32_t conns;
};

SHOAL_MUST_CHECK int http_server_create(struct http_server **out, struct loop *l,
                                        const struct http_limits *limits, http_handler handler,
                                        void *ctx, struct err *e);
/* Closes every connection (requests are cancelled) and every listener. */
void http_server_destroy(struct http_server *s);
/* Accepts from a listening socket (net/listen.h) and takes ownership of it.  tls may be NULL, and
 * is borrowed until it is replaced. */
SHOAL_MUST_CHECK int http_server_listen(struct http_server *s, int fd, struct tls_server *tls,
                                        struct err *e);
/* Serves an existing connection; takes ownership of the descriptor. */
SHOAL_MUST_CHECK int http_server_adopt(struct http_server *s, int fd, struct err *e);
/* New connections on TLS listeners use this; open ones are not affected. */
void http_server_set_tls(struct http_server *s, struct tls_server *tls);
/* From now on HTTP/1 connections close after their next answer, which announces it; new ones are
 * accepted. */
void http_server_leave(struct http_server *s);
/* Accepts no new connections; open ones close after their current requests. */
void http_server_drain(struct http_server *s);
void http_server_stats(const struct http_server *s, struct http_stats *out);
/* HTTP/2 requests for which early returns true reach the handler as soon as their headers are
 * complete: for bidirectional streams.  When the server drains, their bodies end. */
void http_server_set_early(struct http_server *s, bool (*early)(void *ctx, const char *path));
/* Called when the headers of a request are complete and its body is not: `more` is set.  True: the
 * body may come; the handler follows with the same r, or cancelled().  False: the request was
 * answered from its headers alone, and its body is not read.  Requests whose body arrives together
 * with their headers, and early ones, go to the handler at once. */
void http_server_set_admit(struct http_server *s, bool (*admit)(void *ctx, struct http_req *r));
/* How to answer requests that never reach the handler: too large, too late, malformed.  r has the
 * headers received so far; refuse answers it completely.  Without refuse the answer has no body. */
void http_server_set_refuse(struct http_server *s,
                            void (*refuse)(struct http_req *r, const struct http_refusal *why));
/* Who takes connections that speak TLS_SHARD (net/tls.h), with their descriptor and TLS state.
 * Without it they are closed. */
struct tls_conn;
typedef void (*http_shard_fn)(void *ctx, int fd, struct tls_conn *tls);
void http_server_set_shard(struct http_server *s, http_shard_fn fn, void *ctx);
/* Shares the accounting of clients' memory with other servers of the process; borrowed. Call it
 * before the first connection. Otherwise a server has its own accounting and limits. */
void http_server_share_peers(struct http_server *s, struct peers *peers);
/* The part of the limits that net/peers.h needs, with its defaults. */
struct peers_limits http_peers_limits(const struct http_limits *limits);
/* Replaces size, count and time limits for later requests. */
void http_server_set_limits(struct http_server *s, const struct http_limits *limits);

#endif
