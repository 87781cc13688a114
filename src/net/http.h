/* http.h - an HTTP exchange as a handler sees it: the same for HTTP/1.1 and HTTP/2.
 *
 * The handler gets a request whose body is there in full (or one that it reads as it comes, see
 * http_server_set_early) and answers with begin, write..., end, now or later.  From the call of the
 * handler until http_end or cancelled(), whichever comes first, the request and everything it
 * points to stay valid; afterwards they are gone.
 *
 * Thread:    the loop's.
 * Failure:   answering cannot fail for the handler: where the connection is gone or memory is out,
 *            cancelled() comes. */
#ifndef SHOAL_NET_HTTP_H
#define SHOAL_NET_HTTP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct http_req;
struct http_server;
struct loop;

struct http_header { /* of a request: both end with NUL, the name is in lower case */
    const char *name, *value;
};

struct http_ops { /* what a protocol does; others than HTTP may bring their own */
    void (*begin)(struct http_req *r, int status, const struct http_header *headers, size_t n,
                  int64_t body_bytes);
    void (*write)(struct http_req *r, const void *p, size_t n);
    void (*end)(struct http_req *r, const struct http_header *trailers, size_t n);
    size_t (*queued)(const struct http_req *r);
};

struct http_req {
    const char *method, *path; /* path: as sent, without the query */
    const char *query;         /* what follows '?', or "" */
    const struct http_header *headers;
    size_t n_headers;
    const char *body; /* ends with a NUL that body_bytes does not count */
    size_t body_bytes;
    const char *peer;      /* address of the client, or "unix" */
    const char *peer_name; /* of its certificate, or "" */
    const char *protocol;  /* "http/1.1", "h2" */
    bool secure, head, websocket;
    bool more;            /* early: the client has not ended the body yet */
    uint64_t received_ns; /* when the last byte of it came */
    struct http_server *server;

    /* the handler's */
    void *user;
    void (*cancelled)(struct http_req *r); /* the client is gone: r is, after this call */
    void (*drained)(struct http_req *r);   /* everything written so far is on its way */
    void (*arrived)(struct http_req *r);   /* early: more of the body, or (`more` is off) its end */

    /* of the answer, for logs */
    int status;
    uint64_t sent_bytes;
    const struct http_ops *ops;
    void (*take)(struct http_req *r, size_t n); /* of the protocol; NULL: not early */
};

typedef void (*http_handler)(void *ctx, struct http_req *r);

/* Why a request is refused before a handler sees it. */
struct http_refusal {
    int status;
    const char *code, *why; /* code: for programs */
    uint32_t retry_s;       /* when it may work; 0: never */
};

/* NULL when the request has no such header; name in lower case. */
const char *http_header(const struct http_req *r, const char *name);
/* Value of a query parameter, percent-decoded into out; false when it is not there or too long. */
bool http_query(const struct http_req *r, const char *name, char *out, size_t cap);
const char *http_status_text(int status);

/* body_bytes: -1 when it is not known yet.  Headers that frame the message are not the
 * handler's. */
void http_begin(struct http_req *r, int status, const struct http_header *headers, size_t n,
                int64_t body_bytes);
void http_write(struct http_req *r, const void *p, size_t n);
void http_end(struct http_req *r);
/* The end with trailers (HTTP/2; left out in HTTP/1.1). */
void http_end_trailers(struct http_req *r, const struct http_header *trailers, size_t n);
/* Bytes of this answer that wait for the client: stop writing when it is much. */
size_t http_queued(const struct http_req *r);
/* Early: the first n bytes of the body are read, and the client may send as many more.  Without it
 * at most a stream's window (1 MiB) gathers. */
void http_take(struct http_req *r, size_t n);

/* ---- server: what a loop accepts and how ---- */

struct tls_server;

struct http_limits {
    size_t max_header_bytes, max_body_bytes;
    uint32_t max_headers, max_conns, max_streams; /* streams: of one HTTP/2 connection */
    uint32_t request_ms;                          /* from the first byte of a request to its last */
    uint32_t idle_ms;                             /* between requests */
    uint32_t write_ms;                            /* with answers waiting and none taken */
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
/* Accepts from a listening socket (net/listen.h); takes it.  tls may be NULL, and is borrowed until
 * it is replaced. */
SHOAL_MUST_CHECK int http_server_listen(struct http_server *s, int fd, struct tls_server *tls,
                                        struct err *e);
/* A connection that is there already; takes the descriptor. */
SHOAL_MUST_CHECK int http_server_adopt(struct http_server *s, int fd, struct err *e);
/* New connections on TLS listeners use this; what is open goes on as it is. */
void http_server_set_tls(struct http_server *s, struct tls_server *tls);
/* No new connections; those that are open end after their current requests. */
void http_server_drain(struct http_server *s);
void http_server_stats(const struct http_server *s, struct http_stats *out);
struct loop *http_server_loop(const struct http_server *s);
/* Requests of HTTP/2 for which early says true reach the handler with their headers: for streams in
 * both directions.  When the server drains, their bodies end. */
void http_server_set_early(struct http_server *s, bool (*early)(const char *path));
/* For protocols on top of HTTP/2 that refuse in a way of their own.  r has the headers as far as
 * they came; true: r is answered, to its end. */
void http_server_set_refuse(struct http_server *s,
                            bool (*refuse)(struct http_req *r, const struct http_refusal *why));
/* Replaces size, count and time limits for what comes from now on. */
void http_server_set_limits(struct http_server *s, const struct http_limits *limits);

#endif
