/* tool_format.h - the format of a model's tool calls, detected from its chat template.
 *
 * Every format is a text in front of the calls, the calls as JSON (one object, several, or a list
 * of them), and a text after them. A model whose template does not support tools gets them in a
 * system message, and is asked to use the call format of SmolLM2 and Hermes.
 *
 * Thread:    constant tables.
 * Ownership: the caller's arena. */
#ifndef SHOAL_ENGINE_TOOL_FORMAT_H
#define SHOAL_ENGINE_TOOL_FORMAT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The values are sent between nodes. */
enum tool_format {
    TOOL_FORMAT_NONE = 0,
    TOOL_FORMAT_GENERIC = 1, /* the template does not support tools */
    TOOL_FORMAT_HERMES = 2,  /* Hermes, Qwen, SmolLM3 */
    TOOL_FORMAT_LLAMA3 = 3,
    TOOL_FORMAT_MISTRAL = 4,
    TOOL_FORMAT_PHI = 5,       /* Phi-4, Granite 3 */
    TOOL_FORMAT_JSON = 6,      /* the template supports tools, but in no format of this list */
    TOOL_FORMAT_FUNCTOOLS = 7, /* Firefunction: the tools are a text, the variable `functions` */
    TOOL_FORMAT_COUNT
};

struct tool_format_spec {
    const char *name;
    const char *open;      /* text in front of the calls */
    const char *close;     /* text after them, or "" */
    const char *arguments; /* the member of a call that holds its arguments */
    const char *between;   /* separator of calls that are not a list */
    bool list;             /* the calls are a list, even a single one */
    bool bare;             /* calls may come without `open` */
    bool special;          /* open may be a special token, which answers normally do not show */
};

/* For an unknown number: that of TOOL_FORMAT_JSON. */
const struct tool_format_spec *tool_format_spec(enum tool_format f);

/* A template with this text reads the tools from the system message (Phi-4-mini). */
#define TOOL_FORMAT_IN_SYSTEM "<|tool|>"

/* From the source of a chat template; NULL: none. */
enum tool_format tool_format_detect(const char *source, size_t n);

#endif
