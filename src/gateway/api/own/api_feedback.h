/* api_feedback.h - /v1/feedback: thumbs up or down for an answer, by the id of its request or
 * trace.
 *
 * Thread:    the loop's. */
#ifndef SHOAL_GATEWAY_API_OWN_API_FEEDBACK_H
#define SHOAL_GATEWAY_API_OWN_API_FEEDBACK_H

#include "gateway/call/fields.h"

struct buf;
struct call;
struct trace_votes;

extern const struct field api_feedback_fields[];
extern const size_t api_n_feedback_fields;
void api_feedback(struct call *c);
/* Their counts, for Prometheus. */
void api_feedback_metrics(struct trace_votes *v, struct buf *b);

#endif
