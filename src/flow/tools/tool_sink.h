/* tool_sink.h - a sink in front of another one that turns the text of a model into tool calls.
 *
 * It stands next to the codec, behind everything that carries tokens between nodes: what travels,
 * is resumed and is kept in caches is the text that the model wrote.
 *
 * Thread:    the owner's.
 * Ownership: lives in the arena of its request. */
#ifndef SHOAL_FLOW_TOOL_SINK_H
#define SHOAL_FLOW_TOOL_SINK_H

#include <stdbool.h>

#include "flow/flow.h"

/* As routing_run.  If the model may call tools, s gets `call` events besides its tokens, whose
 * texts have no calls any more.  stream: pieces of calls as they are written; else only whole ones.
 */
void tool_sink_run(struct flow_owner *o, struct request *r, struct sink *s, bool stream);

#endif
