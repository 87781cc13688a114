/* test_quality.c - measures of quality against figures worked out by hand. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "eval/quality.h"

static void near(double have, double want)
{
    if (!(fabs(have - want) < 1e-9))
        fail_msg("%.12f is not %.12f", have, want);
}

static void test_f1(void **state)
{
    (void)state;
    struct quality_counts c = {0};
    struct err e = {0};
    near(quality_f1(0, 0, 0).f1, 0.0);
    near(quality_f1(2, 4, 3).precision, 0.5);
    near(quality_f1(2, 4, 3).recall, 2.0 / 3.0);
    near(quality_f1(2, 4, 3).f1, 4.0 / 7.0);
    /* a: 1 of 2 predictions right, 1 true; b: never predicted, 1 true */
    assert_int_equal(quality_add(&c, "a", 1, 2, 1, &e), 0);
    assert_int_equal(quality_add(&c, "b", 0, 0, 1, &e), 0);
    near(quality_macro_f1(&c), (2.0 / 3.0) / 2.0);
    near(quality_micro(&c).f1, 0.5);
    mem_fail_at(1);
    struct quality_counts d = {0};
    assert_int_equal(quality_add(&d, "a", 1, 1, 1, &e), SHOAL_ENOMEM);
    mem_fail_at(0);
    quality_counts_fini(&c);
}

static void test_calibration(void **state)
{
    (void)state;
    struct quality_ece m = {0};
    near(quality_ece(&m), 0.0);
    quality_ece_add(&m, 0.99, true);
    quality_ece_add(&m, 0.97, true); /* same bin: mean 0.98, all right: 0.02 off */
    quality_ece_add(&m, 0.5, false); /* 0.5 off */
    quality_ece_add(&m, 1.0, false); /* last bin too */
    near(quality_ece(&m), ((0.99 + 0.97 + 1.0 - 2.0) + 0.5) / 4.0);
}

static void spans_are(const char *const *tags, uint32_t n, const char *want)
{
    struct quality_span s[16];
    char have[256] = "";
    uint32_t k = quality_spans(tags, n, s);
    for (uint32_t i = 0; i < k; i++)
        snprintf(have + strlen(have), sizeof(have) - strlen(have), "%.*s%u-%u ",
                 (int)s[i].type_bytes, s[i].type, s[i].from, s[i].to);
    assert_string_equal(have, want);
}

static void test_spans(void **state)
{
    (void)state;
    static const char *const bio[] = {"O", "B-x", "I-x", "B-x", "I-y", "O", "I-x"};
    static const char *const bioes[] = {"S-x", "B-x", "I-x", "E-x", "E-x", "O", "S-y"};
    spans_are(bio, 7, "x1-3 x3-4 y4-5 x6-7 ");
    spans_are(bioes, 7, "x0-1 x1-4 x4-5 y6-7 ");
    spans_are(bio, 0, "");
}

static void test_rouge(void **state)
{
    (void)state;
    struct quality_rouge r;
    struct err e = {0};
    assert_int_equal(quality_rouge(&r, "The cat sat.", "the cat sat", &e), 0);
    near(r.r1, 1.0);
    near(r.r2, 1.0);
    near(r.rl, 1.0);
    /* 3 of 4 and 3 of 5 words; bigrams "the cat"; longest "the cat mat" */
    assert_int_equal(quality_rouge(&r, "the cat the mat", "the cat on a mat", &e), 0);
    near(r.r1, quality_f1(3, 4, 5).f1);
    near(r.r2, quality_f1(1, 3, 4).f1);
    near(r.rl, quality_f1(3, 4, 5).f1);
    assert_int_equal(quality_rouge(&r, "", "a", &e), 0);
    near(r.r1 + r.r2 + r.rl, 0.0);
    for (uint64_t i = 1; i <= 4; i++) {
        mem_fail_at(i);
        assert_int_equal(quality_rouge(&r, "a b", "a", &e), SHOAL_ENOMEM);
        mem_fail_at(0);
    }
}

static void test_ranking_and_spread(void **state)
{
    (void)state;
    const double s[] = {0.1, 0.4, 0.35, 0.8}, ties[] = {1, 1, 1, 1};
    const bool l[] = {false, false, true, true}, same[] = {true, true, true, true};
    uint32_t order[4];
    double v[] = {3, 1, 2, 4};
    near(quality_auc(s, l, 4, order), 0.75);
    near(quality_auc(ties, l, 4, order), 0.5);
    assert_true(isnan(quality_auc(s, same, 4, order)));
    near(quality_quantile(v, 4, 0.5), 2.5);
    near(quality_quantile(v, 4, 1.0), 4.0);
    near(quality_quantile(v, 1, 0.99), 1.0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_f1),
        cmocka_unit_test(test_calibration),
        cmocka_unit_test(test_spans),
        cmocka_unit_test(test_rouge),
        cmocka_unit_test(test_ranking_and_spread),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
