/* test_json_nul.c - strings with NUL through cJSON: parsed, printed, taken out; and values. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/arena.h"
#include "wire/json_nul.h"
#include "wire/value_json.h"

static const struct {
    const char *json, *text;
    size_t n;
} cases[] = {
    {"\"a\\u0000b\"", "a\0b", 3},
    {"\"\\u0000\"", "\0", 1},
    {"\"\\u0000\\u0000x\"", "\0\0x", 3},
    {"\"\\\\u0000\"", "\\u0000", 6}, /* a backslash and five characters */
    {"\"\\\\\\u0000\"", "\\\0", 2},  /* a backslash and a NUL */
    {"\"\\u00001 \\u00e9\"", "\0001 \xc3\xa9", 5},
    {"\"plain\"", "plain", 5},
};

static void test_there_and_back(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct arena a;
        size_t n = 0;
        cJSON *v = json_nul_parse(cases[i].json, strlen(cases[i].json));
        arena_init(&a, 1 << 16);
        assert_non_null(v);
        const char *text = json_nul_text(&a, v->valuestring, strlen(v->valuestring), &n);
        assert_int_equal(n, cases[i].n);
        assert_memory_equal(text, cases[i].text, n + 1);
        char *printed = json_nul_print(v);
        cJSON *again = json_nul_parse(printed, strlen(printed));
        assert_string_equal(again->valuestring, v->valuestring);
        assert_true(!strstr(printed, JSON_NUL));
        cJSON_Delete(again);
        cJSON_free(printed);
        cJSON_Delete(v);
        arena_fini(&a);
    }
}

static void test_values_keep_it(void **state)
{
    static const char json[] = "{\"k\": [\"a\\u0000b\"]}";
    struct arena a;
    struct value v;
    (void)state;
    arena_init(&a, 1 << 16);
    assert_int_equal(value_json_read(&v, &a, json, strlen(json)), 0);
    const struct value *item = &v.map.members[0].value.list.items[0];
    assert_int_equal(item->text.n, 3);
    assert_memory_equal(item->text.p, "a\0b", 4);
    arena_fini(&a);
}

static void test_broken(void **state)
{
    (void)state;
    assert_null(json_nul_parse("\"\\u0000", 7));
    assert_null(json_nul_parse("\\u0000", 6));
    assert_null(json_nul_parse("\"\\u000", 6));
    assert_null(json_nul_print(NULL));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_there_and_back),
        cmocka_unit_test(test_values_keep_it),
        cmocka_unit_test(test_broken),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
