/* process.h - POST /v1/process: the flow that is built in (flow/home/ask.h) over HTTP.
 *
 * The answer is that of `shoal ask --json`; as a stream it comes as events "plan" (what is wanted),
 * "text" (pieces of the reply) and "done" (the whole answer), or "error". */
#ifndef SHOAL_GATEWAY_API_PROCESS_H
#define SHOAL_GATEWAY_API_PROCESS_H

#include "gateway/api/fields.h"

struct call;

extern const struct field process_fields[];
extern const size_t n_process_fields;
void process_handle(struct call *c);

#endif
