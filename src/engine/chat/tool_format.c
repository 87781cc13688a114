/* tool_format.c - see tool_format.h. */
#include "base/ascii.h"
#include "engine/chat/tool_format.h"

#include <string.h>

static const struct tool_format_spec specs[TOOL_FORMAT_COUNT] = {
    [TOOL_FORMAT_NONE] = {"none", "", "", "arguments", "", false, false, false},
    [TOOL_FORMAT_GENERIC] = {"generic", "<tool_call>", "</tool_call>", "arguments", "\n", true,
                             true, false},
    [TOOL_FORMAT_HERMES] = {"hermes", "<tool_call>", "</tool_call>", "arguments", "\n", false, true,
                            true},
    [TOOL_FORMAT_LLAMA3] = {"llama3", "<|python_tag|>", "", "parameters", "; ", false, true, true},
    [TOOL_FORMAT_MISTRAL] = {"mistral", "[TOOL_CALLS]", "", "arguments", ", ", true, true, true},
    [TOOL_FORMAT_PHI] = {"phi", "<|tool_call|>", "<|/tool_call|>", "arguments", ", ", true, true,
                         true},
    [TOOL_FORMAT_JSON] = {"json", "", "", "arguments", "\n", false, true, false},
    [TOOL_FORMAT_FUNCTOOLS] = {"functools", "functools", "", "arguments", ", ", true, true, false},
};

const struct tool_format_spec *tool_format_spec(enum tool_format f)
{
    return &specs[(unsigned)f < TOOL_FORMAT_COUNT ? f : TOOL_FORMAT_JSON];
}

static bool has(const char *p, size_t n, const char *what)
{
    return memmem(p, n, what, strlen(what)) != NULL;
}

static bool is_word(char c)
{
    return ascii_is_letter(c) || ascii_is_digit(c) || c == '_';
}

/* Whether the template reads a variable of this name. */
static bool has_word(const char *p, size_t n, const char *word)
{
    size_t k = strlen(word);
    const char *end = p + n;
    for (const char *at = p; (at = memmem(at, (size_t)(end - at), word, k)); at += k)
        if ((at == p || !is_word(at[-1])) && (at + k == end || !is_word(at[k])))
            return true;
    return false;
}

enum tool_format tool_format_detect(const char *source, size_t n)
{
    static const struct {
        const char *text;
        enum tool_format format;
    } marks[] = {{"[TOOL_CALLS]", TOOL_FORMAT_MISTRAL},
                 {"<|tool_call|>", TOOL_FORMAT_PHI},
                 {TOOL_FORMAT_IN_SYSTEM, TOOL_FORMAT_PHI},
                 {"<tool_call>", TOOL_FORMAT_HERMES},
                 {"<|python_tag|>", TOOL_FORMAT_LLAMA3},
                 {"\"parameters\": dictionary", TOOL_FORMAT_LLAMA3},
                 {"\"parameters\": parameters", TOOL_FORMAT_LLAMA3},
                 {"'\"parameters\": '", TOOL_FORMAT_LLAMA3}};
    if (source && has(source, n, "functools[") && has_word(source, n, "functions"))
        return TOOL_FORMAT_FUNCTOOLS;
    if (!source || !has_word(source, n, "tools"))
        return TOOL_FORMAT_GENERIC;
    for (size_t i = 0; i < sizeof(marks) / sizeof(marks[0]); i++)
        if (has(source, n, marks[i].text))
            return marks[i].format;
    return TOOL_FORMAT_JSON;
}
