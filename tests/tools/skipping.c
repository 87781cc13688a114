/* skipping.c - a cmocka program with one passing and one skipped test, for count_tests.sh. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void test_that_passes(void **state)
{
    (void)state;
    assert_int_equal(1 + 1, 2);
}

static void test_that_skips(void **state)
{
    (void)state;
    skip();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_that_passes),
        cmocka_unit_test(test_that_skips),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
