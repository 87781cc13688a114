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

/* Texts of the calibration, but for one in `part` of a kind whose confidences are spread. */
static void add_mixture(uint64_t *counts, const struct confidence_calibration *c, uint64_t *x,
                        double part)
{
    for (uint32_t i = 0; i < DRIFT_WINDOW; i++) {
        *x = *x * UINT64_C(6364136223846793005) + 1442695040888963407u;
        double u = (double)(*x >> 40) / 16777216.0, at = 0;
        uint32_t bin = 0;
        if (u < part) { /* somewhere in the lower ten bins */
            counts[(uint32_t)(u / part * 10)]++;
            continue;
        }
        u = part < 1 ? (u - part) / (1 - part) : 0;
        while (bin + 1 < CONFIDENCE_BINS && (at += c->shares[bin]) < u)
            bin++;
        counts[bin]++;
    }
}

/* A fifth of new texts is noticed within a few windows; without them there is no alarm in 2,000. */
static void test_a_fifth_is_noticed(void **state)
{
    (void)state;
    struct confidence_calibration c = {.temperature = 1, .rows = 500};
    uint64_t counts[CONFIDENCE_BINS] = {0}, x = 1;
    struct drift d;
    for (uint32_t i = 0; i < 9; i++)
        c.shares[i] = 0.02;
    c.shares[9] = 0.05;
    c.shares[10] = 0.17;
    c.shares[11] = 0.60;
    drift_init(&d, &c);
    for (uint32_t i = 0; i < 2000; i++) {
        add_mixture(counts, &c, &x, 0);
        assert_int_equal(drift_look(&d, counts), DRIFT_NOTHING);
    }
    uint32_t n = 0;
    do
        add_mixture(counts, &c, &x, 0.2);
    while (++n < 10 && drift_look(&d, counts) == DRIFT_NOTHING);
    assert_true(d.alarm);
    assert_in_range(n, 1, 2);
    assert_true(d.index < DRIFT_ALARM); /* no single window shows it */
    for (n = 0; d.alarm && n < 10; n++) {
        add_mixture(counts, &c, &x, 0);
        (void)drift_look(&d, counts);
    }
    assert_false(d.alarm);
}

static void test_restored(void **state)
{
    (void)state;
    const double usual[CONFIDENCE_BINS] = {[11] = 1};
    uint64_t counts[CONFIDENCE_BINS] = {0};
    struct drift d;
    drift_init(&d, NULL);
    drift_restore(&d, usual);
    add(counts, 2, DRIFT_WINDOW); /* the first window is compared, not learned */
    assert_int_equal(drift_look(&d, counts), DRIFT_BEGAN);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_fifth_is_noticed),
        cmocka_unit_test(test_restored),
        cmocka_unit_test(test_index),
        cmocka_unit_test(test_alarm),
        cmocka_unit_test(test_learns),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
