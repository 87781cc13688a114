/* test_gate.c - what the gate lets pass to a sink: units, limits, changes, risks, confirmation. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "apps/home/gate/gate_plan.h"
#include "apps/home/gate/gate_units.h"
#include "apps/home/home_denied.h"
#include "apps/home/later/home_later_action.h"
#include "apps/home/site/home_file_read.h"

static const char brewery[] =
    "rooms:\n"
    "  - {id: garage}\n"
    "devices:\n"
    "  - {id: lamp, name: desk lamp, kind: light,\n"
    "     limits: {brightness: {min: 10, max: 80, unit: percent}}}\n"
    "  - {id: rack, name: server rack, kind: switch, risk: dangerous}\n"
    "  - {id: oven, name: small oven, kind: heater, risk: harmless}\n"
    "  - {id: stove, name: stove, kind: heater}\n"
    "  - {id: plug, name: grill plug, kind: switch}\n"
    "  - {id: door, name: front door, kind: door}\n"
    "  - {id: blinds, name: blinds, kind: cover}\n"
    "  - {id: roller, name: garage door, kind: cover}\n"
    "  - {id: shade, name: window blind, kind: cover}\n"
    "  - {id: skylight, kind: window}\n"
    "  - {id: spa, name: sauna, kind: climate}\n"
    "  - {id: gas, name: gas valve, kind: valve}\n"
    "  - {id: fridge, name: fridge, kind: cooler}\n"
    "  - {id: siren, name: alarm, kind: alarm}\n"
    "  - {id: us, name: heating, kind: climate,\n"
    "     limits: {temperature: {min: 50, max: 80, unit: fahrenheit}}}\n"
    "  - {id: tv, kind: media}\n"
    "  - {id: amp, abilities: [volume]}\n"
    "  - {id: vat, kind: switch, limits: {temperature: {min: 5, max: 50, unit: celsius}}}\n"
    "machines:\n"
    "  - {id: pump, name: pump 3, kind: machine, risk: dangerous}\n"
    "  - {id: fv1, name: FV1, kind: machine, limits: {pressure: {unit: bar, min: 0, max: 2},\n"
    "     temperature: {unit: celsius, min: 2, max: 30}}}\n"
    "  - {id: fv2, name: FV2, kind: machine, limits: {pressure: {min: 0, max: 2}}}\n"
    "  - {id: mixer, kind: machine, limits: {spindle_speed: {unit: rpm, min: 0, max: 1500}}}\n"
    "  - {id: still, kind: machine, limits: {proof: {unit: abv, min: 0, max: 96},\n"
    "     head_pressure: {unit: kPa, min: 0, max: 50}, base_pressure: {unit: kPa, min: 0, max: "
    "9}}}\n"
    "  - {id: lathe, kind: machine}\n"
    "  - {id: cnc, kind: machine, limits: {x: {unit: mm, min: 0, max: 300}}}\n"
    "  - {id: chiller, abilities: [power, run]}\n"
    "scenes:\n"
    "  - {id: open_up, sets: [{id: lamp, ability: power, to: \"on\"},\n"
    "     {id: door, ability: lock, to: unlocked}]}\n"
    "  - {id: bright, sets: [{id: lamp, ability: brightness, to: 90}]}\n"
    "  - {id: odd, sets: [{id: door, ability: lock, to: wide}]}\n"
    "  - {id: number, sets: [{id: door, ability: lock, to: 0}]}\n"
    "  - {id: night, sets: [{id: lamp, ability: power, to: \"off\"}]}\n"
    "  - {id: drill, risk: dangerous, sets: [{id: lamp, ability: power, to: \"on\"}]}\n";

static struct home_table *table;
static struct home_file *file;
static struct arena a;

static struct home_file *read_home(const char *text)
{
    struct home_file *f;
    struct err e = {0};
    if (home_file_read_text(&f, table, text, strlen(text), "test", &e) < 0)
        fail_msg("%s", e.msg);
    return f;
}

static int setup(void **state)
{
    struct err e = {0};
    (void)state;
    arena_init(&a, (size_t)64 << 20);
    if (home_table_open(&table, SHOAL_TEST_DATA "/../../models/home.json", &e) < 0)
        return -1;
    file = read_home(brewery);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    home_file_unref(file);
    home_table_close(table);
    arena_fini(&a);
    return 0;
}

/* ---- units ---------------------------------------------------------------------------------- */

