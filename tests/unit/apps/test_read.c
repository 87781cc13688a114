/* test_read.c - the reader's way of a text: the plan language, the lines that it is given, and what
 * becomes of plans in a home with floors, odd names and the speaker's room, with the real model. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "apps/home/ask/ask_pack.h"
#include "apps/home/home_recall.h"
#include "apps/home/later/home_later.h"
#include "apps/home/read/read_acts.h"
#include "apps/home/read/read_cover.h"
#include "apps/home/read/read_lines.h"
#include "apps/home/read/read_plan.h"
#include "apps/home/site/home_file_read.h"
#include "apps/home/site/home_live.h"
#include "apps/home/site/home_things.h"
#include "engine/native/reader.h"

static struct ask_pack pack;
static struct home_things *things;
static struct home_file *file;
static struct ask *ask;
static struct arena a;

static const char house[] =
    "rooms:\n"
    "  - {id: kitchen, floor: ground floor}\n"
    "  - {id: hall, floor: ground floor}\n"
    "  - {id: bedroom, floor: upstairs}\n"
    "  - {id: study, floor: upstairs}\n"
    "devices:\n"
    "  - {id: l.kitchen, name: ceiling light, kind: light, room: kitchen}\n"
    "  - {id: l.hall, name: lamp, kind: light, room: hall}\n"
    "  - {id: l.bed, name: bedside lamp, kind: light, room: bedroom}\n"
    "  - {id: l.desk, name: Moby, kind: light, room: study}\n"
    "  - {id: c.bed, name: curtain, kind: cover, room: bedroom}\n"
    "  - {id: c.study, name: roller shutter, kind: cover, room: study}\n"
    "  - {id: oven, kind: heater, room: kitchen}\n"
    "  - {id: heat, name: heating, kind: climate}\n"
    "  - {id: tv, kind: media, room: bedroom}\n"
    "  - {id: r.bed, name: radio, kind: media, room: bedroom}\n"
    "  - {id: r.study, name: radio, kind: media, room: study}\n"
    "  - {id: coffee, name: coffee machine, kind: appliance, room: kitchen}\n"
    "machines:\n"
    "  - {id: fv1, name: fermenter one, aliases: [fv1], kind: machine, limits: {pressure: {min: 0, "
    "max: 2, unit: bar}}}\n"
    "sensors:\n"
    "  - {id: t.bed, name: temperature, room: bedroom, unit: celsius}\n";

static int setup(void **state)
{
    struct ask_pack_opts o = {.dir = SHOAL_TEST_DATA "/../../models", .no_reply = true};
    struct err e = {0};
    (void)state;
    arena_init(&a, (size_t)16 << 20);
    if (ask_pack_open(&pack, &o, &e) < 0 ||
        home_file_read_text(&file, pack.table, house, strlen(house), "house", &e) < 0 ||
        home_things_create(&things, file, NULL, &e) < 0 ||
        ask_create(&ask, pack.table, things, pack.reader, NULL, &e) < 0) {
        print_error("%s\n", e.msg);
        return -1;
    }
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    ask_destroy(ask);
    home_things_destroy(things);
    home_file_unref(file);
    ask_pack_close(&pack);
    arena_fini(&a);
    return 0;
}

/* ---- plans ---------------------------------------------------------------------------------- */

static void test_plans_are_read(void **state)
{
    struct read_plan p;
    (void)state;
    assert_true(
        read_plan_of(&p, "set t2 pressure to_value w3 w4 sep off all light a1 f2 except t1 t3"));
    assert_int_equal(p.n, 2);
    assert_string_equal(p.acts[0].verb, "set");
    assert_int_equal(p.acts[0].things.n, 1);
    assert_int_equal(p.acts[0].things.at[0], 1);
    assert_string_equal(p.acts[0].quantity, "pressure");
    assert_int_equal(p.acts[0].amount, READ_PLAN_TO);
    assert_int_equal(p.acts[0].value.from, 3);
    assert_int_equal(p.acts[0].value.to, 5);
    assert_string_equal(p.acts[1].class, "light");
    assert_true(p.acts[1].all);
    assert_int_equal(p.acts[1].areas.at[0], 0);
    assert_int_equal(p.acts[1].floors.at[0], 1);
    assert_int_equal(p.acts[1].except.n, 2);
    assert_int_equal(p.acts[1].things.n, 0);
    assert_true(read_plan_of(&p, "lock lock everywhere")); /* a verb, and the class of that name */
    assert_string_equal(p.acts[0].class, "lock");
    assert_true(read_plan_of(&p, "ask any gas unknown w5 w6 is_detected"));
    assert_string_equal(p.acts[0].which, "any");
    assert_int_equal(p.acts[0].elsewhere.from, 5);
    assert_int_equal(p.acts[0].unknown.to, 0);
    assert_true(read_plan_of(&p, "add item w0 w0 item w2 w3 list w5 w5"));
    assert_int_equal(p.acts[0].n_items, 2);
    assert_true(read_plan_of(&p, "timer more name w7 w7 by_value w1 w2"));
    assert_string_equal(p.acts[0].word, "more");
    assert_int_equal(p.acts[0].amount, READ_PLAN_BY);
    assert_true(read_plan_of(&p, "down t1 speed bit"));
    assert_int_equal(p.acts[0].amount, READ_PLAN_BIT);
}

