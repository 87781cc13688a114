/* timings_json.h - the timings of an answer, in the format of llama.cpp's server.
 *
 * Thread: no state. */
#ifndef SHOAL_GATEWAY_API_TIMINGS_JSON_H
#define SHOAL_GATEWAY_API_TIMINGS_JSON_H

#include <stdint.h>

struct json_out;
struct sink_done;
struct sink_prompt;

/* The member "timings" of an object. */
void timings_json(struct json_out *j, const struct sink_done *d);
/* The member "prompt_progress". began_ns: arrival of the call, CLOCK_MONOTONIC. */
void timings_json_progress(struct json_out *j, const struct sink_prompt *e, uint64_t began_ns);

#endif
