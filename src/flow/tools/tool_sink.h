/* tool_sink.h - a sink in front of another one that turns the text of a model into tool calls.
 *
 * It sits next to the codec, behind everything that carries tokens between nodes: forwarding,
 * resuming and caching all use the model's original text.
 *
 * Thread:    the owner's.
 * Ownership: lives in the arena of its request. */
#ifndef SHOAL_FLOW_TOOL_SINK_H
#define SHOAL_FLOW_TOOL_SINK_H

#include <stdbool.h>

#include "flow/flow.h"

/* STAGE_TOOLS. If the model may call tools, s gets `call` events in addition to its tokens, with
 * the calls removed from the text: pieces of calls as they are generated if the client reads a
 * stream and takes them so (request.whole_calls), otherwise only complete ones. */
bool tool_sink_take(struct flow_owner *o, struct request *r, struct sink *s);

#endif
