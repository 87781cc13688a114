/* test_home_table.c - tables of the home flow: what is refused and where, and a second table,
 * for another language and domain, with its actions. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "apps/home/read/read_acts.h"
#include "apps/home/home_values.h"

#define HEAD                                                                                       \
    "\"format\":\"shoal-home\",\"version\":2,\"name\":\"t\",\"language\":\"en\","                  \
    "\"models\":{\"reader\":\"e\",\"reply\":\"r\"},"                                               \
    "\"plans\":{\"classes\":{},\"quantities\":{},\"verbs\":{},\"states\":{}},"
#define LINES                                                                                      \
    "\"lines\":{\"act\":\"{action}\",\"failed\":\"{reason}\",\"ask\":\"{ask}\","                   \
    "\"chat\":\"{text}\",\"out_of_scope\":\"{text}\"}"
#define SLOTS                                                                                      \
    "\"slots\":{\"device\":{\"type\":\"text\"},\"n\":{\"type\":\"value\"},"                        \
    "\"for\":{\"type\":\"duration\"}},"
#define ACTIONS "\"actions\":{\"go\":{\"slots\":[\"device\"]},\"on\":{\"slots\":[]}},"

static void refused(const char *json, const char *why)
{
    struct home_table *t;
    struct err e = {0};
    int rc = home_table_parse(&t, json, strlen(json), &e);
    if (rc != SHOAL_EFORMAT || t || !strstr(e.msg, why))
        fail_msg("%s\n  code %d, \"%s\"\n  want \"%s\"", json, rc, e.msg, why);
}

static void test_smallest_table(void **state)
{
    (void)state;
    const char *json = "{" HEAD SLOTS ACTIONS LINES "}\n";
    struct home_table *t;
    struct err e = {0};
    if (home_table_parse(&t, json, strlen(json), &e) < 0)
        fail_msg("%s", e.msg);
    assert_string_equal(t->reader, "e");
    assert_int_equal(t->n_actions, 2);
    assert_int_equal(t->together, 1);
    assert_non_null(home_table_action(t, "go"));
    assert_null(home_table_action(t, "come"));
    home_table_close(t);
}

static void test_bad_tables_are_refused_with_their_place(void **state)
{
    (void)state;
    static const struct {
        const char *json, *why;
    } cases[] = {
        {"", "not JSON"},
        {"{\"format\":", "not JSON"},
        {"[]", "expected an object"},
        {"{} {}", "more text after"},
        {"{\"format\":\"shoal-home\"}", "\"version\" is missing"},
        {"{" HEAD SLOTS ACTIONS LINES ",\"colour\":1}", "colour: unknown key"},
        {"{" HEAD SLOTS SLOTS ACTIONS LINES "}", "slots: this key occurs twice"},
        {"{\"format\":\"other\",\"version\":2,\"name\":\"t\",\"language\":\"en\",\"models\":{},"
         "\"plans\":{}," SLOTS ACTIONS LINES "}",
         "format: the format must be"},
        {"{\"format\":\"shoal-home\",\"version\":1,\"labels\":{}}", "for an encoder"},
        {"{" HEAD "\"slots\":{\"a b\":{\"type\":\"text\"}}," ACTIONS LINES "}", "white space"},
        {"{" HEAD "\"slots\":{\"result\":{\"type\":\"text\"}}," ACTIONS LINES "}",
         "slots.result: this cannot be the name"},
        {"{" HEAD "\"slots\":{\"d\":{\"type\":\"thing\"}}," ACTIONS LINES "}",
         "slots.d.type: the type must be"},
        {"{" HEAD "\"slots\":{\"d\":{\"type\":\"time\",\"lower\":true}}," ACTIONS LINES "}",
         "slots.d: only a slot"},
        {"{" HEAD "\"slots\":{\"d\":{\"type\":\"text\",\"several_until\":\"x\"}}," ACTIONS LINES
         "}",
         "slots.d.several_until: unknown slot \"x\""},
        {"{" HEAD SLOTS "\"actions\":{\"go\":{\"slots\":[\"device\",\"room\"]}}," LINES "}",
         "actions.go.slots[1]: unknown slot \"room\""},
        {"{" HEAD SLOTS "\"actions\":{\"go\":{\"slots\":[\"n\",\"n\"]}}," LINES "}",
         "actions.go.slots[1]: this slot occurs twice"},
        {"{" HEAD SLOTS "\"actions\":{\"go\":{\"slots\":[],\"needs\":[\"n\"]}}," LINES "}",
         "actions.go.needs: the action does not have the slot \"n\""},
        {"{" HEAD SLOTS "\"actions\":{\"go\":{\"slots\":[],\"unit\":\"bar\"}}," LINES "}",
         "actions.go.unit: unknown unit \"bar\""},
        {"{" HEAD SLOTS "\"actions\":{\"go\":{\"slots\":[],\"wait\":true}}," LINES "}",
         "actions.go.wait: unknown key; known: slots needs can_wait"},
        {"{" HEAD SLOTS "\"actions\":{\"go\":{\"slots\":[],\"can_wait\":1}}," LINES "}",
         "actions.go.can_wait: expected true or false"},
        {"{" HEAD SLOTS "\"actions\":{\"go\":{\"slots\":[],\"answer\":\"{who}\"}}," LINES "}",
         "actions.go.answer: unknown placeholder {who}"},
        {"{" HEAD SLOTS "\"actions\":{\"go\":{\"slots\":[],\"answer\":\"{month}\"}}," LINES "}",
         "actions.go.answer: unknown placeholder {month}"},
        {"{" HEAD SLOTS "\"actions\":{\"go\":{\"slots\":[],\"answer\":\"{year\"}}," LINES "}",
         "unbalanced { or }"},
        {"{" HEAD SLOTS "\"actions\":{\"go\":{\"slots\":[],\"answer\":\"a[b\"}}," LINES "}",
         "unbalanced [ or ]"},
        {"{" HEAD SLOTS "\"actions\":{\"go\":{\"slots\":[],\"answer\":\"[a[b]]\"}}," LINES "}",
         "unbalanced [ or ]"},
        {"{" HEAD SLOTS
         "\"actions\":{\"go\":{\"slots\":[\"device\"],\"compute\":\"device\"}}," LINES "}",
         "compute needs an answer"},
        {"{" HEAD SLOTS
         "\"actions\":{\"go\":{\"slots\":[],\"answer\":\"x\",\"reason\":\"y\"}}," LINES "}",
         "actions.go: reason_if"},
        {"{" HEAD SLOTS ACTIONS LINES ",\"words\":{\"articles\":[\"The\"]}}",
         "words.articles[0]: \"The\" must be lower case"},
        {"{" HEAD SLOTS ACTIONS LINES ",\"words\":{\"articles\":[\"\"]}}",
         "words.articles[0]: the string is empty"},
        {"{" HEAD SLOTS ACTIONS LINES ",\"words\":{\"articles\":\"the\"}}",
         "words.articles: expected a list"},
        {"{" HEAD SLOTS ACTIONS LINES ",\"when\":[{\"slot\":\"n\"}]}", "when[0]: the slot must be"},
        {"{" HEAD SLOTS ACTIONS LINES
         ",\"defaults\":[{\"actions\":[\"on\"],\"slot\":\"device\",\"value\":\"x\"}]}",
         "defaults[0].actions[0]: this action does not have the slot"},
        {"{" HEAD SLOTS ACTIONS LINES
         ",\"defaults\":[{\"actions\":[\"go\",\"go\"],\"slot\":\"device\",\"value\":\"x\"}]}",
         "defaults[0].actions[1]: this action occurs twice"},
        {"{" HEAD SLOTS ACTIONS LINES ",\"defaults\":[{\"actions\":[\"go\"],\"slot\":\"device\"}]}",
         "defaults[0]: \"value\" is missing"},
        {"{" HEAD SLOTS ACTIONS LINES ",\"opposites\":[[\"go\"]]}",
         "opposites[0]: expected two actions"},
        {"{" HEAD SLOTS ACTIONS LINES ",\"numbers\":{\"words\":{\"one\":1.5}}}",
         "numbers.words.one: expected a whole number"},
        {"{" HEAD SLOTS ACTIONS LINES ",\"units\":{\"p\":{\"words\":[\"%\"],\"show\":\"{m}\"}}}",
         "units.p.show: unknown placeholder {m}"},
        {"{" HEAD SLOTS ACTIONS LINES ",\"units\":{\"p\":{\"words\":[\"%\"],\"show\":\"{n}\","
         "\"factor\":0}}}",
         "units.p.factor"},
        {"{" HEAD SLOTS ACTIONS LINES ",\"units\":{\"p\":{\"words\":[\"p\"],\"show\":\"{n}\","
         "\"vague\":[\"p\"]}}}",
         "units.p: \"p\" is a word of two units"},
        /* a rule that can never apply is a mistake that nobody would notice */
        {"{" HEAD SLOTS ACTIONS LINES ",\"quantities\":{\"heat\":{\"units\":[\"c\"]}}}",
         "quantities.heat.units[0]: unknown unit \"c\""},
        {"{" HEAD SLOTS ACTIONS LINES ",\"quantities\":{\"heat\":{\"units\":[]}}}",
         "quantities.heat.units: a quantity needs a unit"},
        {"{" HEAD SLOTS ACTIONS LINES ",\"kinds\":{\"oven\":{\"is\":\"heater\"}}}",
         "kinds.oven.is: unknown kind \"heater\""},
        {"{" HEAD SLOTS ACTIONS LINES ",\"kinds\":{\"oven\":{\"is\":\"oven\"}}}",
         "kinds.oven.is: unknown kind \"oven\""},
        {"{" HEAD SLOTS ACTIONS LINES ",\"kinds\":{\"oven\":{}}}",
         "kinds.oven: \"abilities\" is missing"},
        {"{" HEAD SLOTS ACTIONS LINES ",\"risk\":{\"rest\":[{\"kinds\":[\"dor\"]}]}}",
         "risk.rest[0]: unknown kind \"dor\""},
        {"{" HEAD SLOTS ACTIONS LINES
         ",\"risk\":{\"dangerous\":{\"rules\":[{\"abilities\":[\"lok\"]}]}}}",
         "risk.dangerous.rules[0]: unknown ability \"lok\""},
        {"{" HEAD SLOTS ACTIONS LINES
         ",\"risk\":{\"dangerous\":{\"rules\":[{\"actions\":[\"stp\"]}]}}}",
         "risk.dangerous.rules[0]: unknown action \"stp\""},
        {"{" HEAD SLOTS ACTIONS LINES ",\"risk\":{\"dangerous\":{\"rules\":[{\"to\":[\"opn\"]}]}}}",
         "risk.dangerous.rules[0]: no action sets the state \"opn\""},
        {"{" HEAD SLOTS ACTIONS LINES ",\"risk\":{\"dangerous\":{\"confirm\":true,\"rules\":[]}}}",
         "risk: confirm needs the line says.confirm"},
        {"{" HEAD SLOTS ACTIONS LINES ",\"limits\":[{\"unit\":\"c\",\"min\":1,\"max\":2}]}",
         "limits[0].unit: unknown unit \"c\""},
        {"{" HEAD SLOTS ACTIONS LINES ",\"limits\":[{\"min\":1,\"max\":2}]}",
         "limits[0]: \"unit\" is missing"},
        {"{" HEAD SLOTS ACTIONS LINES ",\"times\":{\"words\":{\"noon\":\"24:00\"}}}",
         "times.words: \"24:00\" is not a time"},
        {"{" HEAD SLOTS ACTIONS LINES ",\"dates\":{\"weekdays\":[],\"months\":[]}}",
         "dates: expected 7 weekdays"},
        {"{" HEAD SLOTS ACTIONS LINES ",\"arithmetic\":{\"operators\":{\"power\":\"^\"}}}",
         "arithmetic.operators: \"^\" is not one of"},
        {"{" HEAD SLOTS ACTIONS LINES ",\"durations\":{\"units\":[{\"seconds\":1}]}}",
         "durations.units[0]: \"words\" is missing"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        refused(cases[i].json, cases[i].why);
}

