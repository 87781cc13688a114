/* test_home_allow.c - what the home as it is now lets an action do: risks, limits and abilities. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "apps/home/home_allow.h"
#include "apps/home/later/home_later_action.h"
#include "apps/home/site/home_file_read.h"

static const char house[] = "devices:\n"
                            "  - {id: lamp, name: desk lamp, kind: light,\n"
                            "     limits: {brightness: {min: 10, max: 80, unit: percent}}}\n"
                            "  - {id: rack, name: server rack, kind: switch, risk: dangerous}\n"
                            "  - {id: oven, name: small oven, kind: heater, risk: harmless}\n"
                            "  - {id: stove, name: stove, kind: heater}\n"
                            "  - {id: door, name: front door, kind: door}\n"
                            "machines:\n"
                            "  - {id: pump, name: pump 3, kind: machine, risk: dangerous}\n";

#define DANGER "nobody confirmed it"

static void test_what_is_denied(void **state)
{
    static const struct {
        const char *action;
        bool confirmed;
        const char *why; /* NULL: it is allowed */
    } rows[] = {
        {"{\"action\":\"turn_on\",\"id\":\"lamp\"}", false, NULL},
        /* the file's risk counts, for what it says and against the table */
        {"{\"action\":\"turn_on\",\"id\":\"rack\"}", false, DANGER},
        {"{\"action\":\"turn_on\",\"id\":\"rack\"}", true, NULL},
        {"{\"action\":\"turn_off\",\"id\":\"rack\"}", false, DANGER},
        {"{\"action\":\"turn_on\",\"id\":\"oven\"}", false, NULL},
        {"{\"action\":\"turn_on\",\"id\":\"stove\"}", false, DANGER},
        {"{\"action\":\"turn_on\",\"id\":\"stove\"}", true, NULL},
        {"{\"action\":\"turn_off\",\"id\":\"stove\"}", false, NULL},
        {"{\"action\":\"unlock\",\"id\":\"door\"}", false, DANGER},
        {"{\"action\":\"lock\",\"id\":\"door\"}", false, NULL},
        /* of several things the most dangerous one */
        {"{\"action\":\"turn_on\",\"ids\":[\"lamp\",\"rack\"]}", false, DANGER},
        {"{\"action\":\"turn_on\",\"ids\":[\"rack\",\"lamp\"]}", false, DANGER},
        {"{\"action\":\"turn_on\",\"ids\":[\"oven\",\"stove\"]}", false, DANGER},
        /* stopping never waits for a yes */
        {"{\"action\":\"start_machine\",\"id\":\"pump\"}", false, DANGER},
        {"{\"action\":\"start_machine\",\"id\":\"pump\"}", true, NULL},
        {"{\"action\":\"stop_machine\",\"id\":\"pump\"}", false, NULL},
        /* limits are what a thing may just have */
        {"{\"action\":\"set_brightness\",\"id\":\"lamp\",\"value\":80,\"unit\":\"percent\"}", false,
         NULL},
        {"{\"action\":\"set_brightness\",\"id\":\"lamp\",\"value\":80.5,\"unit\":\"percent\"}",
         true, "the maximum is 80"},
        {"{\"action\":\"set_brightness\",\"id\":\"lamp\",\"value\":10,\"unit\":\"percent\"}", false,
         NULL},
        {"{\"action\":\"set_brightness\",\"id\":\"lamp\",\"value\":9,\"unit\":\"percent\"}", true,
         "the minimum is 10"},
        {"{\"action\":\"set_temperature\",\"id\":\"oven\",\"value\":281,\"unit\":\"celsius\"}",
         true, "the maximum is 280"},
        {"{\"action\":\"set_temperature\",\"id\":\"oven\",\"value\":280,\"unit\":\"celsius\"}",
         true, NULL},
        /* the home has changed since it was decided */
        {"{\"action\":\"set_brightness\",\"id\":\"door\",\"value\":50}", true, "has no brightness"},
        {"{\"action\":\"turn_on\",\"id\":\"gone\"}", true, "not in the home any more"},
        {"{\"action\":\"turn_on\",\"ids\":[\"lamp\",\"gone\"]}", true, "not in the home any more"},
        {"{\"action\":\"fly\",\"id\":\"lamp\"}", true, "not known any more"},
    };
    struct home_table *t;
    struct home_file *f;
    struct arena a;
    struct err e = {0};
    (void)state;
    arena_init(&a, (size_t)16 << 20);
    assert_int_equal(home_table_open(&t, SHOAL_TEST_DATA "/../../models/home.json", &e), 0);
    if (home_file_read_text(&f, t, house, strlen(house), "test", &e) < 0)
        fail_msg("%s", e.msg);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const struct ask_plan_action *o = home_later_action_read(&a, rows[i].action);
        assert_non_null(o);
        const char *why = home_allow_denied(&a, t, f, o, rows[i].confirmed);
        if ((why != NULL) != (rows[i].why != NULL) || (why && !strstr(why, rows[i].why)))
            fail_msg("%s: %s", rows[i].action, why ? why : "allowed");
    }
    home_file_unref(f);
    home_table_close(t);
    arena_fini(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_is_denied),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
