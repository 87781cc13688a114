/* tokens.h - the life of a request to a tokenizer: a text to token ids, or ids to a text.
 *
 * Events: start; a token event for each id, with its piece of text, or one event with all the text;
 * done.
 *
 * Thread: the owner's; long inputs are read on a thread of the pool. */
#ifndef SHOAL_FLOW_TOKENS_H
#define SHOAL_FLOW_TOKENS_H

#include "flow/flow.h"

/* Takes the request, of kind REQUEST_TOKENS. Events may arrive before this returns. */
void tokens_run(struct flow_owner *o, struct request *r, struct sink *s);

#endif