static void test_what_is_no_plan_is_refused(void **state)
{
    static const char *const bad[] = {"",
                                      "light on",
                                      "on t0",
                                      "on t17",
                                      "on a9",
                                      "on f5",
                                      "on q7",
                                      "on t1 sep",
                                      "set t1 to_value",
                                      "set t1 to_value w3",
                                      "set t1 to_value w4 w3",
                                      "set t1 to_value w3 w64",
                                      "set t1 to_value w1 w1 to_value w2 w2",
                                      "set t1 bit lot",
                                      "off light fan",
                                      "off t1 pressure speed",
                                      "off t1 w1 w2",
                                      "timer talk",
                                      "none",
                                      "on t1x",
                                      "on at w1 w1 at w2 w2 at w3 w3"};
    struct read_plan p;
    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        if (strcmp(bad[i], "none") != 0 && read_plan_of(&p, bad[i]))
            fail_msg("'%s' is read", bad[i]);
    char many[512] = "off";
    for (int i = 0; i < 17; i++)
        strcat(many, " t1");
    assert_true(read_plan_of(&p, many)); /* however often it is said */
    assert_int_equal(p.acts[0].things.n, 1);
    char acts[512] = "undo";
    for (int i = 0; i < 8; i++)
        strcat(acts, " sep undo");
    assert_false(read_plan_of(&p, acts));
}

/* ---- lines ---------------------------------------------------------------------------------- */

static struct read_lines *lines_of(const char *text, const struct read_lines_state *s)
{
    struct read_lines *l = arena_zalloc(&a, sizeof(*l));
    static const struct read_lines_state none;
    assert_non_null(l);
    assert_int_equal(read_lines_choose(l, &a, pack.table, file, s ? s : &none, text), 0);
    return l;
}

static void test_what_is_meant_has_a_line(void **state)
{
    (void)state;
    struct read_lines *l = lines_of("turn Moby off", NULL);
    assert_string_equal(l->things[0].thing->id, "l.desk");
    assert_true(l->things[0].said);
    assert_non_null(strstr(l->input, "\x01t1 \x01light \x01"
                                     "exact moby"));
    assert_non_null(strstr(l->input, "\x01text \x01w0 turn \x01w1 Moby \x01w2 off"));
    l = lines_of("set the pressure of fermentor one to 1.2 bar", NULL);
    assert_string_equal(l->things[0].thing->id, "fv1");
    assert_non_null(strstr(l->input, "fermenter one \x01or fv1 \x01pressure"));
    l = lines_of("switch on the time machine", NULL);
    for (uint32_t i = 0; i < l->n_things; i++) /* there, but not called so */
        if (strcmp(l->things[i].thing->id, "coffee") == 0)
            assert_false(l->things[i].said);
    const struct read_lines_state s = {.here = home_file_thing(file, "study"),
                                       .last = "set @heat temperature",
                                       .pending = "ask_value"};
    l = lines_of("21", &s);
    assert_string_equal(l->things[0].thing->id, "heat");
    assert_non_null(strstr(l->input, "\x01here_is \x01"
                                     "a1 \x01last \x01set \x01t1 \x01temperature \x01pending \x01"
                                     "ask_value"));
    assert_non_null(strstr(l->input, "\x01"
                                     "a1 study \x01"
                                     "f"));
}

/* Whatever a user writes, it is words to the reader. */
static void test_users_cannot_write_plans(void **state)
{
    (void)state;
    struct read_lines *l = lines_of("\x01off \x01light <on> \x01\x01 \x7f", NULL);
    const char *text = strstr(l->input, "\x01text");
    assert_non_null(text);
    assert_string_equal(text, "\x01text \x01w0 off \x01w1 light \x01w2 <on> \x01w3 _ \x01w4 _");
}

/* ---- what plans come to --------------------------------------------------------------------- */

/* "tN" of a thing, in a plan for its text. */
static const char *with_lines(const struct read_lines *l, const char *plan)
{
    struct home_words w = home_words_split(&a, plan);
    const char *out = "";
    for (uint32_t i = 0; i < w.n; i++) {
        const char *word = w.w[i];
        for (uint32_t k = 0; word[0] == '@' && k < l->n_things; k++)
            if (strcmp(l->things[k].thing->id, word + 1) == 0)
                word = arena_printf(&a, "t%u", k + 1);
        for (uint32_t k = 0; word[0] == '@' && k < l->n_areas; k++)
            if (strcmp(l->areas[k]->id, word + 1) == 0)
                word = arena_printf(&a, "a%u", k + 1);
        if (word[0] == '@')
            fail_msg("%s has no line", word);
        out = arena_printf(&a, "%s%s%s", out, i ? " " : "", word);
    }
    return out;
}

/* "turn_on l.bed: simulated; ..." */
static const char *shown(const struct ask_plan_action *const *list, uint32_t n)
{
    const char *out = "";
    for (uint32_t i = 0; i < n; i++) {
        const struct ask_plan_action *x = list[i];
        const struct ask_plan_field *ids = ask_plan_field_of(x, "ids"),
                                    *value = ask_plan_field_of(x, "value");
        const char *id = ask_plan_text_of(x, "id"), *result = ask_plan_text_of(x, "result");
        out = arena_printf(&a, "%s%s%s", out, i ? "; " : "", x->name);
        for (uint32_t k = 0; ids && k < ids->n_items; k++)
            out = arena_printf(&a, "%s %s", out, ids->items[k]);
        if (id)
            out = arena_printf(&a, "%s %s", out, id);
        if (value && !value->text)
            out = arena_printf(&a, "%s %g", out, value->number);
        if (result)
            out = arena_printf(&a, "%s: %s", out, result);
    }
    return out;
}

