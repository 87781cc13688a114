/* test_linear_head.c - a linear classifier on vectors. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/hash.h"
#include "eval/linear_head.h"

#define DIM 8u
#define ROWS 300u

static float x[ROWS][DIM];
static uint32_t y[ROWS];

/* Three clouds; the last one has few rows. */
static void make(float noise)
{
    for (uint32_t i = 0; i < ROWS; i++) {
        y[i] = i % 20 == 0 ? 2 : i % 2;
        for (uint32_t k = 0; k < DIM; k++) {
            float r = (float)(hash_mix(i * DIM + k + 1) % 2000) / 1000.0f - 1.0f;
            x[i][k] = (k == y[i] ? 1.0f : 0.0f) + noise * r;
        }
    }
}

static double accuracy(const struct linear_head *h, uint32_t of)
{
    uint32_t right = 0, n = 0;
    double p;
    for (uint32_t i = 0; i < ROWS; i++) {
        if (of < 3 && y[i] != of)
            continue;
        right += linear_head_best(h, x[i], &p) == y[i];
        assert_true(p > 0.3 && p <= 1);
        n++;
    }
    return (double)right / n;
}

static void test_classes_are_learned_rare_ones_too(void **state)
{
    struct linear_head h, again;
    struct err e;
    (void)state;
    make(0.6f);
    const struct linear_head_rows rows = {&x[0][0], y, ROWS};
    assert_int_equal(linear_head_fit(&h, &rows, DIM, 3, 60, &e), 0);
    assert_true(accuracy(&h, 3) > 0.9);
    assert_true(accuracy(&h, 2) > 0.9); /* 15 rows of 300 */
    assert_int_equal(linear_head_fit(&again, &rows, DIM, 3, 60, &e), 0);
    assert_memory_equal(h.weight, again.weight, 3 * (DIM + 1) * sizeof(float));
    assert_int_equal(linear_head_calibrate(&h, &rows, &e), 0);
    assert_true(h.temperature >= 1 && h.temperature < 8);
    linear_head_fini(&h);
    linear_head_fini(&again);
}

/* An underconfident head becomes sharper, if there are errors to learn from. */
static void test_calibration_goes_both_ways(void **state)
{
    struct linear_head h;
    struct err e;
    (void)state;
    make(2.5f);
    const struct linear_head_rows rows = {&x[0][0], y, ROWS};
    assert_int_equal(linear_head_fit(&h, &rows, DIM, 3, 60, &e), 0);
    assert_true(ROWS * (1 - accuracy(&h, 3)) >= 20);
    assert_int_equal(linear_head_calibrate(&h, &rows, &e), 0);
    const double before = h.temperature;
    for (uint32_t i = 0; i < 3 * (DIM + 1); i++) /* the bias follows the weights */
        h.weight[i] *= 0.2f;
    assert_int_equal(linear_head_calibrate(&h, &rows, &e), 0);
    assert_true(h.temperature > before * 0.15 && h.temperature < before * 0.25);
    for (uint32_t i = 0; i < 3 * (DIM + 1); i++)
        h.weight[i] *= 25;
    assert_int_equal(linear_head_calibrate(&h, &rows, &e), 0);
    assert_true(h.temperature > before * 4 && h.temperature < before * 6);
    linear_head_fini(&h);
}

static void test_bad_rows(void **state)
{
    struct linear_head h;
    struct err e;
    (void)state;
    make(0.1f);
    const struct linear_head_rows rows = {&x[0][0], y, ROWS}, none = {&x[0][0], y, 0};
    assert_int_equal(linear_head_fit(&h, &rows, DIM, 4, 5, &e), SHOAL_EINVAL); /* no row is 3 */
    assert_int_equal(linear_head_fit(&h, &rows, DIM, 1, 5, &e), SHOAL_EINVAL);
    assert_int_equal(linear_head_fit(&h, &none, DIM, 2, 5, &e), SHOAL_EINVAL);
    assert_int_equal(linear_head_fit(&h, &rows, DIM, 257, 5, &e), SHOAL_EINVAL);
}

static void test_thresholds(void **state)
{
    double right[100], none[] = {0.4, 0.2, 0.55, 0.3}, best[] = {0.9, 0.6, 0.95, 0.7};
    (void)state;
    for (int i = 0; i < 100; i++)
        right[i] = 1 - i / 100.0;
    double t = linear_head_threshold(right, 100, NULL, 0);
    assert_true(t > 0.04 && t < 0.08); /* 95 of 100 are above */
    t = linear_head_threshold(best, 4, none, 4);
    assert_true(t > 0.55 && t <= 0.6);
    assert_true(linear_head_threshold(NULL, 0, none, 4) > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_classes_are_learned_rare_ones_too),
                                       cmocka_unit_test(test_calibration_goes_both_ways),
                                       cmocka_unit_test(test_bad_rows),
                                       cmocka_unit_test(test_thresholds)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
