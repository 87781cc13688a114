/* flow_trace.h - spans of the work of engines, from the times that they report.
 *
 * Thread:    the owner's.
 * Failure:   none: see trace/trace.h. */
#ifndef SHOAL_FLOW_FLOW_TRACE_H
#define SHOAL_FLOW_FLOW_TRACE_H

#include "flow/sink.h"
#include "shoal/shoal.h"
#include "trace/trace.h"

/* A choice of a generation that has just ended: queue, prompt, answer.  energy: of all choices,
 * with the last one. */
void flow_trace_done(const struct trace_at *at, const char *model, const struct shoal_event *d,
                     const struct sink_energy *energy);
/* An input of a specialist: queue, run. */
void flow_trace_result(const struct trace_at *at, const char *model, const struct shoal_result *r);

#endif
