/* Energy from made files of /sys: which source is taken, and what it adds up to. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/energy.h"
#include "support/made_tree.h"

#define S 1000000000u
#define ZONE "class/powercap/intel-rapl:"

static const struct energy_model none;

static void assert_near(double a, double b)
{
    assert_true(fabs(a - b) < 1e-9);
}

static void test_rapl(void **state)
{
    struct made_tree t;
    struct energy e;
    (void)state;
    made_tree_open(&t);
    made_tree_put(&t, ZONE "0/name", "package-0\n");
    made_tree_put(&t, ZONE "0/energy_uj", "9000000\n");
    made_tree_put(&t, ZONE "0/max_energy_range_uj", "10000000\n");
    made_tree_put(&t, ZONE "0:0/name", "core\n"); /* part of the package */
    made_tree_put(&t, ZONE "0:0/energy_uj", "5\n");
    made_tree_put(&t, ZONE "0:1/name", "dram\n");
    made_tree_put(&t, ZONE "0:1/energy_uj", "100\n");
    made_tree_put(&t, "class/hwmon/hwmon0/power1_input", "7000000\n"); /* second choice */
    energy_open(&e, t.root, &none);
    assert_int_equal(e.kind, ENERGY_RAPL);
    assert_int_equal(e.n_files, 2);
    assert_false(energy_is_estimated(&e));
    assert_true(energy_read(&e, S, 0) == 0);
    made_tree_put(&t, ZONE "0/energy_uj", "9500000\n");
    made_tree_put(&t, ZONE "0:1/energy_uj", "250100\n");
    assert_near(energy_read(&e, 3 * (uint64_t)S, 0), 0.75);
    assert_near(e.watts, 0.375);
    made_tree_put(&t, ZONE "0/energy_uj", "500000\n"); /* over its end */
    assert_near(energy_read(&e, 4 * (uint64_t)S, 0), 1.75);
    made_tree_put(&t, ZONE "0:1/energy_uj", "nonsense\n");
    assert_near(energy_read(&e, 5 * (uint64_t)S, 0), 1.75);
    made_tree_close(&t);
}

static void test_whole_platform(void **state)
{
    struct made_tree t;
    struct energy e;
    (void)state;
    made_tree_open(&t);
    made_tree_put(&t, ZONE "0/name", "package-0\n");
    made_tree_put(&t, ZONE "0/energy_uj", "1\n");
    made_tree_put(&t, ZONE "1/name", "psys\n"); /* has the packages in it */
    made_tree_put(&t, ZONE "1/energy_uj", "1\n");
    energy_open(&e, t.root, &none);
    assert_int_equal(e.n_files, 1);
    made_tree_put(&t, ZONE "0/energy_uj", "900001\n");
    made_tree_put(&t, ZONE "1/energy_uj", "2000001\n");
    assert_near(energy_read(&e, S, 0), 2.0);
    made_tree_close(&t);
}

/* A sensor of power: what it says now counts for the time since the last look. */
static void test_sensors(void **state)
{
    struct made_tree t;
    struct energy e;
    (void)state;
    made_tree_open(&t);
    made_tree_put(&t, "class/hwmon/hwmon3/name", "ina219\n");
    made_tree_put(&t, "class/hwmon/hwmon3/power1_input", "4000000\n");
    energy_open(&e, t.root, &none);
    assert_string_equal(energy_kind_name(e.kind), "hwmon");
    assert_true(energy_read(&e, S, 0) == 0);
    assert_near(energy_read(&e, 3 * (uint64_t)S, 0), 8.0);
    assert_near(e.watts, 4.0);
    made_tree_close(&t);
    made_tree_open(&t);
    made_tree_put(&t, "class/power_supply/BAT0/status", "Charging\n");
    made_tree_put(&t, "class/power_supply/BAT0/power_now", "6000000\n");
    energy_open(&e, t.root, &none);
    assert_int_equal(e.kind, ENERGY_NONE); /* what flows into it is not what we use */
    made_tree_put(&t, "class/power_supply/BAT0/status", "Discharging\n");
    energy_open(&e, t.root, &none);
    assert_int_equal(e.kind, ENERGY_BATTERY);
    made_tree_close(&t);
}

static void test_model(void **state)
{
    const struct energy_model m = {.idle = 3, .core = 2};
    struct energy e;
    (void)state;
    energy_open(&e, "/nonexistent", &none);
    assert_int_equal(e.kind, ENERGY_NONE);
    energy_open(&e, "/nonexistent", &m);
    assert_true(e.kind == ENERGY_MODEL && energy_is_estimated(&e));
    assert_true(energy_read(&e, S, S) == 0);
    assert_near(energy_read(&e, 3 * (uint64_t)S, 4 * (uint64_t)S), 3 * 2 + 2 * 3);
    assert_near(e.watts, 6.0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rapl),
        cmocka_unit_test(test_whole_platform),
        cmocka_unit_test(test_sensors),
        cmocka_unit_test(test_model),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
