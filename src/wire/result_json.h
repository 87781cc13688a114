/* result_json.h - the result of an inference as members of a JSON object, the same for the command
 * line and the network.
 *
 * Thread: any; reads only. */
#ifndef SHOAL_WIRE_RESULT_JSON_H
#define SHOAL_WIRE_RESULT_JSON_H

#include "shoal/shoal.h"
#include "wire/json_out.h"

/* Writes the result as members of the open object, without timing.  text: the submitted text, for
 * the words of spans.  top: maximum number of labels, 0: all. */
void result_json_answer(struct json_out *j, const struct shoal_result *r, const char *text,
                        uint32_t top);
/* tokens, truncated (if it was), batch, queue_ms, run_ms, total_ms */
void result_json_cost(struct json_out *j, const struct shoal_result *r);

#endif
