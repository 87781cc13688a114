/* test_tail.c - how often a statistic reaches a value by chance. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <math.h>

#include "base/hash.h"
#include "things/tail.h"

enum { N = 4000 };

static uint64_t seed;

/* Exponential with mean 0.2. */
static double draw(void)
{
    seed = hash_mix(seed + 0x9e3779b97f4a7c15u);
    return -0.2 * log(((double)(seed >> 11) + 1) / 9007199254740993.0);
}

static struct tail learned(void)
{
    static double v[N], scratch[N];
    struct tail t;
    seed = 11;
    for (int i = 0; i < N; i++)
        v[i] = draw();
    tail_learn(&t, v, N, scratch);
    return t;
}

/* The tail of an exponential is known: quantile, scale, and the rate of extreme values. */
static void test_a_known_distribution(void **state)
{
    (void)state;
    struct tail t = learned();
    assert_true(fabs(t.from - 0.2 * log(10)) < 0.03);
    assert_true(fabs(t.scale - 0.2) < 0.03);
    assert_true(fabs(t.gap - 0.2 * log(5)) < 0.03);
    double two = tail_expected(&t, 2.0, 1e6, 1), three = tail_expected(&t, 3.0, 1e6, 1);
    double true_two = 1e6 * exp(-2.0 / 0.2); /* 45 */
    assert_true(two > true_two / 4 && two < true_two * 4);
    assert_true(fabs(log(two / three) - 1 / t.scale) < 1e-9);
    assert_true(tail_expected(&t, t.from, 1e6, 1) == 1e6);
}

static void test_less_trust_is_more_expected(void **state)
{
    (void)state;
    struct tail t = learned();
    double last = 0;
    for (double trust = 1; trust >= 0; trust -= 0.25) {
        double n = tail_expected(&t, 3, 1e6, trust);
        assert_true(n > last && n <= 1e6);
        last = n;
    }
}

static void test_nothing_learned_is_never_reached(void **state)
{
    struct tail t;
    (void)state;
    tail_learn(&t, NULL, 0, NULL);
    tail_follow(&t, 5);
    assert_true(tail_expected(&t, 100, 1e6, 1) == 1e6);
}

/* A repeated value stops being unusual; of a lasting one only the beginning counts. */
static void test_it_goes_on_learning(void **state)
{
    (void)state;
    struct tail often = learned(), stays = often;
    double before = tail_expected(&often, 2.5, 1e5, 1);
    for (int i = 0; i < 2000; i++)
        tail_follow(&often, i % 40 < 4 ? 2.5 : draw());
    for (int i = 0; i < 500; i++)
        tail_follow(&stays, 2.5);
    double after_500 = tail_expected(&stays, 2.5, 1e5, 1);
    for (int i = 0; i < 5000; i++)
        tail_follow(&stays, 2.5);
    assert_true(before < 1);
    assert_true(tail_expected(&often, 2.5, 1e5, 1) > 100 * before);
    assert_true(tail_expected(&stays, 2.5, 1e5, 1) == after_500);
    struct tail same = often;
    tail_follow(&same, (double)NAN); /* carries no information */
    assert_true(same.n == often.n && same.from == often.from && same.scale == often.scale);
}

static void test_records(void **state)
{
    double most = 2;
    (void)state;
    assert_true(tail_record(&most, 3.9, 2, 4) == 0);
    assert_true(most > 2 && most < 3);
    assert_true(tail_record(&most, 50, 2, 4) == 50);
    assert_true(tail_record(&most, 50, 2, 4) == 50); /* the next ones still count */
    assert_true(tail_record(&most, 50, 2, 4) == 50);
    assert_true(tail_record(&most, 50, 2, 4) == 0); /* then they are known */
    for (int i = 0; i < 20000; i++)
        (void)tail_record(&most, 0, 2, 4);
    assert_true(tail_record(&most, 2, 2, 4) == 2); /* and forgotten */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_known_distribution),
        cmocka_unit_test(test_less_trust_is_more_expected),
        cmocka_unit_test(test_nothing_learned_is_never_reached),
        cmocka_unit_test(test_it_goes_on_learning),
        cmocka_unit_test(test_records),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
