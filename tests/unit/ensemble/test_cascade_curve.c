/* test_cascade_curve.c - accuracy and cost of a cascade at each threshold. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <math.h>

#include <cmocka.h>

#include "ensemble/cascade_curve.h"

/* The small model is wrong where it is unsure, and once where it is sure; the large one is wrong
 * once. */
static const struct cascade_curve_row given[] = {
    {0.9, true, true, 1, 10, 0},  {0.2, false, true, 1, 10, 0}, {0.8, false, true, 1, 10, 0},
    {0.5, true, true, 1, 10, 0},  {0.3, false, true, 1, 10, 0}, {0.95, true, true, 1, 10, 0},
    {0.7, true, false, 1, 10, 0}, {0.6, true, true, 1, 10, 0},
};
#define N (sizeof(given) / sizeof(given[0]))

static void near(double a, double b)
{
    if (fabs(a - b) > 1e-9)
        fail_msg("%f is not %f", a, b);
}

static void test_points(void **state)
{
    (void)state;
    struct cascade_curve_row rows[N];
    for (size_t i = 0; i < N; i++)
        rows[i] = given[i];
    cascade_curve_sort(rows, N);
    near(rows[0].sureness, 0.2);
    struct cascade_curve_point p = cascade_curve_at(rows, N, 0);
    near(p.accuracy, 5.0 / 8);
    near(p.gain, 0);
    near(p.cost, 0.1);
    p = cascade_curve_at(rows, N, 2);
    near(p.threshold, 0.4);
    near(p.asked, 0.25);
    near(p.accuracy, 7.0 / 8);
    near(p.gain, 1); /* as good as the large one alone */
    near(p.cost, 0.1 + 0.25);
    p = cascade_curve_at(rows, N, N);
    near(p.threshold, 1);
    near(p.accuracy, 7.0 / 8);
    near(p.cost, 1.1);
    p = cascade_curve_below(given, N, 0.4); /* in any order */
    near(p.asked, 0.25);
    near(p.accuracy, 7.0 / 8);
    near(p.cost, 0.1 + 0.25);
    near(cascade_curve_below(given, N, 0).asked, 0);
}

static void test_reach(void **state)
{
    (void)state;
    struct cascade_curve_row rows[N];
    for (size_t i = 0; i < N; i++)
        rows[i] = given[i];
    cascade_curve_sort(rows, N);
    near(cascade_curve_reach(rows, N, 0.5).asked, 1.0 / 8);
    near(cascade_curve_reach(rows, N, 0.95).asked, 2.0 / 8);
    near(cascade_curve_reach(rows, N, 0).asked, 0);
}

/* Rows of equal confidence escalate together; a large model that is no better brings no gain. */
static void test_edges(void **state)
{
    (void)state;
    struct cascade_curve_row rows[] = {
        {0.5, true, true, 1, 2, 0}, {0.5, false, true, 1, 2, 0}, {0.9, true, true, 1, 2, 0}};
    cascade_curve_sort(rows, 3);
    near(cascade_curve_at(rows, 3, 1).asked, 2.0 / 3);
    near(cascade_curve_reach(rows, 3, 0.95).asked, 2.0 / 3);
    rows[0].small_right = rows[1].small_right = true;
    assert_true(isnan(cascade_curve_at(rows, 3, 1).gain));
    near(cascade_curve_reach(rows, 3, 0.95).asked, 0);
    near(cascade_curve_at(rows, 0, 0).accuracy, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_points),
        cmocka_unit_test(test_reach),
        cmocka_unit_test(test_edges),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
