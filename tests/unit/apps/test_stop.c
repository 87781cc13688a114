/* test_stop.c - what a text stops, and what it does not: the rows of tests/data/ask/stop, and cases
 * of the reader. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cjson/cJSON.h>
#include <cmocka.h>

#include "apps/home/site/home_file_read.h"
#include "apps/home/stop/stop.h"

#define DATA SHOAL_TEST_DATA "/ask/stop/"
#define MAX_SITES 8u

static struct home_table *table;
static struct site {
    char name[32];
    struct home_file *file;
} sites[MAX_SITES];
static uint32_t n_sites;

static int setup(void **state)
{
    struct err e = {0};
    (void)state;
    if (home_table_open(&table, SHOAL_TEST_DATA "/../../models/home.json", &e) < 0) {
        print_error("%s\n", e.msg);
        return -1;
    }
    return 0;
}

static struct home_file *site_of(const char *name)
{
    struct err e = {0};
    char path[512];
    for (uint32_t i = 0; i < n_sites; i++)
        if (strcmp(sites[i].name, name) == 0)
            return sites[i].file;
    assert_true(n_sites < MAX_SITES);
    struct site *s = &sites[n_sites];
    snprintf(s->name, sizeof(s->name), "%s", name);
    snprintf(path, sizeof(path), DATA "%s.yaml", name);
    if (home_file_read_path(&s->file, table, path, &e) < 0)
        fail_msg("%s", e.msg);
    n_sites++;
    return s->file;
}

static struct found {
    struct arena a;
    struct stop s;
    bool stops;
} found; /* of the last text */

static struct found *read_text(const char *site, const char *text, const struct home_focus *focus)
{
    arena_fini(&found.a);
    arena_init(&found.a, (size_t)8 << 20);
    const struct stop_query q = {
        .t = table, .file = site ? site_of(site) : NULL, .focus = focus, .text = text};
    found.stops = stop_read(&found.a, &q, &found.s);
    return &found;
}

static int teardown(void **state)
{
    (void)state;
    arena_fini(&found.a);
    for (uint32_t i = 0; i < n_sites; i++)
        home_file_unref(sites[i].file);
    home_table_close(table);
    return 0;
}

static bool has_thing(const struct stop *s, const char *id)
{
    for (uint32_t i = 0; i < s->n_things; i++)
        if (strcmp(s->things[i]->id, id) == 0)
            return true;
    return false;
}

/* Does it stop what the row wants, or more? Stopping too much is no harm; too little is. */
static bool stops_all_of(const struct stop *s, const cJSON *want)
{
    const cJSON *id;
    if (s->what == STOP_EVERYTHING || !cJSON_IsArray(want))
        return s->what == STOP_EVERYTHING;
    cJSON_ArrayForEach(id, want)
    {
        if (!has_thing(s, id->valuestring))
            return false;
    }
    return true;
}

struct count {
    uint32_t rows, stopped, right, exact;
};

static struct count read_rows(const char *file)
{
    struct count c = {0};
    char path[512], line[4096];
    snprintf(path, sizeof(path), DATA "%s", file);
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    while (fgets(line, sizeof(line), f)) {
        cJSON *row = cJSON_Parse(line);
        assert_non_null(row);
        const cJSON *text = cJSON_GetObjectItem(row, "text"),
                    *want = cJSON_GetObjectItem(row, "stops");
        struct arena a;
        struct stop s;
        arena_init(&a, (size_t)8 << 20);
        const struct stop_query q = {.t = table,
                                     .file = site_of(cJSON_GetObjectItem(row, "site")->valuestring),
                                     .text = text->valuestring};
        bool stopped = stop_read(&a, &q, &s), right = stopped && stops_all_of(&s, want);
        c.rows++;
        c.stopped += stopped;
        c.right += right;
        c.exact += right &&
                   (cJSON_IsArray(want)
                        ? s.what == STOP_THINGS && s.n_things == (uint32_t)cJSON_GetArraySize(want)
                        : true);
        if (want ? !right : stopped)
            print_message("%s: %s\n", want ? "not stopped" : "stopped", text->valuestring);
        assert_int_equal(a.rc, 0);
        arena_fini(&a);
        cJSON_Delete(row);
    }
    fclose(f);
    return c;
}

