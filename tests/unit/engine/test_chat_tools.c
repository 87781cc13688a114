/* test_chat_tools.c - tools, calls and results as templates see them: as variables, in the system
 * message, or as text. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/mem.h"
#include "engine/chat/chat_tools.h"
#include "text/chat_template.h"

#define PARAMETERS "{\"type\":\"object\",\"properties\":{\"city\":{\"type\":\"string\"}}}"

static const struct value_member string_type[] = {
    {"type", {.kind = VALUE_TEXT, .text = {"string", 6}}}};
static const struct value_member city[] = {{"city", {.kind = VALUE_MAP, .map = {string_type, 1}}}};
static const struct value_member parameters[] = {
    {"type", {.kind = VALUE_TEXT, .text = {"object", 6}}},
    {"properties", {.kind = VALUE_MAP, .map = {city, 1}}}};
static const struct chat_tool tools[] = {
    {.name = "get_weather",
     .description = "The weather",
     .parameters = {.kind = VALUE_MAP, .map = {parameters, 2}}},
    {.name = "stop", .description = ""}};
static const struct chat_call calls[] = {{"call_1", "get_weather", "{\"city\":\"Oslo\"}", 15},
                                         {"abcdefghi", "stop", "{}", 2}};
static const struct chat_message messages[] = {
    {.role = "user", .content = "hi", .content_bytes = 2},
    {.role = "assistant", .content = "", .calls = calls, .n_calls = 2},
    {.role = "tool", .content = "20", .content_bytes = 2, .call_id = "call_1"},
    {.role = "tool", .content = "ok", .content_bytes = 2, .call_id = "abcdefghi"}};
static const struct chat chat = {
    .messages = messages, .n_messages = 4, .tools = tools, .n_tools = 2};

static char *render(const char *source, const struct value *context)
{
    struct chat_template *t;
    struct buf out;
    struct err e = {0};
    buf_init(&out, 1 << 20);
    assert_int_equal(chat_template_parse(&t, source, strlen(source), &e), 0);
    if (chat_template_render_value(t, &out, context, &e) < 0)
        fail_msg("%s", e.msg);
    chat_template_destroy(t);
    size_t n;
    char *text = buf_take(&out, &n);
    buf_fini(&out);
    return text;
}

static void test_variables(void **state)
{
    struct arena a;
    (void)state;
    arena_init(&a, 1 << 20);
    const struct value_member vars[] = {
        {"tools", chat_tools_list(&a, &chat)},
        {"calls", chat_tools_calls(&a, &messages[1], TOOL_FORMAT_HERMES)}};
    const struct value context = {.kind = VALUE_MAP, .map = {vars, 2}};
    assert_int_equal(a.rc, 0);
    char *text = render("{{ tools | tojson }}", &context);
    assert_string_equal(
        text,
        "[{\"type\": \"function\", \"function\": {\"name\": \"get_weather\", \"description\": "
        "\"The weather\", \"parameters\": {\"type\": \"object\", \"properties\": {\"city\": "
        "{\"type\": \"string\"}}}}}, {\"type\": \"function\", \"function\": {\"name\": \"stop\", "
        "\"description\": \"\"}}]");
    mem_free(text);
    text = render("{{ calls[0].function.arguments.city }} {{ calls[1].id }}", &context);
    assert_string_equal(text, "Oslo abcdefghi");
    mem_free(text);
    arena_fini(&a);
}

/* Firefunction's template has them as a text, which the server writes. */
static void test_text(void **state)
{
    struct arena a;
    struct chat none = chat;
    (void)state;
    arena_init(&a, 1 << 20);
    assert_string_equal(
        chat_tools_text(&a, &chat).text.p,
        "[{\"type\":\"function\",\"function\":{\"name\":\"get_weather\",\"description\":\"The "
        "weather\",\"parameters\":{\"type\":\"object\",\"properties\":{\"city\":{\"type\":"
        "\"string\"}}}}},{\"type\":\"function\",\"function\":{\"name\":\"stop\",\"description\":"
        "\"\"}}]");
    none.n_tools = 0;
    assert_int_equal(chat_tools_text(&a, &none).text.n, 0);
    assert_int_equal(a.rc, 0);
    arena_fini(&a);
}

