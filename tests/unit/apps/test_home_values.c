/* test_home_values.c - numbers, units, durations and times as people say them, and actions in
 * words, with the table of the pack. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "apps/home/home_act.h"
#include "apps/home/home_values.h"

static struct home_table *table;

static int setup(void **state)
{
    struct err e = {0};
    (void)state;
    int rc = home_table_open(&table, SHOAL_TEST_DATA "/../../models/home.json", &e);
    if (rc < 0)
        print_error("%s\n", e.msg);
    return rc;
}

static int teardown(void **state)
{
    (void)state;
    home_table_close(table);
    return 0;
}

static void test_values(void **state)
{
    (void)state;
    static const struct {
        const char *text, *action, *show;
        double number;
        const char *unit;
    } values[] = {
        {"twenty-one degrees", "set_temperature", "21 degrees", 21, "celsius"},
        {"1", "set_temperature", "1 degree", 1, "celsius"},
        {"one hundred percent", "open", "100%", 100, "percent"},
        {"minus five", "set_temperature", "-5 degrees", -5, "celsius"},
        {"12,000 rpm", "set_machine", "12000 rpm", 12000, "rpm"},
        {"1,5 bar", "set_machine", "1,5 bar", 0, NULL},
        {"twelve thousand five hundred rpm", "set_machine", "12500 rpm", 12500, "rpm"},
        {"two hundred and five", "set_volume", "200 and 5", 0, NULL},
        {"2 1/2 bar", "set_machine", "2.5 bar", 2.5, "bar"},
        {"½ bar", "set_machine", "0.5 bar", 0.5, "bar"},
        {"-5 °C", "set_temperature", "-5 degrees", -5, "celsius"},
        {"4 Bar", "set_machine", "4 bar", 4, "bar"},
        {"4 pH", "set_machine", "4 pH", 4, "pH"}, /* an unknown one keeps its case */
        {"two point five kW", "set_machine", "2.5 kW", 2.5, "kW"},
        {"half", "set_brightness", "50%", 50, "percent"},
    };
    static const struct {
        const char *text, *show;
        double seconds;
    } durations[] = {
        {"ten minutes", "10 minutes", 600},     {"an hour and a half", "1 hour 30 minutes", 5400},
        {"half an hour", "30 minutes", 1800},   {"1h 20m", "1 hour 20 minutes", 4800},
        {"a couple of days", "2 days", 172800}, {"a while", "a while", -1}};
    static const struct {
        const char *text, *show, *time;
    } times[] = {{"half past seven", "7:30", "07:30"},
                 {"quarter to nine", "8:45", "08:45"},
                 {"7pm", "7 pm", "19:00"},
                 {"12 am", "12 am", "00:00"},
                 {"seven thirty in the evening", "7:30 pm", "19:30"},
                 {"07:30", "07:30", "07:30"},
                 {"ten minutes to one", "12:50", "12:50"},
                 {"Sunset", "sunset", "sunset"},
                 {"25:00", "25:00", "25:00"},
                 {"75 to 3", "75 to 3", "75 to 3"}};
    struct arena a;
    arena_init(&a, 1 << 20);
    for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
        const struct home_action *x = home_table_action(table, values[i].action);
        struct home_value v = home_values_amount(&a, table, values[i].text, x->amounts, x->unit);
        assert_string_equal(v.show, values[i].show);
        assert_true(v.number == values[i].number);
        if (values[i].unit)
            assert_string_equal(v.unit, values[i].unit);
        else
            assert_null(v.unit);
    }
    for (size_t i = 0; i < sizeof(durations) / sizeof(durations[0]); i++) {
        struct home_value v = home_values_duration(&a, table, durations[i].text);
        assert_string_equal(v.show, durations[i].show);
        assert_true(v.understood == (durations[i].seconds >= 0));
        if (v.understood)
            assert_true(v.number == durations[i].seconds);
    }
    for (size_t i = 0; i < sizeof(times) / sizeof(times[0]); i++) {
        struct home_value v = home_values_clock(&a, table, times[i].text);
        assert_string_equal(v.show, times[i].show);
        assert_string_equal(v.text, times[i].time);
    }
    assert_string_equal(home_values_date(&a, table, "the 1st of may").text, "1 May");
    assert_true(home_values_date(&a, table, "february 30").wrong);
    assert_true(home_values_date(&a, table, "the 31st of june").wrong);
    assert_false(home_values_date(&a, table, "29 february").wrong);
    assert_true(home_values_duration(&a, table, "-5 minutes").wrong);
    assert_true(home_values_duration(&a, table, "minus five minutes").wrong);
    assert_true(home_values_clock(&a, table, "25:00").wrong);
    assert_true(home_values_clock(&a, table, "12:75").wrong);
    assert_false(home_values_clock(&a, table, "sunset").wrong);
    assert_string_equal(home_values_date(&a, table, "next friday").text, "next Friday");
    arena_fini(&a);
}

static void test_arithmetic(void **state)
{
    (void)state;
    static const struct {
        const char *expr, *show;
    } cases[] = {{"7 times 8", "56"},
                 {"twenty percent of fifty", "10"},
                 {"10 divided by 4", "2.5"},
                 {"the square root of two", "1.41"},
                 {"3-5", "-2"},
                 {"1 over 0", NULL},
                 {"the meaning of life", NULL},
                 {"0 times -1", "0"}};
    struct arena a;
    arena_init(&a, 1 << 20);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const char *show;
        double x;
        bool ok = home_values_calculate(&a, table, cases[i].expr, &show, &x);
        assert_true(ok == (cases[i].show != NULL));
        if (ok)
            assert_string_equal(show, cases[i].show);
    }
    arena_fini(&a);
}

