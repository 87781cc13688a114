/* otlp_place.h - where traces go: what the configuration says, else OpenTelemetry's environment
 * variables (OTEL_EXPORTER_OTLP_ENDPOINT, OTEL_SERVICE_NAME and so on, as opentelemetry.io has
 * them).
 *
 * Ownership: otlp_place_fini frees.
 * Failure:   SHOAL_EINVAL with the name of the variable, SHOAL_ENOMEM. */
#ifndef SHOAL_SITE_TRACES_OTLP_PLACE_H
#define SHOAL_SITE_TRACES_OTLP_PLACE_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "config/config_tracing.h"
#include "trace/otlp.h"

#define OTLP_PLACE_MAX_PAIRS 32u

struct otlp_place {
    char *server, *path; /* NULL: nowhere */
    struct buf header;   /* more of the head, joined by CRLF */
    struct arena texts;  /* of the pairs */
    struct otlp_pair pairs[OTLP_PLACE_MAX_PAIRS];
    uint32_t n_pairs;
    double ratio;
    uint32_t timeout_ms;
};

/* get: getenv, or a test's; node: name of this member, or NULL. */
SHOAL_MUST_CHECK int otlp_place_find(struct otlp_place *out, const struct config_tracing *c,
                                     const char *node, char *(*get)(const char *name),
                                     struct err *e);
void otlp_place_fini(struct otlp_place *p);

#endif