/* The example in models/home.md is a valid table. */
static void test_the_example_of_the_card(void **state)
{
    (void)state;
    static char text[1 << 16];
    struct home_table *t;
    struct err e = {0};
    FILE *f = fopen(SHOAL_TEST_DATA "/../../models/home.md", "re");
    assert_non_null(f);
    text[fread(text, 1, sizeof(text) - 1, f)] = '\0';
    fclose(f);
    char *json = strstr(text, "```json\n"), *end = json ? strstr(json + 8, "```") : NULL;
    assert_non_null(end);
    if (home_table_parse(&t, json + 8, (size_t)(end - json - 8), &e) < 0)
        fail_msg("%s", e.msg);
    assert_int_equal(t->n_actions, 3);
    home_table_close(t);
}

static void test_limits(void **state)
{
    (void)state;
    struct home_table *t;
    struct err e = {0};
    size_t n = HOME_TABLE_MAX_BYTES + 1;
    char *big = calloc(n + 1, 1);
    assert_non_null(big);
    memset(big, ' ', n);
    assert_int_equal(home_table_parse(&t, big, n, &e), SHOAL_ELIMIT);
    size_t at =
        (size_t)sprintf(big, "{%s\"words\":{\"articles\":[\"a\"", HEAD SLOTS ACTIONS LINES ",");
    for (int i = 0; i < 2048; i++)
        at += (size_t)sprintf(big + at, ",\"w%d\"", i);
    sprintf(big + at, "]}}");
    refused(big, "words.articles: 2049 entries are too many; the maximum is 2048");
    at = (size_t)sprintf(big, "{%s\"you\":", HEAD SLOTS ACTIONS LINES ",");
    for (int i = 0; i < 100; i++)
        at += (size_t)sprintf(big + at, "[");
    for (int i = 0; i < 100; i++)
        at += (size_t)sprintf(big + at, "]");
    sprintf(big + at, "}");
    refused(big, "nested deeper");
    free(big);
    assert_int_equal(home_table_open(&t, "/nowhere/table.json", &e), SHOAL_EIO);
    assert_non_null(strstr(e.msg, "/nowhere/table.json"));
}

