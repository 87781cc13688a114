/* test_home_tongues.c - the tables of other languages: numbers, durations and times as people say
 * them, what stops and what does not, and that each says all that the English one says. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cjson/cJSON.h>
#include <cmocka.h>

#include "apps/home/home_values.h"
#include "apps/home/later/home_due.h"
#include "apps/home/site/home_file_read.h"
#include "apps/home/stop/stop.h"
#include "apps/home/table/home_table_base.h"

enum tongue { EN, DE, FR, ES, TONGUES };

static const char *const names[] = {"home", "home-de", "home-fr", "home-es"};
static struct home_table *tables[TONGUES];

static int setup(void **state)
{
    struct err e = {0};
    char path[512];
    (void)state;
    for (uint32_t i = 0; i < TONGUES; i++) {
        snprintf(path, sizeof(path), SHOAL_TEST_DATA "/../../models/%s.json", names[i]);
        if (home_table_open(&tables[i], path, &e) < 0) {
            print_error("%s\n", e.msg);
            return -1;
        }
    }
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < TONGUES; i++)
        home_table_close(tables[i]);
    return 0;
}

static void test_all_is_said(void **state)
{
    (void)state;
    for (uint32_t i = DE; i < TONGUES; i++) {
        const struct home_table *t = tables[i];
        assert_null(t->reply); /* the reply model is English */
        for (uint32_t k = 0; k < HOME_SAY_COUNT; k++)
            if (tables[EN]->say[k].n > 0 && t->say[k].n == 0)
                fail_msg("%s lacks line %u of says", names[i], k);
        for (uint32_t k = 0; k < tables[EN]->n_actions; k++) {
            const struct home_action *x = home_table_action(t, tables[EN]->action[k].name);
            assert_non_null(x);
            if (strcmp(x->say.parts[0].text ? x->say.parts[0].text : "",
                       tables[EN]->action[k].say.parts[0].text) == 0)
                fail_msg("%s: %s is still said in English", names[i], x->name);
        }
        for (uint32_t k = 0; k < tables[EN]->plans.n_classes; k++) { /* in the same order */
            const struct home_class *c = &t->plans.classes[k], *en = &tables[EN]->plans.classes[k];
            assert_string_equal(c->name, en->name);
            if (en->words.n > 0 && c->words.w[0] && strcmp(c->words.w[0], en->words.w[0]) == 0 &&
                strcmp(c->name, "door") == 0)
                fail_msg("%s: %s has English words", names[i], c->name);
        }
    }
}

