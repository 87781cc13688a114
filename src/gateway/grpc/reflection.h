/* reflection.h - gRPC server reflection: lists the services and serves the files of proto/ that
 * describe them, as compiled at build time.  v1alpha's messages are the same bytes as v1's.
 *
 * Thread:    no state.
 * Failure:   SHOAL_EFORMAT: malformed request; SHOAL_ENOMEM. */
#ifndef SHOAL_GATEWAY_GRPC_REFLECTION_H
#define SHOAL_GATEWAY_GRPC_REFLECTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

/* The ServerReflectionResponse to a ServerReflectionRequest, appended. */
SHOAL_MUST_CHECK int reflection_answer(struct buf *out, const uint8_t *p, size_t n);
/* "shoal.v1.Shoal", ... */
void reflection_each_service(void (*fn)(void *ctx, const char *name), void *ctx);
bool reflection_has_service(const char *name);

/* A google.protobuf.FileDescriptorSet, made at build (CMakeLists.txt). */
extern const uint8_t proto_set[];
extern const size_t proto_set_bytes;

#endif