static void test_units_are_converted(void **state)
{
    static const struct {
        double number;
        const char *from, *to;
        bool change;
        double result;
    } rows[] = {
        {29, "psi", "bar", false, 1.99948},
        {500, "kPa", "bar", false, 5},
        {200, "kilopascals", "bar", false, 2},
        {1500, "mbar", "bar", false, 1.5},
        {1, "MPa", "psi", false, 145.038},
        {1013, "hPa", "mbar", false, 1013},
        {212, "fahrenheit", "celsius", false, 100},
        {-40, "fahrenheit", "celsius", false, -40},
        {9, "fahrenheit", "celsius", true, 5},
        {300, "kelvin", "celsius", false, 26.85},
        {10, "kelvin", "celsius", true, 10},
        {20,
         "\xc2\xb0"
         "C",
         "fahrenheit", false, 68},
        {50, "percent", "fraction", false, 0.5},
        {0.25, "fraction", "%", false, 25},
        {2, "rps", "rpm", false, 120},
        {1.5, "kW", "W", false, 1500},
        {60, "l/h", "l/min", false, 1},
        {1, "m3/h", "l/min", false, 16.6667},
        {90, "minutes", "hour", false, 1.5},
        {2, "h", "second", false, 7200},
        {3, "abv", "abv", false, 3},
        {7, NULL, NULL, false, 7},
    };
    static const char *const apart[][2] = {{"bar", "celsius"}, {"psi", "rpm"}, {"abv", "percent"},
                                           {"parsec", "m"},    {"bar", NULL},  {NULL, "bar"}};
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        double n = rows[i].number;
        if (!gate_units_convert(table, rows[i].from, rows[i].to, rows[i].change, &n) ||
            fabs(n - rows[i].result) > 1e-4 * (1 + fabs(n)))
            fail_msg("%g %s: %g", rows[i].number, rows[i].from, n);
    }
    for (size_t i = 0; i < sizeof(apart) / sizeof(apart[0]); i++) {
        double n = 5;
        assert_false(gate_units_convert(table, apart[i][0], apart[i][1], false, &n));
        assert_true(n == 5);
    }
}

/* ---- actions of plans ----------------------------------------------------------------------- */

#define DANGER "it is dangerous, and nobody confirmed it"

struct row {
    const char *action;
    bool confirmed;
    const char *why;  /* NULL: it passes */
    const char *sent; /* with NULL: what goes to the sink; NULL: not compared */
};

static const char *words_of(const struct home_deed *d)
{
    return d->text ? arena_printf(&a, "%s.%s=%s", d->id, d->ability, d->text)
                   : arena_printf(&a, "%s.%s=%s%.6g %s", d->id, d->ability, d->change ? "+" : "",
                                  d->number, d->unit ? d->unit : "-");
}

static void check_rows(const struct gate *g, const struct row *rows, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const struct ask_plan_action *o = home_later_action_read(&a, rows[i].action);
        assert_non_null(o);
        struct gate_verdict v = gate_plan_check(&a, g, o, rows[i].confirmed);
        const char *why = home_denied(&a, table, &v);
        if ((why != NULL) != (rows[i].why != NULL) || (why && !strstr(why, rows[i].why)))
            fail_msg("%s: %s", rows[i].action, why ? why : "passes");
        if (v.answer == GATE_CONFIRM && !table->risk[v.risk].confirm)
            fail_msg("%s: needs a yes, but is only %s", rows[i].action,
                     home_table_risk_name(v.risk));
        if (!why && rows[i].sent && strcmp(words_of(&v.deed), rows[i].sent) != 0)
            fail_msg("%s: sends %s", rows[i].action, words_of(&v.deed));
    }
}

#define ROWS(x) x, sizeof(x) / sizeof((x)[0])
#define SET(id, more) "{\"action\":\"set_machine\",\"id\":\"" id "\"," more "}"
#define WARM(id, more) "{\"action\":\"set_temperature\",\"id\":\"" id "\"," more "}"
#define DO(action, id) "{\"action\":\"" action "\",\"id\":\"" id "\"}"