static void test_ids(void **state)
{
    struct arena a;
    (void)state;
    arena_init(&a, 1 << 20);
    assert_string_equal(chat_tools_id(&a, "call_1", TOOL_FORMAT_HERMES), "call_1");
    assert_string_equal(chat_tools_id(&a, "abcdefghi", TOOL_FORMAT_MISTRAL), "abcdefghi");
    const char *made = chat_tools_id(&a, "call_1", TOOL_FORMAT_MISTRAL);
    assert_int_equal(strlen(made), 9);
    assert_string_equal(made, chat_tools_id(&a, "call_1", TOOL_FORMAT_MISTRAL));
    assert_string_not_equal(made, chat_tools_id(&a, "call_2", TOOL_FORMAT_MISTRAL));
    arena_fini(&a);
}

static void test_as_text(void **state)
{
    struct arena a;
    (void)state;
    arena_init(&a, 1 << 20);
    struct chat t = chat_tools_as_text(&a, &chat, false);
    assert_int_equal(a.rc, 0);
    assert_int_equal(t.n_messages, 4); /* the results were merged into one */
    assert_int_equal(t.n_tools, 0);
    assert_string_equal(t.messages[0].role, "system");
    assert_non_null(strstr(t.messages[0].content, "{\"name\":\"get_weather\",\"description\":"));
    assert_string_equal(t.messages[1].content, "hi");
    assert_string_equal(t.messages[2].content,
                        "<tool_call>[{\"name\": \"get_weather\", \"arguments\": "
                        "{\"city\":\"Oslo\"}}, {\"name\": \"stop\", \"arguments\": "
                        "{}}]</tool_call>");
    assert_string_equal(t.messages[3].role, "user");
    assert_string_equal(t.messages[3].content,
                        "<tool_response>\n20\n</tool_response>\n<tool_response>\nok\n"
                        "</tool_response>");
    /* templates without system messages, and conversations that have one */
    t = chat_tools_as_text(&a, &chat, true);
    assert_int_equal(t.n_messages, 3);
    assert_string_equal(t.messages[0].role, "user");
    assert_string_equal(t.messages[0].content + t.messages[0].content_bytes - 4, "\n\nhi");
    static const struct chat_message own[] = {
        {.role = "system", .content = "Be brief.", .content_bytes = 9},
        {.role = "user", .content = "hi", .content_bytes = 2}};
    const struct chat with = {.messages = own, .n_messages = 2, .tools = tools, .n_tools = 2};
    t = chat_tools_as_text(&a, &with, false);
    assert_int_equal(t.n_messages, 2);
    assert_memory_equal(t.messages[0].content, "Be brief.\n\nYou have access", 26);
    /* without tools there is no mention of them */
    const struct chat none = {.messages = messages,
                              .n_messages = 4,
                              .tools = tools,
                              .n_tools = 2,
                              .tool_choice = CHAT_TOOLS_NONE};
    assert_true(chat_tools_used(&none));
    t = chat_tools_as_text(&a, &none, false);
    assert_int_equal(t.n_messages, 3);
    assert_string_equal(t.messages[0].content, "hi");
    arena_fini(&a);
}

static void test_in_the_system_message(void **state)
{
    struct arena a;
    struct value text;
    (void)state;
    arena_init(&a, 1 << 20);
    const struct chat t = chat_tools_in_system(&a, &chat, &text);
    assert_int_equal(a.rc, 0);
    assert_int_equal(t.n_messages, 5);
    assert_string_equal(t.messages[0].role, "system");
    assert_memory_equal(text.text.p, "[{\"type\":\"function\"", 19);
    arena_fini(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_variables), cmocka_unit_test(test_text), cmocka_unit_test(test_ids),
        cmocka_unit_test(test_as_text), cmocka_unit_test(test_in_the_system_message)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