static struct read_work work_on(const char *text, const struct read_lines_state *s,
                                struct home_draft *d)
{
    static struct home_here here;
    static struct tm now = {.tm_year = 126, .tm_mon = 10, .tm_mday = 15, .tm_hour = 14};
    static const struct read_lines_state none;
    here = (struct home_here){.file = file, .states = home_things_states(things)};
    return (struct read_work){.a = &a,
                              .t = pack.table,
                              .here = &here,
                              .now = &now,
                              .lines = lines_of(text, s),
                              .state = s ? s : &none,
                              .text = text,
                              .p = 1.0f,
                              .simulated = true,
                              .draft = d};
}

static struct read_plan plan_of(const struct read_lines *l, const char *text)
{
    struct read_plan p;
    if (!read_plan_of(&p, with_lines(l, text)))
        fail_msg("no plan: %s", text);
    return p;
}

static void comes_to(const char *text, const char *plan, const char *want)
{
    struct home_draft d = {0};
    struct read_work w = work_on(text, NULL, &d);
    struct read_plan p = plan_of(w.lines, plan);
    read_acts(&w, &p);
    const char *have = shown(d.actions, d.n_actions);
    if (strcmp(have, want) != 0)
        fail_msg("%s\n  have %s\n  want %s", plan, have, want);
}

static void test_what_plans_come_to(void **state)
{
    (void)state;
    comes_to("Moby off", "off @l.desk", "turn_off l.desk: done");
    comes_to("lights off", "off all light", "turn_off l.kitchen l.hall l.bed l.desk: done");
    comes_to("hall lights off", "off light @hall", "turn_off l.hall: done");
    comes_to("lights off but not in the kitchen", "off light except @kitchen",
             "turn_off l.hall l.bed l.desk: done");
    comes_to("all lights off but leave the kitchen and the hall on",
             "off all light except @kitchen @hall", "turn_off l.bed l.desk: done");
    comes_to("Moby off, yes Moby", "off @l.desk @l.desk", "turn_off l.desk: done");
    comes_to("FV1 to 1 bar", "set @fv1 pressure to_value w2 w3", "set_machine fv1 1: done");
    comes_to("FV1 to 9 bar", "set @fv1 pressure to_value w2 w3", "set_machine fv1 9: refused");
    comes_to("bedroom curtain open", "open @c.bed", "open c.bed: done");
    comes_to("the flamingo on", "on unknown w1 w1", "turn_on: unknown");
    comes_to("lights on here", "on light here", "turn_on: ask");
    comes_to("lamp or Moby off", "off one @l.hall @l.desk", "turn_off: ask");
    comes_to("nice day", "none talk", "");
    comes_to("undo that", "undo", "");
    comes_to("Moby off, hall lamp on", "off @l.desk sep on @l.hall",
             "turn_off l.desk: done; turn_on l.hall: done");
}

/* Names that stand side by side are all meant, whichever of them the reader points at. */
static void test_things_named_together(void **state)
{
    (void)state;
    const char *both = "turn_on l.hall l.desk: done", *two = "turn_off l.hall l.desk tv: done";
    comes_to("turn on the hall lamp and Moby", "on @l.desk", both);
    comes_to("turn on the hall lamp and Moby please", "on @l.hall", both);
    comes_to("turn on the hall lamp and Moby", "on @l.desk sep on @l.desk", both);
    comes_to("turn on the hall lamp and Moby", "on @l.desk sep on @l.hall", both);
    comes_to("turn off the hall lamp, Moby and the tv", "off @l.hall", two);
    comes_to("turn the hall lamp and Moby on when it is dark", "on @l.desk", both);
    /* something else is said of the other one, or it has an act of its own */
    comes_to("turn on the hall lamp and Moby is broken", "on @l.hall", "turn_on l.hall: done");
    comes_to("turn on the hall lamp but not Moby", "on @l.hall except @l.desk",
             "turn_on l.hall: done");
    comes_to("hall lamp on and Moby off", "on @l.hall sep off @l.desk",
             "turn_on l.hall: done; turn_off l.desk: done");
    comes_to("turn on the hall lamp and Moby off", "on @l.hall sep off @l.desk",
             "turn_on l.hall: done; turn_off l.desk: done");
    comes_to("turn on the hall lamp or Moby", "on @l.hall", "turn_on l.hall: done");
    comes_to("turn on Moby and Moby", "on @l.desk", "turn_on l.desk: done");
    /* of things with one name, those in the room that was said */
    comes_to("study, radio off", "off @r.bed @r.study", "turn_off r.study: done");
    comes_to("both radios off in bedroom and study", "off @r.bed @r.study",
             "turn_off r.bed r.study: done");
    /* what the home has is not unknown */
    comes_to("turn on Moby", "on unknown w2 w2", "turn_on l.desk: done");
    comes_to("turn on Mobys", "on unknown w2 w2", "turn_on: unknown");
    /* words that the plan copies are no row of things */
    comes_to("turn on Moby for lamp and Moby", "on @l.desk what w4 w6", "turn_on l.desk: done");
}

