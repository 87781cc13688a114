/* test_home_lists.c - lists: what is kept, and what is said of it. */
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

/* What is said when an action on a list is carried out; items: "apples|pears", NULL: none. */
static const char *say(struct home_states *lists, const char *owner, const char *action,
                       const char *items, const char *list)
{
    struct home_draft d = {0};
    const char *w[ASK_PLAN_MAX_ITEMS];
    struct ask_plan_action o = {.name = action};
    uint32_t n = 0;
    char *save = NULL;
    for (char *p = items ? strtok_r(arena_copy(&a, items, strlen(items) + 1), "|", &save) : NULL; p;
         p = strtok_r(NULL, "|", &save))
        w[n++] = p;
    if (n > 0)
        o.fields[o.n_fields++] = (struct ask_plan_field){.key = "item", .items = w, .n_items = n};
    if (list)
        o.fields[o.n_fields++] = (struct ask_plan_field){.key = "list", .text = list};
    o.fields[o.n_fields++] = (struct ask_plan_field){.key = "result", .text = "done"};
    assert_true(home_draft_reserve(&a, &d));
    d.actions[d.n_actions++] = &o;
    d.lines[d.n_lines++] = (struct home_draft_line){.say = "-", .action = 1};
    home_lists_settle(&a, table, &d, lists, owner);
    return d.lines[0].say;
}

static void test_what_is_said_is_kept(void **state)
{
    static const struct {
        const char *owner, *action, *items, *list, *says;
    } rows[] = {
        {"a", "query_lists", NULL, NULL, "There is nothing on any list."},
        {"a", "create_list", NULL, "camping", "The camping list is empty."},
        {"a", "query_list", NULL, "shopping", "The shopping list is empty."},
        {"a", "add_to_list", "apples|oranges|pears", "shopping",
         "On the shopping list now: apples, oranges and pears."},
        {"a", "add_to_list", "pound of butter", NULL, /* the usual list */
         "On the shopping list now: pound of butter."},
        {"a", "query_list", NULL, "shopping",
         "On the shopping list: apples, oranges, pears and pound of butter."},
        {"a", "query_list", "oranges", "shopping", /* the whole list is the answer */
         "On the shopping list: apples, oranges, pears and pound of butter."},
        {"a", "query_list", "milk", "shopping", "Not on the shopping list: milk."},
        {"a", "remove_from_list", "Apples|milk", "shopping",
         "Taken off the shopping list: Apples. Not on the shopping list: milk."},
        {"a", "add_to_list", "oranges", "shopping", "On the shopping list now: oranges."},
        {"a", "query_list", NULL, "shopping",
         "On the shopping list: oranges, pears and pound of butter."},
        {"b", "query_list", NULL, "shopping", "The shopping list is empty."},
        {"a", "add_to_list", "call the plumber", "to do",
         "On the to do list now: call the plumber."},
        {"a", "query_lists", NULL, NULL, "Your lists: shopping and to do."},
        {"b", "query_lists", NULL, NULL, "There is nothing on any list."},
        {"a", "create_list", NULL, "to do", "On the to do list: call the plumber."},
        {"a", "clear_list", NULL, "to do", "The to do list is empty."},
        {"a", "clear_list", NULL, "shopping", "The shopping list is empty."},
        {"a", "turn_on", NULL, NULL, "-"},
    };
    (void)state;
    struct err e = {0};
    struct home_states *lists;
    assert_int_equal(home_states_create(&lists, NULL, &e), 0);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        assert_string_equal(say(lists, rows[i].owner, rows[i].action, rows[i].items, rows[i].list),
                            rows[i].says);
    home_states_destroy(lists);
    assert_int_equal(a.rc, 0);
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
    (void)say(home_things_lists(h), "a", "add_to_list", "milk|eggs", NULL);
    (void)say(home_things_lists(h), "a", "remove_from_list", "milk", NULL);
    home_things_destroy(h);
    assert_int_equal(home_things_create(&h, NULL, path, &e), 0);
    assert_string_equal(say(home_things_lists(h), "a", "query_list", NULL, NULL),
                        "On the shopping list: eggs.");
    home_things_destroy(h);
    unlink(path);
    unlink(file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_is_said_is_kept),
        cmocka_unit_test(test_lists_outlive_the_process),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
