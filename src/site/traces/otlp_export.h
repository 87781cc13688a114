/* otlp_export.h - sends traces to an OpenTelemetry collector (OTLP over HTTP), from a thread of its
 * own.
 *
 * A collector that is slow or away costs nothing: traces wait in a bounded queue, and those that
 * find it full are dropped and counted.
 *
 * Thread:    otlp_export_keeper's from any.
 * Ownership: destroy sends what waits, for at most two seconds. */
#ifndef SHOAL_SITE_TRACES_OTLP_EXPORT_H
#define SHOAL_SITE_TRACES_OTLP_EXPORT_H

#include "site/traces/otlp_place.h"
#include "trace/trace.h"

struct otlp_export;

/* Takes the place. ca: see config_tracing; version: of the program. */
SHOAL_MUST_CHECK int otlp_export_create(struct otlp_export **out, struct otlp_place *place,
                                        const char *ca, const char *version, struct err *e);
void otlp_export_destroy(struct otlp_export *x); /* NULL is fine */
struct trace_keeper *otlp_export_keeper(struct otlp_export *x);
void otlp_export_metrics(struct otlp_export *x, struct buf *b);

#endif
