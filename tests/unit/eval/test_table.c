/* test_table.c - times, column types, hostile lines, and memory that runs out. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "eval/columns.h"
#include "eval/table.h"

#define ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))

static void test_times(void **state)
{
    static const struct {
        const char *text;
        double seconds; /* NAN: no time */
    } cases[] = {
        {"1970-01-01", 0},
        {"1970-01-01T00:00:01Z", 1},
        {"2000-03-01 00:00:00", 951868800},
        {"2020-03-09 10:34:33", 1583750073},
        {"2014-04-07 02:45:00.250000", 1396838700.25},
        {"2024-12-31 23:59:60", 1735689600},
        {"2014-04-07T02:45+02:00", 1396831500},
        {"2014-04-07T02:45:00-01:30", 1396844100},
        {"1969-12-31", -86400},
        {"", NAN},
        {"2020", NAN},
        {"2020-03", NAN},
        {"2020-13-01", NAN},
        {"2020-00-01", NAN},
        {"2020-01-32", NAN},
        {"2020-01-01 24:00", NAN},
        {"2020-01-01 10", NAN},
        {"2020-01-01 10:00:", NAN},
        {"2020-01-01 10:00:nan", NAN},
        {"2020-01-01 10:00:00 UTC", NAN},
        {"-001-01-01", NAN},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        double got = NAN;
        bool ok = table_time(cases[i].text, &got);
        if (ok == (bool)isnan(cases[i].seconds) || (ok && got != cases[i].seconds))
            fail_msg("\"%s\": %f", cases[i].text, got);
    }
}

static int parse(struct table *t, const char *text, struct err *e)
{
    char copy[512];
    snprintf(copy, sizeof(copy), "%s", text);
    return table_parse(t, copy, e);
}

static void test_kinds(void **state)
{
    struct table t;
    struct err e = {0};
    (void)state;
    assert_int_equal(parse(&t, "t,a,note,none\n2020-01-01 00:00:05,1,x,\n,2,7,\n", &e), 0);
    assert_int_equal(t.kinds[0], TABLE_TIMES);
    assert_int_equal(t.kinds[1], TABLE_NUMBERS);
    assert_int_equal(t.kinds[2], TABLE_TEXT);
    assert_int_equal(t.kinds[3], TABLE_EMPTY);
    assert_true(t.values[0] == 1577836805.0 && isnan(t.values[4]));
    assert_true(isnan(t.values[2]) && isnan(t.values[6])); /* text, even where it is a number */
    assert_int_equal(columns_label(&t, NULL), UINT32_MAX);
    assert_int_equal(columns_label(&t, "a"), 1);
    table_fini(&t);
    /* a first line of times and numbers is not a header */
    assert_int_equal(parse(&t, "2020-01-01;1.5\n2020-01-02;2.5\n", &e), 0);
    assert_true(t.n_rows == 2 && !t.names);
    table_fini(&t);
    assert_int_equal(parse(&t, "{\"t\":\"2020-01-01\",\"x\":1,\"s\":\"a\",\"anomaly\":true}\n", &e),
                     0);
    assert_int_equal(t.kinds[0], TABLE_TIMES);
    assert_int_equal(t.kinds[2], TABLE_TEXT);
    assert_int_equal(columns_label(&t, NULL), 3);
    table_fini(&t);
}

static void test_errors(void **state)
{
    static const struct {
        const char *text, *message;
    } cases[] = {
        {"a,b\n1,2\n1,x\n", "line 3: \"x\" is not a number"},
        {"t,b\n2020-01-01,2\n17,2\n", "line 3: \"17\" is not a time"},
        {"t,b\n1,2\n2020-01-01,2\n", "line 3: \"2020-01-01\" is not a number"},
        {"1,2\n1,2,3\n", "line 2: more than 2 columns"},
        {"1,2\n1\n", "line 2 has 1 columns, the first line has 2"},
        {"{\"a\":1}\n{\"a\":\"x\"}\n", "line 2: value 1 is not a number"},
        {"[1,\"x\"]\n", "line 1: value 2 is not a number"},
        {"a,b\n", "no row of numbers"},
        {"", "no rows"},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct table t;
        struct err e = {0};
        assert_int_equal(parse(&t, cases[i].text, &e), SHOAL_EFORMAT);
        if (!strstr(e.msg, cases[i].message))
            fail_msg("%s: %s", cases[i].text, e.msg);
        assert_null(t.values);
    }
}

static void test_allocation_failures(void **state)
{
    int failures = 0, rc = SHOAL_ENOMEM;
    (void)state;
    for (uint64_t at = 1; rc < 0; at++) {
        struct table t;
        struct err e = {0};
        mem_fail_at(at);
        rc = parse(&t, "t,a\n2020-01-01,1\n", &e);
        mem_fail_at(0);
        if (rc < 0) {
            assert_int_equal(rc, SHOAL_ENOMEM);
            failures++;
        }
        table_fini(&t);
    }
    assert_true(failures >= 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_times),
        cmocka_unit_test(test_kinds),
        cmocka_unit_test(test_errors),
        cmocka_unit_test(test_allocation_failures),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
