/* test_silence.c - how long a member is silent, in virtual time. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "cluster/silence.h"

#define MS UINT64_C(1000000)

static struct silence s;
static uint64_t now;

static uint64_t looks(uint32_t n, uint64_t every_ns)
{
    uint64_t silent = 0;
    for (uint32_t i = 0; i < n; i++)
        silent = silence_look(&s, now += every_ns);
    return silent;
}

static int set_up(void **state)
{
    (void)state;
    now = 1000 * MS;
    silence_heard(&s, now);
    return 0;
}

static void test_silence_adds_up_and_ends(void **state)
{
    (void)state;
    assert_int_equal(looks(40, 25 * MS), 1000 * MS);
    now += 10 * MS;
    silence_heard(&s, now);
    assert_int_equal(looks(1, 15 * MS), 15 * MS); /* not from the look before */
}

/* What was sent while this process stood still is read after the look. */
static void test_standing_still_is_not_their_silence(void **state)
{
    (void)state;
    assert_int_equal(looks(4, 25 * MS), 100 * MS);
    assert_int_equal(looks(1, 60000 * MS), 100 * MS + SILENCE_MOST_NS);
    assert_int_equal(looks(4, 25 * MS), 200 * MS + SILENCE_MOST_NS);
}

/* A process that is always late still notices, only later. */
static void test_a_slow_process_notices(void **state)
{
    (void)state;
    assert_int_equal(looks(5, 1000 * MS), 5 * SILENCE_MOST_NS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_silence_adds_up_and_ends, set_up),
        cmocka_unit_test_setup(test_standing_still_is_not_their_silence, set_up),
        cmocka_unit_test_setup(test_a_slow_process_notices, set_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
