/* test_tool_parse.c - tool calls in model output: every format, in pieces of any size, and what
 * stays text. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "flow/tools/tool_parse.h"

static const struct chat_tool tools[] = {{.name = "get_weather", .description = ""},
                                         {.name = "set_light", .description = ""}};

struct seen {
    struct buf all;
    bool in_text, streamed;
};

/* "text", then "|name(arguments)" for each call. */
static void on_piece(void *ctx, const struct tool_parse_event *e)
{
    struct seen *s = ctx;
    switch (e->kind) {
    case TOOL_PARSE_TEXT:
        assert_true(e->text_bytes > 0);
        buf_put(&s->all, e->text, e->text_bytes);
        break;
    case TOOL_PARSE_BEGIN:
        buf_printf(&s->all, "|%.*s(", (int)e->text_bytes, e->text);
        assert_string_equal(tools[e->tool].name, e->text);
        break;
    case TOOL_PARSE_ARGUMENTS:
        buf_put(&s->all, e->text, e->text_bytes);
        break;
    case TOOL_PARSE_END:
        buf_puts(&s->all, ")");
        break;
    }
}

static void check(const char *why, enum tool_format f, const char *text, const char *want,
                  size_t piece, bool stream, uint32_t max_calls)
{
    struct tool_parse p;
    struct seen s = {0};
    size_t n = strlen(text);
    buf_init(&s.all, 1 << 20);
    tool_parse_init(&p, f, tools, 2, max_calls, stream, on_piece, &s);
    for (size_t at = 0; at < n; at += piece)
        tool_parse_push(&p, text + at, n - at < piece ? n - at : piece);
    tool_parse_end(&p);
    assert_int_equal(p.rc, 0);
    if (strcmp(buf_str(&s.all), want) != 0)
        fail_msg("%s, pieces of %zu, %s:\n got %s\nwant %s", why, piece,
                 stream ? "streamed" : "whole", buf_str(&s.all), want);
    tool_parse_fini(&p);
    buf_fini(&s.all);
}

