/* tool_parse.h - extracts tool calls from the generated text, incrementally.
 *
 * A call must be complete JSON, name a tool of the request, and have an object as arguments.
 * Everything else stays text, markers included. Text that may be the start of a call is held back
 * until that is decided, at most until the end of the answer.
 *
 * Calls are reported as they are written if `stream` is set: then a call can be begun that breaks
 * off later (the model stops, or writes what is not JSON); it is ended where it broke, and what
 * follows is text.  Without `stream` only whole calls are reported.
 *
 * Thread:    belongs to its caller.
 * Ownership: init ... fini; the names are borrowed until fini, texts of events for the call.
 * Failure:   out of memory: rc is set, and nothing more is reported. */
#ifndef SHOAL_FLOW_TOOL_PARSE_H
#define SHOAL_FLOW_TOOL_PARSE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "engine/chat/chat_messages.h"
#include "engine/chat/tool_format.h"
#include "wire/json_walk.h"

#define TOOL_PARSE_MAX_CALLS 128u /* calls per answer; further ones stay text */

enum tool_parse_kind {
    TOOL_PARSE_TEXT,
    TOOL_PARSE_BEGIN,     /* of call `index`; text: the name of the tool */
    TOOL_PARSE_ARGUMENTS, /* a piece of its arguments */
    TOOL_PARSE_END,
};

struct tool_parse_event {
    enum tool_parse_kind kind;
    uint32_t index; /* of the call */
    uint32_t tool;  /* index in the request's tools */
    const char *text;
    size_t text_bytes;
};

typedef void (*tool_parse_fn)(void *ctx, const struct tool_parse_event *e);

struct tool_parse {
    const struct tool_format_spec *spec;
    const struct chat_tool *tools;
    uint32_t n_tools;
    bool stream;
    uint32_t max_calls;
    tool_parse_fn fn;
    void *ctx;
    int rc;
    uint32_t n_calls; /* begun */
    /* private */
    int state;
    bool in_list;
    struct buf held;       /* not reported yet */
    struct json_walk walk; /* parser of the current call */
    size_t object;         /* its start in held */
    size_t key, value;     /* start of its current member */
    int member;            /* which of its members that is */
    size_t args, args_end; /* range of its arguments; end 0: not seen */
    size_t sent;           /* arguments reported up to here */
    int tool;              /* index of the called tool; -1: unknown */
    uint32_t n_names, n_args;
    bool begun;     /* its start was reported */
    bool braceless; /* Mistral: only the arguments are written as JSON */
    bool fenced;    /* the calls are in a block of code */
};

/* tools: those that may be called; max_calls: 0: TOOL_PARSE_MAX_CALLS. */
void tool_parse_init(struct tool_parse *p, enum tool_format f, const struct chat_tool *tools,
                     uint32_t n_tools, uint32_t max_calls, bool stream, tool_parse_fn fn,
                     void *ctx);
void tool_parse_fini(struct tool_parse *p);
void tool_parse_push(struct tool_parse *p, const char *text, size_t n);
/* The answer is complete: reports the held-back text. */
void tool_parse_end(struct tool_parse *p);

#endif