static void test_limits(void **state)
{
    static const struct row rows[] = {
        /* limits are what a thing may just have, in any unit */
        {SET("fv1", "\"sensor\":\"pressure\",\"value\":2"), false, NULL, "fv1.pressure=2 bar"},
        {SET("fv1", "\"sensor\":\"pressure\",\"value\":2.001"), true, "the maximum is 2 bar", NULL},
        {SET("fv1", "\"sensor\":\"pressure\",\"value\":-0.001"), true, "the minimum is 0 bar",
         NULL},
        {SET("fv1", "\"sensor\":\"pressure\",\"value\":200,\"unit\":\"kPa\""), false, NULL,
         "fv1.pressure=2 bar"},
        {SET("fv1", "\"sensor\":\"pressure\",\"value\":500,\"unit\":\"kPa\""), true,
         "the maximum is 2 bar", NULL},
        {SET("fv1", "\"value\":40,\"unit\":\"psi\""), true, "the maximum is 2 bar", NULL},
        {SET("fv1", "\"value\":14.5,\"unit\":\"psi\""), false, NULL, "fv1.pressure=0.99974 bar"},
        {SET("fv1", "\"value\":50,\"unit\":\"fahrenheit\""), false, NULL,
         "fv1.temperature=10 celsius"},
        {SET("fv1", "\"value\":1,\"unit\":\"fahrenheit\""), false, "the minimum is 2 degrees",
         NULL},
        {SET("fv2", "\"value\":9"), true, "the maximum is 2 bar", NULL}, /* its only number */
        {SET("fv2", "\"value\":1.5"), false, NULL, "fv2.pressure=1.5 bar"},
        {WARM("fv2", "\"value\":400,\"unit\":\"celsius\""), false, NULL, NULL},
        {WARM("fv2", "\"value\":401,\"unit\":\"celsius\""), true, "the maximum is 400", NULL},
        {WARM("us", "\"value\":25,\"unit\":\"celsius\""), false, NULL,
         "us.temperature=77 fahrenheit"},
        {WARM("us", "\"value\":30,\"unit\":\"celsius\""), true,
         "the maximum is 80 \xc2\xb0"
         "F",
         NULL},
        {WARM("us", "\"value\":70"), false, NULL, "us.temperature=70 fahrenheit"},
        {SET("mixer", "\"sensor\":\"speed\",\"value\":1501"), true, "the maximum is 1500 rpm",
         NULL},
        {SET("mixer", "\"sensor\":\"Spindle Speed\",\"value\":1500"), false, NULL,
         "mixer.spindle_speed=1500 rpm"},
        {SET("mixer", "\"sensor\":\"upper spindle speed\",\"value\":1600"), true, "the maximum",
         NULL},
        {"{\"action\":\"set_brightness\",\"id\":\"lamp\",\"value\":80,\"unit\":\"percent\"}", false,
         NULL, "lamp.brightness=80 percent"},
        {"{\"action\":\"set_brightness\",\"id\":\"lamp\",\"value\":0.9,\"unit\":\"fraction\"}",
         true, "the maximum is 80%", NULL},
        /* the usual ones, by kind */
        {WARM("oven", "\"value\":281,\"unit\":\"celsius\""), true, "the maximum is 280", NULL},
        {WARM("oven", "\"value\":280,\"unit\":\"celsius\""), true, NULL, NULL},
        {WARM("oven", "\"value\":540,\"unit\":\"fahrenheit\""), true, "the maximum is 280", NULL},
        {WARM("fridge", "\"value\":12,\"unit\":\"celsius\""), true, "the maximum is 10", NULL},
        {WARM("stove", "\"value\":36,\"unit\":\"celsius\""), true, "the maximum is 35", NULL},
        {WARM("spa", "\"value\":36,\"unit\":\"celsius\""), true, "the maximum is 35", NULL},
        {SET("lathe", "\"sensor\":\"speed\",\"value\":30001,\"unit\":\"rpm\""), true,
         "the maximum is 30000 rpm", NULL},
        {"{\"action\":\"set_volume\",\"id\":\"tv\",\"value\":101}", true, "the maximum is 100%",
         NULL},
        {"{\"action\":\"open\",\"id\":\"blinds\",\"value\":30,\"unit\":\"percent\"}", false, NULL,
         "blinds.position=30 percent"},
        {"{\"action\":\"close\",\"id\":\"blinds\",\"value\":40}", false, NULL,
         "blinds.position=40 percent"},
        {"{\"action\":\"open\",\"id\":\"door\",\"value\":30}", true, "has no position", NULL},
        {"{\"action\":\"open\",\"id\":\"blinds\",\"value\":130,\"unit\":\"percent\"}", true,
         "the maximum is 100%", NULL},
        /* nothing says what is safe: only after a yes */
        {SET("lathe", "\"sensor\":\"feed\",\"value\":7"), false, "no limits are known", NULL},
        {SET("lathe", "\"sensor\":\"feed\",\"value\":7"), true, NULL, "lathe.feed=7 -"},
        {SET("lathe", "\"value\":3,\"unit\":\"l/min\""), false, "no limits are known", NULL},
        {SET("lathe", "\"sensor\":\"load\",\"value\":2,\"unit\":\"kW\""), true, NULL,
         "lathe.load=2000 W"},
        /* units that do not belong there */
        {SET("fv1", "\"sensor\":\"pressure\",\"value\":1,\"unit\":\"celsius\""), true,
         "cannot be set", NULL},
        {SET("fv1", "\"sensor\":\"pressure\",\"value\":1,\"unit\":\"parsecs\""), true,
         "cannot be set", NULL},
        {SET("fv2", "\"value\":1,\"unit\":\"hours\""), true, "cannot be set", NULL},
        {SET("lathe", "\"sensor\":\"feed\",\"value\":1,\"unit\":\"parsecs\""), true,
         "cannot be set", NULL},
        {SET("still", "\"sensor\":\"proof\",\"value\":40,\"unit\":\"abv\""), false, NULL,
         "still.proof=40 abv"},
        {SET("still", "\"sensor\":\"proof\",\"value\":40,\"unit\":\"percent\""), true,
         "cannot be set", NULL},
        {WARM("us", "\"value\":20,\"unit\":\"bar\""), true, "cannot be set", NULL},
    };
    const struct gate g = {table, file, NULL};
    (void)state;
    check_rows(&g, ROWS(rows));
}

