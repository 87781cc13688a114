/* response_input.h - items of /v1/responses (messages, calls, their results) to messages of a
 * request.
 *
 * Thread:    no state.
 * Ownership: messages are in the request's memory.
 * Failure:   a wrong item is named in e; out of memory shows in request_rc. */
#ifndef SHOAL_GATEWAY_API_RESPONSE_INPUT_H
#define SHOAL_GATEWAY_API_RESPONSE_INPUT_H

#include <cjson/cJSON.h>

#include "flow/request.h"
#include "gateway/call/fields.h"

/* A text or a list of items into the request's messages; others may be put in front of them
 * afterwards. */
SHOAL_MUST_CHECK int response_input_read(struct request *r, const cJSON *input, bool lenient,
                                         struct fields_error *e);
/* The same for the member 'items', a list. */
SHOAL_MUST_CHECK int response_input_read_items(struct request *r, const cJSON *items, bool lenient,
                                               struct fields_error *e);
/* Errors of shared readers name messages[i] or response_format; these bodies have other names. */
void response_input_rename(struct fields_error *e, const char *theirs, const char *ours);

#endif
