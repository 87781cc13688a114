/* test_home_lists.c - lists: what a text does with one, what is kept, and what is said of it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "apps/home/home_lists.h"
#include "apps/home/site/home_things.h"

static struct home_table *table;
static struct arena a;

static int setup(void **state)
{
    struct err e = {0};
    (void)state;
    arena_init(&a, 1 << 22);
    if (home_table_open(&table, SHOAL_TEST_DATA "/../../models/home.json", &e) < 0) {
        print_error("%s\n", e.msg);
        return -1;
    }
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    arena_fini(&a);
    home_table_close(table);
    return 0;
}

/* What is said to a text; "-": it is about no list. */
static const char *say(struct home_states *lists, const char *owner, const char *text)
{
    struct home_draft d = {0};
    struct home_words w = home_words_split(&a, text);
    if (!home_lists_read(&a, table, &w, &w, &d))
        return "-";
    home_lists_settle(&a, table, &d, lists, owner);
    assert_int_equal(d.n_actions, 1);
    assert_int_equal(d.n_lines, 1);
    return d.lines[0].say;
}

static void test_what_is_said_is_kept(void **state)
{
    static const struct {
        const char *owner, *text, *says;
    } rows[] = {
        {"a", "what's on my shopping list?", "The shopping list is empty."},
        {"a", "add apples, oranges and pears to the shopping list",
         "On the shopping list now: apples, oranges and pears."},
        {"a", "please put a pound of butter on my list",
         "On the shopping list now: pound of butter."},
        {"a", "Read me the shopping list, please",
         "On the shopping list: apples, oranges, pears and pound of butter."},
        {"a", "are oranges on the list", /* the whole list is the answer */
         "On the shopping list: apples, oranges, pears and pound of butter."},
        {"a", "is milk on the list", "Not on the shopping list: milk."},
        {"a", "take Apples and milk off the list",
         "Taken off the shopping list: Apples. Not on the shopping list: milk."},
        {"a", "add oranges to the shopping list", "On the shopping list now: oranges."},
        {"a", "what is on the shopping list",
         "On the shopping list: oranges, pears and pound of butter."},
        {"b", "what is on the shopping list", "The shopping list is empty."},
        {"a", "add call the plumber to my to do list", "On the to do list now: call the plumber."},
        {"a", "what is on my to do list", "On the to do list: call the plumber."},
        {"a", "remove everything from the to do list", "The to do list is empty."},
        {"a", "clear the shopping list", "The shopping list is empty."},
        {"a", "show me the shopping list", "The shopping list is empty."},
        /* not for this reader */
        {"a", "add eggs, sorry, milk to the shopping list", "-"},
        {"a", "add milk", "-"},
        {"a", "the shopping list is long", "-"},
        {"a", "turn on the lights", "-"},
        {"a", "", "-"},
    };
    (void)state;
    struct err e = {0};
    struct home_states *lists;
    assert_int_equal(home_states_create(&lists, NULL, &e), 0);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        assert_string_equal(say(lists, rows[i].owner, rows[i].text), rows[i].says);
    home_states_destroy(lists);
    assert_int_equal(a.rc, 0);
}

static void test_items_stay_as_they_were_said(void **state)
{
    static const char *const spelt = "add mops and halt to the shopping list";
    static const struct {
        const char *said, *first, *second;
    } rows[] = {{"add Hops and malt to the shoping list", "Hops", "malt"},
                {"please add hops and malt to the shopping list", "mops", "halt"}}; /* not alike */
    struct home_words w = home_words_split(&a, spelt);
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct home_draft d = {0};
        struct home_words said = home_words_split(&a, rows[i].said);
        assert_true(home_lists_read(&a, table, &w, &said, &d));
        const struct ask_plan_field *item = ask_plan_field_of(d.actions[0], "item");
        assert_int_equal(item->n_items, 2);
        assert_string_equal(item->items[0], rows[i].first);
        assert_string_equal(item->items[1], rows[i].second);
        assert_string_equal(ask_plan_text_of(d.actions[0], "list"), "shopping");
    }
}

static void test_lists_outlive_the_process(void **state)
{
    char path[] = "/tmp/shoal_lists_XXXXXX", file[64];
    (void)state;
    struct err e = {0};
    struct home_things *h;
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
    unlink(path);
    snprintf(file, sizeof(file), "%s.lists", path);
    assert_int_equal(home_things_create(&h, NULL, path, &e), 0);
    (void)say(home_things_lists(h), "a", "add milk and eggs to the shopping list");
    (void)say(home_things_lists(h), "a", "take milk off the shopping list");
    home_things_destroy(h);
    assert_int_equal(home_things_create(&h, NULL, path, &e), 0);
    assert_string_equal(say(home_things_lists(h), "a", "what is on the shopping list"),
                        "On the shopping list: eggs.");
    home_things_destroy(h);
    unlink(path);
    unlink(file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_is_said_is_kept),
        cmocka_unit_test(test_items_stay_as_they_were_said),
        cmocka_unit_test(test_lists_outlive_the_process),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
