/* chat_messages.h - a conversation: messages, tools, and other variables of a chat template.
 *
 * Thread:    plain data.
 * Ownership: whoever builds a conversation owns its memory, usually the arena of a request. */
#ifndef SHOAL_ENGINE_CHAT_MESSAGES_H
#define SHOAL_ENGINE_CHAT_MESSAGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/value.h"

/* A tool call in a message of the assistant. */
struct chat_call {
    const char *id; /* "": none */
    const char *name;
    const char *arguments; /* a JSON object */
    size_t arguments_bytes;
};

/* All texts end with NUL and are valid UTF-8. */
struct chat_message {
    const char *role;
    const char *name; /* NULL: none */
    const char *content;
    size_t content_bytes;
    const struct chat_call *calls; /* of the assistant */
    uint32_t n_calls;
    const char *call_id; /* role "tool": the call that this content answers; NULL: none */
};

/* A function that the model may call. */
struct chat_tool {
    const char *name;
    const char *description; /* "": none */
    struct value parameters; /* JSON Schema, a map; VALUE_NULL: it has none */
    bool strict;             /* the arguments of a call must match the schema */
};

/* The values are sent between nodes. */
enum chat_tool_choice {
    CHAT_TOOLS_AUTO = 0,     /* the model decides */
    CHAT_TOOLS_NONE = 1,     /* it sees no tools */
    CHAT_TOOLS_REQUIRED = 2, /* it must call at least one */
    CHAT_TOOLS_ONE = 3,      /* it must call chat.tool */
};

/* If this variable is true, the answer continues the last message. */
#define CHAT_CONTINUE_VAR "continue_final_message"

struct chat {
    const struct chat_message *messages;
    uint32_t n_messages;
    const struct value_member *vars; /* further variables of the template */
    uint32_t n_vars;
    const char *template; /* replaces the model's own; NULL: use that one */
    const struct chat_tool *tools;
    uint32_t n_tools;
    enum chat_tool_choice tool_choice;
    uint32_t tool; /* CHAT_TOOLS_ONE: its index */
    bool one_call; /* at most one call in an answer */
};

/* Whether the model sees tools, so that its answer may contain calls. */
static inline bool chat_has_tools(const struct chat *c)
{
    return c->n_tools > 0 && c->tool_choice != CHAT_TOOLS_NONE;
}

#endif
