/* test_json_in.c - limits and types when reading JSON. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "wire/json_in.h"
#include "wire/json_out.h"
#include "wire/value_json.h"

static cJSON *object(const char *text)
{
    cJSON *j;
    struct err e = {0};
    assert_int_equal(json_in_object(&j, "config", text, strlen(text), 1000, &e), 0);
    assert_non_null(j);
    return j;
}

static void test_only_objects_within_the_limit(void **state)
{
    static const struct {
        const char *why, *text;
        size_t max;
        int code;
        const char *message;
    } cases[] = {
        {"too large", "{\"a\": 1}", 7, SHOAL_ELIMIT, "a config of 8 bytes is too large: at most 7"},
        {"an array", "[1]", 100, SHOAL_EFORMAT, "config is not a JSON object"},
        {"cut short", "{\"a\": ", 100, SHOAL_EFORMAT, "config is not a JSON object"},
        {"empty", "", 100, SHOAL_EFORMAT, "config is not a JSON object"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct err e = {0};
        cJSON *j;
        int rc =
            json_in_object(&j, "config", cases[i].text, strlen(cases[i].text), cases[i].max, &e);
        if (rc != cases[i].code || j || strcmp(e.msg, cases[i].message) != 0)
            fail_msg("%s: %d, \"%s\"", cases[i].why, rc, e.msg);
    }
}

static void test_whole_numbers_in_range(void **state)
{
    (void)state;
    cJSON *j = object("{\"five\": 5, \"half\": 0.5, \"text\": \"5\", \"none\": null}");
    static const struct {
        const char *key;
        int64_t min, max, missing;
        int code;
        uint32_t value;
    } cases[] = {
        {"five", 1, 5, 0, 0, 5},
        {"five", 6, 9, 0, SHOAL_EFORMAT, 0},
        {"five", 1, 4, 0, SHOAL_EFORMAT, 0},
        {"half", 0, 5, -1, SHOAL_EFORMAT, 0},
        {"text", 1, 5, 0, SHOAL_EFORMAT, 0},
        {"none", 1, 5, 3, 0, 3}, /* null counts as missing */
        {"gone", 1, 5, 3, 0, 3},
        {"gone", 1, 5, 0, SHOAL_EFORMAT, 0}, /* required */
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct err e = {0};
        uint32_t v = 0;
        int rc = json_in_u32(j, cases[i].key, cases[i].min, cases[i].max, cases[i].missing, &v, &e);
        if (rc != cases[i].code || v != cases[i].value)
            fail_msg("case %zu: %d, %u, \"%s\"", i, rc, v, e.msg);
        if (rc < 0)
            assert_non_null(strstr(e.msg, cases[i].key));
    }
    assert_null(json_in_item(j, "none"));
    assert_non_null(json_in_item(j, "text"));
    cJSON_Delete(j);
}

static void test_a_file_is_named_in_errors(void **state)
{
    struct err e = {0};
    cJSON *j;
    (void)state;
    assert_int_equal(json_in_file(&j, "config", "/nowhere/config.json", 1000, &e), SHOAL_EIO);
    assert_null(j);
    assert_non_null(strstr(e.msg, "/nowhere/config.json"));
    assert_int_equal(json_in_file(&j, "config", SHOAL_TEST_DATA "/refs/refs.json", 4, &e),
                     SHOAL_ELIMIT);
    assert_non_null(strstr(e.msg, "refs.json: a config of"));
}

/* A tree of values from JSON, and back. */
static void test_values(void **state)
{
    static const struct {
        const char *json, *back; /* NULL: the same */
    } cases[] = {
        {"null", NULL},
        {"[true,false,1,-2.5,\"\",[],{}]", NULL},
        {"{\"a\":{\"b\":[\"x\\n\\\"\"]},\"a\":2}", NULL},
        {" { \"k\" : 1.0 } ", "{\"k\":1}"},
        {"[\"\xff\"]", "[\"\xef\xbf\xbd\"]"},
        {"{\"\xc3\":1}", "{\"\xef\xbf\xbd\":1}"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct arena a;
        struct value v;
        struct buf b;
        arena_init(&a, 1 << 20);
        buf_init(&b, 1000);
        struct json_out j = json_out_make(&b);
        assert_int_equal(value_json_read(&v, &a, cases[i].json, strlen(cases[i].json)), 0);
        value_json_put(&j, &v);
        assert_string_equal(buf_str(&b), cases[i].back ? cases[i].back : cases[i].json);
        assert_in_range(value_json_bytes(&v), 1, 2 * b.len + 16);
        buf_fini(&b);
        arena_fini(&a);
    }
    char deep[140];
    struct arena a;
    struct value v;
    memset(deep, '[', 70);
    memset(deep + 70, ']', 70);
    arena_init(&a, 1 << 20);
    assert_int_equal(value_json_read(&v, &a, deep, sizeof(deep)), SHOAL_EFORMAT);
    arena_fini(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_values),
        cmocka_unit_test(test_only_objects_within_the_limit),
        cmocka_unit_test(test_whole_numbers_in_range),
        cmocka_unit_test(test_a_file_is_named_in_errors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
