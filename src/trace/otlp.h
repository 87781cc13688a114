/* otlp.h - traces as OpenTelemetry's ExportTraceServiceRequest (OTLP 1.x, protobuf).
 *
 * The message is small and nested, so it is written directly: field by field, with the numbers of
 * opentelemetry/proto/trace/v1/trace.proto.
 *
 * Thread:    any.
 * Failure:   through the buf's sticky rc. */
#ifndef SHOAL_TRACE_OTLP_H
#define SHOAL_TRACE_OTLP_H

#include "base/buf.h"
#include "trace/trace.h"

struct otlp_pair {
    const char *key, *text;
};

/* Who exports: service.name and others. */
struct otlp_resource {
    const struct otlp_pair *pairs;
    uint32_t n;
    const char *version; /* of the program */
};

void otlp_put(struct buf *out, const struct otlp_resource *who, struct trace *const *traces,
              uint32_t n);
/* How many spans a collector refused, by its ExportTraceServiceResponse; 0 if it is not one. */
uint64_t otlp_rejected(const void *response, size_t n);

#endif
