/* inner_call.h - a request that the server itself makes for a client of a protocol without HTTP: a
 * WebSocket of sound, a Wyoming connection.
 *
 * It passes the same checks as a request of the client (key, limits, deadline), and its answer
 * comes as events or as a whole.
 *
 * Thread:    the loop's.
 * Ownership: an inner call ends itself, with exactly one `end` unless it is cancelled. */
#ifndef SHOAL_GATEWAY_CALL_INNER_CALL_H
#define SHOAL_GATEWAY_CALL_INNER_CALL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cjson/cJSON.h>

struct gw_loop;
struct http_header;
struct http_req;
struct inner_call;
struct peer;

struct inner_call_ops {
    /* An event of a stream: a JSON object. */
    void (*event)(void *ctx, const char *json, size_t n);
    /* body: the answer; of a stream: "" */
    void (*end)(void *ctx, int status, const char *body, size_t n);
};

struct inner_call_opts {
    const char *path;          /* a constant; the method is POST */
    const char *authorization; /* header of the client, or NULL; it outlives the call, as does: */
    const char *peer;          /* its address, for people */
    const char *protocol;      /* for the log; a constant */
    struct peer *account;      /* of its memory, or NULL */
    bool trusted;              /* needs no key: the protocol has none */
};

/* Starts a request with this body, which it takes.  Events may come before it returns; *out is NULL
 * if it has ended by then. */
void inner_call_start(struct inner_call **out, struct gw_loop *gl, const struct inner_call_opts *o,
                      cJSON *body, const struct inner_call_ops *ops, void *ctx);
/* No event comes any more. */
void inner_call_cancel(struct inner_call *c);

/* For http_ops of requests that the server makes itself: headers are not read, and nothing waits
 * to be sent. */
void inner_call_ignore_begin(struct http_req *r, int status, const struct http_header *headers,
                             size_t n, int64_t body_bytes);
size_t inner_call_none_queued(const struct http_req *r);

#endif
