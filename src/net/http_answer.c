/* http_answer.c - see http_answer.h. */
#include "net/http_answer.h"

#include "base/buf.h"

#define MAX_HEAD_BYTES ((size_t)64 << 10)

static int on_body(llhttp_t *p, const char *at, size_t n)
{
    struct http_answer *a = p->data;
    buf_put(a->body, at, n);
    return a->body->rc < 0 ? -1 : 0;
}

static int on_complete(llhttp_t *p)
{
    struct http_answer *a = p->data;
    a->complete = p->status_code >= 200; /* 1xx: the final response follows */
    return a->complete ? HPE_PAUSED : 0;
}

static const llhttp_settings_t settings = {.on_body = on_body, .on_message_complete = on_complete};

void http_answer_init(struct http_answer *a, struct buf *body)
{
    *a = (struct http_answer){.body = body};
    llhttp_init(&a->parser, HTTP_RESPONSE, &settings);
    a->parser.data = a;
}

int http_answer_feed(struct http_answer *a, const char *p, size_t n)
{
    if (a->complete)
        return 0;
    a->n_bytes += n;
    llhttp_errno_t got = n > 0 ? llhttp_execute(&a->parser, p, n) : llhttp_finish(&a->parser);
    if (a->body->rc < 0)
        return a->body->rc;
    if (a->n_bytes > a->body->max + MAX_HEAD_BYTES)
        return SHOAL_ELIMIT;
    if (!a->complete && (got != HPE_OK || n == 0))
        return SHOAL_EFORMAT;
    a->status = a->parser.status_code;
    return 0;
}
