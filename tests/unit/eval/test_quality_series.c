/* test_quality_series.c - alarms against labelled windows, worked out by hand, and the simple
 * methods against a direct computation of their definitions. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "base/hash.h"
#include "eval/quality_series.h"

enum { N = 600, CHANNELS = 3 };

static void near(double have, double want)
{
    if (!(fabs(have - want) < 1e-6 * fmax(1, fabs(want))))
        fail_msg("%.12f is not %.12f", have, want);
}

static void on(double *scores, size_t from, size_t to)
{
    for (size_t i = from; i < to; i++)
        scores[i] = 2;
}

static void test_alarms(void **state)
{
    double scores[N] = {0};
    bool labels[N] = {0};
    struct quality_alarms q = {0};
    (void)state;
    memset(labels + 110, true, 20);
    memset(labels + 200, true, 10);
    memset(labels + 260, true, 10);
    memset(labels + 590, true, 10); /* up to the end */
    on(scores, 10, 20);             /* too soon to count */
    on(scores, 80, 81);             /* false: the next window is 30 points away */
    on(scores, 112, 116);           /* found, 2 late */
    on(scores, 140, 141);           /* the same alarm, after a pause of 24 */
    on(scores, 190, 195);           /* found early */
    on(scores, 230, 265); /* false: it began 30 points before the window, which is missed */
    on(scores, 595, 600); /* found, 5 late */
    scores[300] = NAN;
    quality_alarms_add(&q, scores, labels, N, 2, 60);
    assert_int_equal(q.n_windows, 4);
    assert_int_equal(q.n_found, 3);
    assert_int_equal(q.n_false, 2);
    near(q.delay_points, 7);
    near(q.delay_seconds, 7 * 60);
    near(quality_alarms_f1(&q), 6.0 / (6 + 2 + 1));
    assert_int_equal(q.true_, 50);
    assert_int_equal(q.n_normal, N - 50);
    near(q.normal_seconds, 60 * (N - 50));
    assert_int_equal(q.said, 1 + 4 + 1 + 5 + 35 + 5);
    assert_int_equal(q.hit, 4 + 5 + 5);
    quality_alarms_add(&q, scores, labels, N, 3, 60); /* a level that is never reached */
    assert_int_equal(q.n_windows, 8);
    assert_int_equal(q.n_found, 3);
    assert_int_equal(q.n_false, 2);
}

static void test_nothing(void **state)
{
    struct quality_alarms q = {0};
    double score = 5;
    bool label = true;
    (void)state;
    near(quality_alarms_f1(&q), 0);
    quality_alarms_add(&q, &score, &label, 1, 1, 0);
    assert_int_equal(q.n_windows, 1);
    assert_int_equal(q.n_found, 0); /* it is part of the warm-up */
    quality_threshold(&score, 0, 1, NULL);
    quality_z_score(&score, 0, 1, 16, NULL);
}

static void make_values(double *values)
{
    for (uint64_t i = 0; i < (uint64_t)N * CHANNELS; i++)
        values[i] = i % 29 == 7 ? NAN : 50 + (double)(hash_mix(i) % 1000) / 100 + (i > 900 ? 5 : 0);
}

/* Mean and deviation of a channel's rows [from, to). */
static void moments(const double *values, size_t from, size_t to, uint32_t c, double *mean,
                    double *dev)
{
    double n = 0, sum = 0, squares = 0;
    for (size_t i = from; i < to; i++)
        if (!isnan(values[i * CHANNELS + c])) {
            n++;
            sum += values[i * CHANNELS + c];
        }
    *mean = sum / n;
    for (size_t i = from; i < to; i++)
        if (!isnan(values[i * CHANNELS + c]))
            squares += pow(values[i * CHANNELS + c] - *mean, 2);
    *dev = sqrt(squares / n);
}

static void test_threshold(void **state)
{
    double values[N * CHANNELS], out[N], mean, dev;
    (void)state;
    make_values(values);
    quality_threshold(values, N, CHANNELS, out);
    for (size_t i = 0; i < N; i++) {
        double want = 0;
        for (uint32_t c = 0; c < CHANNELS; c++) {
            moments(values, 0, N * 15 / 100, c, &mean, &dev);
            want = fmax(want, fabs(values[i * CHANNELS + c] - mean) / (dev + 1e-9));
        }
        near(out[i], want);
    }
}

static void test_z_score(void **state)
{
    double values[N * CHANNELS], out[N], mean, dev;
    (void)state;
    make_values(values);
    for (size_t window = 16; window <= 1024; window *= 8) {
        quality_z_score(values, N, CHANNELS, window, out);
        for (size_t i = 0; i < N; i++) {
            double want = 0, largest = 0;
            for (uint32_t c = 0; c < CHANNELS && i > 8; c++) {
                for (size_t k = 0; k < N; k++)
                    largest = fmax(largest, fabs(values[k * CHANNELS + c]));
                moments(values, i > window ? i - window : 0, i, c, &mean, &dev);
                want = fmax(want, fabs(values[i * CHANNELS + c] - mean) / (dev + 1e-6 * largest));
                largest = 0;
            }
            near(out[i], want);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_alarms),
        cmocka_unit_test(test_nothing),
        cmocka_unit_test(test_threshold),
        cmocka_unit_test(test_z_score),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
