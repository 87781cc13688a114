/* test_json_strict.c - JSON of a fixed shape: paths in errors, the first error is kept, limits. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "wire/json_strict.h"

static void parse(struct json_strict *d, const char *text, struct err *e)
{
    *e = (struct err){0};
    if (json_strict_parse(d, text, strlen(text), 4096, e) < 0)
        fail_msg("%s: %s", text, e->msg);
}

static void refused(const char *text, int code, const char *why)
{
    struct json_strict d;
    struct err e = {0};
    assert_int_equal(json_strict_parse(&d, text, strlen(text), 64, &e), code);
    if (!strstr(e.msg, why))
        fail_msg("%s: \"%s\" does not say \"%s\"", text, e.msg, why);
    json_strict_fini(&d);
}

static void test_documents_are_whole(void **state)
{
    (void)state;
    refused("", SHOAL_EFORMAT, "not JSON");
    refused("{\"a\":}", SHOAL_EFORMAT, "not JSON at byte 5");
    refused("1 2", SHOAL_EFORMAT, "more text");
    refused("{\"a\":{\"b\":1,\"b\":2}}", SHOAL_EFORMAT, "a.b: this key occurs twice");
    refused("[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]", SHOAL_ELIMIT,
            "maximum is 64");
}

static void test_errors_have_their_path(void **state)
{
    (void)state;
    struct json_strict d;
    struct err e;
    parse(&d, "{\"a\":[1,{\"b\":\"x\"}]}", &e);
    struct json_node root = json_strict_root(&d), a = json_strict_get(&root, "a");
    struct json_node first = json_strict_first(&a), second = json_strict_next(&first);
    struct json_node b = json_strict_get(&second, "b");
    assert_int_equal(json_strict_array(&d, &a, 2), 2);
    assert_int_equal(json_strict_u32(&d, &first, 0, 9, 7), 1);
    assert_string_equal(json_strict_text(&d, &b, 8), "x");
    assert_int_equal(json_strict_rc(&d), 0);
    assert_int_equal(json_strict_u32(&d, &b, 0, 9, 7), 7);
    assert_string_equal(e.msg, "a[1].b: expected a whole number from 0 to 9");
    assert_string_equal(json_strict_text(&d, &first, 8), ""); /* the first error is kept */
    assert_non_null(strstr(e.msg, "a[1].b"));
    assert_int_equal(json_strict_rc(&d), SHOAL_EFORMAT);
    json_strict_fini(&d);
}

static void test_shapes_and_ranges(void **state)
{
    (void)state;
    static const char text[] = "{\"n\":2.5,\"s\":\"\",\"t\":true,\"l\":[1,2,3],\"o\":{\"k\":1}}";
    struct json_strict d;
    struct err e;
    struct json_node root, v, none;
#define CASE(key, call, why)                                                                       \
    parse(&d, text, &e);                                                                           \
    root = json_strict_root(&d);                                                                   \
    v = json_strict_get(&root, key);                                                               \
    none = json_strict_get(&root, "none");                                                         \
    (void)none;                                                                                    \
    (void)(call);                                                                                  \
    assert_string_equal(e.msg, why);                                                               \
    json_strict_fini(&d)
    CASE("n", json_strict_number(&d, &v, 0, 3, 9), "");
    CASE("n", json_strict_number(&d, &v, 0, 2, 9), "n: expected a number from 0 to 2");
    CASE("n", json_strict_u32(&d, &v, 0, 9, 9), "n: expected a whole number from 0 to 9");
    CASE("s", json_strict_any_text(&d, &v, 8), "");
    CASE("s", json_strict_text(&d, &v, 8), "s: the string is empty");
    CASE("t", json_strict_text(&d, &v, 8), "t: expected a string");
    CASE("t", json_strict_bool(&d, &v, false), "");
    CASE("n", json_strict_bool(&d, &v, false), "n: expected true or false");
    CASE("l", json_strict_array(&d, &v, 2), "l: 3 entries are too many; the maximum is 2");
    CASE("l", json_strict_map(&d, &v, 9), "l: expected an object");
    CASE("o", json_strict_array(&d, &v, 9), "o: expected a list");
    CASE("o", json_strict_object(&d, &v, "k", ""), "");
    CASE("o", json_strict_object(&d, &v, "", "j"), "o.k: unknown key; known: j");
    CASE("o", json_strict_object(&d, &v, "k j", ""), "o: \"j\" is missing");
    CASE("o", json_strict_u32(&d, &none, 1, 9, 4) == 4 ? 0 : (json_strict_no_memory(&d), 0), "");
    CASE("o", json_strict_array(&d, &none, 9), "");
#undef CASE
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_documents_are_whole),
        cmocka_unit_test(test_errors_have_their_path),
        cmocka_unit_test(test_shapes_and_ranges),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
