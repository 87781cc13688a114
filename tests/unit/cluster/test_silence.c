/* test_silence.c - when a member is silent for too long, in virtual time. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "cluster/silence.h"

#define MS UINT64_C(1000000)
#define USUAL (1000 * MS)

static struct silence s;
static uint64_t now;

/* How many looks until its silence is long. */
static uint32_t looks(uint64_t every_ns)
{
    uint32_t n = 1;
    while (!silence_is_long(&s, now += every_ns, USUAL))
        n++;
    return n;
}

static void beats(uint32_t n, uint64_t every_ns)
{
    for (uint32_t i = 0; i < n; i++) {
        for (uint64_t ns = 25 * MS; ns < every_ns; ns += 25 * MS)
            assert_false(silence_is_long(&s, now + ns, USUAL));
        silence_heard(&s, now += every_ns);
    }
}

static int set_up(void **state)
{
    (void)state;
    now = 1000 * MS;
    silence_lost(&s);
    silence_heard(&s, now);
    return 0;
}

static void test_silence_is_long_after_the_limit(void **state)
{
    (void)state;
    assert_int_equal(looks(25 * MS), 41);
    silence_lost(&s);
    silence_heard(&s, now += 10 * MS); /* not from the look before */
    assert_int_equal(looks(25 * MS), 41);
}

/* What was sent while this process stood still is read after the look. */
static void test_standing_still_is_not_their_silence(void **state)
{
    (void)state;
    beats(50, 200 * MS);
    assert_false(silence_is_long(&s, now += 60000 * MS, USUAL));
    assert_int_equal(looks(25 * MS), 33); /* 200 ms are counted */
}

/* A process that is always late still notices, only later. */
static void test_a_slow_process_notices(void **state)
{
    (void)state;
    assert_int_equal(looks(1000 * MS), 6);
}

/* A member that beats late gets more time, and loses it when it is in time again. */
static void test_late_beats_are_expected(void **state)
{
    (void)state;
    beats(20, 200 * MS);
    assert_int_equal(looks(25 * MS), 41);
    set_up(NULL);
    beats(20, 200 * MS);
    beats(1, 600 * MS);
    assert_int_equal(looks(25 * MS), 73); /* 1.8 s */
    set_up(NULL);
    beats(1, 600 * MS);
    beats(20, 200 * MS);
    assert_int_equal(looks(25 * MS), 41);
    set_up(NULL);
    beats(1, 900 * MS);
    beats(1, 2500 * MS);
    assert_int_equal(looks(25 * MS), 161); /* never more than four times as long */
}

/* It was lost, and comes back: it is no longer expected to be late, and was not silent meanwhile.
 */
static void test_what_was_lost_begins_anew(void **state)
{
    (void)state;
    beats(1, 900 * MS);
    silence_lost(&s);
    silence_heard(&s, now += 5000 * MS);
    assert_int_equal(looks(25 * MS), 41);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_silence_is_long_after_the_limit, set_up),
        cmocka_unit_test_setup(test_standing_still_is_not_their_silence, set_up),
        cmocka_unit_test_setup(test_a_slow_process_notices, set_up),
        cmocka_unit_test_setup(test_late_beats_are_expected, set_up),
        cmocka_unit_test_setup(test_what_was_lost_begins_anew, set_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