/* Facts of the text against what a reader guessed. */
static void test_guesses_against_the_text(void **state)
{
    (void)state;
    comes_to("wake me at eight hundred am", "alarm set_one at w3 w5", "set_alarm: ask");
    comes_to("remind me to call mum yesterday at 5", "remind set_one what w3 w4 at w5 w7",
             "set_reminder: refused");
    /* a day and a time that stand apart are one moment, in either order */
    comes_to("remind me yesterday to call mum at 5", "remind set_one what w4 w5 at w2 w2 at w7 w7",
             "set_reminder: refused");
    comes_to("at 5 remind me to call mum yesterday", "remind set_one what w5 w6 at w1 w1 at w7 w7",
             "set_reminder: refused");
    comes_to("remind me tomorrow to call mum at 5", "remind set_one what w4 w5 at w2 w2 at w7 w7",
             "set_reminder: done");
    comes_to("light on in the mudroom", "on light @bedroom", "");
    comes_to("light on in the bedrom", "on light @bedroom", "turn_on l.bed: done");
    comes_to("mute the tv", "mute", "mute tv: done");
    comes_to("blinds on", "on @l.bed", "open c.bed c.study: confirm"); /* their class is said */
    comes_to("heating to 20 degrees, then blinds on",
             "set @heat temperature to_value w2 w3 sep on @c.bed",
             "set_temperature heat 20: done; open c.bed: confirm");
    comes_to("lights off", "on all light", /* "off" is no "on" */
             "turn_off l.kitchen l.hall l.bed l.desk: confirm");
    comes_to("switch off the lamp on the desk", "off @l.hall", "turn_off l.hall: done");
}

static const char *after(const char *last, const char *text, const char *plan)
{
    const struct read_lines_state s = {.last = last};
    struct home_draft d = {0};
    struct read_work w = work_on(text, &s, &d);
    struct read_plan p = plan_of(w.lines, plan);
    read_acts(&w, &p);
    return shown(d.actions, d.n_actions);
}

/* A class that the text names beside things is not dropped; one that only the reader saw is. */
static void test_classes_beside_things(void **state)
{
    (void)state;
    comes_to("turn off the lights and the tv", "off light @tv",
             "turn_off l.kitchen l.hall l.bed l.desk: done; turn_off tv: done");
    comes_to("turn off the tv", "off light @tv", "turn_off tv: done");
    comes_to("turn off the desk light", "off light @l.desk", "turn_off l.desk: done");
}

static void test_undo_and_again(void **state)
{
    (void)state;
    assert_string_equal(after("on @l.hall", "undo that", "undo"), "turn_off l.hall: done");
    assert_string_equal(after("on @l.hall", "again", "repeat"), "turn_on l.hall: done");
    assert_string_equal(after("set @heat temperature", "undo that", "undo"), "");
    assert_string_equal(after(NULL, "again", "repeat"), "");
    assert_string_equal(after("ask @tv state", "again", "repeat"), "");
}

/* What is left as it is counts in the whole home, wherever the speaker is, and the answer names it.
 */
static void test_rooms_that_stay_are_named(void **state)
{
    const struct read_lines_state s = {.here = home_file_thing(file, "hall")};
    struct home_draft d = {0};
    struct read_work w = work_on("lights off but not in the kitchen", &s, &d);
    struct read_plan p = plan_of(w.lines, "off light except @kitchen");
    (void)state;
    assert_non_null(s.here);
    read_acts(&w, &p);
    assert_string_equal(shown(d.actions, d.n_actions), "turn_off l.hall l.bed l.desk: done");
    assert_string_equal(ask_plan_text_of(d.actions[0], "except"), "kitchen");
}

/* What is not sure waits for a yes. */
static void test_a_plan_that_is_not_sure_waits(void **state)
{
    struct home_draft d = {0};
    struct read_work w = work_on("Moby off", NULL, &d);
    struct read_plan p = plan_of(w.lines, "off @l.desk");
    (void)state;
    w.p = 0.5f;
    read_acts(&w, &p);
    assert_string_equal(shown(d.actions, d.n_actions), "turn_off l.desk: confirm");
    assert_int_equal(d.n_held, 1);
}

/* What a text's plan comes to: its only action, and what is said. */
static struct home_draft made(const char *text, const char *plan)
{
    struct home_draft d = {0};
    struct read_work w = work_on(text, NULL, &d);
    struct read_plan p = plan_of(w.lines, plan);
    read_acts(&w, &p);
    return d;
}

static const char *said(const struct home_draft *d)
{
    const struct home_draft_line *l = d->n_lines > 0 ? &d->lines[0] : NULL;
    return l && l->say ? l->say : l && l->text ? l->text : "";
}

/* "A little" moves what has a position by a step; without it "raise" opens. */
static void test_a_little_is_a_step(void **state)
{
    static const struct {
        const char *text, *plan;
        double change; /* 0: none */
    } rows[] = {
        {"raise the bedroom curtain a little", "up @c.bed position bit", 10},
        {"lower the bedroom curtain a bit", "down @c.bed position bit", -10},
        {"raise the bedroom curtain", "up @c.bed position", 0},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const struct home_draft d = made(rows[i].text, rows[i].plan);
        assert_int_equal(d.n_actions, 1);
        assert_string_equal(d.actions[0]->name, "open");
        const struct ask_plan_field *f = ask_plan_field_of(d.actions[0], "change");
        assert_true((f ? f->number : 0) == rows[i].change);
    }
}