static const struct {
    const char *why;
    enum tool_format format;
    const char *text, *want;
    const char *streamed; /* if it differs: a truncated call had been reported by then */
} cases[] = {
    {"no call", TOOL_FORMAT_HERMES, "It rains < 3 <tool days.", "It rains < 3 <tool days.", NULL},
    {"nothing", TOOL_FORMAT_HERMES, "", "", NULL},
    {"Qwen", TOOL_FORMAT_HERMES,
     "<tool_call>\n{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Paris\"}}\n</tool_call>",
     "|get_weather({\"city\": \"Paris\"})", NULL},
    {"text in front stays, spaces behind do not", TOOL_FORMAT_HERMES,
     "I look.\n<tool_call>\n{\"name\":\"get_weather\",\"arguments\":{}}\n</tool_call>\n\n",
     "I look.\n|get_weather({})", NULL},
    {"two calls", TOOL_FORMAT_HERMES,
     "<tool_call>{\"name\":\"get_weather\",\"arguments\":{\"city\":\"Oslo\"}}</tool_call>\n"
     "<tool_call>{\"name\":\"set_light\",\"arguments\":{\"on\":[true,{\"x\":-1.5e3}]}}</tool_call>",
     "|get_weather({\"city\":\"Oslo\"})|set_light({\"on\":[true,{\"x\":-1.5e3}]})", NULL},
    {"text behind a call", TOOL_FORMAT_HERMES,
     "<tool_call>{\"name\":\"get_weather\",\"arguments\":{}}</tool_call> Done.",
     "|get_weather({}) Done.", NULL},
    {"a list, as SmolLM2 writes it", TOOL_FORMAT_GENERIC,
     "<tool_call>[{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Rome\"}}, "
     "{\"name\": \"set_light\", \"arguments\": {}}]</tool_call>",
     "|get_weather({\"city\": \"Rome\"})|set_light({})", NULL},
    {"an empty list", TOOL_FORMAT_GENERIC, "<tool_call>[]</tool_call>", "", NULL},
    {"arguments first", TOOL_FORMAT_HERMES,
     "<tool_call>{\"arguments\": {\"a\": 1}, \"name\": \"set_light\"}</tool_call>",
     "|set_light({\"a\": 1})", NULL},
    {"arguments as text", TOOL_FORMAT_HERMES,
     "<tool_call>{\"name\": \"set_light\", \"arguments\": \"{\\\"a\\\": 1}\"}</tool_call>",
     "|set_light({\"a\": 1})", NULL},
    {"no arguments", TOOL_FORMAT_HERMES, "<tool_call>{\"name\": \"set_light\"}</tool_call>",
     "|set_light({})", NULL},
    {"OpenAI's own form", TOOL_FORMAT_JSON,
     "{\"type\":\"function\",\"function\":{\"name\":\"set_light\",\"arguments\":{\"a\":2}}}",
     "|set_light({\"a\":2})", NULL},
    {"a brace in a string", TOOL_FORMAT_HERMES,
     "<tool_call>{\"name\":\"set_light\",\"arguments\":{\"a\":\"}\\\"</tool_call>\"}}</tool_call>",
     "|set_light({\"a\":\"}\\\"</tool_call>\"})", NULL},
    {"Llama 3", TOOL_FORMAT_LLAMA3,
     "{\"name\": \"get_weather\", \"parameters\": {\"city\": \"Bonn\"}}",
     "|get_weather({\"city\": \"Bonn\"})", NULL},
    {"Llama 3 with its tag", TOOL_FORMAT_LLAMA3,
     "<|python_tag|>{\"name\": \"get_weather\", \"parameters\": {}}", "|get_weather({})", NULL},
    {"Llama 3, several", TOOL_FORMAT_LLAMA3,
     "{\"name\": \"get_weather\", \"parameters\": {}}; {\"name\": \"set_light\", \"parameters\": "
     "{\"on\": false}}",
     "|get_weather({})|set_light({\"on\": false})", NULL},
    {"Mistral", TOOL_FORMAT_MISTRAL,
     "[TOOL_CALLS] [{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Nice\"}, \"id\": "
     "\"abcdefghi\"}]",
     "|get_weather({\"city\": \"Nice\"})", NULL},
    {"Mistral without its mark", TOOL_FORMAT_MISTRAL,
     " [{\"name\": \"get_weather\", \"arguments\": {}}]", "|get_weather({})", NULL},
    {"Mistral since v11", TOOL_FORMAT_MISTRAL,
     "[TOOL_CALLS]get_weather[ARGS]{\"city\": \"Lyon\"}[TOOL_CALLS]set_light[ARGS] {}",
     "|get_weather({\"city\": \"Lyon\"})|set_light({})", NULL},
    {"Mistral, a name that is none", TOOL_FORMAT_MISTRAL, "[TOOL_CALLS]nothing[ARGS]{}",
     "[TOOL_CALLS]nothing[ARGS]{}", NULL},
    {"Phi", TOOL_FORMAT_PHI,
     "<|tool_call|>[{\"name\": \"set_light\", \"arguments\": {\"on\": true}}]<|/tool_call|>",
     "|set_light({\"on\": true})", NULL},
    {"Firefunction", TOOL_FORMAT_FUNCTOOLS,
     " functools[{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Ghent\"}}, {\"name\": "
     "\"set_light\", \"arguments\": {}}]",
     "|get_weather({\"city\": \"Ghent\"})|set_light({})", NULL},
    {"a block of code", TOOL_FORMAT_HERMES,
     "```json\n{\"name\": \"set_light\", \"arguments\": {\"on\": true}}\n```",
     "|set_light({\"on\": true})", NULL},
    {"another block of code", TOOL_FORMAT_HERMES, "```\nint main(void);\n```",
     "```\nint main(void);\n```", NULL},
    {"JSON that is no call", TOOL_FORMAT_JSON, "{\"city\": \"Paris\"}", "{\"city\": \"Paris\"}",
     NULL},
    {"a list that is no call", TOOL_FORMAT_JSON, "[1] is a source.", "[1] is a source.", NULL},
    {"an unknown tool", TOOL_FORMAT_HERMES,
     "<tool_call>{\"name\": \"rm\", \"arguments\": {}}</tool_call>",
     "<tool_call>{\"name\": \"rm\", \"arguments\": {}}</tool_call>", NULL},
    {"no JSON", TOOL_FORMAT_HERMES, "<tool_call>get_weather(Paris)</tool_call>",
     "<tool_call>get_weather(Paris)</tool_call>", NULL},
    {"a mark in a broken call", TOOL_FORMAT_HERMES,
     "<tool_call>{\"name\": <tool_call>{\"name\":\"set_light\",\"arguments\":{}}</tool_call>",
     "<tool_call>{\"name\": |set_light({})", NULL},
    {"arguments that are no object", TOOL_FORMAT_HERMES,
     "<tool_call>{\"name\": \"set_light\", \"arguments\": 7}</tool_call>",
     "<tool_call>{\"name\": \"set_light\", \"arguments\": 7}</tool_call>", NULL},
    {"two names", TOOL_FORMAT_HERMES,
     "<tool_call>{\"name\": \"set_light\", \"name\": \"get_weather\", \"arguments\": "
     "[]}</tool_call>",
     "<tool_call>{\"name\": \"set_light\", \"name\": \"get_weather\", \"arguments\": "
     "[]}</tool_call>",
     NULL},
    {"an end too early", TOOL_FORMAT_HERMES,
     "<tool_call>{\"name\": \"set_light\", \"arguments\": {\"on\": tr",
     "<tool_call>{\"name\": \"set_light\", \"arguments\": {\"on\": tr", "|set_light({\"on\": tr)"},
    {"no closing mark", TOOL_FORMAT_HERMES,
     "<tool_call>{\"name\":\"set_light\",\"arguments\":{}}</t", "|set_light({})", NULL},
};
#define N_CASES (sizeof(cases) / sizeof(cases[0]))

