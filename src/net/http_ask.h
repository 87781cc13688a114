/* http_ask.h - a blocking client for one request, for command line tools and dedicated threads.
 *
 * HTTP/1.1, one connection per request. Over TLS the certificate must be valid for the host.
 * Thread:    any; blocks for at most timeout_ms (not counting name resolution).
 * Ownership: body is the caller's buf; its limit bounds the response.
 * Failure:   SHOAL_EINVAL: bad address; SHOAL_ENOTFOUND: cannot connect; SHOAL_EDEADLINE;
 *            SHOAL_EIO: the connection broke, or the certificate was refused (the text says so);
 *            SHOAL_ELIMIT; SHOAL_EFORMAT: the response is not HTTP; SHOAL_ENOMEM; SHOAL_ECANCELLED:
 *            stop_fd.  A status of 400 and above is not a failure. */
#ifndef SHOAL_NET_HTTP_ASK_H
#define SHOAL_NET_HTTP_ASK_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct buf;
struct tls_client;

struct http_ask {
    const char *server;     /* "http[s]://HOST[:PORT]", "HOST:PORT", "unix:PATH" */
    struct tls_client *tls; /* for https, opened as `foreign`; NULL: https is refused */
    const char *method, *path;
    const char *key;          /* sent as "Authorization: Bearer"; or NULL */
    const char *header;       /* more of the head, "name: value", several joined by CRLF; or NULL */
    const char *content_type; /* of the content */
    const char *content;
    size_t content_bytes; /* 0: no body */
    uint32_t timeout_ms;
    /* A response that arrives in pieces: called after each one, with all of the body so far. The
     * time limit is then for each piece. NULL: only the whole matters. */
    void (*piece)(void *ctx, int status, const struct buf *body);
    void *ctx;
    const int *stop_fd; /* ends the call when it becomes readable; NULL: none */
};

SHOAL_MUST_CHECK int http_ask(const struct http_ask *a, int *status, struct buf *body,
                              struct err *e);

#endif
