/* http1_client.h - an HTTP/1.1 client on the loop: one address, connections that are kept and used
 * again, many calls at a time.  For servers of others, which may not know HTTP/2 (http_client.h).
 *
 * A call uses an idle connection, or opens one; if max_connections are busy, it waits its turn. If
 * a kept connection turns out to be closed before a byte of the response, the call is sent once
 * more on a new one.
 *
 * Thread:    the loop's.
 * Ownership: the caller's http_call structs are linked: they must live until ended(), failed() or
 *            cancel; the request's bytes are borrowed as long.
 * Failure:   in failed(): SHOAL_ENOTFOUND: cannot connect, SHOAL_EIO: broken, SHOAL_EFORMAT: the
 *            response is not HTTP. */
#ifndef SHOAL_NET_HTTP1_CLIENT_H
#define SHOAL_NET_HTTP1_CLIENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct loop;
struct tls_client;
struct http1_client;
struct http1_call;
struct http1_conn;

struct http1_client_opts {
    const char *address;      /* "HOST:PORT" or "unix:PATH" */
    struct tls_client *tls;   /* opened as `foreign`; NULL: plain.  Borrowed. */
    uint32_t max_connections; /* 0: 100 */
};

struct http1_call_ops {
    void (*data)(struct http1_call *k, int status, const char *p, size_t n); /* of the body */
    void (*ended)(struct http1_call *k, int status); /* the response is complete */
    void (*failed)(struct http1_call *k, int code, const char *message);
};

struct http1_call {
    const struct http1_call_ops *ops; /* set by the caller */
    const char *request;              /* head and body */
    size_t n_request;
    uint64_t sent_ns; /* when a connection took it; 0: not yet */
    /* private */
    struct http1_client *client; /* NULL: not started, or over */
    struct http1_conn *conn;     /* NULL: waits for one */
    struct http1_call *prev, *next;
    bool again;
};

SHOAL_MUST_CHECK int http1_client_create(struct http1_client **out, struct loop *l,
                                         const struct http1_client_opts *o, struct err *e);
/* No callback follows for its calls.  The memory is freed at the end of the loop's turn. NULL is
 * fine. */
void http1_client_destroy(struct http1_client *c);
/* Callbacks come later, never before this returns. */
void http1_call_start(struct http1_client *c, struct http1_call *k);
/* No callback follows; a call that is over or was never started is ignored. */
void http1_call_cancel(struct http1_call *k);

#endif
