/* grpc_answer.h - events of a request to messages of proto/shoal/v1.
 *
 * Thread:    the loop's. */
#ifndef SHOAL_GATEWAY_GRPC_GRPC_ANSWER_H
#define SHOAL_GATEWAY_GRPC_GRPC_ANSWER_H

#include "base/buf.h"

struct call;
struct grpc_method;
struct request;

/* Makes the sink of the request, and connects it to the call.  False: out of memory; then the call
 * is answered and the request given back. */
bool grpc_answer_open(struct call *c, const struct grpc_method *m, struct request *r, uint32_t top);

/* The same bytes, as valid UTF-8, which protobuf requires of a string. */
void grpc_answer_put_utf8(struct buf *out, const char *p, size_t n);
/* A GenerateEvent with only text, framed: once per token, so encoded by hand. */
void grpc_answer_put_text(struct buf *out, const char *p, size_t n);

struct failure;
/* Ends a stream with the status of a failure; model: the one that was asked for, or NULL. */
void grpc_answer_fail(struct call *c, const struct failure *f, const char *model);

#endif
