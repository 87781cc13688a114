/* trace_json.h - a trace as JSON, for `shoal trace` and the page.
 *
 * Thread:    any.
 * Failure:   through the buf's sticky rc. */
#ifndef SHOAL_TRACE_TRACE_JSON_H
#define SHOAL_TRACE_TRACE_JSON_H

#include "trace/trace.h"
#include "wire/json_out.h"

/* An object: ids, when it began, how long it took, and its spans, if asked for. */
void trace_json(struct json_out *j, struct trace *t, bool spans);

#endif
