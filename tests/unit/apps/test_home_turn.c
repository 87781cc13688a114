/* test_home_turn.c - turns with unusual word order, or that only make sense after the previous
 * turn. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "apps/home/site/home_file_read.h"
#include "apps/home/turn/home_reword.h"
#include "apps/home/turn/home_turn.h"

static const char house[] = "name: my house\n"
                            "rooms:\n"
                            "  - {id: kitchen}\n"
                            "  - {id: living, name: Living Room, aliases: [lounge]}\n"
                            "devices:\n"
                            "  - {id: light.ceiling, name: lights, kind: light, room: kitchen}\n"
                            "  - {id: switch.fan, name: fan, kind: fan}\n"
                            "  - {id: light.desk, name: desk lamp, kind: light, room: living}\n"
                            "  - {id: light.floor, name: floor lamp, kind: light, room: living}\n"
                            "  - {id: door.front, name: front door, kind: door}\n"
                            "  - {id: door.back, name: back door, kind: door}\n"
                            "  - {id: door.side, name: side door, kind: door}\n"
                            "machines:\n"
                            "  - {id: pump.3, name: pump 3, kind: machine}\n";

static struct home_table *table;
static struct home_file *home;
static struct arena a;

static int setup(void **state)
{
    struct err e = {0};
    (void)state;
    arena_init(&a, 1 << 22);
    if (home_table_open(&table, SHOAL_TEST_DATA "/../../models/home.json", &e) < 0 ||
        home_file_read_text(&home, table, house, strlen(house), "house.yaml", &e) < 0) {
        print_error("%s\n", e.msg);
        return -1;
    }
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    home_file_unref(home);
    home_table_close(table);
    arena_fini(&a);
    return 0;
}

static void check(const char *text, const char *got, const char *want)
{
    if (!got != !want || (got && strcmp(got, want) != 0))
        fail_msg("%s: %s, expected %s", text, got ? got : "(unchanged)",
                 want ? want : "(unchanged)");
}

static void test_order(void **state)
{
    static const struct {
        const char *text, *want; /* NULL: unchanged */
    } cases[] = {
        {"in 20 minutes turn off the heating", "turn off the heating in 20 minutes"},
        {"At 7 pm, close the blinds.", "close the blinds At 7 pm"},
        {"tomorrow evening please open the gate", "open the gate tomorrow evening"},
        {"on friday at 8 am turn on the fan", "turn on the fan on friday at 8 am"},
        {"in the lounge turn on the lights", "turn on the lights in the lounge"},
        {"at 7 pm close the blinds and turn on the fan",
         "close the blinds at 7 pm, then turn on the fan at 7 pm"},
        {"turn off the heating in 20 minutes", NULL},
        {"at 7 pm don't close the blinds", NULL},
        {"in case it rains close the window", NULL},
        {"in the attic turn on the lights", NULL}, /* not a room of this home */
        {"after dinner turn off the lights", NULL},
        {"please turn off the lights", NULL},
        {"at 7 pm", NULL},
        {"at", NULL},
        {"", NULL},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct home_words w = home_words_split(&a, cases[i].text);
        check(cases[i].text, home_turn_order(&a, table, home, &w), cases[i].want);
    }
    struct home_words w = home_words_split(&a, "in the kitchen turn on the lights");
    check("without a home", home_turn_order(&a, table, NULL, &w), NULL);
    assert_int_equal(a.rc, 0);
}

static const char *whole(const struct home_focus *last, const char *text)
{
    struct home_words w = home_words_split(&a, text);
    return home_turn_whole(&a, table, home, last, &w);
}