static void test_values(void **state)
{
    (void)state;
    static const struct {
        enum tongue in;
        const char *text;
        double number;
        const char *unit;
    } values[] = {{DE, "21,5 Grad", 21.5, "celsius"},
                  {DE, "zweiundzwanzig Grad", 22, "celsius"},
                  {DE, "1.500 Umdrehungen", 1500, "rpm"},
                  {DE, "die Hälfte", 50, "percent"},
                  {DE, "das Maximum", 100, "percent"},
                  {DE, "minus 5 Grad", -5, "celsius"},
                  {FR, "vingt et un degrés", 21, "celsius"},
                  {FR, "quatre-vingt-dix pour cent", 90, "percent"},
                  {FR, "la moitié", 50, "percent"},
                  {ES, "treinta y cinco por ciento", 35, "percent"},
                  {ES, "al máximo", 100, "percent"},
                  {ES, "19,5 grados", 19.5, "celsius"}};
    static const struct {
        enum tongue in;
        const char *text;
        double seconds;
    } durations[] = {{DE, "eine Viertelstunde", 900},   {DE, "anderthalb Stunden", 5400},
                     {DE, "einer halben Stunde", 1800}, {DE, "zwölf Minuten", 720},
                     {FR, "une heure et demie", 5400},  {FR, "trois quarts d'heure", 2700},
                     {FR, "une demi-heure", 1800},      {ES, "hora y media", 5400},
                     {ES, "media hora", 1800},          {ES, "tres días", 259200}};
    static const struct {
        enum tongue in;
        const char *text, *time;
    } times[] = {{DE, "halb sieben", "06:30"},
                 {DE, "Viertel nach acht", "08:15"},
                 {DE, "zehn vor neun", "08:50"},
                 {DE, "7 Uhr 30", "07:30"},
                 {DE, "sieben Uhr abends", "19:00"},
                 {FR, "sept heures et demie", "07:30"},
                 {FR, "huit heures moins le quart", "07:45"},
                 {FR, "9 heures moins 10", "08:50"},
                 {FR, "18h30", "18:30"},
                 {FR, "7h", "07:00"},
                 {ES, "las siete y media", "07:30"},
                 {ES, "las ocho menos cuarto", "07:45"},
                 {ES, "la una y cuarto", "01:15"},
                 {ES, "las siete y media de la tarde", "19:30"}};
    struct arena a;
    arena_init(&a, 1 << 20);
    for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
        struct home_value v =
            home_values_amount(&a, tables[values[i].in], values[i].text, true, NULL);
        if (!v.understood || v.number != values[i].number || !v.unit ||
            strcmp(v.unit, values[i].unit) != 0)
            fail_msg("\"%s\" is %g %s", values[i].text, v.number, v.unit ? v.unit : "-");
    }
    for (size_t i = 0; i < sizeof(durations) / sizeof(durations[0]); i++) {
        struct home_value v = home_values_duration(&a, tables[durations[i].in], durations[i].text);
        if (!v.understood || v.number != durations[i].seconds)
            fail_msg("\"%s\" is %g s", durations[i].text, v.number);
    }
    for (size_t i = 0; i < sizeof(times) / sizeof(times[0]); i++) {
        struct home_value v = home_values_clock(&a, tables[times[i].in], times[i].text);
        if (!v.understood || strcmp(v.text, times[i].time) != 0)
            fail_msg("\"%s\" is %s", times[i].text, v.text);
    }
    arena_fini(&a);
}

static void test_dates(void **state)
{
    (void)state;
    static const struct {
        enum tongue in;
        const char *text;
        enum home_due_date is;
    } rows[] = {{EN, "tomorrow", HOME_DUE_READ},     {EN, "the 1st of may", HOME_DUE_READ},
                {EN, "hundred am", HOME_DUE_UNREAD}, {EN, "yesterday", HOME_DUE_PAST},
                {DE, "übermorgen", HOME_DUE_READ},   {DE, "gestern", HOME_DUE_PAST},
                {FR, "demain soir", HOME_DUE_READ},  {FR, "lundi dernier", HOME_DUE_PAST},
                {ES, "el viernes", HOME_DUE_READ},   {ES, "anoche", HOME_DUE_PAST}};
    struct arena a;
    struct tm now = {.tm_year = 126, .tm_mon = 10, .tm_mday = 17, .tm_hour = 9, .tm_wday = 2};
    arena_init(&a, 1 << 20);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        if (home_due_date(&a, tables[rows[i].in], rows[i].text, &now) != rows[i].is)
            fail_msg("\"%s\"", rows[i].text);
    arena_fini(&a);
}

