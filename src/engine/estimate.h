/* estimate.h - how long a request to an engine would take now.
 *
 * Thread:    any. */
#ifndef SHOAL_ENGINE_ESTIMATE_H
#define SHOAL_ENGINE_ESTIMATE_H

#include "engine/cost.h"
#include "engine/fair.h"

struct shoal_engine;

struct cost_estimate estimate_request(struct shoal_engine *en, const struct cost_request *r,
                                      const struct fair_who *who);
/* As cost_speed. */
void estimate_speed(struct shoal_engine *en, double *prefill_ns, double *token_ns);
/* The model's current telemetry for a client. */
struct cost_telemetry estimate_telemetry(struct shoal_engine *en, const struct fair_who *who);

#endif