/* A bare number for a room is of what was named, or of what has a unit of its own. */
static void test_a_bare_number_for_a_room_asks(void **state)
{
    (void)state;
    comes_to("kitchen to 40", "set light @kitchen brightness to_value w2 w2",
             "set_brightness: ask");
    comes_to("bedroom to 21", "set climate @bedroom temperature to_value w2 w2",
             "set_temperature 21: unknown"); /* none there, but not asked what is meant */
    comes_to("kitchen to 40 percent", "set light @kitchen brightness to_value w2 w3",
             "set_brightness l.kitchen 40: done");
    comes_to("dim the kitchen to 40", "set light @kitchen brightness to_value w4 w4",
             "set_brightness l.kitchen 40: done");
    comes_to("kitchen light to 40", "set light @kitchen brightness to_value w3 w3",
             "set_brightness l.kitchen 40: done");
    comes_to("kitchen ceiling light to 40", "set @l.kitchen brightness to_value w4 w4",
             "set_brightness l.kitchen 40: done");
}

/* The time and the date answer only what they are asked. */
static void test_other_questions(void **state)
{
    static const struct {
        const char *text, *plan, *action;
    } rows[] = {
        {"what time is it", "other time", "get_time"},
        {"how long until six", "other time", ""},
        {"how many days until christmas", "other time", ""},
        {"what day is it", "other date", "get_date"},
        {"what date is next friday", "other date", ""},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const struct home_draft d = made(rows[i].text, rows[i].plan);
        assert_string_equal(d.n_actions > 0 ? d.actions[0]->name : "", rows[i].action);
    }
    const struct home_draft who = made("who are you", "other about");
    assert_non_null(strstr(said(&who), "Shoal"));
}

/* "7 on weekdays" has a time in front; the number of a period is none. */
static void test_a_time_in_front_of_a_repetition(void **state)
{
    const struct home_draft alarm = made("alarm for 7 on weekdays", "alarm set_one every w2 w4"),
                            hours = made("every 2 hours remind me to drink",
                                         "remind set_one what w6 w6 every w0 w2");
    (void)state;
    assert_string_equal(shown(alarm.actions, alarm.n_actions), "set_alarm: done");
    assert_string_equal(ask_plan_text_of(alarm.actions[0], "time"), "07:00");
    assert_null(ask_plan_text_of(hours.actions[0], "time"));
}

/* Which of them are so: also where there is only one. */
static void test_which_of_one(void **state)
{
    const struct home_state off = {.ability = "power", .text = "off"};
    (void)state;
    home_states_set(home_things_states(things), "l.hall", &off);
    const struct home_draft d = made("what is on in the hall", "ask which everything @hall is_on");
    assert_string_equal(said(&d), "Nothing there is on.");
}

/* Does any word stand for what the act is about? */
static void test_hints(void **state)
{
    static const struct {
        const char *text, *plan;
        bool hints;
    } rows[] = {
        {"everybody out of the hall", "off light @hall", false},
        {"hall light off", "off light @hall", true},
        {"hall lihgt off", "off light @hall", true},
        {"starting the mill takes two minutes", "start @l.kitchen", false},
        {"start the fermenter", "start @fv1", true}, /* a part of the name */
        {"Moby off", "off @l.desk", true},
        {"make it 21 degrees", "set climate temperature to_value w2 w3", true}, /* by its unit */
        {"make it 21", "set climate temperature to_value w2 w2", false},
        {"more brightness", "up light brightness", true},
        {"brighten up the hall", "up light @hall brightness", true},
        {"the bedroom is too warm", "down climate @bedroom temperature", true},
        {"turn it off", "off it", true},
        {"ten minutes", "timer set_one dur w0 w1", true}, /* about no thing */
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct read_lines *l = lines_of(rows[i].text, NULL);
        struct read_plan p = plan_of(l, rows[i].plan);
        if (read_cover_hints(&a, pack.table, l, &p.acts[0]) != rows[i].hints)
            fail_msg("%s: %s", rows[i].text, rows[i].hints ? "no word hints at it" : "hints");
    }
}

/* ---- what only the server knows ------------------------------------------------------------- */

static bool motor_reading(struct home_live *l, struct arena *in, const char *what,
                          const char *where, struct home_live_reading *out)
{
    (void)l;
    (void)in;
    *out = (struct home_live_reading){"motor 3 vibration", 2.3456, "mm/s"};
    return strcmp(what, "temperature") != 0 && strcmp(where, "motor 3") == 0;
}

static bool motor_alarm(struct home_live *l, struct arena *in, const char *where,
                        struct home_live_alarm *out)
{
    (void)l;
    (void)in;
    *out = (struct home_live_alarm){"motor 3", "Motor 3 shakes.", false};
    return strcmp(where, "motor 3") == 0;
}