static void test_what_is_set_must_be_clear(void **state)
{
    static const struct {
        const char *action;
        enum gate_answer answer;
    } rows[] = {
        {SET("fv1", "\"value\":1"), GATE_ASK_QUANTITY},   /* pressure or temperature? */
        {SET("lathe", "\"value\":7"), GATE_ASK_QUANTITY}, /* it has settings nobody listed */
        {SET("lathe", "\"value\":7,\"unit\":\"percent\""), GATE_ASK_QUANTITY},
        {SET("lathe", "\"value\":7,\"unit\":\"bar\""), GATE_PASS},
        {SET("still", "\"value\":5,\"unit\":\"kPa\""), GATE_ASK_QUANTITY},
        {SET("still", "\"sensor\":\"pressure\",\"value\":5"), GATE_ASK_QUANTITY},
        {SET("still", "\"sensor\":\"head pressure\",\"value\":5"), GATE_PASS},
        {SET("fv2", "\"sensor\":\"carbonation\",\"value\":1"), GATE_ASK_QUANTITY},
        {SET("fv2", "\"sensor\":\"pressure\",\"value\":\"high\""), GATE_ASK_VALUE},
        {SET("still", "\"sensor\":\"dead pressure\",\"value\":5"), GATE_ASK_QUANTITY},
        {SET("fv2", "\"sensor\":\"overpressure\",\"value\":1"), GATE_ASK_QUANTITY},
        {SET("cnc", "\"sensor\":\"x\",\"value\":30,\"unit\":\"cm\""), GATE_PASS},
        {SET("cnc", "\"sensor\":\"x\",\"value\":31,\"unit\":\"cm\""), GATE_REFUSE},
        {SET("cnc", "\"sensor\":\"max\",\"value\":30"), GATE_ASK_QUANTITY},
        {SET("amp", "\"value\":50"), GATE_PASS},
        {SET("vat", "\"value\":50"), GATE_PASS},
        {SET("vat", "\"value\":51"), GATE_REFUSE},
        {SET("lamp", "\"value\":50"), GATE_PASS}, /* its brightness */
        {SET("tv", "\"value\":50"), GATE_PASS},
        {SET("door", "\"value\":50"), GATE_REFUSE}, /* it has no number */
        {WARM("us", "\"value\":\"warm\""), GATE_ASK_VALUE},
        {"{\"action\":\"set_mode\",\"id\":\"tv\",\"mode\":\"night\"}", GATE_PASS},
        {"{\"action\":\"set_brightness\",\"id\":\"door\",\"value\":50}", GATE_REFUSE},
    };
    const struct gate g = {table, file, NULL};
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const struct ask_plan_action *o = home_later_action_read(&a, rows[i].action);
        struct gate_verdict v = gate_plan_check(&a, &g, o, true);
        if (v.answer != rows[i].answer)
            fail_msg("%s: %d (%s)", rows[i].action, v.answer, home_denied(&a, table, &v));
    }
    const double odd[] = {NAN, INFINITY, -INFINITY};
    for (size_t i = 0; i < 3; i++) {
        const struct home_deed d = {.id = "fv1", .ability = "pressure", .number = odd[i]};
        assert_int_equal(gate_check(&g, &d, true).answer, GATE_ASK_VALUE);
    }
}

