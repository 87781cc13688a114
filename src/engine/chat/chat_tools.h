/* chat_tools.h - tools and their calls as a chat template sees them.
 *
 * Thread:    no state.
 * Ownership: results live in the arena and point into the conversation.
 * Failure:   the arena's rc. */
#ifndef SHOAL_ENGINE_CHAT_TOOLS_H
#define SHOAL_ENGINE_CHAT_TOOLS_H

#include "base/arena.h"
#include "base/value.h"
#include "engine/chat/chat_messages.h"
#include "engine/chat/tool_format.h"

/* [{"type": "function", "function": {"name", "description", "parameters"}}, ...] */
struct value chat_tools_list(struct arena *a, const struct chat *c);
/* The same as a text of JSON, for a template that does not write it itself; "": no tools. */
struct value chat_tools_text(struct arena *a, const struct chat *c);
/* [{"id", "type": "function", "function": {"name", "arguments": {...}}}, ...] of a message. */
struct value chat_tools_calls(struct arena *a, const struct chat_message *m, enum tool_format f);
/* An id in the template's format: Mistral's accepts only nine letters and digits. */
const char *chat_tools_id(struct arena *a, const char *id, enum tool_format f);

/* For a template without tool support: tools are described in the system message (no_system: in the
 * first message), calls become text and results messages of the user. */
struct chat chat_tools_as_text(struct arena *a, const struct chat *c, bool no_system);
/* The conversation with a system message in front, and the text of the tools for it (*text). */
struct chat chat_tools_in_system(struct arena *a, const struct chat *c, struct value *text);
/* Whether the conversation has tools, calls or results. */
bool chat_tools_used(const struct chat *c);

#endif
