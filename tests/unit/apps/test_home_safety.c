/* test_home_safety.c - what keeps actions safe: cues, corrections, risk, limits,
 * confirmations, and truthful replies. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "apps/home/home_memory.h"
#include "apps/home/home_speech.h"
#include "apps/home/home_truth.h"

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

static struct home_words plain(const char *text)
{
    struct home_words w = home_words_split(&a, text);
    return home_words_plain_all(&a, &w);
}

/* Rules that hold whatever the model says. */
static void test_cues_prevent(void **state)
{
    static const struct {
        const char *text;
        enum home_speech speech;
    } cases[] = {
        {"turn off the lights", HOME_SPEECH_COMMAND},
        {"could you turn off the lights", HOME_SPEECH_COMMAND},
        {"do not unlock the front door", HOME_SPEECH_NEGATE},
        {"please don\xe2\x80\x99t stop the pump", HOME_SPEECH_NEGATE},
        {"don't forget to lock the door", HOME_SPEECH_COMMAND},
        {"you shouldn't have opened the gate", HOME_SPEECH_NEGATE},
        {"my wife told me to unlock the back door", HOME_SPEECH_REPORT},
        {"what happens if I turn off the freezer", HOME_SPEECH_ASK},
        {"hey did you lock the door", HOME_SPEECH_ASK},
        {"lock the door if it rains", HOME_SPEECH_SUPPOSE},
        {"turn off the light if you can", HOME_SPEECH_COMMAND},
        {"open the gate no wait", HOME_SPEECH_RETRACT},
        {"turn off all lights except the kitchen", HOME_SPEECH_NEGATE},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct home_words w = plain(cases[i].text);
        enum home_speech s = home_speech_cue(table, &w, NULL);
        if (s != cases[i].speech)
            fail_msg("%s: %s", cases[i].text, home_table_speech_name(s));
    }
    const bool covered[] = {false, false, true, true, true, true};
    struct home_words w = plain("text Anna don't open the door"); /* quoted text is not a cue */
    assert_int_equal(home_speech_cue(table, &w, covered), HOME_SPEECH_COMMAND);
}

static const char *pieces(const char *text, const struct home_part *parts, uint32_t n_parts)
{
    struct home_words w = home_words_split(&a, text);
    struct home_said *said;
    uint32_t n = home_speech_pieces(&a, table, &w, parts, n_parts, &said, 16);
    const char *out = "";
    for (uint32_t i = 0; i < n; i++)
        out = arena_printf(&a, "%s%s%s: %s", out, i ? " | " : "",
                           home_table_speech_name(said[i].speech), said[i].text);
    return out;
}

static void test_corrections_are_applied(void **state)
{
    (void)state;
    assert_string_equal(
        pieces("open the garage, no wait, close it",
               (const struct home_part[]){{0, 5, HOME_SPEECH_RETRACT, 1}, {5, 7, 0, 1}}, 2),
        "retract: open the garage | command: close it");
    assert_string_equal(pieces("set the heating to 20 no 22 degrees",
                               (const struct home_part[]){{0, 4, HOME_SPEECH_COMMAND, 1},
                                                          {4, 6, HOME_SPEECH_RETRACT, 1},
                                                          {6, 8, HOME_SPEECH_COMMAND, 1}},
                               3),
                        "command: set the heating to 22 degrees");
    assert_string_equal(
        pieces("turn off the tv and lock the door", (const struct home_part[]){{0, 8, 0, 1}}, 1),
        "command: turn off the tv | command: lock the door");
    /* the rest of the sentence shows that this is not a command */
    assert_string_equal(
        pieces("in case of fire, open the gate", (const struct home_part[]){{4, 7, 0, 1}}, 1),
        "none: in case of fire | suppose: open the gate");
    assert_string_equal(
        pieces("lock the door the moment he leaves", (const struct home_part[]){{0, 3, 0, 1}}, 1),
        "suppose: lock the door | none: the moment he leaves");
    assert_string_equal(pieces("lock the door but don't turn off the light",
                               (const struct home_part[]){{0, 3, HOME_SPEECH_COMMAND, 1},
                                                          {3, 9, HOME_SPEECH_NEGATE, 1}},
                               2),
                        "command: lock the door | negate: but don't turn off the light");
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
        m, "anna/1", s,
        &(struct home_focus){.device = "lights", .room = "kitchen", .said = "on", .room_to = 1});
    home_memory_focus(m, "anna/1", 2 * s, &a, &f);
    assert_string_equal(f.room, "kitchen");
    assert_string_equal(f.said, "on");
    assert_int_equal(f.room_to, 1);
    home_memory_focus(m, "ben/1", 2 * s, &a, &f);
    assert_null(f.device);
    home_memory_focus(m, "anna/1", 3600 * s, &a, &f);
    assert_null(f.device);
    for (uint32_t i = 0; i < 2 * HOME_MEMORY_MAX; i++) { /* the oldest are dropped */
        const char *key = arena_printf(&a, "client/%u", i);
        home_memory_set_focus(m, key, (i + 2) * s, &(struct home_focus){.device = key});
    }
    home_memory_focus(m, "anna/1", 3 * s, &a, &f);
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
        cmocka_unit_test(test_cues_prevent),
        cmocka_unit_test(test_corrections_are_applied),
        cmocka_unit_test(test_memory_keeps_and_forgets),
        cmocka_unit_test(test_replies_are_checked),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
