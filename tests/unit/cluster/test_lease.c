/* test_lease.c - when the lease of another controller counts as given up. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "cluster/control/lease.h"

#define MS UINT64_C(1000000)

/* Members may be configured differently: one with a short lease must not take over from one that
 * renews a long lease in time, and one with a long lease is not the faster judge of a short one. */
static void test_the_longer_of_two_leases_counts(void **state)
{
    static const struct {
        uint32_t mine_ms, theirs_ms;
        uint64_t want_ms;
    } cases[] = {
        {10000, 10000, 11000}, {500, 60000, 66000},
        {60000, 500, 66000},   {500, 500, 550},
        {10000, 0, 11000},     /* a value that cannot be read */ {300000, 300000, 330000},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        assert_int_equal(lease_expiry_ns(cases[i].mine_ms, cases[i].theirs_ms),
                         cases[i].want_ms * MS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_longer_of_two_leases_counts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
