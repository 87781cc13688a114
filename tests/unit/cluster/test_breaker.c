/* test_breaker.c - circuit breakers: when they open, what passes, when they close. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "cluster/breaker.h"

#define MS 1000000ull

static void test_it_opens_after_failures_in_a_row(void **state)
{
    struct breaker b = {0};
    (void)state;
    assert_true(breaker_passes(&b, 1));
    assert_false(breaker_failed(&b, 1));
    assert_true(breaker_passes(&b, 1));
    breaker_succeeded(&b); /* no longer consecutive */
    assert_false(breaker_failed(&b, 2));
    assert_true(breaker_failed(&b, 3));
    assert_int_equal(breaker_state(&b, 4), BREAKER_OPEN);
    assert_false(breaker_passes(&b, 4));
    uint64_t until = b.until_ns;
    for (int i = 0; i < 50; i++) /* requests in flight when it opened */
        assert_false(breaker_failed(&b, 5));
    assert_true(b.until_ns == until);
}

static void test_one_probe_decides(void **state)
{
    struct breaker b = {0};
    uint64_t now = 1, last = 0;
    (void)state;
    (void)breaker_failed(&b, now);
    assert_true(breaker_failed(&b, now));
    for (int i = 0; i < 20; i++) { /* every failed probe doubles the wait, up to a limit */
        uint64_t wait = b.until_ns - now;
        assert_true(wait >= last && wait <= 13000 * MS);
        last = wait;
        now = b.until_ns;
        assert_int_equal(breaker_state(&b, now), BREAKER_HALF_OPEN);
        assert_true(breaker_passes(&b, now));
        breaker_sent(&b, now);
        assert_false(breaker_passes(&b, now)); /* one at a time */
        assert_false(breaker_failed(&b, now)); /* it was open before */
        assert_false(breaker_passes(&b, now));
    }
    assert_true(last == 12800 * MS);
    now = b.until_ns;
    breaker_sent(&b, now);
    breaker_forgot(&b); /* cancelled: the next request is the probe */
    assert_true(breaker_passes(&b, now));
    breaker_sent(&b, now);
    breaker_succeeded(&b);
    assert_int_equal(breaker_state(&b, now), BREAKER_CLOSED);
    assert_true(breaker_passes(&b, now));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_it_opens_after_failures_in_a_row),
        cmocka_unit_test(test_one_probe_decides),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
