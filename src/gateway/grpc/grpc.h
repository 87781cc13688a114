/* grpc.h - gRPC (proto/): messages to requests, events to messages.
 *
 * Keys, limits, deadlines (grpc-timeout) and models are those of the HTTP interface.  The key is
 * checked on the headers, before the message is unpacked.
 *
 * Thread: the loop's. */
#ifndef SHOAL_GATEWAY_GRPC_GRPC_H
#define SHOAL_GATEWAY_GRPC_GRPC_H

struct call;
struct call_error;

void grpc_handle(struct call *c); /* /shoal.v1.Shoal/... */
/* Ends the call with a gRPC status, or with JSON if the request is not a gRPC call. */
void grpc_fail(struct call *c, const struct call_error *e);
/* /grpc.reflection.v1.ServerReflection/... and v1alpha's: any number of queries per call */
void grpc_reflection(struct call *c);

#endif
