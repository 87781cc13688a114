/* test_json_walk.c - JSON byte by byte: it accepts the same texts as the parser, and reports
 * events where values are. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "wire/json_walk.h"

static enum json_walk_state walk(const char *text)
{
    struct json_walk w = {.state = JSON_WALK_VALUE};
    for (; *text; text++)
        json_walk_push(&w, *text);
    return w.state;
}

static void test_texts(void **state)
{
    static const char *const good[] = {"{}",
                                       "[]",
                                       " { } ",
                                       "[1]",
                                       "[0,-1,1.5,2e3,2E-3,-0.1e+9]",
                                       "\"a\\n\\u00e9\\\"\"",
                                       "{\"a\":[true,false,null],\"b\":{\"c\":\"\"}}",
                                       "[[[[]]]]",
                                       "{\"\":\"\xc3\xa9\"}"};
    static const char *const bad[] = {
        "}",     "[1,]",     "{,}",       "{\"a\"}",       "{\"a\":}", "{a:1}",
        "[01]",  "[1.]",     "[.5]",      "[+1]",          "[1e]",     "[tru]",
        "[nul",  "[\"\n\"]", "[\"\\x\"]", "[\"\\u12g4\"]", "[1}",      "{\"a\":1]",
        "[] []", "[-]",      "[1 2]",     "{\"a\" 1}",     "[trueX]"};
    (void)state;
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
        if (walk(good[i]) != JSON_WALK_DONE)
            fail_msg("%s", good[i]);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        if (walk(bad[i]) == JSON_WALK_DONE)
            fail_msg("%s", bad[i]);
    assert_int_equal(walk("[nul"), JSON_WALK_WORD); /* more may come */
    assert_int_equal(walk("1"), JSON_WALK_NUMBER);
}

static void test_depth(void **state)
{
    struct json_walk w = {.state = JSON_WALK_VALUE};
    (void)state;
    for (uint32_t i = 0; i < JSON_WALK_MAX_DEPTH; i++)
        assert_int_equal(json_walk_push(&w, '['), JSON_WALK_VALUE_OR_END);
    assert_int_equal(w.depth, JSON_WALK_MAX_DEPTH);
    struct json_walk deeper = w;
    assert_int_equal(json_walk_push(&deeper, '{'), JSON_WALK_BAD);
    for (uint32_t i = 0; i < JSON_WALK_MAX_DEPTH; i++)
        json_walk_push(&w, ']');
    assert_int_equal(w.state, JSON_WALK_DONE);
}

static void test_events(void **state)
{
    /* k K: a key begins, ends; v V: a value; s: a number or word has ended; +: two at once */
    static const char text[] = "{\"a\":12,\"b\":[true],\"c\":\"x\"}";
    static const char want[] = "vk K v sk K vv   + k K v VV";
    struct json_walk w = {.state = JSON_WALK_VALUE};
    char got[sizeof(text)];
    (void)state;
    for (size_t i = 0; i < sizeof(text) - 1; i++) {
        json_walk_push(&w, text[i]);
        unsigned e = w.events;
        got[i] = e == 0                                                 ? ' '
                 : e == JSON_WALK_KEY_BEGINS                            ? 'k'
                 : e == JSON_WALK_KEY_ENDS                              ? 'K'
                 : e == JSON_WALK_VALUE_BEGINS                          ? 'v'
                 : e == JSON_WALK_VALUE_ENDS                            ? 'V'
                 : e == JSON_WALK_SCALAR_ENDED                          ? 's'
                 : e == (JSON_WALK_SCALAR_ENDED | JSON_WALK_VALUE_ENDS) ? '+'
                                                                        : '?';
    }
    got[sizeof(text) - 1] = '\0';
    assert_int_equal(w.state, JSON_WALK_DONE);
    assert_string_equal(got, want);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_texts), cmocka_unit_test(test_depth),
                                       cmocka_unit_test(test_events)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
