/* gw_client.h - a client of a gateway in the same process (gw_site.h): its requests go straight to
 * the door, and what it gets is kept.
 *
 * Include it after cmocka.h. */
#ifndef SHOAL_TESTS_GW_CLIENT_H
#define SHOAL_TESTS_GW_CLIENT_H

#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "support/gw_site.h"

#define GW_CLIENT_HEADERS 8u

struct gw_client {
    struct http_req req; /* first */
    int status;
    struct buf head; /* "name: value\n" of each header and trailer */
    struct buf body;
    bool over;
    char text[1024]; /* of the headers that it sends */
    struct http_header headers[GW_CLIENT_HEADERS];
};

static inline struct gw_client *gw_client_of(struct http_req *r)
{
    return (struct gw_client *)(void *)r; /* its first member */
}

static inline void gw_client_on_begin(struct http_req *r, int status,
                                      const struct http_header *headers, size_t n,
                                      int64_t body_bytes)
{
    struct gw_client *x = gw_client_of(r);
    (void)body_bytes;
    x->status = status;
    for (size_t i = 0; i < n; i++)
        buf_printf(&x->head, "%s: %s\n", headers[i].name, headers[i].value);
}

static inline void gw_client_on_write(struct http_req *r, const void *p, size_t n)
{
    buf_put(&gw_client_of(r)->body, p, n);
}

static inline void gw_client_on_end(struct http_req *r, const struct http_header *trailers,
                                    size_t n)
{
    for (size_t i = 0; i < n; i++)
        buf_printf(&gw_client_of(r)->head, "%s: %s\n", trailers[i].name, trailers[i].value);
    gw_client_of(r)->over = true;
}

static inline size_t gw_client_on_queued(const struct http_req *r)
{
    (void)r;
    return 0;
}

/* headers: "name: value\n" of each; NULL: none.  Other members of x->req may be set before
 * gw_client_send. */
static inline void gw_client_init(struct gw_client *x, struct gw *gw, const char *method,
                                  const char *path, const char *headers, const char *body, size_t n)
{
    static const struct http_ops ops = {gw_client_on_begin, gw_client_on_write, gw_client_on_end,
                                        gw_client_on_queued};
    size_t k = 0;
    memset(x, 0, sizeof(*x));
    buf_init(&x->head, 1 << 16);
    buf_init(&x->body, 1 << 24);
    assert_true(!headers || strlen(headers) < sizeof(x->text));
    snprintf(x->text, sizeof(x->text), "%s", headers ? headers : "");
    for (char *p = x->text, *end; *p; p = end + 1) {
        char *colon = strstr(p, ": ");
        end = strchr(p, '\n');
        assert_true(colon && end && k < GW_CLIENT_HEADERS);
        *colon = *end = '\0';
        x->headers[k++] = (struct http_header){p, colon + 2};
    }
    x->req = (struct http_req){.method = method,
                               .path = path,
                               .query = "",
                               .headers = x->headers,
                               .n_headers = k,
                               .body = body,
                               .body_bytes = n,
                               .peer = "127.0.0.1",
                               .protocol = "h2",
                               .received_ns = clock_ns(),
                               .server = gw->loops[0].http,
                               .ops = &ops};
}

static inline void gw_client_send(struct gw_client *x, struct gw *gw)
{
    door_handle(&gw->loops[0], &x->req);
}

static inline void gw_client_fini(struct gw_client *x)
{
    buf_fini(&x->head);
    buf_fini(&x->body);
}

#endif
