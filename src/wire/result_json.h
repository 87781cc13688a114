/* result_json.h - the result of an inference as members of a JSON object, the same for the command
 * line and the network.
 *
 * Thread: any; reads only. */
#ifndef SHOAL_WIRE_RESULT_JSON_H
#define SHOAL_WIRE_RESULT_JSON_H

#include "shoal/shoal.h"
#include "wire/json_out.h"

/* Members of the open object: what the kind says, without timing.  text: what was submitted, for
 * the words of spans.  top: at most so many labels, 0: all. */
void result_json_answer(struct json_out *j, const struct shoal_result *r, const char *text,
                        uint32_t top);
/* tokens, truncated (when it was), batch, queue_ms, run_ms, total_ms */
void result_json_cost(struct json_out *j, const struct shoal_result *r);

#endif
