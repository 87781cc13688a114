/* test_vote.c - votes for labels. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <math.h>
#include <stdio.h>

#include <cmocka.h>

#include "ensemble/vote.h"

static void add(struct vote *v, const char *label, double weight, double confidence)
{
    assert_int_equal(vote_add(v, label, weight, confidence), 0);
}

static void test_majority(void **state)
{
    (void)state;
    struct vote v = {.labels = NULL};
    add(&v, "on", 1, 0.99);
    add(&v, "off", 1, 0.4);
    add(&v, "off", 1, 0.5);
    vote_sort(&v);
    assert_string_equal(v.labels[0].label, "off"); /* two unsure votes against a sure one */
    assert_true(fabs(vote_share(&v, 0) - 2.0 / 3) < 1e-12);
    assert_int_equal(v.n, 2);
    vote_fini(&v);
}

static void test_weights(void **state)
{
    (void)state;
    struct vote v = {.labels = NULL};
    add(&v, "off", 1, 0.9);
    add(&v, "off", 1, 0.9);
    add(&v, "on", 2.5, 0.5);
    vote_sort(&v);
    assert_string_equal(v.labels[0].label, "on");
    assert_true(fabs(vote_share(&v, 0) - 2.5 / 4.5) < 1e-12);
    vote_fini(&v);
}

static void test_ties(void **state)
{
    (void)state;
    struct vote v = {.labels = NULL};
    add(&v, "a", 1, 0.5);
    add(&v, "b", 1, 0.75);
    add(&v, "c", 1, 0.75);
    vote_sort(&v);
    assert_string_equal(v.labels[0].label, "b"); /* the surer one; then the first one */
    assert_string_equal(v.labels[1].label, "c");
    assert_string_equal(v.labels[2].label, "a");
    vote_fini(&v);
    assert_true(
        vote_share(&(struct vote){.labels = (struct vote_label[]){{"x", 0, 0}}, .n = 1}, 0) == 0);
}

static void test_many(void **state)
{
    (void)state;
    static char names[100][8];
    struct vote v = {.labels = NULL};
    for (int i = 0; i < 100; i++) {
        snprintf(names[i], sizeof(names[i]), "l%d", i);
        add(&v, names[i], (i * 37 % 100) / 100.0, 1);
    }
    vote_sort(&v);
    assert_int_equal(v.n, 100);
    for (uint32_t i = 1; i < v.n; i++)
        assert_true(v.labels[i - 1].votes >= v.labels[i].votes);
    vote_fini(&v);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_majority),
        cmocka_unit_test(test_weights),
        cmocka_unit_test(test_ties),
        cmocka_unit_test(test_many),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