static void test_whole(void **state)
{
    /* words:                        0    1  2   3       4      5 */
    const struct home_focus before = {.said = "turn on the kitchen lights now",
                                      .room_from = 3,
                                      .room_to = 4,
                                      .thing_from = 4,
                                      .thing_to = 5};
    const struct home_focus behind = {.said = "turn on the lights in the kitchen",
                                      .thing_from = 3,
                                      .thing_to = 4,
                                      .room_from = 6,
                                      .room_to = 7};
    const struct home_focus nowhere = {
        .said = "turn on the lights", .thing_from = 3, .thing_to = 4};
    const struct home_focus nothing = {0},
                            beyond = {.said = "stop", .thing_from = 3, .thing_to = 9};
    (void)state;
    check("room", whole(&before, "and the living room"), "turn on the living room lights now");
    check("alias", whole(&before, "in the lounge too"), "turn on the lounge lights now");
    check("room behind", whole(&behind, "and the lounge"), "turn on the lights in the lounge");
    check("no room yet", whole(&nowhere, "and the lounge"), "turn on the lounge lights");
    check("thing", whole(&before, "and the fan"), "turn on the fan now");
    check("thing, room behind", whole(&behind, "Same for the fan!"), "turn on the fan");
    check("machine", whole(&nowhere, "also pump 3"), "turn on the pump 3");
    const struct home_focus lamp = {
        .device = "desk lamp", .said = "turn on the desk lamp", .thing_from = 3, .thing_to = 5};
    const struct home_focus door = {
        .device = "front door", .said = "lock the front door", .thing_from = 2, .thing_to = 4};
    check("other", whole(&lamp, "the other one too"), "turn on the floor lamp");
    check("several others", whole(&door, "and the other one"), NULL);
    check("no other", whole(&nowhere, "and the other one"), NULL);
    check("not marked", whole(&before, "the living room"), NULL);
    check("not known", whole(&before, "and the attic"), NULL);
    check("more words", whole(&before, "and the kitchen is cold"), NULL);
    check("only marks", whole(&before, "and too"), NULL);
    check("empty", whole(&before, ""), NULL);
    check("nothing before", whole(&nothing, "and the fan"), NULL);
    check("places that do not fit", whole(&beyond, "and the fan"), NULL);
    assert_int_equal(a.rc, 0);
}

static void test_reword(void **state)
{
    static const struct {
        const char *text, *want; /* NULL: unchanged */
    } cases[] = {
        {"um turn on the uh fan", "turn on the fan"},
        {"I'm rather cold, could you turn the heating up", "could you turn the heating up"},
        {"it's late, lock the front door", "lock the front door"},
        {"since it's dark could you open the blinds", "could you open the blinds"},
        {"it's cold if you ask me, turn on the heating", NULL}, /* a condition, not a reason */
        {"it's what she said, turn off the fan", NULL},
        {"it's late", NULL},
        {"we're out of milk, put it on the list", NULL}, /* "it" is in the reason */
        {"Front door, lock!", "lock the front door"},
        {"front door lock", NULL}, /* the name of a thing */
        {"would you mind closing the blinds", "close the blinds"},
        {"Would you mind shutting every door?", "shut all doors?"},
        {"would you mind singing", NULL},
        {"lock the door and by the way open the blinds", "lock the door and open the blinds"},
        {"I'm the one who plays", NULL},
        {"turn off every light", "turn off all lights"},
        {"switch off each and every desk lamp, please", "switch off all desk lamps, please"},
        {"lock every single door in the whole house.", "lock all doors."},
        {"close each of the blinds", NULL},
        {"turn off all the lights in every room", "turn off all the lights"},
        {"in every room", NULL},
        {"wake me every day", NULL},
        {"stop pump three.", "stop pump 3."},
        {"stop pump four", NULL},
        {"a degree warmer", "1 degree warmer"},
        {"make it a degree", NULL},
        {"half an hour from now turn off the fan", "in half an hour turn off the fan"},
        {"turn off the fan ten minutes from now.", "turn off the fan in ten minutes."},
        {"turn off the fan an hour and a half from now", "turn off the fan in an hour and a half"},
        {"turn off the fan from now", NULL},
        {"from now", NULL},
        {"turn off the fan, we're late", "turn off the fan"},
        {"turn off the fan, dinner is ready. Open the blinds", "turn off the fan, Open the blinds"},
        {"turn off the fan, the desk lamp is fine", NULL}, /* a statement about it may matter */
        {"turn off the fan, I'm leaving at 8", NULL},
        {"turn off the fan, it's what she said", NULL},
        {"turn it off, dinner is ready", NULL},
        {"tell Tom dinner is ready, we're late", NULL},
        {"play jazz, but not too loud", "play jazz"},
        {"play jazz but not too loud and lock the door", NULL},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct home_words w = home_words_split(&a, cases[i].text);
        bool changed = home_reword_front(&a, table, &w);
        changed |= home_reword_things(&a, table, home, &w);
        check(cases[i].text, changed ? home_words_join(&a, &w, 0, w.n) : NULL, cases[i].want);
    }
    assert_int_equal(a.rc, 0);
}

