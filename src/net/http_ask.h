/* http_ask.h - one request to a server and its answer: for commands, not for loads.
 *
 * HTTP/1.1 without TLS, a connection of its own.
 * Thread:    any; blocks, at most timeout_ms in all (looking up a name aside).
 * Ownership: body is the caller's buf; its limit bounds the answer.
 * Failure:   SHOAL_EINVAL: the address; SHOAL_ENOTFOUND: nobody is there; SHOAL_EDEADLINE;
 *            SHOAL_ELIMIT; SHOAL_EFORMAT: what came is no HTTP; SHOAL_ENOMEM.  A status of 400 and
 *            above is an answer. */
#ifndef SHOAL_NET_HTTP_ASK_H
#define SHOAL_NET_HTTP_ASK_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct buf;

struct http_ask {
    const char *server; /* "http://HOST[:PORT]", "HOST:PORT", "unix:PATH" */
    const char *method, *path;
    const char *key; /* sent as "Authorization: Bearer"; or NULL */
    const char *json;
    size_t json_bytes; /* 0: no body */
    uint32_t timeout_ms;
};

SHOAL_MUST_CHECK int http_ask(const struct http_ask *a, int *status, struct buf *body,
                              struct err *e);

#endif
