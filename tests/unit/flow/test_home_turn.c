/* test_home_turn.c - turns whose words stand in another order, or that only make sense after the
 * turn before. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "flow/home/site/home_file_read.h"
#include "flow/home/home_turn.h"

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
        const char *text, *want; /* NULL: stays */
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
        {"in the attic turn on the lights", NULL}, /* no room of this home */
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

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_order), cmocka_unit_test(test_whole)};
    return cmocka_run_group_tests(tests, setup, teardown);
}
