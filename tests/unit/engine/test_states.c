/* test_states.c - a checkpoint is found by its page, and which one is replaced. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "engine/decode/states.h"

enum { FIRST = 7 };

static struct states *open_states(uint32_t n)
{
    struct states *s = NULL;
    struct err e = {0};
    assert_int_equal(states_create(&s, FIRST, n, 16, &e), 0);
    return s;
}

static uint32_t put(struct states *s, uint32_t page)
{
    const uint32_t state = states_take(s);
    assert_in_range(state, FIRST, FIRST + 2);
    states_keep(s, state, page);
    return state;
}

static void test_it_is_found_by_its_page_until_that_is_overwritten(void **state)
{
    struct states *s = open_states(2);
    (void)state;
    assert_int_equal(states_find(s, 3), STATES_NONE);
    const uint32_t a = put(s, 3);
    assert_int_equal(states_find(s, 3), a);
    assert_int_equal(states_find(s, 4), STATES_NONE);
    const uint32_t b = put(s, 3); /* the page has one: that one stays */
    assert_int_not_equal(b, a);
    assert_int_equal(states_find(s, 3), a);
    states_forget(s, 3);
    states_forget(s, 3);
    assert_int_equal(states_find(s, 3), STATES_NONE);
    assert_int_not_equal(put(s, 4), put(s, 5)); /* both are free again */
    states_destroy(s);
}

static void test_the_oldest_is_replaced_and_cold_ones_before_it(void **state)
{
    struct states *s = open_states(3);
    (void)state;
    put(s, 0);
    put(s, 1);
    put(s, 2);
    put(s, 3);
    assert_int_equal(states_find(s, 0), STATES_NONE);
    states_cool(s, 3);
    states_cool(s, 9); /* has none */
    put(s, 4);
    assert_int_equal(states_find(s, 3), STATES_NONE);
    states_hold(s, states_find(s, 1)); /* used: now 2 is the oldest */
    states_release(s, states_find(s, 1));
    put(s, 5);
    assert_int_equal(states_find(s, 2), STATES_NONE);
    assert_int_not_equal(states_find(s, 1), STATES_NONE);
    states_destroy(s);
}

static void test_free_ones_are_taken_before_cold_ones(void **state)
{
    struct states *s = open_states(3);
    (void)state;
    put(s, 0);
    states_cool(s, 0);
    put(s, 1);
    put(s, 2);
    assert_int_not_equal(states_find(s, 0), STATES_NONE);
    put(s, 3);
    assert_int_equal(states_find(s, 0), STATES_NONE);
    states_destroy(s);
}

static void test_what_is_held_is_not_replaced(void **state)
{
    struct states *s = open_states(2);
    (void)state;
    const uint32_t a = put(s, 0);
    states_hold(s, a);
    states_hold(s, a);
    const uint32_t b = states_take(s);
    assert_int_not_equal(b, a);
    assert_int_equal(states_take(s), STATES_NONE); /* one is read, one is written */
    states_release(s, a);
    states_cool(s, 0); /* not while it is held */
    assert_int_equal(states_take(s), STATES_NONE);
    states_forget(s, 0);
    assert_int_equal(states_take(s), STATES_NONE);
    states_release(s, a);
    assert_int_equal(states_take(s), a);
    states_give_back(s, b);
    assert_int_equal(states_take(s), b);
    states_destroy(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_it_is_found_by_its_page_until_that_is_overwritten),
        cmocka_unit_test(test_the_oldest_is_replaced_and_cold_ones_before_it),
        cmocka_unit_test(test_free_ones_are_taken_before_cold_ones),
        cmocka_unit_test(test_what_is_held_is_not_replaced),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
