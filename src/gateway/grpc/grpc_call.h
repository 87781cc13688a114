/* grpc_call.h - a gRPC call on its HTTP request: messages, status, errors.
 *
 * Thread:    the loop's.
 * Failure:   functions that say so answer the call themselves.  All take a call whose client is
 *            gone, and do nothing. */
#ifndef SHOAL_GATEWAY_GRPC_GRPC_CALL_H
#define SHOAL_GATEWAY_GRPC_GRPC_CALL_H

#include "net/grpc_frame.h"
#include "gateway/grpc/grpc_status.h"

struct call;
struct http_refusal;
struct http_req;

bool grpc_call_has_type(const struct http_req *r); /* content-type application/grpc */
/* Whether this is a gRPC call of the method with this name; false: it is answered. */
bool grpc_call_is(struct call *c, const char *name);
/* The first message of the body from `at` on: returns 1, 0 if more bytes are needed, or an error,
 * after answering the call. plain: buffer for a decompressed message. */
SHOAL_MUST_CHECK int grpc_call_read(struct call *c, struct grpc_frame *f, struct buf *plain,
                                    size_t at, size_t max);
/* Finds the single message of a complete body, possibly compressed; false: the call is answered. */
bool grpc_call_find_whole(struct call *c, struct grpc_frame *f);
/* The same, and decompresses it. */
bool grpc_call_read_whole(struct call *c, struct grpc_frame *f, struct buf *plain);
/* grpc-timeout's "10S", "250m" (ms), ... in milliseconds; 0: none.  False: it is malformed, and the
 * call is answered. */
bool grpc_call_timeout_ms(struct call *c, double *ms);

/* Sends the headers, if they are not sent yet. */
void grpc_call_begin(struct call *c);
void grpc_call_send(struct call *c, const struct buf *message);
/* The ends. */
void grpc_call_finish(struct call *c);
void grpc_call_fail(struct call *c, const struct grpc_error *e);
void grpc_call_fail_plain(struct call *c, enum grpc_status status, const char *reason,
                          const char *msg);
/* rc: why a message could not be decoded. */
void grpc_call_fail_frame(struct call *c, int rc);

/* Answers requests that HTTP/2 refuses, if they are gRPC calls: for http_server_set_refuse. */
bool grpc_call_refuse(struct http_req *r, const struct http_refusal *why);

#endif
