/* grpc_answer.h - events of a request to messages of proto/shoal/v1.
 *
 * Thread:    the loop's. */
#ifndef SHOAL_GATEWAY_GRPC_GRPC_ANSWER_H
#define SHOAL_GATEWAY_GRPC_GRPC_ANSWER_H

#include "base/buf.h"
#include "flow/sink.h"

struct call;
struct grpc_method;
struct request;

/* Turns the events of a request into an answer to the call. */
struct grpc_answer {
    struct sink sink;
    struct call *call; /* held */
    const struct grpc_method *method;
    struct request *request;
    const char *model;
    uint32_t top;
    bool started;                       /* some event came */
    struct buf text;                    /* Generate: the answer so far */
    struct buf arguments;               /* arguments of the current tool call */
    struct Shoal__V1__ToolCall **calls; /* [n_calls], of the whole answer, in the request's arena */
    uint32_t n_calls;
    const struct shoal_result **results;
};

/* In the request's arena, connected to the call; NULL: out of memory. */
struct grpc_answer *grpc_answer_open(struct call *c, const struct grpc_method *m, struct request *r,
                                     uint32_t top);

/* A GenerateEvent with only text, framed: once per token, so encoded by hand. */
void grpc_answer_put_text(struct buf *out, const char *p, size_t n);

#endif
