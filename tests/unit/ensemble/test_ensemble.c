/* test_ensemble.c - when a cascade escalates. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <math.h>

#include <cmocka.h>

#include "base/mem.h"
#include "ensemble/ensemble.h"

static void test_measures(void **state)
{
    (void)state;
    struct ensemble e = {.kind = ENSEMBLE_CASCADE, .measure = ENSEMBLE_CONFIDENCE};
    assert_true(ensemble_sureness(&e, 0.7, 0.3, 0.2) == 0.7); /* out of scope: 1 - 0.3 */
    e.measure = ENSEMBLE_MARGIN;
    assert_true(fabs(ensemble_sureness(&e, 0.7, 0.6, 0.5) - 0.1) < 1e-12);
}

static void test_running(void **state)
{
    (void)state;
    struct ensemble e = {.kind = ENSEMBLE_CASCADE, .threshold = 0.5};
    struct ensemble_running r = {0, 0};
    assert_true(ensemble_running_sureness(&r) == 1);
    assert_false(ensemble_should_leave(&e, &r, true)); /* an empty answer counts as confident */
    for (int i = 0; i < 3; i++) {
        ensemble_running_add(&r, log(0.25));
        assert_false(ensemble_should_leave(&e, &r, false)); /* too early */
    }
    assert_true(ensemble_should_leave(&e, &r, true)); /* unless it was the whole answer */
    ensemble_running_add(&r, log(0.25));
    assert_true(fabs(ensemble_running_sureness(&r) - 0.25) < 1e-12);
    assert_true(ensemble_should_leave(&e, &r, false));
    for (int i = 0; i < 4; i++)
        ensemble_running_add(&r, log(1));
    assert_true(fabs(ensemble_running_sureness(&r) - 0.5) < 1e-12);
    e.threshold = 0.49;
    assert_false(ensemble_should_leave(&e, &r, false));
    ensemble_running_add(&r, -INFINITY);
    assert_true(ensemble_should_leave(&e, &r, false));
}

static void test_names(void **state)
{
    (void)state;
    assert_string_equal(ensemble_name(ENSEMBLE_CASCADE), "cascade");
    assert_string_equal(ensemble_name(ENSEMBLE_AVERAGE), "average");
    struct ensemble e = {.kind = ENSEMBLE_VOTE, .n_models = 1};
    e.models = mem_zalloc_n(1, sizeof(*e.models));
    e.models[0] = mem_strdup("a");
    ensemble_fini(&e);
    assert_int_equal(e.n_models, 0);
    assert_null(e.models);
    ensemble_fini(&e); /* calling it again is fine */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_measures),
        cmocka_unit_test(test_running),
        cmocka_unit_test(test_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
