/* http_answer.h - the answer to one HTTP/1.1 request, read from bytes as they come.
 *
 * Thread:    any; no locks inside.
 * Ownership: body is the caller's buf and gets the answer's; its limit bounds what is read.
 * Failure:   SHOAL_EFORMAT: what came is no HTTP answer, or ended too soon; SHOAL_ELIMIT: more than
 *            body may hold; SHOAL_ENOMEM.  Nothing is to be freed. */
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
    size_t n_bytes; /* all that came, heads too */
    bool complete;
    int status; /* valid when complete */
};

void http_answer_init(struct http_answer *a, struct buf *body);
/* The next bytes; n 0: there are no more.  What follows a complete answer is ignored. */
SHOAL_MUST_CHECK int http_answer_feed(struct http_answer *a, const char *p, size_t n);

#endif
