/* image_input.h - an image in a JSON body, as base64: {"image": TEXT} as Jina's clients write it,
 * or
 * {"type": "image_url", "image_url": {"url": TEXT}} as OpenAI's do.
 *
 * TEXT is a data URL or the base64 alone.  An address is refused: a server that fetched what its
 * clients name would reach places that they cannot.
 *
 * Thread:    no state.
 * Ownership: the image lives in the request's arena.
 * Failure:   SHOAL_EINVAL with param and text filled. */
#ifndef SHOAL_GATEWAY_API_IMAGE_INPUT_H
#define SHOAL_GATEWAY_API_IMAGE_INPUT_H

#include <stdbool.h>

#include <cjson/cJSON.h>

#include "flow/request.h"
#include "gateway/call/fields.h"

/* Whether the value is an object with one. */
bool image_input_is(const cJSON *v);
/* Fills the input.  name: of the field, for errors. */
SHOAL_MUST_CHECK int image_input_take(struct request *r, struct request_input *in, const cJSON *v,
                                      const char *name, struct fields_error *e);

#endif
