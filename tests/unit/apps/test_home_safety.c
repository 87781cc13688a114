/* test_home_safety.c - what keeps actions safe: confirmations, and truthful replies. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "apps/home/home_memory.h"
#include "apps/home/home_truth.h"

static struct arena a;

static int setup(void **state)
{
    (void)state;
    arena_init(&a, 1 << 22);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    arena_fini(&a);
    return 0;
}

static void test_memory_keeps_and_forgets(void **state)
{
    const uint64_t s = 1000000000;
    const struct ask_plan_action unlock = {
        .name = "unlock", .fields = {{.key = "device", .text = "door"}}, .n_fields = 1};
    const struct ask_plan_action *actions[] = {&unlock};
    const char *lines[] = {"act: unlock"}, *says[] = {"Done."};
    const char *todos[] = {"unlock the door"};
    const struct home_waiting w = {actions, lines, says, todos, 1};
    struct home_waiting got;
    struct home_memory *m;
    struct home_focus f;
    struct err e = {0};
    char token[HOME_MEMORY_TOKEN], other[HOME_MEMORY_TOKEN];
    (void)state;
    assert_int_equal(home_memory_create(&m, &e), 0);
    assert_true(home_memory_wait(m, "anna/1", "anna", s, &w, token));
    assert_true(home_memory_wait(m, "", "ben", s, &w, other));
    assert_string_not_equal(token, other);
    assert_true(home_memory_waits(m, "anna/1", 2 * s));
    assert_false(home_memory_waits(m, "ben/1", 2 * s));
    home_memory_move_on(m, "ben/1");
    assert_true(home_memory_waits(m, "anna/1", 2 * s));
    assert_false(home_memory_take(m, "ben/1", "ben", NULL, 2 * s, &a, &got)); /* somebody else's */
    assert_false(home_memory_take(m, "", "", "0123", 2 * s, &a, &got));
    /* a token is worth nothing elsewhere, and stays valid at home */
    assert_false(home_memory_take(m, "anna/2", "anna", token, 2 * s, &a, &got));
    assert_false(home_memory_take(m, "", "anna", token, 2 * s, &a, &got));
    assert_false(home_memory_take(m, "anna/1", "ben", token, 2 * s, &a, &got));
    assert_false(home_memory_take(m, "anna/1", "anna", other, 2 * s, &a, &got));
    assert_false(home_memory_take(m, "", "anna", other, 2 * s, &a, &got));
    assert_true(home_memory_take(m, "anna/1", "anna", NULL, 2 * s, &a, &got));
    assert_string_equal(got.actions[0]->fields[0].text, "door");
    assert_string_equal(got.lines[0], "act: unlock");
    assert_string_equal(got.todos[0], "unlock the door");
    assert_false(home_memory_take(m, "anna/1", "anna", token, 2 * s, &a, &got)); /* once only */
    assert_true(home_memory_take(m, "", "ben", other, 2 * s, &a, &got));
    assert_false(home_memory_take(m, "", "ben", other, 2 * s, &a, &got));
    assert_true(home_memory_wait(m, "anna/1", "anna", s, &w, token));
    assert_false(home_memory_take(m, "anna/1", "anna", token, 300 * s, &a, &got)); /* too late */
    /* another plan in the same conversation: the token of the first confirms neither */
    assert_true(home_memory_wait(m, "anna/1", "anna", s, &w, token));
    assert_true(home_memory_wait(m, "anna/1", "anna", s, &w, other));
    assert_false(home_memory_take(m, "anna/1", "anna", token, 2 * s, &a, &got));
    assert_true(home_memory_take(m, "anna/1", "anna", other, 2 * s, &a, &got));
    assert_true(home_memory_wait(m, "anna/1", "anna", s, &w, token));
    home_memory_move_on(m, "anna/1"); /* a yes is no longer enough, but the token is */
    assert_false(home_memory_waits(m, "anna/1", 2 * s));
    assert_true(home_memory_take(m, "anna/1", "anna", token, 2 * s, &a, &got));

    home_memory_set_focus(
        m, "anna/1", "anna", s,
        &(struct home_focus){.device = "lights", .room = "kitchen", .last = "on @l"});
    home_memory_focus(m, "anna/1", 2 * s, &a, &f);
    assert_string_equal(f.room, "kitchen");
    assert_string_equal(f.last, "on @l");
    home_memory_focus(m, "ben/1", 2 * s, &a, &f);
    assert_null(f.device);
    home_memory_focus(m, "anna/1", 3600 * s, &a, &f);
    assert_null(f.device);
    for (uint32_t i = 0; i < 2 * HOME_MEMORY_MAX;
         i++) { /* the oldest of who has most are dropped */
        const char *key = arena_printf(&a, "client/%u", i);
        home_memory_set_focus(m, key, "client", (i + 2) * s, &(struct home_focus){.device = key});
    }
    home_memory_focus(m, "anna/1", 3 * s, &a, &f);
    assert_string_equal(f.device, "lights");
    home_memory_focus(m, "client/256", 513 * s, &a, &f);
    assert_null(f.device);
    home_memory_focus(m, "client/511", 513 * s, &a, &f);
    assert_string_equal(f.device, "client/511");
    home_memory_destroy(m);
}

static void test_replies_are_checked(void **state)
{
    static const char context[] =
        "act: set_machine; machine: mixer; sensor: speed; value: 12000 rpm; result: done";
    (void)state;
    assert_true(home_truth_holds(&a, context, "The speed of mixer is now set to 12000 rpm."));
    assert_false(home_truth_holds(&a, context, "The speed of mixer is now set to 12 rpm."));
    assert_false(home_truth_holds(&a, context, "The speed of mixer 3 is now 12000 rpm."));
    assert_false(home_truth_holds(&a, "act: call; person: Torque Wrench; result: done",
                                  "I am calling Torque Wicked."));
    assert_true(home_truth_holds(&a, "act: call; person: Dr. Singh; result: done",
                                 "Calling Dr. Singh now."));
    assert_true(home_truth_holds(&a, "time: 14:05", "It is 14:05."));
    assert_false(home_truth_holds(&a, "time: 14:05", "It is 14:06."));
    assert_true(home_truth_holds(&a, "chat: hello", "Hello! It's 1 of those days."));
    assert_false(home_truth_holds(&a, "result: 56; expr: 7 times 8", "7 times 8 is 54."));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_memory_keeps_and_forgets),
        cmocka_unit_test(test_replies_are_checked),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