/* ---- actions in words ----------------------------------------------------------------------- */

/* Is it a sentence without gaps? */
static void check_words(const struct home_action *x, const char *text)
{
    static const char *const gaps[] = {
        "  ",         " the of ", " the to ", " the by ",    " the for ", " the in ",
        " the the ",  " the at ", " of to ",  " in the to ", " : ",       " 1 degrees",
        " 1 minutes", " plus -",  " minus -", " of by ",     " by  ",     " the ."};
    struct arena a;
    arena_init(&a, 1 << 16);
    const char *padded = arena_printf(&a, " %s .", text);
    for (size_t i = 0; i < sizeof(gaps) / sizeof(gaps[0]); i++)
        if (strstr(padded, gaps[i]))
            fail_msg("%s: \"%s\" has \"%s\"", x->name, text, gaps[i]);
    static const char *const ends[] = {"to", "of", "by", "for", "in", "at", "and"};
    for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++)
        if (strstr(padded, arena_printf(&a, " %s .", ends[i])))
            fail_msg("%s: \"%s\" ends in \"%s\"", x->name, text, ends[i]);
    arena_fini(&a);
}

static struct ask_plan_field field_for(const struct home_slot *s, bool change)
{
    struct ask_plan_field f = {.key = s->name, .text = "kettle"};
    if (s->type == HOME_SLOT_VALUE)
        f = (struct ask_plan_field){.key = change ? "change" : s->name,
                                    .number = change ? -1.0 : 1.0};
    if (s->type == HOME_SLOT_DURATION)
        f = (struct ask_plan_field){.key = "duration_s", .number = 60.0};
    if (strcmp(s->name, "device") == 0)
        f.text = "everything";
    return f;
}

/* An action with some of its slots, including the required ones. */
static void check_slots(const struct home_action *x, uint32_t which, bool change)
{
    struct arena a;
    struct ask_plan_action o = {.name = x->name};
    bool device = false, placed = false;
    arena_init(&a, 1 << 16);
    for (uint32_t i = 0; i < x->n_slots; i++) {
        const struct home_slot *s = x->slots[i];
        bool is_device = strcmp(s->name, "device") == 0, has = which >> i & 1;
        for (uint32_t k = 0; k < x->n_needs; k++)
            has |= x->needs[k] == s;
        device |= is_device;
        placed |= has && (is_device || strcmp(s->name, "room") == 0);
        if (has)
            o.fields[o.n_fields++] = field_for(s, change);
    }
    o.fields[o.n_fields++] = (struct ask_plan_field){.key = "unit", .text = "celsius"};
    if (!device || placed || strcmp(x->name, "set_volume") == 0) /* others have a default */
        check_words(x, home_act_words(&a, table, &o));
    assert_int_equal(a.rc, 0);
    arena_fini(&a);
}

static void test_actions_in_words(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < table->n_actions; i++)
        for (uint32_t which = 0; which < 1u << table->action[i].n_slots; which++) {
            check_slots(&table->action[i], which, false);
            if (table->action[i].relative)
                check_slots(&table->action[i], which, true);
        }
}

static void check_said(const struct ask_plan_action *o, const char *want)
{
    struct arena a;
    arena_init(&a, 1 << 16);
    assert_string_equal(home_act_words(&a, table, o), want);
    arena_fini(&a);
}

static void test_words_of_some_actions(void **state)
{
    static const char *const items[] = {"milk", "eggs", "bread"};
    (void)state;
    struct ask_plan_action o = {.name = "set_machine", .n_fields = 3};
    o.fields[0] = (struct ask_plan_field){.key = "machine", .text = "mixer"};
    o.fields[1] = (struct ask_plan_field){.key = "change", .number = -100.0};
    o.fields[2] = (struct ask_plan_field){.key = "unit", .text = "rpm"};
    check_said(&o, "change mixer by minus 100 rpm");
    o.fields[o.n_fields++] = (struct ask_plan_field){.key = "sensor", .text = "speed"};
    check_said(&o, "change the speed of mixer by minus 100 rpm");
    o = (struct ask_plan_action){.name = "set_temperature", .n_fields = 3};
    o.fields[0] = (struct ask_plan_field){.key = "device", .text = "heating"};
    o.fields[1] = (struct ask_plan_field){.key = "change", .number = 1.0};
    o.fields[2] = (struct ask_plan_field){.key = "unit", .text = "celsius"};
    check_said(&o, "change the heating by plus 1 degree");
    o = (struct ask_plan_action){.name = "turn_off", .n_fields = 2};
    o.fields[0] = (struct ask_plan_field){.key = "device", .text = "everything"};
    o.fields[1] = (struct ask_plan_field){.key = "room", .text = "kitchen"};
    check_said(&o, "turn off everything in the kitchen");
    o = (struct ask_plan_action){.name = "add_to_list", .n_fields = 2};
    o.fields[0] = (struct ask_plan_field){.key = "item", .items = items, .n_items = 3};
    o.fields[1] = (struct ask_plan_field){.key = "list", .text = "shopping"};
    check_said(&o, "add milk, eggs and bread to the shopping list");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_values),
        cmocka_unit_test(test_arithmetic),
        cmocka_unit_test(test_actions_in_words),
        cmocka_unit_test(test_words_of_some_actions),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
