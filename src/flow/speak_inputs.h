/* speak_inputs.h - a text that is to be said as the inputs of a request: written out as words, cut
 * into sentences, and each as many inputs as a sound has parts, so that the first can be heard
 * while the others are computed.
 *
 * Thread: that of the request; no state. */
#ifndef SHOAL_FLOW_SPEAK_INPUTS_H
#define SHOAL_FLOW_SPEAK_INPUTS_H

#include "base/err.h"
#include "flow/request.h"

#define SPEAK_INPUTS_MAX_BYTES ((size_t)16 << 10) /* of the text */

/* Makes r an inference of kind SPEAK, in r's arena; speed, volume and voice (infer.labels) are left
 * to the caller.  SHOAL_EINVAL: there is nothing to say; SHOAL_ELIMIT: the text is too long. */
SHOAL_MUST_CHECK int speak_inputs(struct request *r, const char *text, size_t n, struct err *e);

#endif
