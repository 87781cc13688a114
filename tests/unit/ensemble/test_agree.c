/* test_agree.c - which answers agree. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "ensemble/agree.h"

static void check(const char *text, enum ensemble_part part, const char *want)
{
    char *got = agree_normal(text, strlen(text), part);
    assert_non_null(got);
    assert_string_equal(got, want);
    mem_free(got);
}

static void test_whole(void **state)
{
    (void)state;
    check("  The  Kitchen\n light. ", ENSEMBLE_WHOLE, "the kitchen light");
    check("\"Paris!\"", ENSEMBLE_WHOLE, "paris");
    check("-5 %", ENSEMBLE_WHOLE, "-5 %");
    check("", ENSEMBLE_WHOLE, "");
    check("...", ENSEMBLE_WHOLE, "");
    check("Stra\xc3\x9f"
          "e",
          ENSEMBLE_WHOLE,
          "stra\xc3\x9f"
          "e");
}

static void test_parts(void **state)
{
    (void)state;
    check("first\nThe answer: YES.\n\n", ENSEMBLE_LAST_LINE, "the answer: yes");
    check("one line", ENSEMBLE_LAST_LINE, "one line");
    check("so 3 apples and 1,234.50 dollars.", ENSEMBLE_NUMBER, "1234.5");
    check("it is -7.00", ENSEMBLE_NUMBER, "-7");
    check("10-12", ENSEMBLE_NUMBER, "12");
    check("100", ENSEMBLE_NUMBER, "100");
    check("version .5", ENSEMBLE_NUMBER, "5");
    check("No number.", ENSEMBLE_NUMBER, "no number");
}

static void test_choose(void **state)
{
    (void)state;
    const struct agree_answer a[] = {
        {"x", -0.1}, {"y", -0.9}, {"z", -0.2}, {"y", -0.5}, {"y", -0.7}};
    struct agree_choice c = agree_choose(a, 5);
    assert_int_equal(c.best, 3); /* the likeliest of the largest group */
    assert_int_equal(c.n_for, 3);
    c = agree_choose(a, 3);
    assert_int_equal(c.best, 0); /* none agree: the likeliest */
    assert_int_equal(c.n_for, 1);
    c = agree_choose(a, 1);
    assert_int_equal(c.best, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_whole),
        cmocka_unit_test(test_parts),
        cmocka_unit_test(test_choose),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