/* An action without a value sets nothing. */
static void test_no_value_is_no_deed(void **state)
{
    static const char *const actions[] = {
        "{\"action\":\"set_brightness\",\"id\":\"lamp\"}",
        "{\"action\":\"set_brightness\",\"id\":\"lamp\",\"value\":[\"1\",\"2\"]}",
        "{\"action\":\"set_machine\",\"id\":\"fv1\",\"sensor\":\"pressure\"}",
        "{\"action\":\"set_color\",\"id\":\"lamp\"}",
        "{\"action\":\"turn_on\"}",
        "{\"action\":\"call\",\"id\":\"lamp\"}",
        "{\"action\":\"fly\",\"id\":\"lamp\"}"};
    const struct gate g = {table, file, NULL};
    struct home_deed *deeds;
    (void)state;
    for (size_t i = 0; i < sizeof(actions) / sizeof(actions[0]); i++)
        if (gate_plan_deeds(&a, &g, home_later_action_read(&a, actions[i]), &deeds) != 0)
            fail_msg("%s: %s", actions[i], words_of(&deeds[0]));
    /* a position that is no number is none: it opens */
    const char *odd = "{\"action\":\"open\",\"id\":\"blinds\",\"value\":\"wide\"}";
    assert_int_equal(gate_plan_deeds(&a, &g, home_later_action_read(&a, odd), &deeds), 1);
    assert_string_equal(deeds[0].text, "open");
}

static void test_changes_are_judged_by_their_result(void **state)
{
    static const struct row unknown[] = {
        /* never by more than the whole range, never without a yes where the file has limits */
        {SET("fv1", "\"sensor\":\"pressure\",\"change\":5,\"unit\":\"bar\""), true,
         "whole range is only 2 bar", NULL},
        {SET("fv1", "\"sensor\":\"pressure\",\"change\":-40,\"unit\":\"psi\""), true, "whole range",
         NULL},
        {SET("fv1", "\"sensor\":\"pressure\",\"change\":1"), false, "present value is not known",
         NULL},
        {SET("fv1", "\"sensor\":\"pressure\",\"change\":1"), true, NULL, "fv1.pressure=+1 bar"},
        {SET("lathe", "\"sensor\":\"speed\",\"change\":500000,\"unit\":\"rpm\""), true,
         "whole range", NULL},
        {SET("lathe", "\"sensor\":\"speed\",\"change\":50,\"unit\":\"rpm\""), false,
         "present value", NULL},
        {WARM("fridge", "\"change\":3,\"unit\":\"celsius\""), false, NULL,
         "fridge.temperature=+3 celsius"},
        {WARM("fridge", "\"change\":20,\"unit\":\"celsius\""), true, "whole range is only 9", NULL},
    };
    static const struct row known[] = {
        {SET("fv1", "\"sensor\":\"pressure\",\"change\":0.5"), false, NULL, "fv1.pressure=2 bar"},
        {SET("fv1", "\"sensor\":\"pressure\",\"change\":0.6"), true, "the maximum is 2 bar", NULL},
        {SET("fv1", "\"sensor\":\"pressure\",\"change\":-150,\"unit\":\"kPa\""), false, NULL,
         "fv1.pressure=0 bar"},
        {SET("fv1", "\"sensor\":\"pressure\",\"change\":-1.6"), true, "the minimum is 0 bar", NULL},
        /* the state is in another unit */
        {WARM("us", "\"change\":18"), false, NULL, "us.temperature=68 fahrenheit"},
        {WARM("us", "\"change\":10,\"unit\":\"celsius\""), false, NULL,
         "us.temperature=68 fahrenheit"},
        {WARM("us", "\"change\":20,\"unit\":\"celsius\""), true, "the maximum is 80", NULL},
        /* a state that is no number, or of something else, says nothing */
        {SET("mixer", "\"sensor\":\"speed\",\"change\":10"), false, "present value", NULL},
        {WARM("fridge", "\"change\":3,\"unit\":\"celsius\""), false, NULL,
         "fridge.temperature=+3 celsius"},
    };
    struct home_states *s;
    struct err e = {0};
    (void)state;
    assert_int_equal(home_states_create(&s, NULL, &e), 0);
    const struct gate g = {table, file, s};
    check_rows(&g, ROWS(unknown));
    home_states_set(s, "fv1", &(struct home_state){.ability = "pressure", .number = 1.5});
    home_states_set(
        s, "us", &(struct home_state){.ability = "temperature", .number = 10, .unit = "celsius"});
    home_states_set(s, "mixer", &(struct home_state){.ability = "spindle_speed", .text = "fast"});
    home_states_set(s, "fridge",
                    &(struct home_state){.ability = "temperature", .number = 3, .unit = "bar"});
    check_rows(&g, ROWS(known));
    home_states_destroy(s);
}

