/* http_answer.h - parses the response to one HTTP/1.1 request incrementally.
 *
 * Thread:    any; no locks inside.
 * Ownership: body is the caller's buf and receives the response's body; its limit bounds the size.
 * Failure:   SHOAL_EFORMAT: not an HTTP response, or truncated; SHOAL_ELIMIT: larger than body may
 *            hold; SHOAL_ENOMEM.  Nothing needs to be freed. */
#ifndef SHOAL_NET_HTTP_ANSWER_H
#define SHOAL_NET_HTTP_ANSWER_H

#include <stdbool.h>
#include <stddef.h>

#include <llhttp.h>

#include "base/err.h"

struct buf;

struct http_answer {
    llhttp_t parser;
    struct buf *body;
    size_t n_bytes; /* all bytes received, including headers */
    bool complete;
    int status; /* valid if complete */
};

void http_answer_init(struct http_answer *a, struct buf *body);
/* Adds the next bytes; n 0: end of input.  Bytes after a complete response are ignored. */
SHOAL_MUST_CHECK int http_answer_feed(struct http_answer *a, const char *p, size_t n);

#endif
