/* test_multipart.c - forms: their fields and files, and what is wrong with one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "wire/multipart.h"

#define TYPE "multipart/form-data; boundary=x1"

static void is(struct str s, const char *want)
{
    assert_int_equal(s.n, strlen(want));
    assert_memory_equal(s.p, want, s.n);
}

static int first(const char *type, const char *body, struct multipart_part *p, struct err *e)
{
    struct multipart m;
    int rc = multipart_open(&m, type, body, strlen(body), e);
    return rc < 0 ? rc : multipart_next(&m, p, e);
}

static void test_parts(void **state)
{
    static const char body[] =
        "--x1\r\nContent-Disposition: form-data; name=\"model\"\r\n\r\nhear\r\n"
        "--x1  \r\nContent-Type: audio/wav\r\ncontent-disposition: form-data; "
        "name=file; filename=\"a;b.wav\"\r\n\r\nab\0\r\n--x2\r\n\r\n--x1\r\n"
        "Content-Disposition: form-data; name=\"empty\"\r\n\r\n\r\n--x1--\r\nmore";
    struct multipart_part p;
    struct multipart m;
    struct err e = {0};
    (void)state;
    assert_int_equal(multipart_open(&m, TYPE, body, sizeof(body) - 1, &e), 0);
    assert_int_equal(multipart_next(&m, &p, &e), 1);
    is(p.name, "model");
    is(p.content, "hear");
    assert_null(p.file_name.p);
    assert_int_equal(multipart_next(&m, &p, &e), 1);
    is(p.name, "file");
    is(p.file_name, "a;b.wav");
    assert_int_equal(p.content.n, 11); /* with its NUL, and a mark that is not the form's */
    assert_memory_equal(p.content.p, "ab\0\r\n--x2\r\n", 11);
    assert_int_equal(multipart_next(&m, &p, &e), 1);
    is(p.name, "empty");
    assert_int_equal(p.content.n, 0);
    assert_int_equal(multipart_next(&m, &p, &e), 0);
    assert_int_equal(multipart_next(&m, &p, &e), 0);
}

static void test_openings(void **state)
{
    struct multipart_part p;
    struct err e = {0};
    (void)state;
    assert_int_equal(
        first("Multipart/Form-Data; charset=x; boundary=\"a b\"",
              "preamble\r\n--a b\r\nContent-Disposition: form-data; filename=\"name=\"; "
              "name=\"n\"\r\n\r\nv\r\n--a b--",
              &p, &e),
        1);
    is(p.name, "n");
    is(p.content, "v");
    assert_int_equal(first(TYPE, "--x1--", &p, &e), 0);
}

static void test_wrong(void **state)
{
    static const struct {
        const char *type, *body, *why;
    } cases[] = {
        {NULL, "--x1--", "must be a form"},
        {"application/json", "--x1--", "must be a form"},
        {"multipart/form-data", "--x1--", "must be a form"},
        {"multipart/form-data; xboundary=x1", "--x1--", "must be a form"},
        {"multipart/form-data; boundary=\"x1", "--x1--", "must be a form"},
        {"multipart/form-data; boundary=", "--x1--", "1 to 70 characters"},
        {"multipart/form-data; boundary=1234567890123456789012345678901234567890123456789012345678"
         "9012345678901",
         "--x1--", "1 to 70 characters"},
        {TYPE, "", "does not have the boundary"},
        {TYPE, "--x2--", "does not have the boundary"},
        {TYPE, "--x1", "cut off"},
        {TYPE, "--x1\r\nContent-Disposition: form-data; name=a", "no end of its headers"},
        {TYPE, "--x1\r\nContent-Disposition: form-data; name=a\r\n\r\nvalue", "cut off"},
        {TYPE, "--x1\r\nContent-Disposition: form-data; xname=a\r\n\r\nv\r\n--x1--", "no name"},
        {TYPE, "--x1\r\nContent-Type: text/plain\r\n\r\nv\r\n--x1--", "no name"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct multipart_part p;
        struct err e = {0};
        assert_int_equal(first(cases[i].type, cases[i].body, &p, &e), SHOAL_EFORMAT);
        if (!strstr(e.msg, cases[i].why))
            fail_msg("case %zu: %s", i, e.msg);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parts),
        cmocka_unit_test(test_openings),
        cmocka_unit_test(test_wrong),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
