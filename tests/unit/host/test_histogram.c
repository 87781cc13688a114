/* test_histogram.c - quantiles of times. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "host/histogram.h"
#include "host/prometheus.h"

static void test_quantiles_lie_between_bounds(void **state)
{
    struct histogram h = {.sum_ns = 0};
    (void)state;
    assert_int_equal(histogram_quantile(&h, 0.5), 0);
    for (int i = 0; i < 10; i++)
        histogram_add(&h, 2000000); /* 1 to 2.5 ms */
    assert_int_equal(histogram_quantile(&h, 0.5), 1750000);
    for (int i = 0; i < 90; i++)
        histogram_add(&h, 40000); /* up to 50 us */
    assert_in_range(histogram_quantile(&h, 0.5), 1, 50000);
    assert_int_equal(histogram_quantile(&h, 1.0), 2500000);
    histogram_add(&h, UINT64_C(99000000000)); /* above all bounds */
    assert_int_equal(histogram_quantile(&h, 1.0), UINT64_C(30000000000));
}

static void test_recent_times_forget_old_ones(void **state)
{
    (void)state;
    struct histogram h = {.sum_ns = 0};
    struct histogram_recent r = {.since_ns = 0};
    const uint64_t second = 1000000000u;
    histogram_add(&h, 20 * second);
    /* what came before the first call does not count */
    assert_int_equal(histogram_recent_quantile(&r, &h, 0.95, 1, 10 * second), 0);
    for (int i = 0; i < 100; i++)
        histogram_add(&h, 2 * second);
    assert_in_range(histogram_recent_quantile(&r, &h, 0.95, 5 * second, 10 * second), second,
                    5 * second / 2);
    assert_true(histogram_recent_quantile(&r, &h, 0.95, 12 * second, 10 * second) > 0);
    for (int i = 0; i < 100; i++)
        histogram_add(&h, 2000000);
    assert_in_range(histogram_recent_quantile(&r, &h, 0.95, 23 * second, 10 * second), 1000000,
                    2500000);
    assert_int_equal(histogram_recent_quantile(&r, &h, 0.95, 100 * second, 10 * second), 0);
}

static void test_exemplars(void **state)
{
    static struct histogram_exemplars x;
    static const char id[] = "0af7651916cd43dd8448eb211c80319c-rest";
    struct histogram h = {.sum_ns = 0};
    struct buf b, open;
    (void)state;
    histogram_add(&h, 2000000);
    histogram_exemplar(&x, 2000000, id, 1700000000123);
    buf_init(&b, 10000);
    buf_init(&open, 10000);
    prometheus_help(&b, "a_total", "counter", "of a_total");
    prometheus_help(&b, "t", "histogram", "times");
    prometheus_histogram(&b, "t", "m=\"1\"", &h, &x);
    prometheus_open(&open, buf_str(&b), b.len);
    assert_non_null(
        strstr(buf_str(&open), "# HELP a of a_total\n# TYPE a counter\n# HELP t times\n"));
    assert_non_null(strstr(buf_str(&open), "t_bucket{m=\"1\",le=\"0.001\"} 0\n"
                                           "t_bucket{m=\"1\",le=\"0.0025\"} 1 # "
                                           "{trace_id=\"0af7651916cd43dd8448eb211c80319c\"} "
                                           "0.002000000 1700000000.123\n"
                                           "t_bucket{m=\"1\",le=\"0.005\"} 1\n"));
    assert_string_equal(buf_str(&open) + open.len - 6, "# EOF\n");
    buf_clear(&b);
    prometheus_histogram(&b, "t", "", &h, NULL);
    assert_null(strstr(buf_str(&b), "trace_id"));
    buf_fini(&b);
    buf_fini(&open);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_exemplars),
        cmocka_unit_test(test_quantiles_lie_between_bounds),
        cmocka_unit_test(test_recent_times_forget_old_ones),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