/* Memory grows linearly with the text, not quadratically. */
static void test_many_words(void **state)
{
    static const char *const words[] = {"um ", "every light ", "all lights in every room "};
    (void)state;
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        struct arena own;
        char text[4096] = "";
        arena_init(&own, 1 << 20);
        for (size_t n = 0, step = strlen(words[i]); n + step < sizeof(text); n += step)
            memcpy(text + n, words[i], step + 1);
        struct home_words w = home_words_split(&own, text);
        bool changed = home_reword_front(&own, table, &w);
        changed |= home_reword_things(&own, table, home, &w);
        assert_true(changed);
        assert_int_equal(own.rc, 0);
        arena_fini(&own);
    }
}

static void test_except(void **state)
{
    static const struct {
        const char *text, *left, *except; /* NULL: no exception */
    } cases[] = {
        {"turn off all lights except the kitchen", "turn off all lights", "the kitchen"},
        {"all lights off, apart from the desk lamp.", "all lights off.", "the desk lamp"},
        {"turn off everything but not the fan and lock the front door",
         "turn off everything and lock the front door", "the fan"},
        {"lock all doors except for the ones in the lounge", "lock all doors",
         "the ones in the lounge"},
        {"turn up the fan but not too much", "turn up the fan but not too much", NULL},
        {"turn off everything except", "turn off everything except", NULL},
        {"except the kitchen", "except the kitchen", NULL},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct home_words w = home_words_split(&a, cases[i].text);
        check(cases[i].text, home_reword_except(&a, table, home, &w), cases[i].except);
        check(cases[i].text, home_words_join(&a, &w, 0, w.n), cases[i].left);
    }
}

static void test_again(void **state)
{
    static const struct {
        const char *text, *left, *again; /* NULL: no repetition, or the words stay */
    } cases[] = {
        {"turn off the fan every night at 11 pm", "turn off the fan at 11 pm", "every night"},
        {"every monday and thursday at 8 turn on the fan", "at 8 turn on the fan",
         "every monday and thursday"},
        {"turn on the fan every 30 minutes", "turn on the fan", "every 30 minutes"},
        {"every day turn on the fan and open the blinds", "turn on the fan and open the blinds",
         "every day"},
        {"close the blinds on weekdays", "close the blinds", "on weekdays"},
        {"turn on the fan and open the blinds every day",
         "turn on the fan and open the blinds every day", NULL},
        {"tell Anna that I run every day", "tell Anna that I run every day", NULL},
        {"he plays every day", "he plays every day", NULL},
        {"cancel the alarm every weekday", "cancel the alarm every weekday", NULL},
        {"what happens every day", "what happens every day", NULL},
        {"turn off all lights", "turn off all lights", NULL},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct home_words w = home_words_split(&a, cases[i].text);
        check(cases[i].text, home_turn_again(&a, table, &w), cases[i].again);
        check(cases[i].text, home_words_join(&a, &w, 0, w.n), cases[i].left);
    }
}

static void test_corrections(void **state)
{
    const struct home_focus off = {
        .device = "fan", .said = "turn off the fan", .thing_from = 3, .thing_to = 4};
    const struct home_focus set = {.device = "heating",
                                   .said = "set the heating to 20 degrees",
                                   .thing_from = 2,
                                   .thing_to = 3,
                                   .value_from = 4,
                                   .value_to = 6};
    (void)state;
    check("thing", whole(&off, "sorry, the desk lamp"), "turn off the desk lamp");
    check("room", whole(&off, "actually make that the kitchen"), "turn off the kitchen fan");
    check("both", whole(&off, "I mean the kitchen lights"), "turn off the kitchen lights");
    check("value", whole(&set, "I mean 21"), "set the heating to 21 degrees");
    check("unit", whole(&set, "or rather 70 percent"), "set the heating to 70 percent");
    const struct home_focus room = {.said = "heat the kitchen", .room_from = 2, .room_to = 3};
    check("room alone", whole(&room, "no, the lounge"), "heat the lounge");
    check("no thing", whole(&room, "no, the fan"), NULL);
    check("no value", whole(&off, "I mean 21"), NULL);
    check("talk", whole(&off, "sorry, my mistake"), NULL);
    check("fragment", home_turn_instead(&a, table, home, &off, "the front door"),
          "turn off the front door");
    check("not known", home_turn_instead(&a, table, home, &off, "the attic"), NULL);
    check("nothing", home_turn_instead(&a, table, home, &off, ""), NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_order),     cmocka_unit_test(test_whole),
        cmocka_unit_test(test_reword),    cmocka_unit_test(test_except),
        cmocka_unit_test(test_again),     cmocka_unit_test(test_corrections),
        cmocka_unit_test(test_many_words)};
    return cmocka_run_group_tests(tests, setup, teardown);
}