static void test_every_format(void **state)
{
    (void)state;
    for (size_t i = 0; i < N_CASES; i++) {
        size_t n = strlen(cases[i].text);
        for (size_t piece = 1; piece <= n + 1; piece++)
            check(cases[i].why, cases[i].format, cases[i].text, cases[i].want, piece, false, 0);
        if (!cases[i].streamed)
            for (size_t piece = 1; piece <= n + 1; piece++)
                check(cases[i].why, cases[i].format, cases[i].text, cases[i].want, piece, true, 0);
        else
            check(cases[i].why, cases[i].format, cases[i].text, cases[i].streamed, 1, true, 0);
    }
}

static void test_a_call_too_many_is_left_out(void **state)
{
    (void)state;
    for (int stream = 0; stream < 2; stream++)
        check("two, one allowed", TOOL_FORMAT_HERMES,
              "<tool_call>{\"name\":\"get_weather\",\"arguments\":{}}</tool_call>"
              "<tool_call>{\"name\":\"set_light\",\"arguments\":{}}</tool_call>",
              "|get_weather({})", 3, stream, 1);
}

/* Arguments are reported while they are written. */
static void test_arguments_stream(void **state)
{
    static const char text[] =
        "<tool_call>{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Par";
    struct tool_parse p;
    struct seen s = {0};
    (void)state;
    buf_init(&s.all, 1 << 16);
    tool_parse_init(&p, TOOL_FORMAT_HERMES, tools, 2, 0, true, on_piece, &s);
    tool_parse_push(&p, text, sizeof(text) - 1);
    assert_string_equal(buf_str(&s.all), "|get_weather({\"city\": \"Par");
    tool_parse_push(&p, "is\"}", 4);
    assert_string_equal(buf_str(&s.all), "|get_weather({\"city\": \"Paris\"}");
    tool_parse_push(&p, "}", 1);
    assert_string_equal(buf_str(&s.all), "|get_weather({\"city\": \"Paris\"})");
    /* text that can no longer be a mark is not held back */
    tool_parse_push(&p, "</tool_call>Bye <to", 19);
    assert_string_equal(buf_str(&s.all), "|get_weather({\"city\": \"Paris\"})Bye ");
    tool_parse_fini(&p);
    buf_fini(&s.all);
}

static void test_formats_of_templates(void **state)
{
    static const struct {
        const char *source;
        enum tool_format want;
    } rows[] = {
        {"{% for m in messages %}{{ m.content }}{% endfor %}", TOOL_FORMAT_GENERIC},
        {"{{ builtin_tools }}", TOOL_FORMAT_GENERIC},
        {"{% if tools %}<tool_call>{% endif %}", TOOL_FORMAT_HERMES},
        {"{% if tools %}[TOOL_CALLS]{% endif %}", TOOL_FORMAT_MISTRAL},
        {"{% if tools is not none %}<|python_tag|>{% endif %}", TOOL_FORMAT_LLAMA3},
        {"{% if tools %}<|tool_call|>{% endif %}", TOOL_FORMAT_PHI},
        {"{{ tools | tojson }}", TOOL_FORMAT_JSON},
        {"{{ functions }} functools[", TOOL_FORMAT_FUNCTOOLS},
        {"{{ 'functools[' }}", TOOL_FORMAT_GENERIC},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        if (tool_format_detect(rows[i].source, strlen(rows[i].source)) != rows[i].want)
            fail_msg("%s", rows[i].source);
    assert_int_equal(tool_format_detect(NULL, 0), TOOL_FORMAT_GENERIC);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_format), cmocka_unit_test(test_a_call_too_many_is_left_out),
        cmocka_unit_test(test_arguments_stream), cmocka_unit_test(test_formats_of_templates)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