/* The reader points at a thing of the home that nobody named: the server's own machine is meant. */
static void test_what_the_server_knows(void **state)
{
    static const struct home_live_ops ops = {motor_reading, motor_alarm};
    struct home_live live = {&ops};
    struct home_draft d = {0};
    struct read_work w = work_on("what happened with motor 3", NULL, &d);
    struct home_here here = *w.here;
    struct read_plan p = plan_of(w.lines, "ask @l.kitchen history");
    (void)state;
    w.here = &here;
    read_acts(&w, &p);
    assert_int_equal(d.n_actions, 0); /* nobody knows it */
    here.live = &live;
    d = (struct home_draft){0};
    read_acts(&w, &p);
    assert_string_equal(shown(d.actions, d.n_actions), "explain_alarm: done");
    assert_string_equal(said(&d), "Motor 3 shakes.");
}

/* What is measured is said as people say it; the action has every digit. */
static void test_readings_are_rounded(void **state)
{
    static const struct {
        double number;
        const char *unit, *said;
    } rows[] = {{21.434, "celsius", "21.4 degrees"},
                {1013.25, "hPa", "1013 hPa"},
                {-3.96, "celsius", "-4 degrees"},
                {0.03456, NULL, "0.035"},
                {0, NULL, "0"},
                {99.96, NULL, "100"}};
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        assert_string_equal(home_answer_spoken(&a, pack.table, rows[i].number, rows[i].unit),
                            rows[i].said);
}

/* "21" after "What value?" is the last plan with that value. */
static void test_an_answer_completes_the_last_plan(void **state)
{
    const struct read_lines_state s = {.last = "set @heat temperature", .pending = "ask_value"};
    struct home_draft d = {0};
    struct read_work w = work_on("21", &s, &d);
    struct read_plan p = plan_of(w.lines, "answer to_value w0 w0");
    (void)state;
    read_acts(&w, &p);
    assert_string_equal(shown(d.actions, d.n_actions), "set_temperature heat 21: done");
    assert_string_equal(w.pending_out, "");
    assert_string_equal(w.last_out, "set @heat temperature");
}

/* ---- what plans leave out ------------------------------------------------------------------- */

static bool is_covered(const char *text, const char *plan)
{
    struct read_lines *l = lines_of(text, NULL);
    struct read_plan p = plan_of(l, plan);
    return read_cover_all(&a, l, &p);
}

static void test_plans_account_for_numbers_and_rooms(void **state)
{
    (void)state;
    assert_true(is_covered("oven 180 degrees", "set @oven temperature to_value w1 w2"));
    assert_true(is_covered("oven 180 degrees for 20 minutes",
                           "set @oven temperature to_value w1 w2 for w4 w5"));
    assert_false(
        is_covered("oven 180 degrees for 20 minutes", "set @oven temperature to_value w1 w2"));
    assert_true(is_covered("lights off", "off all light"));
    assert_false(is_covered("all the lights off but leave the kitchen on", "off all light"));
    assert_true(is_covered("all the lights off but leave the kitchen on",
                           "off all light except @l.kitchen"));
    assert_true(
        is_covered("all the lights off but leave the kitchen on", "off all light except @kitchen"));
    assert_true(is_covered("lights off in the kitchen", "off light @kitchen"));
    assert_true(is_covered("turn off Moby in the study", "off @l.desk"));
}

static void leaves(const char *text, const char *plan, const char *want)
{
    struct read_lines *l = lines_of(text, NULL);
    struct read_plan p = plan_of(l, plan);
    const char *have = read_cover_left(&a, pack.table, l, &p);
    if (strcmp(have ? have : "", want) != 0)
        fail_msg("%s: \"%s\", expected \"%s\"", text, have ? have : "", want);
}

static void test_what_is_left_out_is_named(void **state)
{
    (void)state;
    leaves("oven 180 degrees for 20 minutes", "set @oven temperature to_value w1 w2", "20 minutes");
    leaves("oven 19 sorry 180 degrees", "set @oven temperature to_value w3 w4", "19");
    leaves("all the lights off but leave the kitchen on", "off all light", "kitchen");
    leaves("turn off the lights and the flamingo", "off light", "the flamingo");
    leaves("turn off the lights and the pink flamingo, please", "off light", "the pink flamingo");
    leaves("turn off the flamingo and the lights", "off light sep off unknown w3 w3", "");
    leaves("turn off the lights and the flamingo", "off light sep off unknown w6 w6", "");
    leaves("turn off the lights and the lamp", "off light", "");         /* the home has it */
    leaves("turn off the lights, the kids are asleep", "off light", ""); /* a reason */
    leaves("turn off the lights and the kids are asleep", "off light", "");
    leaves("turn off the lights and the flamingo is pink", "off light", "");
    leaves("turn off the lights and the rest", "off light", "");
    leaves("please be a dear and turn off the lights", "off light", "");
}

/* ---- texts ---------------------------------------------------------------------------------- */

static const char *does_in(const char *text, const char *room)
{
    struct ask_request *q;
    struct err e = {0};
    struct ask_opts o = {.text = text,
                         .text_bytes = strlen(text),
                         .conversation = "test",
                         .room = room,
                         .no_reply = true};
    if (ask_submit(ask, &o, &q, &e) < 0)
        fail_msg("%s: %s", text, e.msg);
    assert_int_equal(ask_wait(q), 0);
    const struct ask_plan *p = ask_plan_of(q);
    const char *out = shown(p->actions, p->n_actions);
    ask_free(q);
    return out;
}

static void is(const char *text, const char *room, const char *want)
{
    const char *have = does_in(text, room);
    if (strcmp(have, want) != 0)
        fail_msg("%s\n  have %s\n  want %s", text, have, want);
}

