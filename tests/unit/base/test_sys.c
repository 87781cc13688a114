/* Files of the kernel: temperatures, throttling. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/heat.h"
#include "base/log.h"
#include "base/log_recent.h"
#include "base/sys_file.h"
#include "support/made_tree.h"

/* The hottest zone counts, with the first temperature at which it slows the machine down. */
static void test_temperatures(void **state)
{
    struct made_tree t;
    struct heat h;
    (void)state;
    made_tree_open(&t);
    heat_read(&h, t.root);
    assert_true(h.celsius == 0.0 && h.limit == 0.0 && h.n_throttled == 0);
    assert_true(heat_limit(&h) == HEAT_USUAL_LIMIT);
    made_tree_put(&t, "class/thermal/thermal_zone0/temp", "41000\n");
    made_tree_put(&t, "class/thermal/thermal_zone1/temp", "72500\n");
    made_tree_put(&t, "class/thermal/thermal_zone1/trip_point_0_type", "critical\n");
    made_tree_put(&t, "class/thermal/thermal_zone1/trip_point_0_temp", "60000\n");
    made_tree_put(&t, "class/thermal/thermal_zone1/trip_point_1_type", "passive\n");
    made_tree_put(&t, "class/thermal/thermal_zone1/trip_point_1_temp", "80000\n");
    made_tree_put(&t, "class/thermal/thermal_zone2/temp", "999000\n"); /* a broken sensor */
    made_tree_put(&t, "class/thermal/thermal_zone3/temp", "hot\n");
    made_tree_put(&t, "devices/system/cpu/cpu0/thermal_throttle/package_throttle_count", "17\n");
    heat_read(&h, t.root);
    assert_true(h.celsius == 72.5 && heat_limit(&h) == 80.0);
    assert_int_equal(h.n_throttled, 17);
    made_tree_close(&t);
}

static void test_lines_and_numbers(void **state)
{
    struct made_tree t;
    char line[8];
    double x = 7;
    (void)state;
    made_tree_open(&t);
    made_tree_put(&t, "a", "12.5 rest\nsecond\n");
    made_tree_put(&t, "empty", "");
    made_tree_put(&t, "inf", "inf\n");
    assert_true(sys_file_line(line, sizeof(line), "%s/a", t.root));
    assert_string_equal(line, "12.5 re"); /* as much as fits */
    assert_true(sys_file_number(&x, "%s/a", t.root));
    assert_true(x == 12.5);
    assert_false(sys_file_line(line, sizeof(line), "%s/empty", t.root));
    assert_false(sys_file_number(&x, "%s/inf", t.root));
    assert_false(sys_file_number(&x, "%s/none", t.root));
    made_tree_close(&t);
}

/* The last lines are kept, and the first of them is whole. */
static void test_recent_lines(void **state)
{
    struct buf b;
    char text[300];
    (void)state;
    buf_init(&b, LOG_KEPT_BYTES);
    log_recent(&b);
    assert_int_equal(b.len, 0);
    log_error("test", "only one");
    log_recent(&b);
    assert_true(strncmp(buf_str(&b), "ts=", 3) == 0 && strstr(buf_str(&b), "only one\"\n"));
    memset(text, 'x', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    for (int i = 0; i < 400; i++)
        log_error("test", "%d %s", i, text);
    buf_clear(&b);
    log_recent(&b);
    assert_int_equal(b.rc, 0);
    assert_true(b.len > LOG_KEPT_BYTES - 400 && b.len <= LOG_KEPT_BYTES);
    assert_true(strncmp(buf_str(&b), "ts=", 3) == 0);
    assert_null(strstr(buf_str(&b), "\"0 x"));
    assert_non_null(strstr(buf_str(&b), "\"399 x"));
    assert_int_equal(buf_str(&b)[b.len - 1], '\n');
    buf_fini(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_temperatures),
        cmocka_unit_test(test_lines_and_numbers),
        cmocka_unit_test(test_recent_lines),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