static void test_stops(void **state)
{
    (void)state;
    static const char *const homes[TONGUES] = {
        [DE] = "machines: [{id: s, name: Bandsäge, kind: machine}, {id: p, name: Presse 2, kind: "
               "machine}]\n"
               "devices: [{id: f, name: Deckenventilator, kind: fan}, {id: l, name: Licht, kind: "
               "light}]\n",
        [FR] = "machines: [{id: s, name: scie à ruban, kind: machine}, {id: p, name: presse 2, "
               "kind: machine}]\n"
               "devices: [{id: f, name: ventilateur, kind: fan}, {id: l, name: lampe, kind: "
               "light}, {id: v, name: aspirateur, kind: vacuum}]\n",
        [ES] = "machines: [{id: s, name: sierra de cinta, kind: machine}, {id: p, name: prensa 2, "
               "kind: machine}]\n"
               "devices: [{id: f, name: ventilador, kind: fan}, {id: l, name: lámpara, kind: "
               "light}]\n"};
    static const struct {
        enum tongue in;
        const char *text;
        uint32_t stops; /* things; 0: nothing */
    } rows[] = {{DE, "Stopp die Bandsäge!", 1},
                {DE, "halt sofort die Presse 2 an", 1},
                {DE, "Bandsäge stopp, da ist jemand eingeklemmt", 1},
                {DE, "schalt den Deckenventilator ab", 1},
                {DE, "Not-Aus!", 3},
                {DE, "Halt! Stopp!", 3},
                {DE, "stopp die Bandsäge nicht", 0},
                {DE, "gestern musste ich die Bandsäge stoppen", 0},
                {DE, "warum hält die Presse 2 an?", 0},
                {DE, "stopp die Bandsäge in 10 Minuten", 0},
                {DE, "mach das Licht aus", 0},
                {DE, "halt mal kurz die Luft an", 0},
                {FR, "arrête la scie à ruban !", 1},
                {FR, "stoppez tout de suite la presse 2", 1},
                {FR, "arrête l'aspirateur", 1},
                {FR, "arrêt d'urgence", 4},
                {FR, "au secours, arrêtez tout", 4},
                {FR, "n'arrête pas la scie à ruban", 0},
                {FR, "arrête la scie à ruban dans 10 minutes", 0},
                {FR, "pourquoi la presse 2 s'arrête ?", 0},
                {FR, "où est l'arrêt de bus ?", 0},
                {FR, "arrête de parler", 0},
                {ES, "para la sierra de cinta", 1},
                {ES, "detén la prensa 2 ahora mismo", 1},
                {ES, "parada de emergencia", 3},
                {ES, "¡alto! hay alguien dentro", 3},
                {ES, "no pares la sierra de cinta", 0},
                {ES, "para la sierra de cinta en 10 minutos", 0},
                {ES, "esto es para mí", 0},
                {ES, "¿por qué para la prensa 2?", 0}};
    struct err e = {0};
    struct home_file *files[TONGUES] = {NULL};
    for (uint32_t i = DE; i < TONGUES; i++)
        if (home_file_read_text(&files[i], tables[i], homes[i], strlen(homes[i]), "home", &e) < 0)
            fail_msg("%s", e.msg);
    uint32_t wrong = 0;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct arena a;
        struct stop s;
        arena_init(&a, 1 << 20);
        const struct stop_query q = {
            .t = tables[rows[i].in], .file = files[rows[i].in], .text = rows[i].text};
        const uint32_t n = stop_read(&a, &q, &s) ? s.n_things : 0;
        if (n != rows[i].stops) {
            print_error("\"%s\" stops %u, expected %u\n", rows[i].text, n, rows[i].stops);
            wrong++;
        }
        arena_fini(&a);
    }
    assert_int_equal(wrong, 0);
    for (uint32_t i = DE; i < TONGUES; i++)
        home_file_unref(files[i]);
}

static void test_kinds_by_joined_names(void **state)
{
    (void)state;
    assert_string_equal(home_table_kind_named(tables[DE], "küchenlampe")->name, "light");
    assert_string_equal(home_table_kind_named(tables[DE], "haustür")->name, "door");
    assert_string_equal(home_table_kind_named(tables[DE], "kaminofen")->name, "oven");
    assert_null(home_table_kind_named(tables[DE], "monitor")); /* not a "tor" */
    assert_null(home_table_kind_named(tables[EN], "keylock")); /* English joins no words */
}

static void test_language_of_a_home_file(void **state)
{
    (void)state;
    const char *text = "language: de\nrooms: [{id: k, name: Küche}]\n";
    struct home_file *f;
    struct err e = {0};
    assert_int_equal(home_file_read_text(&f, tables[DE], text, strlen(text), "x", &e), 0);
    home_file_unref(f);
    assert_int_equal(home_file_read_text(&f, tables[EN], text, strlen(text), "x", &e),
                     SHOAL_EFORMAT);
    assert_non_null(strstr(e.msg, "the home is in 'de'"));
}

static void merged(const char *base, const char *json, const char *want)
{
    struct err e = {0};
    char *out = NULL;
    if (home_table_base_merge(&out, base, strlen(base), json, strlen(json), &e) < 0)
        fail_msg("%s", e.msg);
    assert_string_equal(out, want);
    cJSON_free(out);
}