static void test_places(void **state)
{
    (void)state;
    is("turn off all the lights in here", NULL, "turn_off: ask"); /* nobody said where */
    is("turn off the lights upstairs", NULL, "turn_off l.bed l.desk: simulated");
    is("lights on", "kitchen", "turn_on l.kitchen: simulated");
    is("turn off all the lights in here", "hall", "turn_off l.hall: simulated");
    is("close the blinds on the upper floor", NULL, "close c.bed c.study: simulated");
}

static void test_verbs_that_the_rules_do_not_have(void **state)
{
    (void)state;
    is("go back to the previous song", NULL, "previous_track: simulated");
    is("resume the music", NULL, "resume_media: simulated");
}

static void test_what_the_rules_ask_about(void **state)
{
    (void)state;
    is("set FV1 to 100 kPa", NULL, "set_machine fv1 100: simulated");
    is("set FV1 to 500 kPa", NULL, "set_machine fv1 500: refused");
    is("make it brighter in the hall", NULL, "set_brightness l.hall: simulated");
}

/* The rules turn it on, the reader off: neither happens without a yes. */
static void test_a_slip_is_not_the_opposite(void **state)
{
    (void)state;
    is("swich of the lamp in the hall", NULL, "turn_off l.hall: simulated");
}

static void count_item(void *ctx, const char *id, const struct home_state *v)
{
    (void)id;
    *(uint32_t *)ctx += strcmp(v->ability, "yeast") == 0;
}

/* What the reader does to a list is done to the list that the rules answer from. */
static void test_lists(void **state)
{
    uint32_t n = 0;
    (void)state;
    is("jot down yeast for the shopping list", NULL, "add_to_list: done");
    home_states_each(home_things_lists(things), count_item, &n);
    assert_int_equal(n, 1);
    is("clear my shopping list", NULL, "clear_list: done");
    home_states_each(home_things_lists(things), count_item, &n);
    assert_int_equal(n, 1); /* none more */
}

static void test_questions_do_nothing(void **state)
{
    (void)state;
    const char *have = does_in("are any bedroom curtains open?", NULL);
    assert_ptr_equal(strstr(have, "get_state"), have);
}

static int64_t at_ten(void *ctx)
{
    (void)ctx;
    return 10000000;
}

static void run_nothing(void *ctx, const struct home_later_entry *x)
{
    (void)ctx;
    (void)x;
}

static void was_added(void *ctx, int rc, const char *reason, uint64_t id)
{
    (void)ctx;
    (void)reason;
    (void)id;
    assert_int_equal(rc, 0);
}

/* What a plan comes to a while after an alarm rang. */
static const char *after_ringing(int64_t ago_ms, const char *text, const char *plan)
{
    const struct home_later_opts o = {.clock = {at_ten, at_ten, NULL}, .run = run_nothing};
    struct home_later *later;
    struct home_draft d = {0};
    struct err e = {0};
    struct read_work w = work_on(text, NULL, &d);
    struct home_here here = *w.here;
    const char *json = arena_printf(
        &a,
        "{\"version\":1,\"last_id\":1,\"scheduled\":[],\"recent\":[{\"id\":1,\"kind\":\"alarm\","
        "\"what\":\"x\",\"due_ms\":1,\"made_ms\":1,\"action\":\"{}\",\"result\":\"rang\","
        "\"ended_ms\":%lld}]}",
        (long long)(at_ten(NULL) - ago_ms));
    assert_int_equal(home_later_create(&later, &o, &e), 0);
    if (home_later_read(later, json, strlen(json), &e) < 0)
        fail_msg("%s", e.msg);
    here.later = later;
    w.here = &here;
    struct read_plan p = plan_of(w.lines, plan);
    read_acts(&w, &p);
    const char *seconds =
        d.n_actions > 0 && ask_plan_field_of(d.actions[0], "duration_s")
            ? arena_printf(&a, " %g", ask_plan_field_of(d.actions[0], "duration_s")->number)
            : "";
    const char *out = arena_printf(&a, "%s%s", shown(d.actions, d.n_actions), seconds);
    home_later_stop(later);
    home_later_destroy(later);
    return out;
}

static void test_what_rang_rings_again(void **state)
{
    (void)state;
    assert_string_equal(after_ringing(60000, "snooze", "alarm snooze"), "set_timer: scheduled 600");
    assert_string_equal(after_ringing(60000, "snooze for 5 minutes", "alarm snooze dur w2 w3"),
                        "set_timer: scheduled 300");
    assert_string_equal(after_ringing(3600000, "snooze", "alarm snooze"), "cancel_alarm: failed");
}