static void test_risk(void **state)
{
    static const struct row rows[] = {
        {DO("turn_on", "lamp"), false, NULL, "lamp.power=on"},
        /* the file can raise the risk, and not lower it */
        {DO("turn_on", "rack"), false, DANGER, NULL},
        {DO("turn_on", "rack"), true, NULL, NULL},
        {DO("turn_off", "rack"), false, DANGER, NULL},
        {DO("turn_on", "oven"), false, DANGER, NULL},
        {DO("turn_on", "stove"), false, DANGER, NULL},
        {DO("turn_on", "stove"), true, NULL, NULL},
        {DO("turn_off", "stove"), false, NULL, NULL},
        {DO("turn_on", "plug"), false, DANGER, NULL}, /* a plug is what hangs on it */
        {DO("start", "stove"), false, DANGER, NULL},
        {WARM("stove", "\"value\":30"), false, DANGER, NULL},
        {DO("unlock", "door"), false, DANGER, NULL},
        {DO("lock", "door"), false, NULL, NULL},
        {DO("open", "door"), false, DANGER, NULL},
        {"{\"action\":\"open\",\"id\":\"skylight\",\"value\":30}", false, DANGER, NULL},
        {"{\"action\":\"open\",\"id\":\"gas\",\"value\":1}", false, DANGER, NULL},
        {"{\"action\":\"open\",\"id\":\"roller\",\"value\":30}", false, DANGER, NULL},
        {"{\"action\":\"close\",\"id\":\"gas\",\"value\":0}", false, NULL, NULL},
        {DO("close", "door"), false, NULL, NULL},
        {DO("open", "blinds"), false, NULL, NULL},
        {DO("open", "shade"), false, NULL, NULL},
        /* the file says a harmless kind, the name another one: no more harmless than either */
        {DO("open", "roller"), false, DANGER, NULL},
        {DO("turn_on", "spa"), false, DANGER, NULL},
        {DO("open", "gas"), false, DANGER, NULL},
        {DO("turn_on", "gas"), false, DANGER, NULL},
        {DO("turn_off", "gas"), false, NULL, NULL},
        {DO("turn_off", "fridge"), false, DANGER, NULL},
        {DO("turn_off", "siren"), false, DANGER, NULL},
        {DO("turn_off", "siren"), true, NULL, NULL},
        {DO("disarm_alarm", "siren"), false, DANGER, NULL},
        {DO("arm_alarm", "siren"), false, NULL, NULL},
        {"{\"action\":\"disarm_alarm\"}", false, DANGER, NULL}, /* without a thing */
        /* of several things the most dangerous one */
        {"{\"action\":\"turn_on\",\"ids\":[\"lamp\",\"rack\"]}", false, DANGER, NULL},
        {"{\"action\":\"turn_on\",\"ids\":[\"rack\",\"lamp\"]}", false, DANGER, NULL},
        {"{\"action\":\"turn_on\",\"ids\":[\"lamp\",\"tv\"]}", false, NULL, NULL},
        /* machines start after a yes, and stop without one */
        {DO("start_machine", "lathe"), false, DANGER, NULL},
        {DO("turn_on", "lathe"), false, DANGER, NULL},
        {DO("open", "lathe"), false, DANGER, NULL},
        {DO("close", "lathe"), false, NULL, NULL},
        {DO("turn_on", "chiller"), false, DANGER, NULL}, /* listed as a machine, without a kind */
        {DO("start_machine", "pump"), true, NULL, NULL},
        {DO("stop_machine", "pump"), false, NULL, NULL},
        {DO("turn_off", "pump"), false, NULL, NULL},
        /* scenes */
        {DO("activate_scene", "night"), false, NULL, NULL},
        {DO("activate_scene", "open_up"), false, DANGER, NULL},
        {DO("activate_scene", "open_up"), true, NULL, NULL},
        {DO("activate_scene", "drill"), false, DANGER, NULL},
        {DO("activate_scene", "bright"), true, "the maximum is 80%", NULL},
        {DO("activate_scene", "odd"), true, "cannot be \"wide\"", NULL},
        {DO("activate_scene", "number"), true, "cannot be \"0\"", NULL},
        /* the home has changed since it was decided */
        {"{\"action\":\"set_brightness\",\"id\":\"door\",\"value\":50}", true, "has no brightness",
         NULL},
        {DO("turn_on", "gone"), true, "not in the home any more", NULL},
        {DO("turn_on", "garage"), true, "not in the home any more", NULL}, /* a room */
        {"{\"action\":\"turn_on\",\"ids\":[\"lamp\",\"gone\"]}", true, "not in the home any more",
         NULL},
        {DO("fly", "lamp"), true, "not known any more", NULL},
        {DO("activate_scene", "gone"), true, "not in the home any more", NULL},
        {DO("call", "gone"), true, "not in the home any more", NULL},
    };
    static const char *const several[] = {
        "{\"action\":\"turn_on\",\"ids\":[\"lamp\",\"rack\",\"tv\"]}",
        DO("activate_scene", "open_up"), DO("activate_scene", "drill")};
    const struct gate g = {table, file, NULL};
    (void)state;
    check_rows(&g, ROWS(rows));
    for (size_t i = 0; i < sizeof(several) / sizeof(several[0]); i++)
        for (int confirmed = 0; confirmed < 2; confirmed++) {
            const struct ask_plan_action *o = home_later_action_read(&a, several[i]);
            assert_int_equal(gate_plan_check(&a, &g, o, confirmed).risk, HOME_RISK_DANGEROUS);
        }
}