/* A home whose things have names in German, and an English one whose name says what it is. */
static void test_names_in_a_language(void **state)
{
    static const char text[] =
        "rooms: [{id: k, name: Kitchen, names: {de: Küche}}]\n"
        "devices:\n"
        "  - {id: l, name: lamp, kind: light, room: k, names: {de: [Hängelampe, Licht]}}\n"
        "  - {id: o, name: small oven, kind: heater, names: {de: Kiste}}\n"
        "scenes: [{id: s, names: {de: Abend}, sets: [{id: l, ability: power, to: 'off'}]}]\n";
    struct home_table *en, *de;
    struct home_file *f;
    struct err e = {0};
    (void)state;
    assert_int_equal(home_table_open(&en, SHOAL_TEST_DATA "/../../models/home.json", &e), 0);
    assert_int_equal(home_table_open(&de, SHOAL_TEST_DATA "/../../models/home-de.json", &e), 0);
    home_table_add(en, de);
    assert_ptr_equal(home_table_in(en, "DE-at"), de);
    assert_ptr_equal(home_table_in(en, NULL), en);
    assert_ptr_equal(home_table_in(en, ""), en); /* clients send empty fields */
    assert_null(home_table_in(en, "fr"));
    assert_int_equal(home_file_read_text(&f, en, text, strlen(text), "home", &e), 0);
    assert_ptr_equal(home_file_in(f, "en"), f);
    assert_ptr_equal(home_file_in(f, "fr"), f);
    const struct home_file *g = home_file_in(f, "de");
    assert_ptr_not_equal(g, f);
    const struct home_thing *lamp = home_file_thing(g, "l"), *oven = home_file_thing(g, "o");
    assert_string_equal(lamp->name, "Hängelampe");
    assert_string_equal(lamp->names.w[1], "licht");
    assert_string_equal(lamp->room->name, "Küche");
    assert_true(home_file_has_word(g, "hängelampe") && !home_file_has_word(g, "lamp"));
    assert_string_equal(home_file_thing(f, "l")->name, "lamp");
    assert_string_equal(oven->is->name, "oven"); /* as dangerous as in English */
    assert_ptr_equal(oven->is, home_table_kind(de, "oven"));
    assert_ptr_equal(home_file_thing(g, "s")->sets[0].thing, lamp);
    home_file_unref(f);
    static const char *const wrong[] = {"names: [a]", "names: {DE: a}", "names: {de: []}",
                                        "names: {de: {a: b}}", "names: {de: [[a]]}"};
    for (uint32_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        char bad[128];
        snprintf(bad, sizeof(bad), "rooms: [{id: a, %s}]\n", wrong[i]);
        assert_int_equal(home_file_read_text(&f, en, bad, strlen(bad), "home", &e), SHOAL_EFORMAT);
        assert_non_null(strstr(e.msg, "names"));
    }
    home_table_close(en);
}

static void test_base(void **state)
{
    (void)state;
    char name[8], *out;
    struct err e = {0};
    merged("{\"a\":{\"x\":[1],\"y\":2},\"b\":{\"k\":\"v\"},\"c\":1}",
           "{\"base\":\"home.json\",\"a\":{\"y\":3},\"b\":{\"l\":\"w\"},\"d\":[]}",
           "{\"a\":{\"x\":[1],\"y\":3},\"b\":{\"l\":\"w\"},\"c\":1,\"d\":[]}");
    assert_true(home_table_base_merge(&out, "{\"base\":\"a\"}", 12, "{}", 2, &e) < 0);
    assert_true(home_table_base_merge(&out, "[]", 2, "{}", 2, &e) < 0);
    assert_true(home_table_base_name("{\"base\":\"../x\"}", 15, name, sizeof(name), &e) < 0);
    assert_int_equal(home_table_base_name("{\"base\":\"x\"}", 12, name, sizeof(name), &e), 0);
    assert_string_equal(name, "x");
    assert_int_equal(home_table_base_name("{}", 2, name, sizeof(name), &e), 0);
    assert_string_equal(name, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_is_said),
        cmocka_unit_test(test_values),
        cmocka_unit_test(test_dates),
        cmocka_unit_test(test_stops),
        cmocka_unit_test(test_kinds_by_joined_names),
        cmocka_unit_test(test_language_of_a_home_file),
        cmocka_unit_test(test_names_in_a_language),
        cmocka_unit_test(test_base),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