/* "The bread one" is the timer named bread, although nothing is called "one". */
static void test_a_name_among_other_words(void **state)
{
    const struct home_later_opts o = {.clock = {at_ten, at_ten, NULL}, .run = run_nothing};
    static const struct {
        const char *words;
        uint32_t n;
    } rows[] = {{"the bread one", 1}, {"bread", 1}, {"rye bread dough", 2}, {"the cake one", 0}};
    const struct ask_plan_action bread = {
        .name = "set_timer", .fields = {{.key = "name", .text = "bread"}}, .n_fields = 1};
    const struct ask_plan_action rye = {
        .name = "set_timer", .fields = {{.key = "name", .text = "rye bread"}}, .n_fields = 1};
    const struct home_later_entry entries[] = {{.kind = HOME_LATER_TIMER,
                                                .due_ms = 20000000,
                                                .what = "timer: bread",
                                                .said = "",
                                                .action = &bread},
                                               {.kind = HOME_LATER_TIMER,
                                                .due_ms = 30000000,
                                                .what = "timer: rye",
                                                .said = "",
                                                .action = &rye}};
    struct home_later *later;
    struct err e = {0};
    (void)state;
    assert_int_equal(home_later_create(&later, &o, &e), 0);
    for (size_t i = 0; i < 2; i++)
        home_later_add(later, &entries[i], was_added, NULL);
    (void)home_later_tick(later);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct home_words w = home_words_split(&a, rows[i].words);
        const struct home_recall_query q = {.kind = HOME_LATER_TIMER, .words = &w};
        const struct home_recall found = home_recall_find(&a, pack.table, later, &q);
        if (found.n != rows[i].n)
            fail_msg("%s: %u, expected %u", rows[i].words, found.n, rows[i].n);
    }
    home_later_stop(later);
    home_later_destroy(later);
}

static uint32_t next_random(uint32_t *seed)
{
    *seed ^= *seed << 13;
    *seed ^= *seed >> 17;
    *seed ^= *seed << 5;
    return *seed;
}

/* Letters that are no word of the table or the home, nor a slip away from one. */
static void make_strange(char *out, uint32_t *seed)
{
    do {
        const uint32_t n = 2 + next_random(seed) % 7;
        for (uint32_t i = 0; i < n; i++)
            out[i] = (char)('a' + next_random(seed) % 26);
        out[n] = '\0';
    } while (home_table_knows(pack.table, out) || home_file_near_word(file, out));
}

/* A question changes nothing, whatever was understood. */
static bool changes(const struct ask_plan_action *x)
{
    const struct home_action *action = home_table_action(pack.table, x->name);
    return action && action->answer.n == 0 && !action->reason &&
           strcmp(ask_plan_text_of(x, "result"), "failed") != 0;
}

static void test_noise_changes_nothing(void **state)
{
    uint32_t seed = 20261118;
    (void)state;
    for (uint32_t k = 0; k < 100; k++) {
        char text[128] = "", word[16];
        struct ask_request *q;
        struct err e = {0};
        for (uint32_t i = 1 + next_random(&seed) % 7; i > 0; i--) {
            make_strange(word, &seed);
            snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s%s", *text ? " " : "",
                     word);
        }
        const struct ask_opts o = {
            .text = text, .text_bytes = strlen(text), .conversation = "noise", .no_reply = true};
        assert_int_equal(ask_submit(ask, &o, &q, &e), 0);
        assert_int_equal(ask_wait(q), 0);
        const struct ask_plan *p = ask_plan_of(q);
        for (uint32_t i = 0; i < p->n_actions; i++)
            if (changes(p->actions[i]))
                fail_msg("%s: %s", text, p->actions[i]->name);
        ask_free(q);
    }
}

static void test_strange_words_are_counted(void **state)
{
    (void)state;
    assert_true(home_table_knows(pack.table, "brightness"));
    assert_true(home_table_knows(pack.table, "brigthness"));
    assert_true(home_table_knows(pack.table, "twenty-one"));
    assert_false(home_table_knows(pack.table, "qwrtz"));
    assert_false(home_table_knows(pack.table, "zpk"));
    assert_true(home_file_near_word(file, "fermentr"));
    is("zpk qwrtz", NULL, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_rang_rings_again),
        cmocka_unit_test(test_a_name_among_other_words),
        cmocka_unit_test(test_noise_changes_nothing),
        cmocka_unit_test(test_strange_words_are_counted),
        cmocka_unit_test(test_plans_are_read),
        cmocka_unit_test(test_what_is_no_plan_is_refused),
        cmocka_unit_test(test_what_is_meant_has_a_line),
        cmocka_unit_test(test_users_cannot_write_plans),
        cmocka_unit_test(test_what_plans_come_to),
        cmocka_unit_test(test_things_named_together),
        cmocka_unit_test(test_guesses_against_the_text),
        cmocka_unit_test(test_classes_beside_things),
        cmocka_unit_test(test_undo_and_again),
        cmocka_unit_test(test_rooms_that_stay_are_named),
        cmocka_unit_test(test_a_plan_that_is_not_sure_waits),
        cmocka_unit_test(test_a_little_is_a_step),
        cmocka_unit_test(test_a_bare_number_for_a_room_asks),
        cmocka_unit_test(test_other_questions),
        cmocka_unit_test(test_a_time_in_front_of_a_repetition),
        cmocka_unit_test(test_which_of_one),
        cmocka_unit_test(test_hints),
        cmocka_unit_test(test_what_the_server_knows),
        cmocka_unit_test(test_readings_are_rounded),
        cmocka_unit_test(test_an_answer_completes_the_last_plan),
        cmocka_unit_test(test_plans_account_for_numbers_and_rooms),
        cmocka_unit_test(test_what_is_left_out_is_named),
        cmocka_unit_test(test_places),
        cmocka_unit_test(test_verbs_that_the_rules_do_not_have),
        cmocka_unit_test(test_what_the_rules_ask_about),
        cmocka_unit_test(test_a_slip_is_not_the_opposite),
        cmocka_unit_test(test_lists),
        cmocka_unit_test(test_questions_do_nothing),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