/* ---- a factory in German -------------------------------------------------------------------- */

#define WERK SHOAL_TEST_DATA "/ask/werk.json"

static struct home_table *open_werk(void)
{
    struct home_table *t;
    struct err e = {0};
    if (home_table_open(&t, WERK, &e) < 0)
        fail_msg("%s", e.msg);
    return t;
}

/* The plan of a text in a home without things: actions as JSON, then context lines. */
static void comes_to(struct arena *a, const struct home_table *t, const char *text,
                     const char *plan, const char *want)
{
    static const struct read_lines_state none;
    static const struct home_here nowhere;
    struct home_draft draft = {0};
    struct tm now = {.tm_mday = 3, .tm_mon = 2, .tm_year = 126, .tm_wday = 2};
    struct read_lines lines;
    struct read_plan p;
    struct buf b;
    buf_init(&b, 1 << 16);
    assert_int_equal(read_lines_choose(&lines, a, t, NULL, &none, text), 0);
    assert_true(read_plan_of(&p, plan));
    struct read_work w = {.a = a,
                          .t = t,
                          .here = &nowhere,
                          .now = &now,
                          .lines = &lines,
                          .state = &none,
                          .text = text,
                          .p = 1.0f,
                          .draft = &draft};
    read_acts(&w, &p);
    for (uint32_t i = 0; i < draft.n_actions; i++) {
        struct json_out j = json_out_make(&b);
        ask_plan_action_json(&j, draft.actions[i]);
        buf_putc(&b, '\n');
    }
    for (uint32_t i = 0; i < draft.n_lines; i++)
        buf_printf(&b, "%s\n", draft.lines[i].text ? draft.lines[i].text : draft.lines[i].say);
    assert_string_equal(buf_str(&b), want);
    buf_fini(&b);
}