/* In the demo home, and where no home is known, a name is all that says what a thing is. */
static void test_things_known_by_name(void **state)
{
    static const struct row rows[] = {
        {"{\"action\":\"turn_on\",\"device\":\"oven\",\"id\":\"oven\"}", false, DANGER, NULL},
        {"{\"action\":\"turn_on\",\"device\":\"oven light\",\"id\":\"oven_light\"}", false, NULL,
         NULL},
        {"{\"action\":\"turn_on\",\"device\":\"toasters\",\"id\":\"toasters\"}", false, DANGER,
         NULL},
        {"{\"action\":\"open\",\"device\":\"garage\",\"id\":\"garage\"}", false, DANGER, NULL},
        {"{\"action\":\"open\",\"device\":\"blinds\",\"id\":\"blinds\"}", false, NULL, NULL},
        {"{\"action\":\"turn_off\",\"device\":\"smoke detector\",\"id\":\"smoke_detector\"}", false,
         DANGER, NULL},
        {"{\"action\":\"turn_on\",\"device\":\"washing machine\",\"id\":\"washing_machine\"}",
         false, NULL, NULL},
        {"{\"action\":\"start_machine\",\"machine\":\"Conveyor 9\"}", false, DANGER, NULL},
        {"{\"action\":\"stop_machine\",\"machine\":\"Conveyor 9\"}", false, NULL, NULL},
        {"{\"action\":\"set_temperature\",\"device\":\"freezer\",\"id\":\"freezer\",\"value\":5,"
         "\"unit\":\"celsius\"}",
         true, "the maximum is -10", NULL},
        {"{\"action\":\"set_temperature\",\"device\":\"boiler\",\"id\":\"boiler\",\"value\":96,"
         "\"unit\":\"celsius\"}",
         true, "the maximum is 95", NULL},
        {"{\"action\":\"set_machine\",\"machine\":\"boiler\",\"sensor\":\"pressure\",\"value\":11,"
         "\"unit\":\"bar\"}",
         true, "the maximum is 10 bar", NULL},
        {"{\"action\":\"set_machine\",\"machine\":\"press "
         "2\",\"sensor\":\"pressure\",\"value\":4.5,\"unit\":\"bar\"}",
         false, NULL, NULL},
        {"{\"action\":\"set_machine\",\"machine\":\"press 2\",\"value\":4.5}", true, "not clear",
         NULL},
        {"{\"action\":\"set_temperature\",\"room\":\"kitchen\",\"value\":36,\"unit\":\"celsius\"}",
         true, "the maximum is 35", NULL},
    };
    struct home_file *open = read_home("open: true\nrooms: [{id: garage}]\n");
    const struct gate none = {table, NULL, NULL}, demo = {table, open, NULL};
    (void)state;
    check_rows(&none, ROWS(rows));
    check_rows(&demo, ROWS(rows));
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const struct ask_plan_action *o = home_later_action_read(&a, rows[i].action);
        assert_null(gate_plan_check(&a, &demo, o, false).thing); /* it is not in the file */
    }
    home_file_unref(open);
}

