/* test_json_scan.c - texts rejected before JSON is parsed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "wire/json_scan.h"

static void test_nul_is_refused_with_its_place(void **state)
{
    static const struct {
        const char *text, *path; /* path NULL: no NUL */
        size_t n;                /* 0: up to the NUL */
    } cases[] = {
        {"{\"prompt\":\"a\\u0000b\"}", "prompt", 0},
        {"{\"prompt\":\"a\\\\u0000b\"}", NULL, 0}, /* a backslash, then u0000 */
        {"{\"prompt\":\"a\\\\\\u0000b\"}", "prompt", 0},
        {"{\"prompt\":\"a\\u00001\"}", "prompt", 0},
        {"{\"prompt\":\"a\\u0001\"}", NULL, 0},
        {"{\"messages\":[{\"role\":\"user\",\"content\":\"x\"},{\"role\":\"user\","
         "\"content\":\"\\u0000\"}]}",
         "messages[1].content", 0},
        {"{\"a\":{\"b\":1},\"input\":[\"x\",[],\"\\u0000\"]}", "input[2]", 0},
        {"{\"a\\u0000b\":1}", "a\\u0000b", 0},
        {"{\"a\":\"x\0y\"}", "a", 11},
        {"{\"a\":\0 1}", "a", 9},
        {"\0{}", "", 3},
        {"\"\\u0000\"", "", 0},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct json_scan s;
        struct err e = {0};
        size_t n = cases[i].n ? cases[i].n : strlen(cases[i].text);
        int rc = json_scan(&s, cases[i].text, n, 1000, &e);
        if (rc != (cases[i].path ? SHOAL_EFORMAT : 0) ||
            (cases[i].path && strcmp(s.path, cases[i].path) != 0))
            fail_msg("%s: %d, '%s'", cases[i].text, rc, s.path);
        if (rc < 0)
            assert_non_null(strstr(e.msg, "NUL"));
    }
}

static void test_values_are_counted(void **state)
{
    struct json_scan s;
    struct err e = {0};
    struct buf b;
    (void)state;
    assert_int_equal(json_scan(&s, "[1,\"a,b[{\",{\"c\":[]}]", 20, 6, &e), 0);
    assert_int_equal(json_scan(&s, "[1,1,1,1,1]", 11, 5, &e), SHOAL_ELIMIT);
    buf_init(&b, 1 << 20);
    buf_putc(&b, '[');
    for (int i = 0; i < 100000; i++)
        buf_puts(&b, "1,");
    buf_puts(&b, "1]");
    assert_int_equal(json_scan(&s, b.data, b.len, 100002, &e), 0);
    assert_int_equal(s.n_values, 100002); /* numbers and the list */
    assert_int_equal(json_scan(&s, b.data, b.len, 100001, &e), SHOAL_ELIMIT);
    buf_fini(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nul_is_refused_with_its_place),
        cmocka_unit_test(test_values_are_counted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
