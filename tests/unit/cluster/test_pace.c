/* test_pace.c - the usual time between two pieces of an answer, in virtual time. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "cluster/pace.h"

#define MS UINT64_C(1000000)

static struct pace p;
static uint64_t now;

static void pieces(uint32_t n, uint64_t gap_ns)
{
    for (uint32_t i = 0; i < n; i++)
        pace_piece(&p, now += gap_ns);
}

static int set_up(void **state)
{
    (void)state;
    now = 1000 * MS;
    pace_begin(&p, now);
    return 0;
}

static void test_it_is_known_after_some_pieces(void **state)
{
    (void)state;
    assert_true(pace_unusual_ns(&p) == UINT64_MAX);
    pieces(1, 9000 * MS); /* the prompt */
    pieces(3, 20 * MS);
    assert_true(pace_unusual_ns(&p) == UINT64_MAX);
    pieces(1, 20 * MS);
    assert_in_range(pace_unusual_ns(&p), 8 * 20 * MS - 8, 8 * 20 * MS);
    assert_int_equal(p.last_ns, now);
}

static void test_bursts_are_usual(void **state)
{
    (void)state;
    for (int i = 0; i < 20; i++) { /* eight at once, every 100 ms */
        pieces(1, 100 * MS);
        pieces(7, 0);
    }
    assert_true(pace_unusual_ns(&p) > 180 * MS);
    assert_true(pace_unusual_ns(&p) <= 300 * MS);
}

static void test_it_follows(void **state)
{
    (void)state;
    pieces(20, 10 * MS);
    pieces(1, 400 * MS); /* once */
    assert_true(pace_unusual_ns(&p) >= 1200 * MS);
    pieces(100, 10 * MS);
    assert_true(pace_unusual_ns(&p) < 120 * MS);
    pieces(100, 40 * MS); /* others share the node now */
    assert_true(pace_unusual_ns(&p) > 250 * MS);
}

static void test_another_replica_begins_anew(void **state)
{
    (void)state;
    pieces(20, 10 * MS);
    pace_begin(&p, now + MS);
    assert_true(pace_unusual_ns(&p) == UINT64_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_it_is_known_after_some_pieces, set_up),
        cmocka_unit_test_setup(test_bursts_are_usual, set_up),
        cmocka_unit_test_setup(test_it_follows, set_up),
        cmocka_unit_test_setup(test_another_replica_begins_anew, set_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
