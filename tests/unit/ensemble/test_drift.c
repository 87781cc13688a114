/* test_drift.c - alarms when the distribution of confidences changes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <math.h>

#include <cmocka.h>

#include "ensemble/drift.h"

static void add(uint64_t *counts, uint32_t bin, uint64_t n)
{
    counts[bin] += n;
}

static void test_index(void **state)
{
    (void)state;
    double then[CONFIDENCE_BINS] = {[10] = 0.5, [11] = 0.5};
    uint64_t same[CONFIDENCE_BINS] = {[10] = 50, [11] = 50};
    uint64_t other[CONFIDENCE_BINS] = {[10] = 80, [11] = 20};
    uint64_t none[CONFIDENCE_BINS] = {0};
    assert_true(fabs(drift_index(then, same)) < 1e-9);
    /* 0.3 ln 1.6 + 0.3 ln 2.5 */
    assert_true(fabs(drift_index(then, other) - (0.3 * log(1.6) + 0.3 * log(2.5))) < 1e-9);
    assert_true(drift_index(then, none) == 0);
    uint64_t elsewhere[CONFIDENCE_BINS] = {[0] = 100};
    assert_true(drift_index(then, elsewhere) > 5 && isfinite(drift_index(then, elsewhere)));
}

static void test_alarm(void **state)
{
    (void)state;
    struct confidence_calibration c = {.temperature = 1, .rows = 100};
    uint64_t counts[CONFIDENCE_BINS] = {0};
    struct drift d;
    c.shares[11] = 0.9;
    c.shares[5] = 0.1;
    drift_init(&d, &c);
    add(counts, 11, DRIFT_WINDOW - 1);
    assert_int_equal(drift_look(&d, counts), DRIFT_NOTHING);
    assert_int_equal(d.n_windows, 0); /* not a whole window */
    add(counts, 5, 50);
    assert_int_equal(drift_look(&d, counts), DRIFT_NOTHING);
    assert_int_equal(d.n_windows, 1);
    add(counts, 5, DRIFT_WINDOW);
    assert_int_equal(drift_look(&d, counts), DRIFT_BEGAN);
    assert_true(d.alarm && d.index > DRIFT_ALARM);
    assert_int_equal(drift_look(&d, counts), DRIFT_NOTHING); /* nothing new since */
    add(counts, 5, DRIFT_WINDOW);
    assert_int_equal(drift_look(&d, counts), DRIFT_NOTHING); /* still */
    add(counts, 11, DRIFT_WINDOW * 9 / 10);
    add(counts, 5, DRIFT_WINDOW / 10);
    assert_int_equal(drift_look(&d, counts), DRIFT_ENDED);
    assert_false(d.alarm);
}

/* Without a calibration the first window is normal. */
static void test_learns(void **state)
{
    (void)state;
    const struct confidence_calibration none = {.temperature = 0};
    uint64_t counts[CONFIDENCE_BINS] = {0};
    struct drift d;
    drift_init(&d, &none);
    add(counts, 2, DRIFT_WINDOW);
    assert_int_equal(drift_look(&d, counts), DRIFT_NOTHING);
    assert_int_equal(d.n_windows, 0);
    add(counts, 2, DRIFT_WINDOW);
    assert_int_equal(drift_look(&d, counts), DRIFT_NOTHING);
    assert_int_equal(d.n_windows, 1);
    add(counts, 9, DRIFT_WINDOW);
    assert_int_equal(drift_look(&d, counts), DRIFT_BEGAN);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_index),
        cmocka_unit_test(test_alarm),
        cmocka_unit_test(test_learns),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