static void test_another_language_and_domain(void **state)
{
    (void)state;
    struct home_table *t = open_werk();
    struct arena a;
    arena_init(&a, 1 << 20);
    comes_to(&a, t, "Starte die Pumpe 3 in der Halle in einundzwanzig Minuten",
             "start unknown w2 w3 in w8 w9",
             "{\"action\":\"starten\",\"device\":\"pumpe 3\",\"in_s\":1260,"
             "\"id\":\"pumpe_3\",\"result\":\"scheduled\"}\n"
             "tun: starten; device: pumpe 3; in: 21 Minuten; ergebnis: scheduled\n");
    comes_to(&a, t, "stelle das Förderband auf halb", "set unknown w2 w2 position to_value w4 w4",
             "{\"action\":\"einstellen\",\"device\":\"förderband\",\"value\":50,"
             "\"unit\":\"prozent\",\"id\":\"f_rderband\",\"result\":\"done\"}\n"
             "tun: einstellen; device: förderband; value: 50 %; ergebnis: done\n");
    comes_to(&a, t, "stelle das Förderband ein", "set unknown w2 w2 position",
             "{\"action\":\"einstellen\",\"device\":\"förderband\",\"id\":\"f_rderband\","
             "\"result\":\"ask\",\"ask\":\"value\"}\n"
             "frage: value; tun: einstellen; device: förderband\n");
    comes_to(&a, t, "welcher Tag ist heute", "other date",
             "{\"action\":\"datum\",\"result\":\"done\"}\nDatum: Dienstag, 3. März 2026\n");
    comes_to(&a, t, "schönes Wetter", "none talk", "fremd: schönes Wetter\n");
    assert_string_equal(home_values_clock(&a, t, "Viertel nach 7 abends").text, "19:15");
    assert_string_equal(home_values_clock(&a, t, "18:30 Uhr").text, "18:30");
    assert_string_equal(home_values_date(&a, t, "am 3. märz").text, "3 März");
    assert_true(home_values_duration(&a, t, "einer halben Stunde").number == 1800);
    assert_int_equal(a.rc, 0);
    arena_fini(&a);
    home_table_close(t);
}

static void test_failed_allocations_leave_nothing(void **state)
{
    (void)state;
    for (uint64_t i = 1;; i++) {
        struct home_table *t;
        struct err e = {0};
        mem_fail_at(i);
        int rc = home_table_open(&t, WERK, &e);
        mem_fail_at(0);
        if (rc == 0) {
            assert_true(i > 10);
            home_table_close(t);
            break;
        }
        assert_int_equal(rc, SHOAL_ENOMEM);
        assert_null(t);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_smallest_table),
        cmocka_unit_test(test_bad_tables_are_refused_with_their_place),
        cmocka_unit_test(test_the_example_of_the_card),
        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_another_language_and_domain),
        cmocka_unit_test(test_failed_allocations_leave_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
