/* grpc.h - gRPC (proto/): a call becomes a request of the HTTP interface, its answer messages.
 *
 * So keys, limits, deadlines (grpc-timeout) and models are the same; a message costs one JSON more
 * than it must. */
#ifndef SHOAL_GATEWAY_GRPC_GRPC_H
#define SHOAL_GATEWAY_GRPC_GRPC_H

struct call;

void grpc_handle(struct call *c); /* /shoal.v1.Shoal/... */
/* /grpc.reflection.v1.ServerReflection/... and v1alpha's: as many questions as come */
void grpc_reflection(struct call *c);

#endif