/* ---- the sink ------------------------------------------------------------------------------- */

struct fake {
    struct home_sink sink;
    uint32_t n;
    struct home_deed last;
};

static void carry(struct home_sink *s, const struct home_deed *d, home_sink_done_fn done, void *ctx)
{
    struct fake *f = (struct fake *)(void *)s;
    f->n++;
    f->last = *d;
    done(ctx, HOME_SINK_DONE, NULL);
}

static void on_done(void *ctx, enum home_sink_result result, const char *reason)
{
    (void)reason;
    assert_int_equal(result, HOME_SINK_DONE);
    (*(uint32_t *)ctx)++;
}

static void test_only_what_passes_is_carried_out(void **state)
{
    static const struct home_sink_ops ops = {carry};
    static const struct {
        struct home_deed deed;
        bool confirmed, sent;
    } rows[] = {
        {{.id = "lamp", .ability = "power", .text = "on"}, false, true},
        {{.id = "door", .ability = "lock", .text = "unlocked"}, false, false},
        {{.id = "door", .ability = "lock", .text = "unlocked"}, true, true},
        {{.id = "fv1", .ability = "pressure", .number = 9}, true, false},
        {{.id = "fv1", .ability = "setting", .number = 1}, true, false},
        {{.id = "gone", .ability = "power", .text = "on"}, true, false},
        {{.id = "open_up", .ability = "power", .text = "on"},
         true,
         false}, /* a scene is no thing */
        {{.id = "fv1", .ability = "pressure", .number = 100, .unit = "kPa"}, false, true},
    };
    const struct gate g = {table, file, NULL};
    struct fake f = {.sink = {&ops}};
    uint32_t n_done = 0, n = 0;
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct gate_verdict v =
            gate_carry(&g, &f.sink, &rows[i].deed, rows[i].confirmed, on_done, &n_done);
        n += rows[i].sent;
        assert_int_equal(v.answer == GATE_PASS, rows[i].sent);
        assert_int_equal(f.n, n);
        assert_int_equal(n_done, n);
    }
    assert_true(f.last.number == 1.0);
    assert_string_equal(f.last.unit, "bar");
    struct gate_verdict v = gate_carry(&g, NULL, &rows[0].deed, false, on_done, &n_done);
    assert_int_equal(v.answer, GATE_PASS); /* simulated */
    assert_int_equal(n_done, n);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_units_are_converted),
        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_what_is_set_must_be_clear),
        cmocka_unit_test(test_no_value_is_no_deed),
        cmocka_unit_test(test_changes_are_judged_by_their_result),
        cmocka_unit_test(test_risk),
        cmocka_unit_test(test_things_known_by_name),
        cmocka_unit_test(test_only_what_passes_is_carried_out),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