static void test_stops_are_obeyed(void **state)
{
    (void)state;
    struct count c = read_rows("stops.jsonl");
    print_message("%u of %u stops obeyed, %u of them exactly\n", c.right, c.rows, c.exact);
    assert_true(c.rows >= 1000);
    assert_true(c.right * 100 >= c.rows * 99);
    assert_true(c.exact * 100 >= c.rows * 97);
}

static void test_other_texts_stop_nothing(void **state)
{
    (void)state;
    struct count c = read_rows("others.jsonl");
    assert_true(c.rows >= 200);
    assert_int_equal(c.stopped, 0);
}

static void test_only_what_rests_safely(void **state)
{
    (void)state;
    struct found *f = read_text("home", "stop everything", NULL);
    assert_int_equal(f->s.what, STOP_EVERYTHING);
    assert_true(has_thing(&f->s, "treadmill"));
    assert_true(has_thing(&f->s, "garage_door"));
    assert_true(has_thing(&f->s, "tv"));
    assert_false(has_thing(&f->s, "freezer"));
    assert_false(has_thing(&f->s, "front_door"));
    assert_false(has_thing(&f->s, "kitchen_lights"));
    /* a switch by its name, but not with everything: who knows what hangs on it, unless the name
     * says that it is dangerous */
    assert_true(has_thing(&read_text("workshop", "stop the sander", NULL)->s, "sander_plug"));
    assert_true(has_thing(&read_text("workshop", "stop the bench outlet", NULL)->s, "bench_plug"));
    assert_false(has_thing(&read_text("workshop", "stop everything", NULL)->s, "bench_plug"));
    assert_true(has_thing(&read_text("workshop", "stop everything", NULL)->s, "sander_plug"));
    assert_false(read_text("kitchen", "stop the walk-in freezer", NULL)->stops);
}

static void test_unclear_names_stop_all_of_them(void **state)
{
    (void)state;
    struct found *f = read_text("workshop", "stop the saw", NULL);
    assert_int_equal(f->s.n_things, 2);
    f = read_text("boat", "stop both engines", NULL);
    assert_int_equal(f->s.n_things, 2);
    f = read_text("brewery", "kill the power in the brewhouse", NULL);
    assert_true(has_thing(&f->s, "mash_rake"));
    assert_false(has_thing(&f->s, "bottling_line"));
    assert_int_equal(f->s.way, HOME_STOP_POWER);
    f = read_text("brewery", "stop the pump in the cellar", NULL);
    assert_int_equal(f->s.n_things, 1);
    assert_string_equal(f->s.things[0]->id, "fv1_pump");
    assert_string_equal(f->s.room, "cellar");
}

static void test_it(void **state)
{
    const struct home_focus lathe = {.machine = "lathe"}, lights = {.device = "lights"};
    (void)state;
    struct found *f = read_text("workshop", "stop it", &lathe);
    assert_int_equal(f->s.what, STOP_THINGS);
    assert_string_equal(f->s.things[0]->id, "lathe");
    assert_int_equal(read_text("workshop", "stop it", NULL)->s.what, STOP_EVERYTHING);
    assert_false(read_text("workshop", "turn it off", &lights)->stops);
    assert_false(read_text("workshop", "turn it off", NULL)->stops);
    assert_true(read_text("workshop", "turn it off", &lathe)->stops);
}

static void test_other_commands_beside_it(void **state)
{
    (void)state;
    assert_false(read_text("workshop", "stop the lathe and turn on the radio", NULL)->stops);
    assert_true(read_text("workshop", "stop the lathe and call an ambulance", NULL)->stops);
    assert_false(read_text("kitchen", "turn off the hood and the lights", NULL)->stops);
}

static void test_things_that_are_not_listed(void **state)
{
    (void)state;
    assert_false(read_text("home", "stop the palletizer", NULL)->stops);
    assert_false(read_text("home", "stop talking", NULL)->stops);
    /* without a home, only everything */
    assert_int_equal(read_text(NULL, "stop", NULL)->s.what, STOP_EVERYTHING);
    assert_false(read_text(NULL, "stop the saw", NULL)->stops);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_stops_are_obeyed),
        cmocka_unit_test(test_other_texts_stop_nothing),
        cmocka_unit_test(test_only_what_rests_safely),
        cmocka_unit_test(test_unclear_names_stop_all_of_them),
        cmocka_unit_test(test_it),
        cmocka_unit_test(test_other_commands_beside_it),
        cmocka_unit_test(test_things_that_are_not_listed),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
