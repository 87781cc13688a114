/* decision.h - a routing decision as JSON; and POST /v1/route, which only decides.
 *
 * Thread: the loop's. */
#ifndef SHOAL_GATEWAY_API_DECISION_H
#define SHOAL_GATEWAY_API_DECISION_H

#include <stddef.h>

#include "gateway/call/fields.h"

struct call;
struct json_out;
struct routing_choice;

extern const struct field decision_fields[];
extern const size_t decision_n_fields;

/* An object: route, model, degraded; with explain also the candidates and why. */
void decision_json(struct json_out *j, const struct routing_choice *x);
void decision_handle(struct call *c);

#endif
