/* test_draft.c - guesses of the next tokens: what is guessed, and when it pays. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "engine/decode/draft.h"

#define N(a) ((uint32_t)(sizeof(a) / sizeof((a)[0])))

static void test_guesses_what_followed_before(void **state)
{
    (void)state;
    const struct draft_costs c = {.always = true};
    static const int32_t once[] = {5, 1, 2, 3, 40, 41, 42, 9, 1, 2, 3};
    static const int32_t twice[] = {7, 1, 2, 3, 40, 8, 6, 1, 2, 3, 50, 8, 6, 1, 2, 3};
    static const int32_t longer[] = {7, 1, 2, 3, 40, 0, 6, 1, 2, 3, 50, 0, 7, 1, 2, 3};
    static const int32_t none[] = {1, 2, 4, 40, 9, 1, 2, 3};
    static const int32_t loop[] = {9, 4, 4, 4, 4};
    struct draft d = {0};
    assert_int_equal(draft_propose(&d, &c, once, N(once), 100, 1), 7);
    assert_int_equal(d.n, 7);
    assert_memory_equal(d.tokens, once + 4, 7 * sizeof(int32_t));
    assert_int_equal(draft_propose(&d, &c, once, N(once), 2, 1), 2); /* room */
    assert_int_equal(draft_propose(&d, &c, once, N(once), 0, 1), 0);
    assert_int_equal(draft_propose(&d, &c, twice, N(twice), 1, 1), 1); /* the last one */
    assert_int_equal(d.tokens[0], 50);
    assert_int_equal(draft_propose(&d, &c, longer, N(longer), 1, 1), 1); /* the longest one */
    assert_int_equal(d.tokens[0], 40);
    assert_int_equal(draft_propose(&d, &c, none, N(none), 8, 1), 0);
    assert_int_equal(d.n, 0);
    assert_int_equal(draft_propose(&d, &c, once, 3, 8, 1), 0); /* too few tokens */
    assert_int_equal(draft_propose(&d, &c, loop, N(loop), 8, 1), 1);
    assert_int_equal(d.tokens[0], 4);
}

static const int32_t text[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 1, 2, 3};

/* Guesses that fail get shorter and stop; after a while one is tried, and success brings them
 * back. */
static void test_follows_success(void **state)
{
    (void)state;
    struct draft_costs c = {0};
    struct draft d = {0};
    uint32_t n = 0, tried = 0;
    for (uint32_t rows = 1; rows <= 9; rows++) /* cheap rows: 5 % each */
        draft_saw_step(&c, rows, 1000000 + 50000 * rows);
    for (int i = 0; i < 30; i++)
        if ((n = draft_propose(&d, &c, text, N(text), 8, 1)) > 0)
            draft_saw(&d, n);
    assert_int_equal(n, 8);
    for (int i = 0; i < 100; i++)
        if ((n = draft_propose(&d, &c, text, N(text), 8, 1)) > 0)
            draft_saw(&d, 0);
    assert_int_equal(n, 0);
    for (int i = 0; i < 1000; i++)
        if ((n = draft_propose(&d, &c, text, N(text), 8, 1)) > 0) {
            assert_int_equal(n, 1);
            draft_saw(&d, 0);
            tried++;
        }
    assert_true(tried > 10 && tried < 30);
    for (int i = 0; i < 1000; i++)
        if ((n = draft_propose(&d, &c, text, N(text), 8, 1)) > 0)
            draft_saw(&d, n);
    assert_int_equal(n, 8);
}

/* Where every row costs as much as the first, no guess pays, however often it is right. */
static void test_follows_costs(void **state)
{
    (void)state;
    struct draft_costs c = {0};
    struct draft d = {.hit = {0.99f, 0.99f}};
    for (int i = 0; i < 20; i++)
        for (uint32_t rows = 1; rows <= 9; rows++)
            draft_saw_step(&c, rows, 1000000 * rows);
    assert_int_equal(draft_propose(&d, &c, text, N(text), 8, 1), 0);
    for (int i = 0; i < 200; i++)
        for (uint32_t rows = 1; rows <= 9; rows++)
            draft_saw_step(&c, rows, 1000000);
    assert_int_equal(draft_propose(&d, &c, text, N(text), 8, 1), 8);
    draft_saw_step(&c, 0, 5); /* no rows, and more than are known: nothing to learn */
    draft_saw_step(&c, DRAFT_KNOWN + 1, 5);
    assert_int_equal(draft_propose(&d, &c, text, N(text), 8, DRAFT_KNOWN + 8), 0);
}

/* One step that stood still does not turn guesses off. */
static void test_a_pause_is_not_a_cost(void **state)
{
    (void)state;
    struct draft_costs c = {0};
    struct draft d = {.hit = {0.9f, 0.9f}};
    for (uint32_t rows = 1; rows <= 9; rows++)
        draft_saw_step(&c, rows, 1000000 + 20000 * rows);
    for (uint32_t rows = 2; rows <= 9; rows++)
        draft_saw_step(&c, rows, 5000000000u);
    assert_int_equal(draft_propose(&d, &c, text, N(text), 8, 1), 8);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_guesses_what_followed_before),
        cmocka_unit_test(test_follows_success),
        cmocka_unit_test(test_follows_costs),
        cmocka_unit_test(test_a_pause_is_not_a_cost),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
